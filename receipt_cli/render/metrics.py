"""Render the metrics of a phase: a table with trends, and a line of constants and of values printed once.

A trend is a series of numbers as one line of block characters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from receipt_cli.render.console import Column, Page, Span, write_table
from receipt_cli.render.fields import mapping, or_dash, real, text, whole
from receipt_cli.render.scale import count, flops, kind_of, many, measure, scale_for, si
from receipt_cli.render.style import Role

BLOCKS = "▁▂▃▄▅▆▇█"
GAP = " "
NOT_FINITE = "×"
_SAMPLES = 64  # most values read for one cell, so that the cost does not grow with the run


def sparkline(
    values: Sequence[float],
    width: int,
    *,
    bounds: tuple[float, float] | None = None,
    least_span: float = 0.0,
    gap: str = GAP,
) -> str:
    """Return ``values`` in step order as at most ``width`` blocks, each the mean of its share of the values.

    The lowest mean is ``▁`` and the highest ``█``; values outside ``bounds`` count as the bound, so that a
    warm-up does not flatten the rest. Means that differ by less than ``least_span`` of their size are drawn
    about the middle, so that noise does not look like a change. A share without a finite value is ``gap``. Empty when no
    value is finite.
    """
    means = [_mean(share, bounds) for share in _shares(values, width)]
    known = [mean for mean in means if mean is not None]
    if not known:
        return ""
    means = [None if mean is None else mean / 4 for mean in means]  # so that no difference of large values overflows
    low, high = min(known) / 4, max(known) / 4
    span = max(high - low, least_span * max(abs(low), abs(high)))
    if span == 0:
        return "".join(gap if mean is None else BLOCKS[3] for mean in means)
    base = (low + high) / 2 - span / 2
    top = len(BLOCKS) - 1
    levels = [None if mean is None else min(top, max(0, round((mean - base) / span * top))) for mean in means]
    return "".join(gap if level is None else BLOCKS[level] for level in levels)


def _shares(values: Sequence[float], width: int) -> list[Sequence[float]]:
    total = len(values)
    count = min(total, width)
    edges = [total * index // count for index in range(count + 1)] if count > 0 else []
    return [values[start : stop : max(1, (stop - start) // _SAMPLES)] for start, stop in pairwise(edges)]


def _mean(share: Sequence[float], bounds: tuple[float, float] | None) -> float | None:
    finite = [float(value) for value in share if math.isfinite(value)]
    if bounds is not None:
        low, high = bounds
        finite = [min(max(value, low), high) for value in finite]
    # divided first, so that the sum of large values does not overflow
    return math.fsum(value / len(finite) for value in finite) if finite else None


_MAX_METRICS = 40
_MAX_OTHERS = 6
_TREND = 18
_WIDE = 100  # least width in cells with a longer trend
_NOISY = ("rate", "flops", "time", "bytes", "ratio")
_NOISE = 0.05
"""Rates and times that vary by less than this share are drawn without a trend: steady steps differ by a few percent."""
_LABELS = {
    "tokens_per_s": "throughput", "tokens_per_s_per_device": "throughput/device", "samples_per_s": "samples",
    "samples_per_s_per_device": "samples/device", "flops_per_s": "compute", "flops_per_s_per_device": "compute/device",
    "mfu_ratio": "MFU", "hfu_ratio": "HFU", "alloc_retry_count": "allocation retries",
    "oom_count": "OOMs", "nan_step_count": "NaN steps",
}  # fmt: skip
_STATISTICS = ("first", "last", "median", "min", "max")


def metric_label(metric: str) -> str:
    """Return the label of a canonical metric: its name without the unit."""
    known = _LABELS.get(metric)
    if known:
        return known
    base = metric
    for ending in ("_bytes", "_ratio", "_per_s", "_s", "_hz", "_w", "_j", "_v", "_celsius"):
        base = base.removesuffix(ending) or base
    if base.endswith("_count"):
        base = base.removesuffix("_count").removesuffix("s") + "s"
    return base.replace("_", " ")


class _Entry:
    """One row: label, the metric that gives its unit ("": none), statistics and the name of its series."""

    def __init__(self, label: str, metric: str, statistics: Mapping[str, object], source: str | None) -> None:
        self.label, self.metric, self.statistics, self.source = label, metric, statistics, source
        self.values = {key: real(statistics, key) for key in _STATISTICS}
        order = ("median", "last", "first", "max")
        self.scale = scale_for(metric, [v for v in (self.values[key] for key in order) if v is not None])
        self.nonfinite = whole(statistics, "nonfinite_count") or 0

    @property
    def single(self) -> str:
        """``once`` or ``constant`` if one value says all, else empty; a value that was withheld may be another one."""
        known = {value for value in self.values.values() if value is not None}
        if len(known) != 1 or self.nonfinite:
            return ""
        kind = "once" if whole(self.statistics, "record_count") == 1 else "constant"
        return kind if kind == "once" or None not in (self.values["min"], self.values["max"]) else ""


def write_metrics(
    page: Page, summary: Mapping[str, object], series: Mapping[str, Sequence[float]] | None = None, *, phase: str | None = None
) -> None:
    """Add the metrics of a phase, one row each; nothing if none was printed. ``phase`` is its name."""
    entries = [entry for entry in _entries(summary) if entry.nonfinite or set(entry.values.values()) != {None}]
    if not entries:
        return
    page.heading("metrics", *([Span(f"of {phase}", "dim")] if phase else []))
    rows = [entry for entry in entries if not entry.single]
    if rows:
        trends = [_trend(entry, series or {}, _TREND if page.style.width < _WIDE else 2 * _TREND) for entry in rows]
        drops = {"min": 2, "max": 2, "first": 1}
        figures = (Column(key, right=True, drop=drops.get(key, 0)) for key in _STATISTICS)
        columns = [Column("metric", least=16), Column("unit"), *figures]
        lines = [[*_figures(entry), Span(trend, "accent")] for entry, trend in zip(rows, trends, strict=True)]
        if not any(trends):
            lines = [line[:-1] for line in lines]
        write_table(page, [*columns, Column("trend", drop=3)] if any(trends) else columns, lines)
    for kind in ("constant", "once"):
        found = [entry for entry in entries if entry.single == kind]
        if found:
            page.flow(kind, map(_told, found), label_width=8)
    page.left_out(len(mapping(summary, "metrics")) - _MAX_METRICS, "metrics")
    page.left_out(len(mapping(summary, "other_metrics")) - _MAX_OTHERS, "that the registry does not know")
    for note in (_steady(summary), _workings(summary)):
        if note:
            page.prose(note, "dim", indent=2)


def _entries(summary: Mapping[str, object]) -> Sequence[_Entry]:
    entries: list[_Entry] = []
    derived, metrics, others = (mapping(summary, name) for name in ("derived", "metrics", "other_metrics"))
    for name in [*metrics, *(name for name in derived if name not in metrics)][:_MAX_METRICS]:
        if name in metrics:
            entries.append(_Entry(metric_label(name) + _scope(metrics[name], name), name, mapping(metrics, name), name))
        if name in derived:
            entries.append(_Entry(f"{metric_label(name)} recomputed", name, mapping(derived, name), None))
    return entries + [_Entry(name, "", mapping(others, name), name) for name in list(others)[:_MAX_OTHERS]]


def _scope(entry: object, name: str) -> str:
    scope = text(entry, "scope")
    if scope == "device" and kind_of(name) == "bytes":  # memory always is
        return ""
    return f" ({scope})" if scope in ("device", "rank") and "_per_device" not in name else ""


def _figures(entry: _Entry) -> list[str]:
    role: Role = "dim" if entry.source is None else "plain"
    cells = [Span(or_dash(value, entry.scale.format), role) for value in entry.values.values()]
    return [Span(entry.label, role), Span(entry.scale.unit, "dim"), *cells]


def _told(entry: _Entry) -> str:
    value = next(value for value in entry.values.values() if value is not None)
    return f"{entry.label} {measure(entry.metric, value)}"


def _trend(entry: _Entry, series: Mapping[str, Sequence[float]], width: int) -> str:
    values = series.get(entry.source) if entry.source is not None else None
    if values is None or len(values) < 2:
        return ""
    low, high = entry.values["min"], entry.values["max"]
    steady = text(entry.statistics, "window") == "steady" and low is not None and high is not None and low <= high
    bounds = (low, high) if steady and low is not None and high is not None else None
    noise = _NOISE if kind_of(entry.metric) in _NOISY else 0.0
    return sparkline(values, width, bounds=bounds, least_span=noise, gap=NOT_FINITE if entry.nonfinite else GAP)


def _steady(summary: Mapping[str, object]) -> str | None:
    steady, warmup, implausible = (
        whole(summary, "steady_state", key) for key in ("record_count", "excluded_warmup", "excluded_implausible")
    )
    left_out = [f"{count(n)} {word}" for n, word in ((warmup, "warm-up"), (implausible, "implausible")) if n]
    if steady is None or not left_out:
        return None
    return f"rates, times and memory: {count(steady)} steady records; {' and '.join(left_out)} left out"


def _workings(summary: Mapping[str, object]) -> str | None:
    """Return the inputs of the recomputed MFU, else of the recomputed FLOP/s of a device; None without either."""
    derived = mapping(summary, "derived")
    name = "mfu_ratio" if "mfu_ratio" in derived else "flops_per_s_per_device"
    inputs = mapping(derived, name, "inputs")
    convention = text(inputs, "flops_convention")
    if convention is None:
        return None
    each, devices, peak = (real(inputs, key) for key in ("flops_per_token", "world_size", "peak_flops_per_s_per_device"))
    counted = "as the trainer counts them" if convention == "printed" else convention
    parts = [f"{si(each)} FLOPs of a token, {counted}" if each is not None else "FLOP/s of a device as printed"]
    if devices is not None:
        parts.append(many(int(devices), "device"))
    if peak is not None:
        parts.append(f"a peak of {flops(peak)} ({text(inputs, 'peak_source') or '?'})")
    return f"{'MFU' if name == 'mfu_ratio' else 'FLOP/s'} recomputed from {', '.join(parts)}"
