"""The ledger of numeric cells closes, by a tokenizer of its own, and time adds up."""

from pathlib import Path

import pytest

from benchmarks.ledger import RESULTS, close, gap_of, held_up
from tests.tools.slow import one_in

ROOT = Path(__file__).resolve().parents[2]
LOGS = sorted(path.with_suffix("").with_suffix(".log") for path in (ROOT / "fixtures/logs").glob("*/*.receipt.json"))
SMALL = 200_000
"""Bytes of a log that is read line by line in a test; ``python -m benchmarks.ledger`` reads them all."""


def small(path: Path) -> bool:
    return path.is_file() and path.stat().st_size < SMALL


@pytest.mark.parametrize("path", one_in(4, filter(small, LOGS)), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_ledger_closes(path: Path) -> None:
    closing = close(path)
    assert (closing.outside, closing.differ) == ([], [])


def test_a_number_that_is_lost_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "run.log"
    log.write_text("".join(f"iter {n}: loss {4 - n / 50:.4f}, time 10.00ms, mfu 0.02%, foo={n}.5\n" for n in range(40)))
    assert close(log).numbers == 40 and not close(log).outside
    monkeypatch.setattr("benchmarks.ledger.keep_labelled", lambda record, read: None)
    closing = close(log)
    assert closing.outside == ["foo"] * 40
    assert closing.differ == ["other foo: 40, counted 0"]


def test_time_that_is_lost_or_held_up_is_found() -> None:
    goodput = {"goodput_ratio": 0.97, "wall_time_s": 100.0, "step_time_s": 97.0, "stalls": None}
    goodput |= {"badput_s": {"idle": 3.0, "eval": None}}
    assert gap_of({"goodput": goodput}) == 0.0
    assert gap_of({"goodput": goodput | {"step_time_s": 90.0}}) == pytest.approx(0.07)
    assert held_up({"goodput": goodput, "summary": None}) is None
    stalls = {"longest": [{"duration_s": 6.0}]}
    assert held_up({"goodput": goodput | {"stalls": stalls}, "summary": None}) == "a stall of 6 s"
    waits = {"bottleneck": {"verdict": "inference", "medians": {"dispatch_wait_ratio": 0.5}}}
    assert held_up({"goodput": goodput, "summary": waits}) == "bottleneck inference"


def test_the_committed_page_has_nothing_wrong() -> None:
    text = RESULTS.read_text("utf-8")
    assert "| fixtures |" in text and "| corpus |" in text
    assert text.endswith("\n## Wrong\n\nNothing.\n")
