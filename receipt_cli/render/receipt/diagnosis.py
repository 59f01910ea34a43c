"""Bottleneck and device memory of a run: the verdict, its meaning, and its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from receipt_cli.render.fields import mapping, real, text
from receipt_cli.render.scale import byte_size, count
from receipt_cli.render.terminal.page import NO_BREAK, Page, Span
from receipt_cli.render.terminal.style import Role

_VERDICTS = {
    "inference": "training waits for inference",
    "training": "training is slower than what feeds it",
    "data": "steps wait for data",
    "compute": "steps compute",
    "balanced": "nothing stands out",
    "unknown": "the figures do not say",
}
_READINGS = {
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


def write_bottleneck(page: Page, document: Mapping[str, object]) -> None:
    """Add the verdict and its reason, if the log has the figures for one."""
    bottleneck = mapping(document, "summary", "bottleneck")
    _write_diagnosis(page, "bottleneck", text(bottleneck, "verdict"), _VERDICTS, [], text(bottleneck, "because"))


def write_memory(page: Page, document: Mapping[str, object]) -> None:
    """Add the reading and its figures, if the log prints allocated and reserved memory or the allocator's counts."""
    memory = mapping(document, "summary", "memory")
    figures, growing = mapping(memory, "figures"), text(memory, "growing")
    facts = [part for part in (_course(figures, "allocated"), _course(figures, "reserved")) if part]
    sizes = ((label, real(figures, name)) for name, label in _SIZES.items())
    facts += [[Span(f"{label} ", "dim"), Span(byte_size(size))] for label, size in sizes if size]
    for name, nouns in _COUNTS.items():
        if number := real(figures, name):
            facts.append([Span(count(round(number)), "warn"), Span(f" {nouns[number != 1]}", "dim")])
    low, high = real(figures, "rank_peak_min_bytes"), real(figures, "rank_peak_max_bytes")
    if low is not None and high is not None:
        peaks = byte_size(low) if low == high else f"{byte_size(low)} – {byte_size(high)}"
        facts.append([Span("peak of ranks ", "dim"), Span(peaks)])
    if growing is not None:
        facts.append([Span("grows most: ", "dim"), Span(page.say(growing).replace("_", " "), "warn")])
    _write_diagnosis(page, "memory", text(memory, "reading"), _READINGS, facts, text(memory, "because"))


def _write_diagnosis(
    page: Page, label: str, word: str | None, meanings: Mapping[str, str], facts: Sequence[list[Span]], because: str | None
) -> None:
    """Add ``word`` with its meaning and ``facts``, and below them the reason; nothing without a word."""
    if word is None:
        return
    role: Role = "warn" if word in ("growth", "fragmentation") else "plain"
    meaning = [Span(f" ({meanings[word]})", "dim")] if word in meanings else []
    page.gap()
    page.flow(label, [[Span(page.say(word), role), *meaning], *facts], indent=0, label_width=11)
    if because is not None:
        page.prose(page.say(because).replace(" %", f"{NO_BREAK}%"), "dim", indent=13)


def _course(figures: Mapping[str, object], kind: str) -> list[Span]:
    """Return the first, the last and, where it is above both, the highest value of a kind of memory; empty without them.

    Memory at the moment counts before its peak.
    """
    for prefix in ("", "peak_"):
        first, last = (real(figures, f"{prefix}{kind}_{end}_bytes") for end in ("first", "last"))
        if first is not None and last is not None:
            sizes = [byte_size(first), byte_size(last)]
            label = f"{prefix}{kind} ".replace("_", " ")
            most = real(figures, f"{prefix}{kind}_max_bytes")
            above = [Span(f", {byte_size(most)} at most")] if most is not None and most > max(first, last) else []
            return [Span(label, "dim"), Span(sizes[0] if sizes[0] == sizes[1] else " → ".join(sizes)), *above]
    return []
