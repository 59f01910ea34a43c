"""Problems of a summary: it lacks the training loss, or its rates contradict its own steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def rates_contradicted(summaries: Iterable[Summary]) -> list[Problem]:
    """Return a problem for each printed rate of a phase that its own steps and their time contradict, MFU left out."""
    found = list[Problem]()
    for summary in summaries:
        for one in summary.consistency:
            if not one.consistent and one.metric != "mfu_ratio":
                line = summary.places[one.metric].last_line if one.metric in summary.places else None
                detail = f"{one.metric} is printed as {one.reported:g}, the log's own steps and their time give {one.derived:.6g}"
                lines = () if line is None else (line,)
                found.append(Problem("rate_contradicted", line, detail, "", lines, (f"{one.reported:g}", f"{one.derived:.6g}")))
    return found
