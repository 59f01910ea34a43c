"""How throughput grows with the number of devices, over runs that differ in nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any, Literal

from receipt_cli.analysis.checks import contradicted_metrics
from receipt_cli.comparison.comparable import Document, FieldDifference, Policy, count_ranks, judge, listed

SCHEMA_VERSION = "scaling/1.0"
Kind = Literal["strong", "weak", "unknown"]
"""``strong``: all runs have the same global batch; ``weak``: the same batch on each device."""
_GROWING = (
    "/header/parallelism/world_size", "/header/parallelism/data", "/header/flags/global_batch_size",
    "/header/flags/tokens_per_step", "/header/flags/gradient_accumulation_steps", "/header/flags/samples_per_step",
)  # fmt: skip
"""Fields that follow from the number of devices."""
_DEVICES = "/header/hardware/accelerators"
_MEASURES = ("tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "samples_per_s_per_device")
"""Metrics of throughput: of all devices together, or of each."""
_EACH = "_per_device"


def scaling(runs: Sequence[tuple[str, Document]], policy: Policy) -> dict[str, Any]:
    """Return the document (``scaling/1.0``) of two or more runs, given by name and receipt.

    ``verdict`` is not_comparable if the number of devices or the throughput of a run is unknown, all have as many devices, or
    anything else differs that affects speed or numerics. A printed rate that the log contradicts is no throughput. Several runs
    on as many devices are repeats: their median counts. Efficiency is relative to the fewest devices.
    """
    named = [(name, document, _devices(document)) for name, document in runs]
    notes: list[str] = []
    because = _unlike(named, policy, notes)
    measure = None if because else next((m for m in _MEASURES if all(_rate(d, m, n or 1) is not None for _, d, n in named)), None)
    if because is None and measure is None:
        because = "no throughput is known of all runs that their logs do not contradict"
    points: list[dict[str, Any]] = []
    if because is None and measure is not None:
        points = _points([(name, document, devices) for name, document, devices in named if devices], measure)
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": "comparable" if because is None else "not_comparable",
        "because": because or f"the runs differ in the number of devices only: {points[0]['devices']} to {points[-1]['devices']}",
        "kind": _kind(named),
        "metric": None if not points or measure is None else measure.removesuffix(_EACH),
        "points": points,
        "notes": list(dict.fromkeys(notes)),
    }


def _devices(document: Document) -> int | None:
    """Return the number of devices of a run: its ranks, else the product of its degrees, else its accelerators."""
    counts = [entry["count"] for entry in document["header"]["hardware"]["accelerators"] or []]
    return count_ranks(document) or (sum(counts) if counts and None not in counts else None)


def _unlike(named: Sequence[tuple[str, Document, int | None]], policy: Policy, notes: list[str]) -> str | None:
    """Return why the runs cannot be compared, else None; what does not decide is added to ``notes``."""
    if lacking := [name for name, _, devices in named if devices is None]:
        return f"the number of devices is unknown of {', '.join(lacking[:3])}"
    if len({devices for _, _, devices in named}) < 2:
        return f"all runs have as many devices: {named[0][2]}"
    (first, base, _), *others = named
    for name, document, _ in others:
        judgement = judge(base, document, policy)
        differing = [f for f in judgement.differences if not _follows(f)]
        apart = [f.pointer for f in differing if f.decides and not f.unknown]
        if apart:
            return f"{first} and {name} differ in {listed(apart)}"
        notes += [str(f) for f in differing if f.severity != "ignore"]
        notes += [reason for reason in judgement.reasons if not reason.startswith("/")]
    return None


def _follows(difference: FieldDifference) -> bool:
    """Return whether a difference follows from the number of devices."""
    if difference.pointer == _DEVICES and isinstance(difference.a, list) and isinstance(difference.b, list):
        sides = [[{**entry, "count": None} for entry in side] for side in (difference.a, difference.b)]
        return sides[0] == sides[1]
    return difference.pointer in _GROWING


def _rate(document: Document, measure: str, devices: int) -> float | None:
    """Return the throughput of all devices of a run: the printed median, or the recomputed one if the log contradicts that."""
    summary = document.get("summary") or {}
    printed = (summary.get("metrics") or {}).get(measure)
    scopes = (None, "device", "rank") if measure.endswith(_EACH) else (None, "global")
    if printed is not None and (measure in contradicted_metrics(summary) or printed["scope"] not in scopes):
        printed = None
    found = printed or (summary.get("derived") or {}).get(measure)
    value: float | None = None if found is None else found["median"]
    return None if value is None or value <= 0 else value * devices if measure.endswith(_EACH) else value


def _points(named: Sequence[tuple[str, Document, int]], measure: str) -> list[dict[str, Any]]:
    """Return a point for each number of devices, the fewest first."""
    by_count: dict[int, list[tuple[str, float]]] = {}
    for name, document, devices in named:
        rate = _rate(document, measure, devices)
        if rate is not None:
            by_count.setdefault(devices, []).append((name, rate))
    rates = {devices: median(rate for _, rate in group) for devices, group in sorted(by_count.items())}
    fewest = min(rates)
    alone = rates[fewest] / fewest
    return [
        {
            "devices": devices,
            "runs": [name for name, _ in by_count[devices]],
            "rate": rate,
            "rate_per_device": rate / devices,
            "speedup": rate / rates[fewest],
            "efficiency": rate / devices / alone,
        }
        for devices, rate in rates.items()
    ]


def _batch(document: Document) -> object:
    """Return the samples or tokens of a step of all devices, as stated or as every record prints them; None if unknown."""
    flags = document["header"]["flags"] or {}
    stated = flags.get("global_batch_size", flags.get("tokens_per_step"))
    printed = ((document.get("summary") or {}).get("metrics") or {}).get("global_batch_size") or {}
    same = printed.get("min") is not None and printed.get("min") == printed.get("max")
    return printed["min"] if stated is None and same else stated


def _kind(named: Sequence[tuple[str, Document, int | None]]) -> Kind:
    """Return whether the global batch, or that of each device, is the same in all runs."""
    sizes: list[tuple[float, int]] = []
    for _, document, devices in named:
        batch = _batch(document)
        if not isinstance(batch, int | float) or devices is None:
            return "unknown"
        sizes.append((batch, devices))
    if all(one[0] == other[0] for one, other in pairwise(sizes)):
        return "strong"
    return "weak" if all(one[0] * other[1] == other[0] * one[1] for one, other in pairwise(sizes)) else "unknown"
