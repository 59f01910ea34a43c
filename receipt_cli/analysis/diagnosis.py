"""Diagnose each phase from its figures: its bottleneck and how its memory developed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from receipt_cli.analysis.bottleneck import CYCLE, judge
from receipt_cli.analysis.failure import Ending
from receipt_cli.analysis.memory import tell
from receipt_cli.analysis.summary import Summary
from receipt_cli.events.ranks import RankFigures


def diagnose(summaries: Sequence[Summary], ranks: Sequence[Mapping[int, RankFigures]], ending: Ending) -> None:
    """Set ``bottleneck`` and ``memory`` of each summary; ``ranks`` are the figures of each rank, by phase.

    An out-of-memory message belongs to the last phase.
    """
    for number, (summary, printed) in enumerate(zip(summaries, ranks, strict=True)):
        restarted = summary.restart_count > 0
        out_of_memory = ending.reason == "cuda_oom" and number == len(summaries) - 1
        summary.bottleneck = judge(
            summary.metrics, summary.series, cycle=_cycle(summary), restarted=restarted, digits=summary.printed_digits
        )
        message = ending.message if out_of_memory else None
        summary.memory = tell(summary.series, printed, message, restarted=restarted)


def _cycle(summary: Summary) -> float | None:
    """Return the median time from one step to the next as bars print it, or None."""
    printed = summary.other_metrics.get(CYCLE)
    return None if printed is None else printed.median
