"""The problem of a summary that lacks the training loss."""

from __future__ import annotations

from collections.abc import Sequence

from receipt_cli.analysis.summary import Summary
from receipt_cli.events.phases import Phase
from receipt_cli.problems import Problem

MIN_LOSSLESS = 3
"""Step records that show that a trainer prints no loss: the first may come before there is one."""
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
