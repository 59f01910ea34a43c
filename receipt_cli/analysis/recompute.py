"""Recompute printed figures from the log: rates from batch and step time, FLOP/s, and MFU.

Each names its inputs. Nothing is guessed: without the devices, the FLOPs per token or the peak there is no figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from receipt_cli.analysis.consistency import tokens_per_step
from receipt_cli.analysis.flops import (
    PRINTED,
    Facts,
    Peak,
    TokenFlops,
    device_of,
    is_of_another,
    named_convention,
    own_peak,
    positive,
    table_peak,
    token_flops,
    world_size,
)
from receipt_cli.analysis.rates import StepRate, scaled
from receipt_cli.analysis.stated.completion import Completed
from receipt_cli.definitions.accelerators import Device
from receipt_cli.events.table import Column, EventTable
from receipt_cli.numeric.precision import TOLERANCE
from receipt_cli.numeric.statistics import Statistic

Describe = Callable[[Column, str | None, str | None], Statistic]
"""Statistics of a figure over the steady records, with its scope and its definition."""

Inputs = dict[str, float | str]

_TOTALS = ("mean_over_the_run", "mean_since_start")
"""Definitions of printed rates that cover more than one record, so they are not comparable per record."""


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
    """The inputs and results of recomputation in a phase; ``found`` by metric."""

    facts: Facts
    world: tuple[float, str] | None
    device: Device | None
    own: Peak | None
    found: dict[str, Recomputed] = field(default_factory=dict)


def recompute(
    steps: EventTable,
    known: Completed,
    metrics: Mapping[str, Statistic],
    trainer: str,
    describe: Describe,
) -> Workings:
    """Return the figures of a phase that follow from its step records and the ``known`` facts.

    ``metrics``: statistics of printed metrics; ``trainer``: id of the grammar that read them.
    """
    mfu = metrics.get("mfu_ratio")
    definition = None if mfu is None else mfu.definition
    facts = known.facts
    made = Workings(facts, world_size(facts), device_of(facts), own_peak(facts, definition))
    tokens = StepRate(facts.get("sequence_length"), tokens_per_step(facts))
    samples = StepRate(1.0, positive(facts, "samples_per_step"))
    for unit, rate, per_sample in (("tokens", tokens, "sequence_length"), ("samples", samples, None)):
        for name, figure, scope, inputs in _rates(unit, rate, per_sample, steps, made, metrics):
            statistic = describe(figure, scope, f"{unit}_per_step_over_step_time")
            made.found[name] = Recomputed(statistic, figure, inputs, _each_record(metrics.get(name)))
    flops = known.flops or token_flops(facts, known.parameters, metrics, definition, trainer)
    if flops is not None:
        work = made.found.get("tokens_per_s") or _printed_rate(steps, known, metrics, describe)
        _add_flops(made, flops, work, metrics, describe)
    _add_mfu(made, flops, known.peak, steps, metrics, trainer, describe)
    for name, one in made.found.items():
        made.found[name] = replace(one, inputs=known.named(one.inputs))
    return made


def _printed_rate(steps: EventTable, known: Completed, metrics: Mapping[str, Statistic], describe: Describe) -> Recomputed | None:
    """Return the printed tokens/s of each record, if stated facts complete them."""
    printed = metrics.get("tokens_per_s")
    if printed is None or not known.used or not _each_record(printed):
        return None
    figure = steps.metric("tokens_per_s")
    return Recomputed(describe(figure, None, None), figure, {"tokens_per_s": "as each record prints it"}, False)


def _rates(
    unit: str,
    rate: StepRate,
    per_sample: str | None,
    steps: EventTable,
    made: Workings,
    metrics: Mapping[str, Statistic],
) -> Iterator[tuple[str, Column, str, Inputs]]:
    """Yield the rate of the job, and that of a device if the trainer prints it too."""
    figure, amounts = rate.of(steps)
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
    if name in metrics and made.world is not None:
        yield name, scaled(figure, 1 / made.world[0]), "device", {**inputs, **_world(made)}


def _world(made: Workings) -> Inputs:
    return {} if made.world is None else {"world_size": made.world[0], "world_size_source": made.world[1]}


def _each_record(printed: Statistic | None) -> bool:
    return printed is not None and printed.window == "steady" and printed.definition not in _TOTALS


def _add_flops(
    made: Workings, flops: TokenFlops, tokens: Recomputed | None, metrics: Mapping[str, Statistic], describe: Describe
) -> None:
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
    statistic = describe(figure, "device", f"{flops.slug}_flops")
    printed = metrics.get("flops_per_s_per_device")
    if flops.convention != PRINTED and _more(statistic, printed):
        return
    inputs: Inputs = {**flops.inputs, **_world(made), **tokens.inputs}
    own = flops.convention == PRINTED and _each_record(printed)
    made.found["flops_per_s_per_device"] = Recomputed(statistic, figure, inputs, own)


def _more(statistic: Statistic, printed: Statistic | None) -> bool:
    if printed is None or not printed.median or not statistic.median:
        return False
    return statistic.median > printed.median * (1 + TOLERANCE)


def _add_mfu(
    made: Workings,
    flops: TokenFlops | None,
    stated: Peak | None,
    steps: EventTable,
    metrics: Mapping[str, Statistic],
    trainer: str,
    describe: Describe,
) -> None:
    """Add the MFU: FLOP/s of a device over the trainer's own peak, else the ``stated`` one, else the table's.

    The printed peak of another device than the named one is ignored: the trainer fell back to it.

    The FLOP/s are those of printed FLOPs, else the printed FLOP/s, else those from the parameter count.
    """
    printed_rate = metrics.get("flops_per_s_per_device")
    work = made.found.get("flops_per_s_per_device")
    own = None if made.own is None or is_of_another(made.own, made.facts) else made.own
    peak = own or stated or (table_peak(made.device) if made.device is not None else None)
    if peak is None:
        return
    counted = flops is not None and flops.convention != PRINTED
    named = counted and flops is not None and named_convention(_definition(metrics)) == flops.slug
    printed = steps.metric("flops_per_s_per_device")
    if (work is None or counted) and printed_rate is not None and len(printed.values):
        figure, slug, named = printed, trainer, True
        inputs: Inputs = {"flops_per_s_per_device": "as each record prints it", "flops_convention": PRINTED}
    elif work is not None and flops is not None:
        figure, slug, inputs = work.figure, flops.slug, work.inputs
    else:
        return
    figure = scaled(figure, 1 / peak.flops_per_s)
    statistic = describe(figure, None, f"{slug}_flops_over_{peak.slug}")
    if counted and slug != trainer and (statistic.median or 0.0) > 1:
        return  # above the peak by parameter count: not all parameters work on every token
    inputs = {**inputs, "peak_flops_per_s_per_device": peak.flops_per_s, "peak_source": peak.source}
    comparable = peak.own and (named or not counted) and _each_record(metrics.get("mfu_ratio"))
    made.found["mfu_ratio"] = Recomputed(statistic, figure, inputs, comparable)


def _definition(metrics: Mapping[str, Statistic]) -> str | None:
    printed = metrics.get("mfu_ratio")
    return None if printed is None else printed.definition
