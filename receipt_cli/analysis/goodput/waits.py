"""The time of a phase's steps, and how much of it they waited for data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from receipt_cli.analysis.goodput.records import DATA, DISPATCH, Records, is_time
from receipt_cli.analysis.goodput.steps import Found
from receipt_cli.analysis.goodput.totals import Tally
from receipt_cli.analysis.summary import Summary

TIMED = ("step_times", "trainer_total")
"""Evidence of a step time that holds no wait for the samples that inference makes: trainers print that beside it."""
RATIOS = ("dispatch_wait_ratio", "data_time_ratio", "generation_time_ratio")


class Work(NamedTuple):
    """The seconds in steps that stand, at least and at most, what they rest on, and the stalls between them.

    ``least`` is None where nothing bounds them from below; ``stalls`` where the records have no stamps.
    """

    seconds: float
    evidence: str
    least: float | None = None
    most: float = 0.0
    stalls: Sequence[Found] | None = None
    gaps: int = 0

    def known(self) -> Work:
        """Return the same with the seconds as both bounds."""
        return self._replace(least=self.seconds, most=self.seconds)

    def less(self, seconds: float, *, doubtful: bool = False) -> Work:
        """Return the same without some seconds; where ``doubtful`` they may be of steps all the same.

        A least that is of other evidence than the seconds themselves stays.
        """
        least = self.least if self.least is None or self.least < self.seconds else self.least - seconds
        return self._replace(seconds=self.seconds - seconds, least=least, most=self.most - (0.0 if doubtful else seconds))


def wait_for_data(work: Work, table: Records, summary: Summary, outside: Callable[[], float], tally: Tally) -> Work:
    """Return the time of the steps without their waiting for data, which is added to ``tally``.

    A printed step time does not hold the wait for samples that inference makes: that is lost beside it. ``outside`` returns
    the seconds of the waiting that lie before the wall time.
    """
    inside, sampled = _waited(table, summary, DATA)
    beside, estimated = _waited(table, summary, DISPATCH)
    if beside is not None and work.evidence in TIMED:
        tally.add("data_loading", beside, measured=not estimated, count=table.count)
    held = [s for s in (inside, None if work.evidence in TIMED else beside) if s is not None]
    share = _share(summary) if not held else None
    if share is not None:
        tally.add("data_loading", work.seconds * share, measured=False)
        return work.less(work.seconds * share, doubtful=True)
    if not held:
        return work
    seconds = max(0.0, math.fsum(held) - outside())
    if seconds > work.seconds:
        tally.miss("data_loading")
        return work._replace(least=None)
    tally.add("data_loading", seconds, measured=not (sampled or estimated), count=table.count)
    known = work.less(seconds)
    if work.evidence == "trainer_loop" and work.least is not None:  # from printed step times: they hold the wait for data alone
        known = known._replace(least=max(0.0, min(work.least - (inside or 0.0), known.seconds)))
    return known


def _waited(table: Records, summary: Summary, name: str) -> tuple[float | None, bool]:
    """Return how long the steps that stand waited, and whether that is an estimate; None if nothing says so.

    Records that lack the figure are taken for median ones.
    """
    statistic = summary.metrics.get(name)
    if statistic is None:
        return None, False
    if not is_time(statistic.median) or not table.numbered:
        return None, True
    stand = table.standing > table.starts
    steps = table.steps_in(table.starts[stand], table.standing[stand]).tolist()
    totals = table.totals(table.starts, table.standing, name, statistic.definition, statistic.median)
    sampled = bool((table.strides > 1).any()) and statistic.definition is None
    seconds = [statistic.median * n if total is None else total for total, n in zip(totals, steps, strict=True)]
    return math.fsum(seconds), sampled or None in totals


def _share(summary: Summary) -> float | None:
    """Return the share of a step that is waited for data or samples, by the medians of the steady state; None without."""
    found = summary.bottleneck
    if found is None or found.verdict not in ("inference", "data"):
        return None
    known = next((found.medians[name] for name in RATIOS if name in found.medians), None)
    if known is not None:
        return min(1.0, known)
    ratio = found.medians.get("infer_over_train_ratio")
    return 1.0 - ratio if ratio is not None and ratio < 1 else None
