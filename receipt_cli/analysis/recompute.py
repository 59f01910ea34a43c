"""Recompute printed figures from the log: rates from batch and step time, FLOP/s, and MFU.

Each names its inputs, and is compared with the printed figure. Nothing is guessed: without the devices, the FLOPs per token or
the peak there is no figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from receipt_cli.analysis.flops import (
    PRINTED,
    Peak,
    TokenFlops,
    device_of,
    is_of_another,
    named_convention,
    own_peak,
    positive,
    table_peak,
    token_flops,
    tokens_per_step,
    world_size,
)
from receipt_cli.analysis.progress import FINE_GAP, PER_RECORD
from receipt_cli.analysis.records import Records
from receipt_cli.analysis.stated import Completed
from receipt_cli.definitions.accelerators import Device
from receipt_cli.events.printed_digits import Digits
from receipt_cli.events.table import Column, EventTable
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.precision import TOLERANCE
from receipt_cli.numeric.spill import gathered, slices
from receipt_cli.numeric.statistics import Statistic


class StepRate(NamedTuple):
    """Parts of a rate: units per sample (sequence length for tokens, 1 for samples), and units per step without a batch size."""

    per_sample: float | str | None
    constant: float | None

    def of(self, table: EventTable) -> tuple[Column, list[float]]:
        """Return the rate of the records that have one [units/s], and the distinct units per step of these."""
        seconds, samples = table.filled("step_time_s"), table.filled("global_batch_size")  # batches may ramp up
        each = self.per_sample if isinstance(self.per_sample, float) else math.nan
        constant = math.nan if self.constant is None else self.constant
        known, distinct = np.zeros(len(table), np.bool_), set[float]()

        def rates(part: slice) -> Floats:
            amounts = samples[part] * each
            amounts = np.where((amounts > 0) & (amounts < math.inf), amounts, constant)
            known[part] = (seconds[part] > 0) & ~np.isnan(amounts)
            distinct.update(distinct_values(amounts[known[part]]).tolist())
            return amounts / seconds[part]

        with np.errstate(all="ignore"):
            found = gathered(np.float64, len(table), map(rates, slices(len(table))))
        return table.figure(found, known), sorted(distinct)


def scaled(column: Column, factor: float) -> Column:
    """Return a figure times ``factor``."""
    return column._replace(values=column.values * factor)


Describe = Callable[[Column, str | None, str | None], Statistic]
"""Statistics of a figure over the steady records, with its scope and its definition."""

Inputs = dict[str, float | str]


@dataclass(frozen=True, slots=True)
class Recomputed:
    """One figure: its statistics, its value in each record, and its inputs.

    ``comparable``: the printed figure, if there is one, means the same, so the two must agree.
    """

    statistic: Statistic
    figure: Column
    inputs: Inputs
    comparable: bool


@dataclass(slots=True)
class Workings:
    """The inputs and results of recomputation in a phase; ``found`` by metric.
    ``metrics``: statistics of printed metrics; ``trainer``: id of the grammar that read them."""

    steps: Records
    known: Completed
    metrics: Mapping[str, Statistic]
    trainer: str
    describe: Describe
    world: tuple[float, str] | None
    device: Device | None
    own: Peak | None
    found: dict[str, Recomputed] = field(default_factory=dict)


def recompute(
    steps: Records,
    known: Completed,
    metrics: Mapping[str, Statistic],
    trainer: str,
    describe: Describe,
    grain: float | None = None,
) -> Workings:
    """Return the figures of a phase that follow from its step records and the ``known`` facts.

    ``metrics``: statistics of printed metrics; ``trainer``: id of the grammar that read them; ``grain``: how many seconds the
    stamps of the records may be off, None if they show no time.
    """
    definition, facts = _definition(metrics), known.facts
    peak = own_peak(facts, definition)
    made = Workings(steps, known, metrics, trainer, describe, world_size(facts), device_of(facts), peak)
    tokens = StepRate(facts.get("sequence_length"), tokens_per_step(facts))
    samples = StepRate(1.0, positive(facts, "samples_per_step"))
    for unit, rate, per_sample in (("tokens", tokens, "sequence_length"), ("samples", samples, None)):
        for name, figure, scope, inputs in _rates(unit, rate, per_sample, made):
            statistic = describe(figure, scope, f"{unit}_per_step_over_step_time")
            made.found[name] = Recomputed(statistic, figure, inputs, _each_record(metrics.get(name)))
    flops = known.flops or token_flops(facts, known.parameters, metrics, definition, trainer)
    if flops is not None:
        _add_flops(made, flops, made.found.get("tokens_per_s") or _printed_rate(made) or _rate_by_stamps(made, grain))
    _add_mfu(made, flops)
    for name, one in made.found.items():
        made.found[name] = replace(one, inputs=known.named(one.inputs))
    return made


def _printed_rate(made: Workings) -> Recomputed | None:
    """Return the printed tokens/s of each record, if stated facts complete them."""
    if not made.known.used or not _each_record(made.metrics.get("tokens_per_s")):
        return None
    figure = made.steps.metric("tokens_per_s")
    return Recomputed(made.describe(figure, None, None), figure, {"tokens_per_s": "as each record prints it"}, False)


def _rate_by_stamps(made: Workings, grain: float | None) -> Recomputed | None:
    """Return the growth of the printed tokens over the time between records, if stated facts complete it.

    Time between records that the grain of their stamps blurs does not count.
    """
    counter, steps = made.metrics.get("tokens_total"), made.steps
    if counter is None or counter.scope not in (None, "global") or grain is None or not made.known.used:
        return None
    tokens, seconds = (steps.rises(column, slice(0, steps.count)) for column in (steps.filled("tokens_total"), steps.clock))
    with np.errstate(all="ignore"):
        figure = steps.figure(tokens / seconds, (tokens > 0) & (seconds > 0) & (seconds >= FINE_GAP * grain))
    if not len(figure.values):
        return None
    inputs: Inputs = {"tokens_per_s": "growth of tokens_total over the time between records"}
    return Recomputed(made.describe(figure, "global", "tokens_total_over_stamps"), figure, inputs, False)


def _rates(unit: str, rate: StepRate, per_sample: str | None, made: Workings) -> Iterator[tuple[str, Column, str, Inputs]]:
    """Yield the rate of the job, and that of a device if the trainer prints it too."""
    figure, amounts = rate.of(made.steps)
    if not amounts:
        return
    inputs: Inputs = {}
    if len(amounts) == 1:
        inputs[f"{unit}_per_step"] = amounts[0]
    elif per_sample is not None and isinstance(rate.per_sample, float):
        inputs[per_sample] = rate.per_sample
    else:
        inputs[f"{unit}_per_step"] = "as each record prints it"
    yield f"{unit}_per_s", figure, "global", inputs
    name = f"{unit}_per_s_per_device"
    if name in made.metrics and made.world is not None:
        yield name, scaled(figure, 1 / made.world[0]), "device", {**inputs, **_world(made)}


def _world(made: Workings) -> Inputs:
    return {} if made.world is None else {"world_size": made.world[0], "world_size_source": made.world[1]}


def _each_record(printed: Statistic | None) -> bool:
    return printed is not None and printed.window == "steady" and printed.definition not in PER_RECORD


def _add_flops(made: Workings, flops: TokenFlops, tokens: Recomputed | None) -> None:
    """Add the FLOP/s of a device, from the tokens of the job.

    If FLOPs follow from the parameter count and exceed the printed figure, it is left out: not every parameter works on every
    token.
    """
    if tokens is None or made.world is None:
        return
    factor = flops.value / made.world[0]
    if not 0 < factor < math.inf:
        return
    figure = scaled(tokens.figure, factor)
    statistic = made.describe(figure, "device", f"{flops.slug}_flops")
    printed = made.metrics.get("flops_per_s_per_device")
    medians = (statistic.median, None if printed is None else printed.median)
    if flops.convention != PRINTED and medians[0] and medians[1] and medians[0] > medians[1] * (1 + TOLERANCE):
        return
    inputs: Inputs = {**flops.inputs, **_world(made), **tokens.inputs}
    own = flops.convention == PRINTED and _each_record(printed)
    made.found["flops_per_s_per_device"] = Recomputed(statistic, figure, inputs, own)


def _add_mfu(made: Workings, flops: TokenFlops | None) -> None:
    """Add the MFU: FLOP/s of a device over the trainer's own peak, else the stated one, else the table's.

    The printed peak of another device than the named one is ignored: the trainer fell back to it.

    The FLOP/s are those of printed FLOPs, else the printed FLOP/s, else those from the parameter count.
    """
    metrics, trainer = made.metrics, made.trainer
    printed_rate = metrics.get("flops_per_s_per_device")
    work = made.found.get("flops_per_s_per_device")
    own = None if made.own is None or is_of_another(made.own, made.known.facts) else made.own
    peak = own or made.known.peak or (table_peak(made.device) if made.device is not None else None)
    if peak is None:
        return
    counted = flops is not None and flops.convention != PRINTED
    named = counted and flops is not None and named_convention(_definition(metrics)) == flops.slug
    printed = made.steps.metric("flops_per_s_per_device")
    if (work is None or counted) and printed_rate is not None and len(printed.values):
        figure, slug, named = printed, trainer, True
        inputs: Inputs = {"flops_per_s_per_device": "as each record prints it", "flops_convention": PRINTED}
    elif work is not None and flops is not None:
        figure, slug, inputs = work.figure, flops.slug, work.inputs
    else:
        return
    figure = scaled(figure, 1 / peak.flops_per_s)
    statistic = made.describe(figure, None, f"{slug}_flops_over_{peak.slug}")
    if counted and slug != trainer and (statistic.median or 0.0) > 1:
        return  # above the peak by parameter count: not all parameters work on every token
    inputs = {**inputs, "peak_flops_per_s_per_device": peak.flops_per_s, "peak_source": peak.source}
    comparable = peak.own and (named or not counted) and _each_record(metrics.get("mfu_ratio"))
    made.found["mfu_ratio"] = Recomputed(statistic, figure, inputs, comparable)


def _definition(metrics: Mapping[str, Statistic]) -> str | None:
    printed = metrics.get("mfu_ratio")
    return None if printed is None else printed.definition


class Comparison(NamedTuple):
    """A reported and a derived median; ``ratio`` = reported / derived."""

    metric: str
    reported: float
    derived: float
    ratio: float
    consistent: bool


def compare(
    metric: str, reported: Statistic | None, derived: Statistic | None, digits: Digits | None = None
) -> Comparison | None:
    """Return the comparison of two medians; None if one is missing or zero, or if the ratio is beyond float64.

    They also agree if they differ by at most half a unit of the last printed digit (of ``digits``, if known).
    """
    if reported is None or derived is None or not reported.median or not derived.median:
        return None
    ratio = reported.median / derived.median
    if not math.isfinite(ratio):
        return None
    near = abs(reported.median - derived.median) <= (_half_digit(reported) if digits is None else (digits.unit or 0.0) / 2)
    return Comparison(metric, reported.median, derived.median, ratio, near or abs(ratio - 1) <= TOLERANCE)


MEAN = "mean_over_the_run"
"""Definition of a rate printed once, at the end: all work over its time."""
_SESSION = 0.1
"""Tolerance between the steps counted by such a rate and the log's steps."""


def of_session(first: int, last: int, records: int, metrics: Mapping[str, Statistic], seconds: float | None) -> list[Comparison]:
    """Return the means over the run that count other steps than ``first`` to ``last``, which took ``seconds``.

    After a resume or an early stop, trainers divide all planned steps by the time of this session. Records are a stride apart:
    the session may begin up to a stride before the first and end after the last.
    """
    steps = metrics.get("steps_per_s")
    if steps is None or steps.definition != MEAN or not steps.last or not seconds or records < 2 or last <= first:
        return []
    stride = (last - first) / (records - 1)
    begun = 0.0 if first <= 1.5 * stride else first - stride
    counted, done = steps.last * seconds, last - begun
    if done * (1 - _SESSION) - 1 <= counted <= (done + stride) * (1 + _SESSION) + 1:
        return []
    ratio = counted / done
    printed = {name: s.last for name, s in metrics.items() if s.definition == MEAN and name.endswith("s_per_s") and s.last}
    return [Comparison(name, rate, rate / ratio, ratio, False) for name, rate in printed.items()]


def _half_digit(printed: Statistic) -> float:
    """Return half a unit of the last printed decimal; 0.0 for whole numbers, which show none."""
    shown = [value for value in (printed.first, printed.last, printed.min, printed.max) if value is not None]
    exponents = [Decimal(repr(value)).normalize().as_tuple().exponent for value in shown]
    finest = min((e for e in exponents if isinstance(e, int)), default=0)
    return 0.5 * 10.0**finest if finest < 0 else 0.0
