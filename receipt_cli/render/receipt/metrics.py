"""Metrics of the primary phase: a table with trends, then notes on flags, spikes and recomputed figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from receipt_cli.render.fields import UNKNOWN, items, mapping, real, text, truth, whole
from receipt_cli.render.scale import Scale, count, flops, kind_of, measure, number, scale_for, si
from receipt_cli.render.terminal.page import NO_BREAK, Page, Span
from receipt_cli.render.terminal.spark import GAP, NOT_FINITE, sparkline
from receipt_cli.render.terminal.table import Column, align, least_width, natural_width

_MAX_METRICS = 40
_MAX_OTHERS = 8
_TRENDS = (24, 18, 12, 8)
_NOISY = ("rate", "flops", "time", "bytes", "ratio")
_NOISE = 0.05
"""Rates and times that vary by less than this share are drawn without a trend: steady steps differ by a few percent."""
_LABELS = {
    "tokens_per_s": "throughput",
    "tokens_per_s_per_device": "throughput/device",
    "samples_per_s": "samples",
    "samples_per_s_per_device": "samples/device",
    "flops_per_s": "compute",
    "flops_per_s_per_device": "compute/device",
    "mfu_ratio": "MFU",
    "hfu_ratio": "HFU",
}  # fmt: skip
_STATISTICS = ("first", "last", "median", "mean", "min", "max")


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


def write_metrics(page: Page, document: Mapping[str, object], series: Mapping[str, Sequence[float]] | None) -> None:
    """Add the metrics of the primary phase, one row each, then notes on flags, spikes and contradictions."""
    summary = mapping(document, "summary")
    if not summary:
        return
    entries = _entries(page, summary)
    phase = text(summary, "phase")
    page.heading("metrics", *([Span(f"of {page.say(phase)}", "dim")] if phase else []))
    if not entries:
        page.line(Span("none was printed", "dim"), indent=2)
    else:
        _write_rows(page, entries, series or {})
    page.left_out(len(mapping(summary, "metrics")) - _MAX_METRICS, "metrics")
    page.left_out(len(mapping(summary, "other_metrics")) - _MAX_OTHERS, "that the registry does not know")
    _write_notes(page, summary, entries)


class _Entry:
    """One row: label, the metric that gives its unit ("": none), statistics and the name of its series."""

    def __init__(self, label: str, metric: str, statistics: Mapping[str, object], source: str | None) -> None:
        self.label = label
        self.metric = metric
        self.statistics = statistics
        self.source = source
        self.values = {key: real(statistics, key) for key in _STATISTICS}
        order = ("median", "last", "mean", "first", "max")
        self.scale = scale_for(metric, [v for v in (self.values[key] for key in order) if v is not None])
        self.nonfinite = whole(statistics, "nonfinite_count") or 0


def _entries(page: Page, summary: Mapping[str, object]) -> list[_Entry]:
    entries: list[_Entry] = []
    derived = mapping(summary, "derived")
    metrics = mapping(summary, "metrics")
    for name in [*metrics, *(name for name in derived if name not in metrics)][:_MAX_METRICS]:
        safe = page.say(name)
        label = metric_label(safe)
        if name in metrics:
            entries.append(_Entry(label + _scope(metrics[name], name), safe, mapping(metrics, name), name))
            label = " "
        if name in derived:
            entries.append(_Entry(f"{label} recomputed", safe, mapping(derived, name), None))
    others = mapping(summary, "other_metrics")
    entries += [_Entry(page.say(name), "", mapping(others, name), name) for name in list(others)[:_MAX_OTHERS]]
    return entries


def _scope(entry: object, name: str) -> str:
    scope = text(entry, "scope")
    if scope == "device" and kind_of(name) == "bytes":  # memory always is
        return ""
    return f" ({scope})" if scope in ("device", "rank") and "_per_device" not in name else ""


def _steady_note(summary: Mapping[str, object]) -> str | None:
    steady, warmup, implausible = (
        whole(summary, "steady_state", key) for key in ("record_count", "excluded_warmup", "excluded_implausible")
    )
    left_out = [f"{count(n)} {word}" for n, word in ((warmup, "warm-up"), (implausible, "implausible")) if n]
    if steady is None or not left_out:
        return None
    return f"rates, times and memory: {count(steady)} steady records; {' and '.join(left_out)} left out"


def _write_rows(page: Page, entries: Sequence[_Entry], series: Mapping[str, Sequence[float]]) -> None:
    room = page.style.width - 2
    drawn = any(_trend(entry, series, _TRENDS[0]) for entry in entries)
    rows = [_figures(entry) for entry in entries]
    columns = [
        Column("metric", least=16),
        Column("unit"),
        *(Column(key, right=True, drop={"mean": 3, "min": 2, "max": 2, "first": 1}.get(key, 0)) for key in _STATISTICS),
    ]
    keep = list(range(len(columns)))
    if not any(entry.scale.unit for entry in entries):
        keep.remove(1)
    without_mean = [i for i in keep if columns[i].title != "mean"]
    trends = _TRENDS if drawn else ()
    plans = (
        (keep, natural_width, trends[:2]),
        (without_mean, natural_width, trends),
        (without_mean, least_width, trends),
    )
    for chosen, fits, widths in plans:
        plan, cut = [columns[i] for i in chosen], [[row[i] for i in chosen] for row in rows]
        for cells in widths:
            if fits(plan, cut) + 2 + cells <= room:
                page.rows(align([*plan, Column("trend")], _with_trend(entries, cut, series, cells), room))
                return
    page.rows(align([columns[i] for i in keep], [[row[i] for i in keep] for row in rows], room))


def _figures(entry: _Entry) -> list[Span]:
    dim = entry.source is None
    figures = [
        Span(
            _figure(entry.scale, entry.values[key]),
            "strong" if key == "median" and not dim else "dim" if dim else "plain",
        )
        for key in _STATISTICS
    ]
    return [Span(entry.label, "dim" if dim else "plain"), Span(entry.scale.unit, "dim"), *figures]


def _figure(scale: Scale, value: float | None) -> str:
    return UNKNOWN if value is None else scale.format(value)


def _with_trend(
    entries: Sequence[_Entry], rows: Sequence[list[Span]], series: Mapping[str, Sequence[float]], width: int
) -> list[list[Span]]:
    return [[*row, Span(_trend(entry, series, width), "accent")] for entry, row in zip(entries, rows, strict=True)]


def _trend(entry: _Entry, series: Mapping[str, Sequence[float]], width: int) -> str:
    values = series.get(entry.source) if entry.source is not None else None
    if values is None or len(values) < 2:
        return ""
    low, high = entry.values["min"], entry.values["max"]
    steady = text(entry.statistics, "window") == "steady" and low is not None and high is not None and low <= high
    bounds = (low, high) if steady and low is not None and high is not None else None
    noise = _NOISE if kind_of(entry.metric) in _NOISY else 0.0
    return sparkline(values, width, bounds=bounds, least_span=noise, gap=NOT_FINITE if entry.nonfinite else GAP)


def _write_notes(page: Page, summary: Mapping[str, object], entries: Sequence[_Entry]) -> None:
    steady = _steady_note(summary)
    if steady:
        page.prose(steady, "dim", indent=2)
    if (source := _workings(page, summary)) is not None:
        page.prose(source, "dim", indent=2)
    explained = _flagged_metrics(summary)
    notes = [_inconsistency(page, e) for e in items(summary, "consistency") if text(e, "metric") not in explained]
    notes += _flag_notes(page, summary)
    notes += _spike_notes(page, summary)
    bad = [f"{entry.label.strip()}{NO_BREAK}{count(entry.nonfinite)}" for entry in entries if entry.nonfinite > 0]
    if bad:
        notes.append(f"values that are NaN or infinite: {', '.join(bad)}")
    restarts, superseded = (whole(summary, "steps", key) for key in ("restart_count", "superseded_count"))
    if restarts:
        lost = f"; {count(superseded)} superseded records are left out" if superseded else ""
        notes.append(f"restarted {'once' if restarts == 1 else f'{count(restarts)} times'}{lost}")
    for note in notes:
        if note:
            page.prose(note, "warn", indent=2, bullet="! ")
    _write_ranks(page, mapping(summary, "ranks"))


def _write_ranks(page: Page, ranks: Mapping[str, object]) -> None:
    """Add how much memory the ranks took, and which of them stopped early."""
    if len(ranks) < 2:
        return
    peaks = sorted((peak, name) for name, rank in ranks.items() if (peak := real(rank, "peak_memory_bytes")) is not None)
    lasts = {name: last for name, rank in ranks.items() if (last := whole(rank, "last")) is not None}
    facts: list[list[Span]] = [[Span(f"{len(ranks)} ranks")]]
    if peaks:
        (low, lowest), (high, highest) = peaks[0], peaks[-1]
        facts.append([Span(f"most memory {measure('peak_memory_bytes', high)} on rank {page.say(highest)}")])
        facts.append([Span(f"least {measure('peak_memory_bytes', low)} on rank {page.say(lowest)}", "dim")])
    slow = [
        f"rank {page.say(name)} at {measure('step_time_s', seconds)}"
        for name, rank in ranks.items()
        if truth(rank, "straggles") and (seconds := real(rank, "median_step_time_s")) is not None
    ]
    if slow:
        more = f" and {len(slow) - _MAX_OTHERS} more" if len(slow) > _MAX_OTHERS else ""
        facts.append([Span(f"slower than the others: {', '.join(slow[:_MAX_OTHERS])}{more}", "warn")])
    behind = sorted(name for name, last in lasts.items() if last < max(lasts.values()))
    if behind:
        first = min(behind, key=lambda name: (lasts[name], name))
        facts.append([Span(f"rank {page.say(first)} stopped at step {count(lasts[first])}", "warn")])
    page.flow("ranks", facts)


def _inconsistency(page: Page, entry: object) -> str | None:
    """Return how a printed figure contradicts the log's own batch size and step time; None if it does not."""
    if truth(entry, "consistent") is not False:
        return None
    metric = page.say(text(entry, "metric") or "?")
    reported, derived, ratio = (real(entry, key) for key in ("reported", "derived", "ratio"))
    printed, recomputed = (
        UNKNOWN if value is None else measure(metric, value).replace(" ", NO_BREAK) for value in (reported, derived)
    )
    note = f"{metric_label(metric)}: the log prints {printed}, its batch size and step time give {recomputed}"
    return note if ratio is None else f"{note} (ratio{NO_BREAK}{number(ratio, 3)})"


_WHOSE = {"printed": "as the trainer counts them"}


def _flagged_metrics(summary: Mapping[str, object]) -> set[str]:
    """Return the metrics whose printed figure a flag explains by a factor: other notes then skip it."""
    flags = items(summary, "flags")
    return {text(flag, "metric") or "" for flag in flags if text(flag, "kind") == "off_by_integer_factor"}


def _flag_notes(page: Page, summary: Mapping[str, object]) -> list[str]:
    """Return a sentence for each flag."""
    notes: list[str] = []
    for flag in items(summary, "flags"):
        metric, detail = page.say(text(flag, "metric") or "?"), page.say(text(flag, "detail") or "")
        reported, derived, factor = (real(flag, key) for key in ("reported", "derived", "factor"))
        figures = ""
        if reported is not None and derived is not None and factor:
            times = count(factor) if factor == int(factor) else number(factor)
            figures = f" (printed {measure(metric, reported)}, × {times} is {measure(metric, derived)})"
        notes.append(f"{metric_label(metric)}: {detail}{figures}")
    return notes


def _spike_notes(page: Page, summary: Mapping[str, object]) -> list[str]:
    """Return a sentence for each metric with spikes, and one for those that the trainer marked."""
    notes: list[str] = []
    for name, entry in mapping(summary, "spikes", "metrics").items():
        total, critical = whole(entry, "count") or 0, whole(entry, "critical_count") or 0
        if not total:
            continue
        spikes = f"{count(total)} {'spike' if total == 1 else 'spikes'} of {metric_label(page.say(name))}"
        worse = f", {count(critical)} critical" if critical else ""
        first = next(iter(items(entry, "first")), None)
        value, average, step = real(first, "value"), real(first, "average"), whole(first, "step")
        example = ""
        if value is not None and average is not None:
            where = f" at step {count(step)}" if step is not None else ""
            example = f"; the first{where}: {number(value)} over a running average of {number(average)}"
        notes.append(f"{spikes}{worse}{example}")
    marked = whole(summary, "spikes", "marked_count")
    if marked:
        notes.append(f"the trainer itself marked {count(marked)} {'spike' if marked == 1 else 'spikes'}")
    return notes


def _workings(page: Page, summary: Mapping[str, object]) -> str | None:
    """Return the inputs of the recomputed MFU, else of the recomputed FLOP/s of a device; None without either."""
    derived = mapping(summary, "derived")
    name = "mfu_ratio" if "mfu_ratio" in derived else "flops_per_s_per_device"
    inputs = mapping(derived, name, "inputs")
    convention = text(inputs, "flops_convention")
    if convention is None:
        return None
    each, devices, peak = (real(inputs, key) for key in ("flops_per_token", "world_size", "peak_flops_per_s_per_device"))
    counted = _WHOSE.get(convention, page.say(convention))
    parts = [f"{si(each)} FLOPs of a token, {counted}" if each is not None else "FLOP/s of a device as printed"]
    if devices is not None:
        parts.append(f"{count(int(devices))} {'device' if devices == 1 else 'devices'}")
    if peak is not None:
        parts.append(f"a peak of {flops(peak)} ({page.say(text(inputs, 'peak_source') or '?')})")
    return f"{'MFU' if name == 'mfu_ratio' else 'FLOP/s'} recomputed from {', '.join(parts)}"
