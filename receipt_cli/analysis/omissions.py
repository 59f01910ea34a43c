"""Problems of a summary: its training loss is missing, or figures depend on which of two records counts."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from receipt_cli.analysis.checks import LOSSES
from receipt_cli.analysis.summary import Summary
from receipt_cli.events.counters import JUMP, Contest, jumps_at_end
from receipt_cli.events.model import Event
from receipt_cli.events.phases import Phase, last_steps
from receipt_cli.events.table import EventTable, positions
from receipt_cli.numeric.statistics import Statistic, finite
from receipt_cli.problems import MAX_FIELDS, MAX_NAMED, Problem, pointer

MIN_LOSSLESS = 3
"""Step records without a loss that prove it missing; the first may come before any loss."""
STANDS_FOR_NONE = -1.0
"""The loss printed by a rank that does not have it."""
GRADIENTS = {"learning_rate", "grad_norm", "loss_scale", "val_loss"}
"""Metrics that imply training with a loss."""
STATISTICS = ("first", "last", "min", "max", "mean", "median")
"""The statistics of a metric that one record can change."""


def find_omissions(phases: Sequence[Phase], summaries: Sequence[Summary]) -> list[Problem]:
    """Return the problems of omissions in summaries."""
    return [*loss_missing(phases, summaries), *printed_twice(phases, summaries), *steps_jump(phases, summaries)]


def loss_missing(phases: Sequence[Phase], summaries: Sequence[Summary]) -> list[Problem]:
    """Return a problem for each phase whose rule reads a training loss but found none: it may have another name.

    Only if gradient metrics and unnamed numbers are printed, and no other training loss.
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


def printed_twice(phases: Sequence[Phase], summaries: Sequence[Summary]) -> list[Problem]:
    """Return problems for records at one position with different values; figures that depend on them are left out."""
    found: list[Problem] = []
    for index, (phase, summary) in enumerate(zip(phases, summaries, strict=True)):
        contests = [contest for contest in phase.contests if contest.other.rule.event != JUMP]
        if contests:
            again = sum(contest.stands is not None and contest.other.step is not None for contest in contests)
            detail = f"{len(contests)} records repeat a step with other values, or come out of order, without a restart"
            fields = [*_undecided(contests, summary), *(["steps/record_count"] if again < len(contests) else [])]
            found += _problems("step_printed_twice", index, contests, detail, fields)
    return found


def steps_jump(phases: Sequence[Phase], summaries: Sequence[Summary]) -> list[Problem]:
    """Return problems for records whose counter is far ahead, inside a phase or at its end."""
    found: list[Problem] = []
    for index, (phase, summary) in enumerate(zip(phases, summaries, strict=True)):
        contests = [contest for contest in phase.contests if contest.other.rule.event == JUMP]
        if contests:
            detail = f"{len(contests)} records were left out: their counter is far ahead of the records around them"
            found += _problems("step_jump", index, contests, detail, [*_undecided(contests, summary), "steps/record_count"])
        positions, last = last_steps(phase)
        if last is not None and jumps_at_end(positions, phase.planned):
            detail = "the counter of the last record is far ahead of the records before it"
            values = tuple(map(str, positions[-2:]))
            fields = ["/checks/completed"] if phase.planned is not None else []
            fields += [f"/phases/{index}/summary/{name}" for name in ("steps/last", *_reached(phase, summary, positions[-2]))]
            found.append(Problem("step_jump", last.line, detail, "", (last.line,), values, tuple(fields)))
    return found


def _reached(phase: Phase, summary: Summary, before: int) -> list[str]:
    """Return the figures besides the last step that a counter far ahead changes; ``before`` is the step before the last."""
    epochs = [*dict.fromkeys(int(value) for value in finite(EventTable(phase.steps).metric("epoch").values))]
    found = [f"metrics/epoch/{key}" for key in ("last", "max", "mean")] if jumps_at_end(epochs) else []
    saved = summary.checkpoints
    if saved is not None:
        found += ["checkpoints/unsaved_step_count", "checkpoints/unsaved_time_s"]
        found += ["checkpoints/last_step"] if (saved.last_step or 0) > before else []
        found += [f"checkpoints/latest/{at}/step" for at, one in enumerate(saved.latest) if (one.step or 0) > before]
    return found


def _problems(kind: str, index: int, contests: Sequence[Contest], detail: str, fields: Sequence[str]) -> list[Problem]:
    """Return a problem for each group of ``MAX_FIELDS`` fields of a summary, at least one."""
    pairs = [(one, "loss") for contest in contests for one in contest if one is not None]
    values = [repr(one.metrics[name]) for one, name in pairs if name in one.metrics]
    lines = sorted(one.line for one, _ in pairs[:MAX_NAMED])
    whole = [field if field.startswith("/") else f"/phases/{index}/summary/{field}" for field in fields]
    return [
        Problem(kind, lines[0], detail, "", tuple(lines), tuple(values[:MAX_NAMED]), tuple(whole[at : at + MAX_FIELDS]))
        for at in range(0, max(1, len(whole)), MAX_FIELDS)
    ]


def _undecided(contests: Sequence[Contest], summary: Summary) -> list[str]:
    """Return the figures of a summary that depend on which of two records at one position counts."""
    found: list[str] = []
    for block, statistics in (("metrics", summary.metrics), ("other_metrics", summary.other_metrics)):
        for name in sorted(statistics, key=lambda name: name != "loss"):
            pairs = [(contest, _value(contest.stands, name), _value(contest.other, name)) for contest in contests]
            differ = [(c, one, other) for c, one, other in pairs if other is not None and one != other]
            undecided = set[str]().union(*(_depends(summary, name, statistics[name], *pair) for pair in differ))
            found += [pointer(block, name, key)[1:] for key in STATISTICS if key in undecided]
            if "max" in undecided and summary.spikes is not None and name in summary.spikes.metrics:
                found.append("spikes")
            if name == "loss" and any(math.isfinite(one or 0.0) and not math.isfinite(other) for _, one, other in differ):
                found.append("/checks/finite_losses")
    return found


def _value(event: Event | None, name: str) -> float | None:
    return None if event is None else event.metrics.get(name, event.unregistered.get(name))


def _depends(summary: Summary, name: str, figures: Statistic, contest: Contest, one: float | None, other: float) -> set[str]:
    """Return the statistics that change if ``other`` replaces ``one``, or is added if ``one`` is None."""
    places, stands = summary.places.get(name), contest.stands
    found = {"mean"}
    line = None if stands is None or one is None else stands.line_of(name)
    if places is not None and line is not None:
        found |= {key for key, at in (("first", places.first_line), ("last", places.last_line)) if at == line}
    elif stands is None and contest.other.step is not None and contest.other.rule.event != JUMP:
        found |= {"first"} if contest.other.step <= (summary.first or 0) else set()
    if figures.min is None or figures.max is None or figures.median is None:
        return {*STATISTICS}
    found |= {"min"} if other < figures.min or one == figures.min else set()
    found |= {"max"} if other > figures.max or one == figures.max else set()
    middle = figures.median
    if one is None or not (max(one, other) < middle or min(one, other) > middle):
        found.add("median")
    return found


def loss_doubts(phases: Sequence[Phase], summaries: Sequence[Summary], primary: int | None) -> list[Problem]:
    """Return a problem for each phase that prints a placeholder instead of the loss, or stops printing it.

    Each leaves open whether all losses are finite, unless one is not. If the loss is always a placeholder, all its statistics
    are null.
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
            detail = f"all {loss.record_count} losses are -1: the printing rank does not have the loss"
            found.append(Problem("placeholder", summary.places["loss"].first_line, detail, "", (), ("-1",), fields))
        elif zeros := _zeros_at_end(phase):
            detail = f"the last {zeros} losses are 0 but their gradient norms are not finite: 0 is a placeholder here"
            found.append(Problem("placeholder", last, detail, "", (), ("0.0",), open_))
        elif since := _silent_records(phase):
            detail = f"the last {since} step records have no loss, but earlier ones do"
            found.append(Problem("loss_missing", last, detail, "", (), (), open_))
    return found


def _zeros_at_end(phase: Phase) -> int:
    """Return how many final records print a loss of 0 with a gradient norm that is not finite."""
    table = EventTable(phase.steps)
    pairs = zip(*(reversed(table.metric(name).values) for name in ("loss", "grad_norm")), strict=False)
    count = 0
    for loss, norm in pairs:
        if loss != 0.0 or math.isfinite(norm):
            break
        count += 1
    return count


def _silent_records(phase: Phase) -> int:
    """Return how many final records have no loss, if far more than ever lay between two losses; else 0."""
    every = positions(phase.steps)
    table = EventTable(phase.steps)
    losses: list[int] = table.at[table.metric("loss").rows].tolist()
    after = len(every) - bisect_right(every, losses[-1]) if losses else 0
    if after < MIN_LOSSLESS or len(losses) < MIN_LOSSLESS:
        return 0
    widest = max(bisect_left(every, other) - bisect_left(every, one) for one, other in pairwise(losses))
    return after if after > 3 * widest else 0


def rates_contradicted(summaries: Iterable[Summary]) -> list[Problem]:
    """Return a problem for each printed rate, except MFU, that the log's steps and times contradict."""
    found = list[Problem]()
    for summary in summaries:
        for one in summary.consistency:
            if not one.consistent and one.metric != "mfu_ratio":
                line = summary.places[one.metric].last_line if one.metric in summary.places else None
                detail = f"{one.metric} is printed as {one.reported:g}, but the log's steps and times give {one.derived:.6g}"
                lines = () if line is None else (line,)
                found.append(Problem("rate_contradicted", line, detail, "", lines, (f"{one.reported:g}", f"{one.derived:.6g}")))
    return found
