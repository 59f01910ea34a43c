"""Events → phases and attempts: restarts, duplicates, redraws, companions, and where one stage ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("one_engine")

Receipt = Callable[..., dict[str, Any]]


def steps(numbers: Iterable[int], loss: float = 2.5, plan: str = "", head: str = "") -> str:
    return "".join(f"{head}toy step {n}{plan} | loss={loss} | time=0.5\n" for n in numbers)


def counted(document: dict[str, Any]) -> tuple[int, int, int]:
    found = document["summary"]["steps"]
    return found["record_count"], found["restart_count"], found["superseded_count"]


def names(document: dict[str, Any]) -> list[tuple[str | None, int]]:
    return [(phase["name"], phase["summary"]["steps"]["record_count"]) for phase in document["phases"]]


def test_a_run_in_one_piece(toy_receipt: Receipt) -> None:
    document = toy_receipt(steps(range(5, 15), plan="/15") + "toy done in 5.0 s\n")
    assert document["summary"]["steps"] == {
        "first": 5, "last": 14, "planned": 15, "record_count": 10, "restart_count": 0, "superseded_count": 0,
        "first_line": 1, "last_line": 10,
    }  # fmt: skip
    assert names(document) == [(None, 10)]


AHEAD = [(0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (1, 2), (1, 3), (0, 3)]
"""Ranks and steps in the order in which they are printed."""
COUNTED: dict[str, tuple[str, tuple[int, int, int], dict[str, dict[str, float]]]] = {
    "a restart from the start leaves nothing of the first": (
        steps(range(10), loss=1.0) + steps(range(2), loss=2.0), (2, 1, 10), {"loss": {"max": 2.0}},
    ),
    "a gap is no restart": (steps([0, 10, 20, 500, 510]), (5, 0, 0), {}),
    "a line printed twice": ("".join(steps([n]) * 2 for n in range(6)), (6, 0, 0), {"loss": {"record_count": 6}}),
    "what two ranks print": ("".join(steps([n], head=f"[rank{k}]:") for n in range(6) for k in range(2)), (6, 0, 0), {}),
    "what eight ranks print": ("".join(steps([n], head=f"[rank{k}]:") for n in range(6) for k in range(8)), (6, 0, 0), {}),
    "ranks whose lines run ahead are not mixed": (
        "".join(steps([n], 1.0 + k, head=f"[rank{k}]:") for k, n in AHEAD),
        (4, 0, 0), {"loss": {"max": 1.0}},
    ),
    "redraws collapse to the last": (
        "".join(f"toy bar {n}/4 loss={9 - draw}.0\r" for n in range(4) for draw in range(5)) + "\n",
        (4, 0, 0), {"loss": {"max": 5.0}},
    ),
    "two lines about one step": (
        "".join(steps([n]) + f"toy norm {n}: {n}.5\n" for n in range(5)),
        (5, 0, 0), {"grad_norm": {"record_count": 5, "first": 0.5, "last": 4.5}},
    ),
    "a companion joins the record before it": (
        "".join(steps([n]) + f"toy memory {1000 + n}\n" for n in range(5)), (5, 0, 0), {"peak_memory_bytes": {"last": 1004.0}},
    ),
    "a companion behind the last of several copies": (
        "".join(steps([n]) * 3 + f"toy memory {1000 + n}\n" for n in range(5)),
        (5, 0, 0), {"peak_memory_bytes": {"first": 1000.0, "last": 1004.0}},
    ),
    "a second line that comes late": (
        steps([0, 1]) + "toy norm 0: 0.5\n" + steps([2, 3]) + "".join(f"toy norm {n}: {n}.5\n" for n in (1, 2, 3)) + steps([4]),
        (5, 0, 0), {"grad_norm": {"record_count": 4, "first": 0.5, "last": 3.5}},
    ),
    "a restart that begins with the second line": (
        "".join(f"toy norm {n}: 0.5\n" + steps([n]) for n in (*range(6), *range(2, 6))), (6, 1, 4), {},
    ),
    "evaluations of overtaken steps": (
        steps(range(10)) + "toy eval 2: 5.0\ntoy eval 9: 7.0\n" + steps(range(5, 12)) + "toy eval 9: 3.0\n",
        (12, 1, 5), {"val_loss": {"record_count": 2, "max": 5.0, "last": 3.0}},
    ),
    "an evaluation printed four times": (
        steps(range(3)) + "toy eval 2: 5.0\n" * 4 + steps(range(3, 5)), (5, 0, 0), {"val_loss": {"record_count": 1}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_what_counts_once(name: str, toy_receipt: Receipt) -> None:
    log, count, wanted = COUNTED[name]
    document = toy_receipt(log)
    found = {metric: {key: document["summary"]["metrics"][metric][key] for key in keys} for metric, keys in wanted.items()}
    assert (counted(document), found) == (count, wanted)
    assert document["checks"]["steps_monotonic"] is (count[1] == 0)


def test_lines_that_are_empty_since_others_say_it_part_no_records(toy_receipt: Receipt) -> None:
    lines = (steps([0], loss=1.0) + steps([0], loss=2.0) + steps(range(1, 9), loss=3.0)).splitlines(keepends=True)
    alone = counted(toy_receipt("".join(lines)))
    assert alone == (9, 0, 0)
    assert counted(toy_receipt("".join(line + line for line in lines))) == alone
    time = "2026-05-06T07:08:09.123456Z stdout"
    assert counted(toy_receipt("".join(f"{time} P {line[:8]}\n{time} F {line[8:]}" for line in lines))) == alone


def test_a_counter_that_goes_through_the_same_numbers_again_and_again_is_undecided(toy_receipt: Receipt) -> None:
    document = toy_receipt("".join(f"round {outer} of 9\n" + steps(range(1, 3), outer / 8) for outer in range(1, 9)))
    assert counted(document) == (None, None, None)
    loss = document["summary"]["metrics"]["loss"]
    assert (loss["min"], loss["last"], document["checks"]["steps_monotonic"]) == (None, 1.0, None)


def test_an_end_marker_parts_phases(toy_receipt: Receipt) -> None:
    document = toy_receipt(steps(range(4)) + "toy done in 1.0 s\n" + steps(range(4, 11)) + "toy done in 2.0 s\n")
    assert names(document) == [(None, 4), (None, 7)]
    assert [p["summary"]["training_time_s"] for p in document["phases"]] == [1.0, 2.0]
    assert counted(document) == (7, 0, 0)


def test_a_run_that_is_resumed_after_an_end_before_its_plan_is_one_phase(toy_receipt: Receipt) -> None:
    document = toy_receipt(steps(range(4), plan="/11") + "toy done in 1.0 s\n" + steps(range(4, 11), plan="/11"))
    assert names(document) == [(None, 11)]
    assert (document["summary"]["steps"]["first"], document["summary"]["training_time_s"]) == (0, None)


def test_a_record_that_is_printed_after_the_end_is_of_the_run(toy_receipt: Receipt) -> None:
    document = toy_receipt(steps(range(9)) + "toy done in 5.0 s\n" + steps([9]))
    assert names(document) == [(None, 10)]
    assert (document["summary"]["steps"]["last"], document["checks"]["completed"]) == (9, True)


def test_a_name_parts_phases(toy_receipt: Receipt) -> None:
    document = toy_receipt("toy stage base\n" + steps(range(5)) + "toy stage mid\n" + steps(range(5, 8)))
    assert names(document) == [("base", 5), ("mid", 3)]
    assert document["summary"]["phase"] == "base"


def test_another_plan_parts_phases_and_the_same_plan_restarts(toy_receipt: Receipt) -> None:
    assert names(toy_receipt(steps(range(6), plan="/6") + steps(range(4), plan="/4"))) == [(None, 6), (None, 4)]
    assert names(toy_receipt(steps(range(6), plan="/6") + steps(range(4), plan="/6"))) == [(None, 4)]
    assert counted(toy_receipt(steps(range(6), plan="/9") + steps(range(5, 12), 1.5, plan="/12"))) == (12, 1, 1)


def test_the_stages_of_one_nanochat_log(receipt_of: Receipt) -> None:
    tail = "loss: 3.0 | lrm: 1.00 | dt: 500.00ms | tok/sec: 1,000 | mfu: 40.00"
    log = "".join(f"step {n:05d}/00012 (1.00%) | {tail} | total time: 0.02m\n" for n in range(12))
    log += "".join(f"step {n:05d} (2.60%) | {tail} | total time: 0.09m\n" for n in range(6))
    log += "".join(f"Step {n:05d}/00004 | Training loss: 0.9| lrm: 0.9| num_tokens: 9,876\n" for n in range(4))
    document = receipt_of(log)
    assert names(document) == [("base_train", 12), ("mid_train", 6), ("chat_sft", 4)]
    assert document["summary"]["phase"] == "base_train"


@pytest.mark.parametrize(("first", "second", "primary"), [(3, 5, "two"), (5, 3, "one"), (4, 4, "one")])
def test_the_primary_phase_has_most_records(toy_receipt: Receipt, first: int, second: int, primary: str) -> None:
    document = toy_receipt("toy stage one\n" + steps(range(first)) + "toy stage two\n" + steps(range(second)))
    assert document["summary"]["phase"] == primary
    assert document["summary"] == document["phases"][0 if primary == "one" else 1]["summary"]


def test_an_evaluation_belongs_to_the_running_phase(toy_receipt: Receipt) -> None:
    log = "toy stage one\n" + steps(range(4)) + "toy eval 3: 3.5\ntoy stage two\n" + steps(range(3)) + "toy eval 2: 1.5\n"
    first, second = (p["summary"]["metrics"]["val_loss"] for p in toy_receipt(log)["phases"])
    assert (first["last"], second["last"]) == (3.5, 1.5)
    assert (first["record_count"], second["record_count"]) == (1, 1)


def test_evaluations_alone_are_no_steps(toy_receipt: Receipt) -> None:
    document = toy_receipt("".join(f"toy eval {n}: {n}.5\n" for n in range(5)))
    assert document["summary"]["steps"]["record_count"] is None
    assert document["checks"]["has_steps"] is None
    assert document["phases"][0]["summary"]["metrics"]["val_loss"]["record_count"] == 5


STEPLESS_EVAL = r"""
grammar: bare
version: 1
title: Evaluations without a step
trainer: bare
rules:
  train:
    event: step
    literal: 'bare step '
    pattern: 'bare step (?P<step>\d++): (?P<loss>[\d.]++)'
    fields: {step: {type: integer}, loss: {type: number}}
  evaluation:
    event: eval
    literal: 'bare eval '
    pattern: 'bare eval (?P<val_loss>[\d.]++)'
    fields: {val_loss: {type: number}}
"""


@pytest.mark.parametrize(("heads", "count"), [(("0: ", "1: ", "2: "), 2), (("",), 2), (("", ""), 2), (("", "rank? "), 4)])
def test_an_evaluation_that_several_ranks_print_counts_once(receipt_of: Receipt, heads: tuple[str, ...], count: int) -> None:
    log = "".join(f"{head}bare step {n}: 2.5\n" for n in range(3) for head in heads)
    log += "".join(f"{head}bare eval {value}\n" for value in (3.5, 2.5) for head in heads)  # without a rank: who can tell
    val = receipt_of(log, STEPLESS_EVAL)["summary"]["metrics"]["val_loss"]
    assert (val["record_count"], val["first"], val["last"]) == (count, 3.5, 2.5)
