"""Limits of a receipt for unbounded contents: phases, and the ranks of a phase."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate

from receipt_cli.analysis.checks import LOSSES
from receipt_cli.analysis.summary import Summary
from receipt_cli.events.phases import Phase
from receipt_cli.events.ranks import RankFigures
from receipt_cli.problems import Problem

MAX_PHASES = 1000
"""Most phases of a receipt: the one with the most step records, those that fail a check, then the longest."""
MAX_FIGURES = 4500
"""Most metrics of all phases together; the statistics of one take some 800 bytes."""
FEW_PHASES = 50
"""Phases that a receipt always lists, however many metrics they have."""
MAX_RANKS = 4096
"""Most ranks of a phase in a receipt; the lowest are kept."""


def largest(phases: Sequence[Phase]) -> list[int]:
    """Return the ascending indices of listed phases: all, or those that decide a check, and the longest."""
    if len(phases) <= FEW_PHASES:
        return list(range(len(phases)))
    sizes = [sum(event.records for event in phase.steps) for phase in phases]
    first = max(range(len(phases)), key=lambda index: (sizes[index], -index))
    ranked = sorted(range(len(phases)), key=lambda index: (index != first, not _odd(phases[index]), -sizes[index], index))
    sums = accumulate(len(_metrics(phases[index])) for index in ranked)
    return sorted(ranked[: min(MAX_PHASES, max(FEW_PHASES, sum(figures <= MAX_FIGURES for figures in sums)))])


def _metrics(phase: Phase) -> set[str]:
    return {name for event in (*phase.steps, *phase.evals) for name in (*event.metrics, *event.unregistered)}


def _odd(phase: Phase) -> bool:
    """Return whether a loss is not finite, an MFU is above 1, or the run restarted."""
    events = [*phase.steps, *phase.evals, *phase.standalone_events]
    losses = (event.metrics.get(name, 0.0) for event in events for name in LOSSES)
    return bool(phase.restarts) or not all(map(math.isfinite, losses)) or any(e.metrics.get("mfu_ratio", 0.0) > 1 for e in events)


def lowest(ranks: Mapping[int, RankFigures]) -> dict[int, RankFigures]:
    """Return the ranks that a receipt lists."""
    return {rank: ranks[rank] for rank in sorted(ranks)[:MAX_RANKS]}


def dropped(summaries: Sequence[Summary]) -> list[Problem]:
    """Return a problem for each summary that omits metrics outside the registry."""
    counts = (summary.dropped_others for summary in summaries if summary.dropped_others)
    return [Problem("other_metrics_dropped", None, f"{n} metrics outside the registry were left out", "") for n in counts]


def left_out(phases: int, ranks: Sequence[Mapping[int, RankFigures]]) -> list[Problem]:
    """Return problems for omitted phases (``phases`` of them), and for omitted ranks."""
    problems: list[Problem] = []
    if phases:
        problems.append(Problem("phases_dropped", None, f"{phases} phases with the fewest step records were left out", ""))
    most = max((len(found) for found in ranks), default=0)
    if most > MAX_RANKS:
        problems.append(Problem("ranks_dropped", None, f"{most - MAX_RANKS} of {most} ranks were left out", ""))
    return problems
