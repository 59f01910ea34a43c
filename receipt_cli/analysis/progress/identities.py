"""Identities between figures of a log: one number computed in two ways, both in the receipt."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from receipt_cli.analysis.flops import Facts, Peak, positive
from receipt_cli.analysis.progress.realised import Realised
from receipt_cli.events.model import Event
from receipt_cli.events.table import Series
from receipt_cli.numeric.precision import TOLERANCE, resolution
from receipt_cli.numeric.statistics import Statistic, Values, exact_sum

PER_RECORD = ("mean_over_the_run", "mean_since_start")
"""Definitions of rates that are not per record."""
FLOPS_PER_WEIGHT = (6.0, 18.0, 24.0)
"""FLOPs per token and weight: forward and backward; three times that (Forgather); with recomputed activations, by a formula
that counts the forward pass four times."""
MIN_RECORDS = 10
"""Fewest records that show a rate."""
FINE = 20
"""Grains in a time from which on its error is below 5 %."""
LOOKED_AT = 1024
"""Values examined to find a metric's printed resolution."""


class Identity(NamedTuple):
    """Two figures that must be equal. ``holds`` is None if they differ and a convention may explain it."""

    name: str
    left: float
    right: float
    ratio: float
    holds: bool | None
    detail: str


class Evidence(NamedTuple):
    """Inputs of the identities. ``grain``: possible error of timestamps [s]; ``world``: number of devices."""

    steps: Sequence[Event]
    facts: Facts
    metrics: Mapping[str, Statistic]
    series: Series
    realised: Realised | None
    grain: float
    world: float | None
    peak: Peak | None
    parameters: int | None
    whole: bool
    """Whether every step has a record, without restarts or omitted records."""


def find_identities(known: Evidence) -> list[Identity]:
    """Return the identities of a phase with two known sides."""
    made = [*_realised(known), *_of_a_step(known), *_of_samples(known), *_of_the_peak(known), *_of_time(known), *_of_flops(known)]
    return [one for one in made if math.isfinite(one.ratio)]


def _identity(name: str, left: float, right: float, tolerance: float, detail: str, *, doubt: bool = False) -> Identity:
    """Return an identity that holds within a relative ``tolerance``; with ``doubt`` it is never false."""
    ratio = left / right if right else math.inf
    near = abs(ratio - 1) <= tolerance
    return Identity(name, left, right, ratio, True if near else None if doubt else False, detail)


def _rate(known: Evidence, unit: str) -> float | None:
    """Return the median of a printed rate of the job, or of one device times the number of devices."""
    for name, factor in ((f"{unit}_per_s", 1.0), (f"{unit}_per_s_per_device", known.world)):
        found = known.metrics.get(name)
        if found is None or factor is None or not found.median or found.definition in PER_RECORD or found.window != "steady":
            continue
        if found.record_count >= MIN_RECORDS and (found.scope in (None, "global") or factor != 1.0 or known.world == 1):
            return found.median * factor
    return None


def _realised(known: Evidence) -> Iterator[Identity]:
    """Yield printed rate = realised rate; they differ if the steps waited for something."""
    found = known.realised
    if found is None:
        return
    tolerance = TOLERANCE + 2 * known.grain / found.duration_s
    for unit, realised in (("tokens", found.tokens_per_s), ("samples", found.samples_per_s)):
        printed = _rate(known, unit)
        if printed is not None and realised:
            detail = f"printed {unit}/s = {unit} over the time from the first step record to the last"
            yield _identity(f"realised_{unit}_per_s", printed, realised, tolerance, detail)


def _of_a_step(known: Evidence) -> Iterator[Identity]:
    seconds = known.metrics.get("step_time_s")
    each = positive(known.facts, "tokens_per_step")
    rate = _rate(known, "tokens")
    if seconds is None or not seconds.median or each is None or rate is None or "global_batch_size" in known.metrics:
        return
    yield _identity("tokens_of_a_step", rate * seconds.median, each, TOLERANCE, "tokens/s × step time = tokens of a step")


def _of_samples(known: Evidence) -> Iterator[Identity]:
    samples, length, tokens = (positive(known.facts, n) for n in ("samples_per_step", "sequence_length", "tokens_per_step"))
    if samples is not None and length is not None and tokens is not None:
        yield _identity("samples_times_length", samples * length, tokens, 0.0, "samples × sequence length = tokens of a step")


def _of_the_peak(known: Evidence) -> Iterator[Identity]:
    ratio, flops = known.metrics.get("mfu_ratio"), known.metrics.get("flops_per_s_per_device")
    if known.peak is None or ratio is None or flops is None or not ratio.median or not flops.median:
        return
    tolerance = TOLERANCE + resolution(known.series.steady("mfu_ratio")[:LOOKED_AT]) / ratio.median
    detail = "MFU × peak = FLOP/s of a device"
    yield _identity("mfu_times_peak", ratio.median * known.peak.flops_per_s, flops.median, tolerance, detail)


def _of_time(known: Evidence) -> Iterator[Identity]:
    times, elapsed = known.series.steady("step_time_s"), known.series.steady("elapsed_time_s")
    printed = known.metrics.get("step_time_s")
    if not known.whole or printed is None or printed.definition is not None:
        return
    if len(times) != len(elapsed) or len(times) < MIN_RECORDS:
        return
    grain = _grain(elapsed)
    begin = max((i for i, value in enumerate(elapsed) if value == elapsed[0]), default=0)  # some trainers omit their first steps
    span = float(elapsed[-1]) - float(elapsed[0])
    if span < FINE * grain:
        return
    detail = "the step times add up to the printed total time"
    yield _identity("sum_of_step_times", exact_sum(times[begin + 1 :]), span, TOLERANCE + 2 * grain / span, detail)


def _grain(elapsed: Values) -> float:
    """Return the possible error [s] of a growing total: by its digits, or by its jumps."""
    shown = [float(value) for value in elapsed[:LOOKED_AT]]
    jumps = [after - before for before, after in pairwise(shown) if after > before]
    return max(resolution(shown) or 1.0, min(jumps, default=1.0))


def _of_flops(known: Evidence) -> Iterator[Identity]:
    flops, tokens = known.metrics.get("total_flops"), known.metrics.get("tokens_total")
    if flops is None or tokens is None or not known.parameters or not flops.last or not tokens.last:
        return
    each = flops.last / tokens.last / known.parameters
    nearest = min(FLOPS_PER_WEIGHT, key=lambda weight: abs(math.log(each / weight)))
    detail = f"total FLOPs ÷ tokens ÷ parameters = {nearest:g}"
    yield _identity("flops_of_a_token", each, nearest, TOLERANCE, detail, doubt=True)
