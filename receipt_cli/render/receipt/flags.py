"""Notes below the metrics: flags of a phase, its spikes, and the inputs of its recomputed MFU."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from receipt_cli.render.fields import items, mapping, real, text, whole
from receipt_cli.render.scale import count, flops, measure, number, si
from receipt_cli.render.terminal.page import Page

_WHOSE = {"printed": "as the trainer counts them"}


def flagged_metrics(summary: Mapping[str, object]) -> set[str]:
    """Return the metrics whose printed figure a flag explains by a factor: other notes then skip it."""
    flags = items(summary, "flags")
    return {text(flag, "metric") or "" for flag in flags if text(flag, "kind") == "off_by_integer_factor"}


def flag_notes(page: Page, summary: Mapping[str, object], label: Callable[[str], str]) -> list[str]:
    """Return a sentence for each flag; ``label`` is what people call a metric."""
    notes: list[str] = []
    for flag in items(summary, "flags"):
        metric, detail = page.say(text(flag, "metric") or "?"), page.say(text(flag, "detail") or "")
        reported, derived, factor = (real(flag, key) for key in ("reported", "derived", "factor"))
        figures = ""
        if reported is not None and derived is not None and factor:
            times = count(factor) if factor == int(factor) else number(factor)
            figures = f" (printed {measure(metric, reported)}, × {times} is {measure(metric, derived)})"
        notes.append(f"{label(metric)}: {detail}{figures}")
    return notes


def spike_notes(page: Page, summary: Mapping[str, object], label: Callable[[str], str]) -> list[str]:
    """Return a sentence for each metric with spikes, and one for those that the trainer marked."""
    notes: list[str] = []
    for name, entry in mapping(summary, "spikes", "metrics").items():
        total, critical = whole(entry, "count") or 0, whole(entry, "critical_count") or 0
        if not total:
            continue
        spikes = f"{count(total)} {'spike' if total == 1 else 'spikes'} of {label(page.say(name))}"
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


def workings(page: Page, summary: Mapping[str, object]) -> str | None:
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
