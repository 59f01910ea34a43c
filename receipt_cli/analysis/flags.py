"""Explainable oddities of a phase's figures: a factor, a wrong peak, an impossible step. No speed thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from receipt_cli.analysis.flops import PRINTED, SAME_PEAK, named_convention, positive
from receipt_cli.analysis.recompute import Comparison, Workings
from receipt_cli.definitions.accelerators import Device, load_peaks
from receipt_cli.events.table import EventTable
from receipt_cli.numeric.precision import TOLERANCE
from receipt_cli.numeric.statistics import count_above, finite


@dataclass(frozen=True, slots=True)
class Flag:
    """One oddity; see ``flags`` in ``schemas/receipt``. ``factor``: the printed figure times this is the corrected one."""

    kind: str
    metric: str
    reported: float | None
    derived: float | None
    factor: float | None
    count: int | None
    detail: str


MAX_FACTOR = 1024
"""Largest integer factor by which a printed rate may be off."""
SURE = 0.1
"""Share of ratios near some integer by chance, if no printed fact names it; the tolerance shrinks with the integer, which
keeps this share below twice the value."""
BEYOND = 6.0
"""Multiple of the dense BF16 peak that no step reaches in any precision; dense FP4 reaches four to six times."""
CONVENTION_RATIO = 3.0
"""Ratio of the FLOPs of the 18N convention to those of 6N."""

_NAMES = {
    "gradient_accumulation_steps": "gradient accumulation steps",
    "world_size": "devices",
    "data_parallel": "data-parallel ranks",
    "tensor_parallel": "tensor-parallel ranks",
    "pipeline_parallel": "pipeline stages",
    "context_parallel": "context-parallel ranks",
    "micro_batch_size": "samples of a micro-batch",
}
"""Facts that explain an integer factor, most likely first."""
_RATES = ("tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "samples_per_s_per_device")


def find_oddities(singles: EventTable, made: Workings, consistency: Sequence[Comparison]) -> list[Flag]:
    """Return the oddities of a phase: in printed metrics, in recomputed figures, and between the two."""
    found = [flag for one in consistency if (flag := _integer_factor(one, made)) is not None]
    return [*found, *_above_one(made), *_peaks(made), *_conventions(made), *_impossible(made), *_unknown_peak(singles, made)]


def _integer_factor(one: Comparison, made: Workings) -> Flag | None:
    """Return a flag if a printed rate is too small or too large by an integer factor."""
    if one.consistent or one.metric not in _RATES:
        return None
    times = max(one.ratio, 1 / one.ratio)
    k = round(times)
    if not 2 <= k <= MAX_FACTOR:
        return None
    name = next((name for name in _NAMES if positive(made.known.facts, name) == k), None)
    if abs(times / k - 1) > (TOLERANCE if name is not None else min(TOLERANCE, SURE / k)):
        return None
    small = one.ratio < 1
    which = f"the printed rate is {k} times too {'small' if small else 'large'} for the log's own batch and step time"
    why = f": the run has {k} {_NAMES[name]}" if name is not None else ""
    return Flag(
        "off_by_integer_factor", one.metric, one.reported, one.derived, float(k) if small else 1 / k, None, f"{which}{why}"
    )


def _above_one(made: Workings) -> Iterator[Flag]:
    """Yield a flag if records have an MFU above 1: as printed, else as recomputed."""
    said = "the trainer prints" if "mfu_ratio" in made.metrics else "the log's own figures give"
    for count, reported, derived in _beyond(made, "mfu_ratio", 1.0):
        detail = f"{said} an MFU above 1 in {count} {'record' if count == 1 else 'records'}: no device does more than its peak"
        yield Flag("mfu_above_one", "mfu_ratio", reported, derived, None, count, detail)


def _beyond(made: Workings, name: str, bound: float) -> Iterator[tuple[int, float | None, float | None]]:
    """Yield how many records have a metric above ``bound``, and the largest as printed, else as recomputed; if any has."""
    derived, printed = made.found.get(name), name in made.metrics
    if printed or derived is not None:
        figure = made.steps.metric(name) if printed or derived is None else derived.figure
        count, largest = count_above(figure.values, bound)
        if count:
            yield count, largest if printed else None, None if printed else largest


def _peaks(made: Workings) -> Iterator[Flag]:
    """Yield a flag if the trainer's MFU is against another value than the dense peak of its device."""
    device, own, mfu = made.device, made.own, made.metrics.get("mfu_ratio")
    if device is None or mfu is None or mfu.median is None or not mfu.median > 0 or not _sixteen_bits(made):
        return
    derived = made.found.get("mfu_ratio")
    if own is not None:
        kind = _wrong_peak(device, own.flops_per_s)
        if kind is not None:
            factor = own.flops_per_s / device.flops_per_s
            what = "with sparsity" if kind == "sparse_peak" else "of another device"
            detail = (
                f"the MFU is against {_rate(own.flops_per_s)}, a peak {what}: "
                f"{device.name} does {_rate(device.flops_per_s)} dense ({device.precision.upper()})"
            )
            yield Flag(kind, "mfu_ratio", mfu.median, mfu.median * factor, factor, None, detail)
    elif derived is not None and derived.inputs.get("flops_convention") == PRINTED:
        dense = derived.statistic.median
        if dense and abs(2 * mfu.median / dense - 1) <= TOLERANCE:
            detail = f"the MFU is half of what the dense peak of {device.name} gives: its denominator is the peak with sparsity"
            yield Flag("sparse_peak", "mfu_ratio", mfu.median, dense, 2.0, None, detail)


def _sixteen_bits(made: Workings) -> bool:
    """Return whether the log computes in 16 bits, as far as it says; other precisions have other peaks."""
    precision = made.known.facts.get("precision")
    return not isinstance(precision, str) or "16" in precision or precision.lower() in ("half", "amp")


def _wrong_peak(device: Device, stated: float) -> str | None:
    known = (device.flops_per_s, *(rate for rate, _ in device.conflicts if abs(rate / device.flops_per_s - 1) <= TOLERANCE))
    if any(abs(stated / rate - 1) <= SAME_PEAK for rate in known):
        return None
    sparse = device.sparse_flops_per_s
    return "sparse_peak" if sparse is not None and abs(stated / sparse - 1) <= TOLERANCE else "fixed_peak"


def _conventions(made: Workings) -> Iterator[Flag]:
    """Yield a flag if the MFU counts other FLOPs: by its definition, or because it is three times that of 6N."""
    mfu, derived = made.metrics.get("mfu_ratio"), made.found.get("mfu_ratio")
    if mfu is None or not mfu.median:
        return
    slug, found = named_convention(mfu.definition), None if derived is None else derived.statistic.median
    if slug == "18n":
        detail, found = "the MFU counts 18N FLOPs of a token, three times as many as 6N", mfu.median / CONVENTION_RATIO
    elif slug is None and derived is not None and found and derived.inputs.get("flops_convention") == "6N":
        if abs(mfu.median / found / CONVENTION_RATIO - 1) > TOLERANCE:
            return
        detail = "the MFU is three times that of 6N FLOPs of a token: it counts 18N"
    else:
        return
    yield Flag("other_flops_convention", "mfu_ratio", mfu.median, found, 1 / CONVENTION_RATIO, None, detail)


def _impossible(made: Workings) -> Iterator[Flag]:
    """Yield a flag if records exceed any possible FLOP/s of the named device, else of all devices in the table."""
    name, device = "flops_per_s_per_device", made.device
    bound = BEYOND * (device.flops_per_s if device is not None else load_peaks().highest)
    for count, reported, derived in _beyond(made, name, bound):
        whose = device.name if device is not None else "any device of the peak table"
        claim = "1 record claims" if count == 1 else f"{count} records claim"
        detail = f"{claim} up to {_rate(reported or derived or 0.0)} for each device, more than {whose} does in any precision"
        yield Flag("impossible_steps", name, reported, derived, None, count, detail)


def _unknown_peak(singles: EventTable, made: Workings) -> Iterator[Flag]:
    """Yield a flag if the trainer lacked its device's peak: none printed beside the device, or no finite MFU."""
    mfu = made.steps.metric("mfu_ratio").values if "mfu_ratio" in made.metrics else np.empty(0)
    peak = ("fact", "peak_flops_per_s_per_device")
    blank = any(
        "accelerator_name" in event.facts
        and peak[1] not in event.facts
        and any(spec.target == peak and spec.null_if for spec in event.rule.fields.values())
        for event in singles
    )
    wasted = len(mfu) > 0 and not len(finite(mfu))
    if not blank and not wasted:
        return
    device = made.device
    known = f"; {device.name} does {_rate(device.flops_per_s)} dense ({device.precision.upper()})" if device is not None else ""
    detail = f"the trainer does not know the peak of its device, so its MFU says nothing{known}"
    derived = made.found.get("mfu_ratio")
    found = None if derived is None else derived.statistic.median
    yield Flag("peak_unknown", "mfu_ratio", None, found, None, len(mfu) if wasted else None, detail)


def _rate(value: float) -> str:
    """Return FLOP/s as text, in PFLOP/s or TFLOP/s."""
    return f"{value / 1e15:.4g} PFLOP/s" if value >= 1e15 else f"{value / 1e12:.4g} TFLOP/s"
