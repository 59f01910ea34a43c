"""Cutting a fixture log anywhere and merging gives what one pass gives; of any bytes the fuzz target ``splits`` tries it."""

from functools import reduce
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.identity import find_difference, plain_body
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import shipped
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import Segment
from tests.fuzz.feed import cut
from tests.tools.slow import one_in

ENGINE = Engine(shipped(), load_catalogue())
LOGS = sorted((Path(__file__).resolve().parents[2] / "fixtures" / "logs").glob("*/*.log"))


def closed(stretch: Segment) -> dict[str, object]:
    body, lines = ENGINE.finish(stretch)
    return {**plain_body(body), "lines": lines, "last": stretch.last_bytes, "size": stretch.size}


def assert_whole(log: bytes, stretch: Segment) -> None:
    assert find_difference(closed(stretch), closed(ENGINE.scan([log], whole=True))) is None


@pytest.mark.parametrize("path", one_in(4, LOGS), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_real_log_cut_at_odd_places(path: Path) -> None:
    log = path.read_bytes()[:40_000]
    step = max(1, len(log) // 23)
    parts = [ENGINE.scan([log[a : a + step]]) for a in range(0, len(log), step)]
    assert_whole(log, reduce(ENGINE.merge, parts))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(65_000, 140_000), st.sampled_from([b"\n", b"\r", b"\r\n", b""]), st.lists(st.integers(0, 300_000), max_size=5))
def test_a_record_over_the_cap_is_cut_the_same_way(size: int, end: bytes, places: list[int]) -> None:
    log = b"iter 1: loss 2.0, time 1.00ms\n" + b"y" * size + end + b"iter 2: loss 1.0, time 1.00ms\n"
    parts = [ENGINE.scan([part]) for part in cut(log, places)]
    assert_whole(log, reduce(ENGINE.merge, parts))
