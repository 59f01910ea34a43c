"""The problems of a summary that lacks the training loss, from its first record on or later, or prints something in its place."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from receipt_cli.analysis.checks import LOSSES
from receipt_cli.analysis.summary import Summary
from receipt_cli.events.phases import Phase
from receipt_cli.events.series import Piece, metric, pieces, positions, read
from receipt_cli.problems import Problem

MIN_LOSSLESS = 3
"""Step records that show that a trainer prints no loss: the first may come before there is one."""
STANDS_FOR_NONE = -1.0
"""What a rank prints that does not see the loss."""
STATISTICS = ("first", "last", "min", "max", "mean", "median")
GRADIENTS = {"learning_rate", "grad_norm", "loss_scale", "val_loss"}
"""Metrics beside which a training loss is printed."""


def loss_missing(phases: Sequence[Phase], summaries: Sequence[Summary]) -> list[Problem]:
    """Return a problem for each phase whose training loss may have another name: its rule reads one and found none.

    Only where gradients are followed, the steps print numbers that nobody names, and no other loss is trained on.
    """
    found: list[Problem] = []
    for phase, summary in zip(phases, summaries, strict=True):
        steps, names = phase.steps, summary.metrics.keys()
        losses = [name for name in names if name.endswith("loss") and not name.startswith(("val_", "test_"))]
        if losses or summary.record_count < MIN_LOSSLESS or not names & GRADIENTS:
            continue
        rule = next((e.rule for e in steps if any(f.target == ("metric", "loss") for f in e.rule.fields.values())), None)
        unnamed = dict.fromkeys(name for event in steps for name in event.unregistered_names)
        if rule is not None and unnamed:
            detail = f"none of the {summary.record_count} step records has the training loss that {rule.name} reads; they have "
            found.append(Problem("loss_missing", steps[0].line, detail + ", ".join(list(unnamed)[:8]), ""))
    return found


def loss_doubts(phases: Sequence[Phase], summaries: Sequence[Summary], primary: int | None) -> list[Problem]:
    """Return a problem for each phase in which something else is printed in the place of the loss, or the loss no longer.

    Each leaves open whether the losses are finite, unless one is not. Of a loss that no rank sees every statistic is null, too.
    """
    found: list[Problem] = []
    printed = [summary.metrics[name] for summary in summaries for name in LOSSES if name in summary.metrics]
    open_ = () if any(loss.nonfinite_count for loss in printed) else ("/checks/finite_losses",)
    for number, (phase, summary) in enumerate(zip(phases, summaries, strict=True)):
        loss = summary.metrics.get("loss")
        if loss is None:
            continue
        base = "/summary" if number == primary else f"/phases/{number}/summary"
        last = summary.places["loss"].last_line
        if loss.record_count >= MIN_LOSSLESS and loss.min == loss.max == STANDS_FOR_NONE and not loss.nonfinite_count:
            fields = (*open_, *(f"{base}/metrics/loss/{name}" for name in STATISTICS))
            detail = f"each of the {loss.record_count} losses is -1: the rank that prints does not see the loss"
            found.append(Problem("placeholder", summary.places["loss"].first_line, detail, "", (), ("-1",), fields))
        elif zeros := _zeros_at_end(phase):
            detail = f"the last {zeros} losses are 0 beside gradients that are not finite: they stand for a loss that is none"
            found.append(Problem("placeholder", last, detail, "", (), ("0.0",), open_))
        elif since := _silent_records(phase):
            detail = f"the last {since} step records have no loss, though those before them print one"
            found.append(Problem("loss_missing", last, detail, "", (), (), open_))
    return found


def _zeros_at_end(phase: Phase) -> int:
    """Return how many records at the end print a loss of 0 beside a gradient norm that is not finite."""
    pairs = zip(reversed(read(phase.steps, metric("loss"))), reversed(read(phase.steps, metric("grad_norm"))), strict=False)
    count = 0
    for loss, norm in pairs:
        if loss != 0.0 or math.isfinite(norm):
            break
        count += 1
    return count


def _silent_records(phase: Phase) -> int:
    """Return how many records at the end have no loss, if they are many more than ever stood between two losses, else 0."""
    every = positions(phase.steps)
    losses = [int(at) for piece in pieces(phase.steps, metric("loss")) for at in _places(piece)]
    after = len(every) - bisect_right(every, losses[-1]) if losses else 0
    if after < MIN_LOSSLESS or len(losses) < MIN_LOSSLESS:
        return 0
    widest = max(bisect_left(every, other) - bisect_left(every, one) for one, other in pairwise(losses))
    return after if after > 3 * widest else 0


def _places(piece: Piece) -> Iterator[int]:
    """Yield the positions of the records that have the values of a piece."""
    for part in piece.parts or (piece,):
        yield from map(int, part.places)
