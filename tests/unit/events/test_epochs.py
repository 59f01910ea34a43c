"""Counters that start again with every epoch → steps of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("one_engine")

Receipt = Callable[..., dict[str, Any]]

HEAD = """
grammar: toy
version: 1
title: A trainer that counts by epoch
upstream: https://example.org/toy
trainer: toy
rules:
"""
ITERATIONS = (
    HEAD
    + r"""
  train:
    event: step
    epochs_from: {first}
    literal: 'toy epoch '
    pattern: >-
      toy epoch (?P<epoch_number>\d++)(?:/(?P<epochs_planned>\d++))?
      \[(?P<epoch_step>\d++)/(?P<epoch_steps>\d++)\] loss (?P<loss>\S++)
    fields:
      epoch_number: {{type: integer}}
      epochs_planned: {{type: integer}}
      epoch_step: {{type: integer}}
      epoch_steps: {{type: integer}}
      loss: {{type: number}}
"""
)
BARS = (
    HEAD
    + r"""
  epoch:
    event: progress
    literal: 'Toy '
    pattern: 'Toy (?P<epoch_number>\d++)/(?P<epochs_planned>\d++)'
    fields: {epoch_number: {type: integer}, epochs_planned: {type: integer}}
  bar:
    event: step
    counts: epoch
    redraw: true
    literal: ' [bar] '
    pattern: '(?P<epoch_step>\d++)/(?P<epoch_steps>\d++) \[bar\] loss (?P<loss>\S++)'
    fields: {epoch_step: {type: integer}, epoch_steps: {type: integer}, loss: {type: number}}
"""
)


@pytest.mark.parametrize(("first", "places"), [(0, range(5)), (1, range(1, 6))])
def test_iterations_of_an_epoch_are_steps_of_the_run(receipt_of: Receipt, first: int, places: range) -> None:
    lines = [f"toy epoch {e + first}/4 [{i}/5] loss {9 - e}" for e in range(3) for i in places]
    document = receipt_of("\n".join(lines) + "\n", ITERATIONS.format(first=first))
    steps = document["summary"]["steps"]
    assert (steps["first"], steps["last"], steps["planned"]) == (places[0], 10 + places[-1], 20)
    assert (steps["record_count"], steps["restart_count"]) == (15, 0)
    assert document["summary"]["metrics"]["epoch"]["last"] == first + 2


def test_an_epoch_begun_again_is_a_restart(receipt_of: Receipt) -> None:
    lines = [f"toy epoch {e} [{i}/5] loss 2" for e in (0, 1, 1, 2) for i in range(5)]
    steps = receipt_of("\n".join(lines) + "\n", ITERATIONS.format(first=0))["summary"]["steps"]
    assert (steps["record_count"], steps["restart_count"], steps["superseded_count"]) == (15, 1, 5)


def test_epochs_that_come_again_have_their_own_lengths(receipt_of: Receipt) -> None:
    passes = [(0, 5), (1, 6), (2, 6), (0, 5), (1, 4), (2, 7)]
    lines = [f"toy epoch {epoch} [{i}/{length}] loss 2" for epoch, length in passes for i in range(length)]
    steps = receipt_of("\n".join(lines) + "\n", ITERATIONS.format(first=0))["summary"]["steps"]
    assert (steps["first"], steps["last"], steps["record_count"]) == (0, 15, 16)


def test_evaluations_of_superseded_epochs_are_left_out(receipt_of: Receipt) -> None:
    """Those of an epoch that a restart trains again, though they print no step."""

    def epochs(first: int, end: int, loss: float) -> list[str]:
        told = "Epoch {0} - Loss: {1:.4f}\nEvaluation Epoch {0} - Loss: {2:.4f}"
        return [told.format(e, loss - e / 10, loss - e / 8) for e in range(first, end)]

    said = "\n".join([*epochs(0, 6, 4.0), "resumed from epoch 3", *epochs(4, 12, 3.9)])
    document = receipt_of(said + "\n")
    loss, val_loss = (document["summary"]["metrics"][name] for name in ("loss", "val_loss"))
    assert document["summary"]["steps"]["superseded_count"] == 2
    assert (loss["record_count"], val_loss["record_count"]) == (12, 12)
    assert (val_loss["places"]["first_line"], val_loss["places"]["last_line"]) == (2, 29)


def test_all_evaluations_may_be_superseded(receipt_of: Receipt) -> None:
    told = [f"Epoch {e} - Loss: {4 - e / 10:.4f}" for e in range(6)]
    told[2:] = [f"{line}\nEvaluation Epoch {e} - Loss: {4 - e / 8:.4f}" for e, line in enumerate(told[2:], 2)]
    again = [f"Epoch {e} - Loss: {3.9 - e / 10:.4f}" for e in range(2, 9)]
    document = receipt_of("\n".join([*told, "resumed", *again]) + "\n")
    assert document["summary"]["steps"]["superseded_count"] == 4
    assert "val_loss" not in document["summary"]["metrics"]


def test_the_epoch_on_its_own_line_holds_for_the_bars_below(receipt_of: Receipt) -> None:
    log = "".join(f"Toy {e}/3\n" + "".join(f"{n}/4 [bar] loss {e}.{n}\r" for n in range(1, 5)) + "\n" for e in (1, 2, 3))
    document = receipt_of(log, BARS)
    steps = document["summary"]["steps"]
    assert (steps["first"], steps["last"], steps["planned"], steps["record_count"]) == (1, 3, 3, 3)
    loss = document["summary"]["metrics"]["loss"]
    assert (loss["first"], loss["last"], loss["record_count"]) == (1.4, 3.4, 3)
    assert document["checks"]["completed"] is True


@pytest.mark.parametrize("log", ["Toy 3/3\n1/4 [bar] loss 1\n2/4 [bar] loss 2\n", "Toy 2/3\n4/4 [bar] loss 1\n"])
def test_the_last_epoch_is_not_over_before_its_last_step(receipt_of: Receipt, log: str) -> None:
    assert receipt_of(log, BARS)["checks"]["completed"] is not True


def test_bars_without_an_epoch_have_no_step(receipt_of: Receipt) -> None:
    steps = receipt_of("4/4 [bar] loss 2\n4/4 [bar] loss 1\n", BARS)["summary"]["steps"]
    assert (steps["first"], steps["record_count"]) == (None, 2)


ONE_PASS = (
    HEAD
    + r"""
  bar:
    event: step
    redraw: true
    literal: ' [bar] '
    pattern: '(?P<epoch_step>\d++)/(?P<epoch_steps>\d++) \[bar\] loss (?P<loss>\S++)'
    fields: {epoch_step: {type: integer}, epoch_steps: {type: integer}, loss: {type: number}}
"""
)


def test_a_counter_that_never_goes_back_is_the_step(receipt_of: Receipt) -> None:
    log = "".join(f"{n}/900 [bar] loss {9 - n / 1000}\r" for n in (301, 302, 302, 304)) + "\n"
    steps = receipt_of(log, ONE_PASS)["summary"]["steps"]
    assert (steps["first"], steps["last"], steps["planned"], steps["record_count"]) == (301, 304, 900, 3)


@pytest.mark.parametrize("second", ["1/4 [bar] loss 1\r", "9/9 [bar] loss 1\r"])
def test_two_passes_have_no_step(receipt_of: Receipt, second: str) -> None:
    log = "".join(f"{n}/4 [bar] loss 2\r" for n in (1, 2, 3, 4)) + second + "\n"
    steps = receipt_of(log, ONE_PASS)["summary"]["steps"]
    assert (steps["first"], steps["last"], steps["record_count"]) == (None, None, 5)


def test_a_bar_that_counts_the_epochs_is_no_pass_of_one(receipt_of: Receipt) -> None:
    log = "".join(f"toy epoch {n}/20 [{n}/20] loss {9 - n}\n" for n in (1, 2, 3))
    steps = receipt_of(log, ITERATIONS.format(first=1))["summary"]["steps"]
    assert (steps["first"], steps["last"], steps["planned"], steps["record_count"]) == (1, 3, 20, 3)


@pytest.mark.parametrize("begin", ["Epoch {}/3\n", "Epoch [{}/3] begins\n"])
@pytest.mark.parametrize(("training", "evaluation", "stride"), [(100, 40, 10), (614, 88, 10), (50, 6, 2)])
def test_passes_of_evaluation_are_no_steps(receipt_of: Receipt, begin: str, training: int, evaluation: int, stride: int) -> None:
    line = "step {}/{} - loss: {:.4f} - 2s/step\n"
    log = ""
    for epoch in range(1, 4):
        log += begin.format(epoch)
        log += "".join(line.format(n, training, 1 / (epoch + n / training)) for n in range(stride, training + 1, stride))
        log += "Eval begin...\n"
        log += "".join(line.format(n, evaluation, 5 / (epoch + n / training)) for n in range(stride, evaluation + 1, stride))
    steps = receipt_of(log)["summary"]["steps"]
    assert (steps["record_count"], steps["planned"]) == (3 * (training // stride), 3 * training)
