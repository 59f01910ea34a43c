"""What the figures of each phase mean together: what holds it up, and how its memory developed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from receipt_cli.analysis.bottleneck import CYCLE, judge
from receipt_cli.analysis.failure import Ending
from receipt_cli.analysis.memory import tell
from receipt_cli.analysis.summary import Summary
from receipt_cli.events.ranks import RankFigures


def diagnose(summaries: Sequence[Summary], ranks: Sequence[Mapping[int, RankFigures]], ending: Ending) -> None:
    """Set ``bottleneck`` and ``memory`` of each summary; ``ranks`` are what each rank printed, phase by phase.

    A run ends in its last phase: what it said where it ran out of device memory belongs to that one.
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
    """Return the median time from one step to the next that bars print, or None."""
    printed = summary.other_metrics.get(CYCLE)
    return None if printed is None else printed.median
