"""Records over several lines: an opening line and rows, or rows alone; ranks apart, gaps bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Receipt = Callable[..., dict[str, Any]]

HEAD = """
grammar: toy
version: 1
title: A trainer that prints a record over several lines
upstream: https://example.org/toy
trainer: toy
rules:
"""
OPENED = (
    HEAD
    + r"""
  batch:
    event: step
    literal: ['[toy=', 'Toy ']
    block:
      open: '\[toy=(?P<step>\d++)/(?P<planned_steps>\d++)\]'
      row: 'Toy (?P<key>[^:\s]++): (?P<value>\S++)'
      requires: [loss]
      keys: {loss: loss, time: step_time_s}
      ignore: [id]
    fields:
      step: {type: integer}
      planned_steps: {type: integer}
      loss: {type: number}
      step_time_s: {type: number}
"""
)
BARE = (
    HEAD
    + r"""
  rows:
    event: step
    literal: '| toy_'
    block:
      row: '\| toy_(?P<key>\w++) +\| (?P<value>\S++) +\|'
      keys: {steps: step, loss: loss}
    fields: {step: {type: integer}, loss: {type: number}}
"""
)


def block(step: int, loss: float, prefix: str = "") -> str:
    lines = (f"[toy={step}/9]:", f"   Toy loss: {loss}", "   Toy id: 7", "   Toy extra: 0.5")
    return "".join(f"{prefix}{line}\n" for line in lines)


def test_rows_belong_to_the_opening_line(receipt_of: Receipt) -> None:
    document = receipt_of("".join(block(n, 10 - n) for n in range(1, 5)), OPENED)
    summary = document["summary"]
    assert (summary["steps"]["first"], summary["steps"]["last"], summary["steps"]["record_count"]) == (1, 4, 4)
    assert (summary["metrics"]["loss"]["first"], summary["metrics"]["loss"]["last"]) == (9.0, 6.0)
    assert list(summary["other_metrics"]) == ["extra"]
    assert document["derivation"]["lines"] == {"matched": 16, "ignored": 0, "unmatched": 0, "undecodable": 0}


def test_a_block_without_what_it_requires_is_no_record(receipt_of: Receipt) -> None:
    log = block(1, 3.0) + "[toy=2/9]:\n  Toy time: 0.5\n" + block(3, 2.0)
    assert receipt_of(log, OPENED)["summary"]["steps"]["record_count"] == 2


def test_ranks_that_interleave_keep_their_rows(receipt_of: Receipt) -> None:
    left, right = block(1, 3.0, "[rank0]: ").splitlines(), block(1, 4.0, "[rank1]: ").splitlines()
    log = "\n".join(line for pair in zip(left, right, strict=True) for line in pair) + "\n"
    loss = receipt_of(log, OPENED)["summary"]["metrics"]["loss"]
    assert (loss["first"], loss["record_count"]) == (3.0, 1)


def test_a_row_far_from_its_opening_line_is_not_read(receipt_of: Receipt) -> None:
    log = "[toy=1/9]:\n   Toy loss: 3.0\n" + "noise\n" * 9 + "   Toy time: 0.5\n"
    document = receipt_of(log, OPENED)
    assert list(document["summary"]["metrics"]) == ["loss"]
    assert [p["kind"] for p in document["derivation"]["problems"]["first"]] == ["block_row_without_opening"]


def test_a_key_again_begins_the_next_record(receipt_of: Receipt) -> None:
    rows = "".join(f"--------\n| toy_steps | {n} |\n| toy_loss  | {9 - n} |\n--------\n" for n in (1, 2, 3))
    summary = receipt_of(rows, BARE)["summary"]
    assert (summary["steps"]["last"], summary["steps"]["record_count"]) == (3, 3)
    assert [summary["metrics"]["loss"][key] for key in ("first", "last")] == [8.0, 6.0]
