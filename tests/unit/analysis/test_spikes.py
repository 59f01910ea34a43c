"""``spikes/2`` by example: what is held against what, how many are too few, and what a trainer marks itself."""

from __future__ import annotations

import numpy as np

from receipt_cli.analysis.spikes import FACTORS, LEAST, spikes_of
from tests.tools.logs import receipt_of


def spikes_in(values: list[float]) -> tuple[int, int, list[tuple[int, float, float]]] | None:
    return spikes_of(np.array(values), 10.0, 100.0)


def test_a_metric_that_is_ever_negative_is_not_judged() -> None:
    assert spikes_in([1.0] * 30 + [-0.1, 30.0]) is None


STEP = (
    "step {n:05d}/00100 ({n}.00%) | loss: {loss} | lrm: 1.00 | dt: 400.20ms | tok/sec: 261,900 | mfu: 18.4 |"
    " gnorm: {norm} | total time: 0.60m\n"
)


def nanochat(count: int, **at: tuple[str, str]) -> str:
    rows = [STEP.format(n=n, loss=at.get(f"s{n}", ("3.1", ""))[0], norm=at.get(f"s{n}", ("", "0.5"))[1]) for n in range(count)]
    return "".join(rows)


def test_a_receipt_tells_of_spikes_with_their_steps() -> None:
    log = nanochat(60, s30=("7.0", "5.5"), s40=("3.1", "70.0"))
    spikes = receipt_of(log)["summary"]["spikes"]
    assert spikes["rule"] == "spikes/2" and spikes["marked_count"] is None
    loss, norm = spikes["metrics"]["loss"], spikes["metrics"]["grad_norm"]
    assert (loss["count"], loss["critical_count"]) == (1, 0)
    assert (norm["count"], norm["critical_count"]) == (2, 1)
    assert [(s["step"], s["value"]) for s in norm["first"]] == [(30, 5.5), (40, 70.0)]
    assert [s["average"] for s in loss["first"]] == [3.1]


def test_marks_of_the_trainer_are_counted() -> None:
    marks = "[GRAD SPIKE WARNING] gnorm 5.5\n[GRAD SPIKE CRITICAL] gnorm 70.0\n"
    document = receipt_of(nanochat(60) + marks)
    assert document["summary"]["spikes"]["marked_count"] == 2
    assert document["derivation"]["lines"]["unmatched"] == 0
    assert document["failure"] is None  # a mark is no failure, though nothing follows it
    rows = nanochat(60).splitlines(keepends=True)
    document = receipt_of("".join([*rows[:40], marks, *rows[40:]]))
    assert document["summary"]["spikes"]["marked_count"] == 2
    assert document["failure"]["reason"] == "truncated"  # the log ends before the run


def test_too_few_records_say_nothing() -> None:
    assert receipt_of(nanochat(LEAST))["summary"]["spikes"] is None
    assert set(receipt_of(nanochat(LEAST + 1))["summary"]["spikes"]["metrics"]) == set(FACTORS)


def test_only_the_first_are_told_and_all_are_counted() -> None:
    log = nanochat(3000, **{f"s{n}": ("3.1", "9.0") for n in range(100, 3000, 100)})
    norm = receipt_of(log)["summary"]["spikes"]["metrics"]["grad_norm"]
    assert norm["count"] == 29 and [s["step"] for s in norm["first"]] == list(range(100, 2100, 100))
