"""``bottleneck/1``: the bottleneck of a run, from the medians of its steady state.

There are two methods. If inference feeds training (TorchSpec), the two capacities, the wait for samples and the sample pool
vote. Otherwise the parts of a step are compared with the whole step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from receipt_cli.analysis.trend import Course, course
from receipt_cli.events.printed_digits import Digits
from receipt_cli.events.table import Series
from receipt_cli.numeric.precision import resolution
from receipt_cli.numeric.statistics import Statistic, Values

Verdict = Literal["inference", "training", "data", "compute", "balanced", "unknown"]

BOTTLENECK_RULE = "bottleneck/1"
LOOKED_AT = 1024
"""Values examined to find a metric's printed resolution."""
MIN_RECORDS = 5
"""Fewest steady values of a metric that count."""
ALIKE = 1.1
"""Capacities, or parts of a step, whose ratio is below this are equal."""
WAITS = 0.10
"""Share of a cycle from which on training waits for samples: as much as ``ALIKE`` lets capacities differ."""
WAITS_NOT = 0.02
"""Share of a cycle below which training does not wait: the wait is polled every 10 ms, so it is never zero."""
FILLS = 1.25
"""Growth of a pool: its last quarter over its first, if its fitted line also rises and explains the values."""
EXPLAINS = 0.5
"""Share of the variance that a line must explain; less is noise."""
DATA_HIGH, DATA_LOW = 0.20, 0.05
"""Shares of a step from which on data loading is the bottleneck, and up to which it is not; from TensorFlow's profiler
(``op_stats_to_input_pipeline_analysis``: highly, and not, input-bound)."""
SLACK = 1.02
"""Factor by which a part may exceed the whole: both are medians of rounded figures."""
COMPUTES = 0.5
"""Share of a step below which computing does not explain it; communication or pipeline bubbles take the rest."""
DOMINATES = 8.0
"""Factor from which on computing takes so much longer than data that it is the bottleneck, whatever the rest of the step is."""
OVERLAP = 1.1
"""Data plus compute time over step time, from which on they overlap, so data time is not waiting time."""

POOL = "pooled_sample_count"
DELIVERED = "infer_samples_per_s"
FEEDING = ("infer_capacity_samples_per_s", "train_capacity_samples_per_s", "dispatch_wait_s", POOL)
PARTS = (
    "data_time_s",
    "compute_time_s",
    "forward_time_s",
    "backward_time_s",
    "forward_backward_time_s",
    "optimizer_time_s",
    "generation_time_s",
)
STEP = "step_time_s"
CYCLE = "cycle_time_s"
"""An unregistered metric: the time from one step to the next, waits included."""


class Bottleneck(NamedTuple):
    """The verdict, its figures (base units; slopes per step), and the comparison that decided."""

    verdict: Verdict
    medians: dict[str, float]
    because: str


class _Vote(NamedTuple):
    """The verdict of one comparison, and its sentence. A ``sure`` vote overrides the others."""

    verdict: Verdict
    because: str
    sure: bool = False


def judge(
    metrics: Mapping[str, Statistic],
    series: Series,
    *,
    cycle: float | None = None,
    restarted: bool = False,
    digits: Mapping[str, Digits] = MappingProxyType({}),
) -> Bottleneck | None:
    """Return the bottleneck of a phase from the statistics and values of its metrics.

    ``cycle``: median time from one step to the next, if a bar prints it. ``digits``: printed digits by metric, if known. If the
    run ``restarted``, the pool's change over time is not used. Returns None if the phase has no metric that is needed.
    """
    printed = {name: metrics[name] for name in (*FEEDING, DELIVERED, STEP, *PARTS) if name in metrics}
    medians = {name: s.median for name, s in printed.items() if s.median is not None}
    if not any(name in medians for name in (*FEEDING, *PARTS)):
        return None
    counts = {name: s.record_count - s.nonfinite_count for name, s in printed.items()}
    known = {name: median for name, median in medians.items() if counts[name] >= MIN_RECORDS}
    printed_names = [name for name in (STEP, "data_time_s", "dispatch_wait_s") if name in known]
    doubt = {name: _half_unit(series.steady(name), digits.get(name)) for name in printed_names}
    if not any(name in known for name in (*FEEDING, *PARTS)):
        return Bottleneck("unknown", medians, f"fewer than {MIN_RECORDS} steady records say it")
    pool = course(series, POOL) if POOL in known and not restarted else None
    votes = _feeding_votes(pool, known, doubt, medians, cycle)
    vote = _over_capacity(pool, known) or (_decide_feeding(votes, known, doubt) if votes else None)
    parts = _parts_vote(known, doubt, medians)
    if vote is None:
        vote = parts
    elif vote.verdict == "training" and parts.verdict in ("data", "compute"):
        vote = _Vote("training", f"{vote.because}; within training, {parts.because}")
    return Bottleneck(vote.verdict, {name: figure for name, figure in medians.items() if math.isfinite(figure)}, vote.because)


def _feeding_votes(
    pool: Course | None,
    known: Mapping[str, float],
    doubt: Mapping[str, float],
    medians: dict[str, float],
    cycle: float | None,
) -> list[_Vote]:
    """Return the votes that the figures of data loading give; add these figures to ``medians``."""
    votes: list[_Vote] = []
    wait, step = known.get("dispatch_wait_s"), known.get(STEP)
    if step is None and wait is not None and cycle is not None and wait <= ALIKE * cycle:
        step = max(0.0, cycle - wait)
        medians[CYCLE] = cycle
    if wait is not None and step is not None and wait + step > 0:
        share = medians["dispatch_wait_ratio"] = wait / (wait + step)
        least = max(0.0, wait - doubt["dispatch_wait_s"])
        if least / (least + step) >= WAITS:
            says = f"training waits {_n(wait)} s for samples beside {_n(step)} s a step ({_p(share)})"
            votes.append(_Vote("inference", says, sure=known.get(POOL, 1.0) < 1))
    infer, train = known.get(FEEDING[0]), known.get(FEEDING[1])
    if infer is not None and train is not None and infer > 0 and train > 0 and math.isfinite(infer / train):
        ratio = medians["infer_over_train_ratio"] = infer / train
        says = f"inference can make {_n(infer)} samples/s, training can take {_n(train)}"
        verdict: Verdict = "training" if ratio >= ALIKE else "inference" if ratio <= 1 / ALIKE else "balanced"
        votes.append(_Vote(verdict, says))
    slope = None if pool is None else pool.slope
    if pool is not None and slope is not None:
        medians["pooled_sample_slope"] = slope
        if pool.quarters is not None and pool.line is not None and pool.line.explained >= EXPLAINS:
            first, last = pool.quarters
            if last >= FILLS * max(first, 1.0) and pool.line.rise > 0:
                votes.append(_Vote("training", f"the pool of samples grows from {_n(first)} to {_n(last)}"))
    return votes


def _over_capacity(pool: Course | None, known: Mapping[str, float]) -> _Vote | None:
    """Return the vote of a throughput that cannot be: steady, it is the smaller capacity, unless the pool grows."""
    delivered, infer, train = (known.get(name) for name in (DELIVERED, *FEEDING[:2]))
    kept = POOL not in known or (pool is not None and (pool.slope or 0.0) > 0)
    limits = [(infer, "inference can make"), (None if kept else train, "training can take")]
    most, says = min(((limit, says) for limit, says in limits if limit), default=(math.inf, ""))
    if delivered is None or delivered <= ALIKE * most:
        return None
    says = f"{_n(delivered)} samples/s are delivered, yet {says} {_n(most)}"
    return _Vote("unknown", f"the figures contradict one another: {says}")


def _decide_feeding(votes: list[_Vote], known: Mapping[str, float], doubt: Mapping[str, float]) -> _Vote:
    because = "; ".join(vote.because for vote in votes)
    sides = {vote.verdict for vote in votes if vote.sure} or {vote.verdict for vote in votes} - {"balanced"}
    if len(sides) > 1:
        return _Vote("unknown", f"the figures contradict one another: {because}")
    if not sides:
        return _Vote("balanced", f"{because}: within {_p(ALIKE - 1)}")
    [side] = sides
    wait, step = known.get("dispatch_wait_s"), known.get(STEP)
    if side == "inference" and wait is not None and step is not None:
        most = wait + doubt["dispatch_wait_s"]
        if most < WAITS_NOT * (most + step):
            return _Vote(
                "unknown", f"the figures contradict one another: {because}; yet training waits {_n(wait)} s beside {_n(step)} s"
            )
    return _Vote(side, because)


def _parts_vote(known: Mapping[str, float], doubt: Mapping[str, float], medians: dict[str, float]) -> _Vote:
    """Return the vote of the parts of a step; add the shares to ``medians``."""
    step, data, compute = known.get(STEP), known.get("data_time_s"), known.get("compute_time_s")
    if data is not None and (step or compute):
        vote = _data_vote(data, step, compute, doubt, medians)
        worked = _worked(known)
        if vote.verdict == "compute" and step and worked is not None and worked < COMPUTES * step:
            return _Vote("unknown", f"{vote.because}, and computing {_n(worked)} s: neither explains it")
        return vote
    if compute is not None and step:
        share = medians["compute_time_ratio"] = compute / step
        says = f"computing takes {_n(compute)} s of {_n(step)} s a step ({_p(share)})"
        return _Vote("compute" if 1 - DATA_LOW <= share <= SLACK else "unknown", says)
    generation = known.get("generation_time_s")
    if generation is not None and step:
        share = medians["generation_time_ratio"] = generation / step
        says = f"generating samples takes {_n(generation)} s of {_n(step)} s a step ({_p(share)})"
        return _Vote("inference" if generation >= ALIKE * (step - generation) and share <= SLACK else "unknown", says)
    return _Vote("unknown", "nothing says how long a step waits for its data")


def _worked(known: Mapping[str, float]) -> float | None:
    """Return the printed compute time of a step; None if the forward or the backward pass is missing."""
    if "compute_time_s" in known:
        return known["compute_time_s"]
    passes = ("forward_backward_time_s",) if "forward_backward_time_s" in known else ("forward_time_s", "backward_time_s")
    if not known.keys() >= set(passes):
        return None
    return sum(known[name] for name in (*passes, "optimizer_time_s") if name in known)


def _data_vote(
    data: float, step: float | None, compute: float | None, doubt: Mapping[str, float], medians: dict[str, float]
) -> _Vote:
    whole = step or data + (compute or 0.0)
    if not whole:
        return _Vote("unknown", "neither data nor compute time is above zero")
    share = medians["data_time_ratio"] = data / whole
    says = f"data takes {_n(data)} s of {_n(whole)} s a step ({_p(share)})"
    if share > SLACK:
        return _Vote("unknown", f"{says}: more than the whole")
    if step and compute is not None and data + compute > OVERLAP * step:
        return _Vote("unknown", f"{says} and computing {_n(compute)} s: they overlap, so data is not waited for all that time")
    off, whole_off = doubt["data_time_s"], doubt.get(STEP, 0.0)
    least, most = (data - off) / (whole + whole_off), (data + off) / max(whole - whole_off, data, math.ulp(0.0))
    if least >= DATA_HIGH:
        return _Vote("data", says)
    if most <= DATA_LOW:
        return _Vote("compute", says)
    if step and compute is not None and compute >= max(DOMINATES * (data + off), COMPUTES * step):
        return _Vote("compute", f"{says} and computing {_n(compute)} s, {_n(compute / data)} times as long")
    if least > DATA_LOW and most < DATA_HIGH:
        return _Vote("balanced", says)
    return _Vote("unknown", f"{says}, printed too coarsely to tell")


def _half_unit(values: Values, digits: Digits | None) -> float:
    """Return the rounding error of a printed value: half a unit of the last digit printed, or visible in the values.

    Half a second if the values are whole numbers.
    """
    unit = resolution(values[:LOOKED_AT]) if digits is None else digits.unit
    return (unit or 1.0) / 2


def _n(value: float) -> str:
    return f"{value:.3g}"


def _p(share: float) -> str:
    return f"{100 * share:.3g} %"
