"""How device memory developed in the primary phase: the reading, what was allocated and reserved, and what failed."""

from __future__ import annotations

from collections.abc import Mapping

from receipt_cli.render.fields import mapping, real, text
from receipt_cli.render.scale import byte_size, count
from receipt_cli.render.terminal.page import NO_BREAK, Page, Span
from receipt_cli.render.terminal.style import Role

_MEANS = {
    "steady": "neither allocated nor reserved memory climbs",
    "growth": "tensors hold more and more",
    "fragmentation": "the cache cannot use again what it holds",
    "unknown": "too little was printed to tell",
}
_SIZES = {
    "inactive_split_bytes": "split and idle",
    "oom_requested_bytes": "last asked for",
    "oom_reserved_unallocated_bytes": "idle in the cache then",
    "oom_free_bytes": "free on the device then",
}
_COUNTS = {"alloc_retry_count": ("retry", "retries"), "oom_count": ("refusal", "refusals")}


def write_memory(page: Page, document: Mapping[str, object]) -> None:
    """Add the reading and its figures, if the log prints allocated and reserved memory or the allocator's counts."""
    story = mapping(document, "summary", "memory")
    reading, because = text(story, "reading"), text(story, "because")
    if reading is None:
        return
    words, growing = _MEANS.get(reading), text(story, "growing")
    role: Role = "warn" if reading in ("growth", "fragmentation") else "plain"
    says = [Span(page.say(reading), role), *([Span(f" ({words})", "dim")] if words else [])]
    figures = mapping(story, "figures")
    more = [part for part in (_course(figures, "allocated"), _course(figures, "reserved")) if part]
    more += [[Span(f"{label} ", "dim"), Span(byte_size(size))] for name, label in _SIZES.items() if (size := real(figures, name))]
    for name, (one, many) in _COUNTS.items():
        if number := real(figures, name):
            more.append([Span(count(round(number)), "warn"), Span(f" {one if number == 1 else many}", "dim")])
    low, high = real(figures, "rank_peak_min_bytes"), real(figures, "rank_peak_max_bytes")
    if low is not None and high is not None:
        more.append(
            [Span("peak of ranks ", "dim"), Span(byte_size(low) if low == high else f"{byte_size(low)} – {byte_size(high)}")]
        )
    if growing is not None:
        more.append([Span("grows most: ", "dim"), Span(page.say(growing).replace("_", " "), "warn")])
    page.gap()
    page.flow("memory", [says, *more], indent=0, label_width=11)
    if because is not None:
        page.prose(page.say(because).replace(" %", f"{NO_BREAK}%"), "dim", indent=13)


def _course(figures: Mapping[str, object], kind: str) -> list[Span]:
    """Return the first and the last value of a kind of memory, at the moment or else its peak; empty without them."""
    for prefix in ("", "peak_"):
        first, last = (real(figures, f"{prefix}{kind}_{end}_bytes") for end in ("first", "last"))
        if first is not None and last is not None:
            sizes = [byte_size(first), byte_size(last)]
            label = f"{prefix}{kind} ".replace("_", " ")
            return [Span(label, "dim"), Span(sizes[0] if sizes[0] == sizes[1] else " → ".join(sizes))]
    return []
