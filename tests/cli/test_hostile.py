"""Small hostile logs of every kind: the run that is hidden in them is told right, or the end is the one that is documented."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.torture.__main__ import run
from benchmarks.torture.cases import CASES, Hostile
from benchmarks.torture.hidden import lines, wrong
from receipt_cli.io import compression as decompress

SMALL = [case for case in CASES if case.small]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_hostile(case: Hostile) -> None:
    outcome = run(case, case.small)
    assert outcome.fault is None
    assert outcome.receipt_bytes < 5 << 20  # a metric has its printed digits since receipt/1.4


def test_the_hidden_run_is_not_found_where_a_step_is_missing() -> None:
    assert wrong({"summary": None}) == "no summary"
    told = {"summary": {"steps": {"record_count": 399, "first": 0, "last": 399}, "metrics": {}}}
    assert str(wrong(told)).startswith("steps")
    assert len(set(lines())) == 400


@pytest.mark.parametrize(("size", "code"), [(99, 0), (101, 3)])
def test_what_unpacks_to_far_more_than_a_log_does(
    size: int, code: int, tmp_path: Path, invoke: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"".join(lines())
    text += b"\n" * (size * 10_000 - len(text))
    path = tmp_path / "run.log.gz"
    path.write_bytes(gzip.compress(text))
    monkeypatch.setattr(decompress, "BOMBS", ((1_000_000, 10),))
    done = invoke("parse", path, "--json")
    assert done.code == code
    if code:
        assert "decompresses to far more than a log does" in done.stderr
        assert "gzip -dc LOG | receipt parse -" in done.stderr
