"""Wall time: the share in retained training steps, and the losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from receipt_cli.render.fields import UNKNOWN, items, mapping, real, text, whole
from receipt_cli.render.scale import count, duration, percent
from receipt_cli.render.terminal.page import Page, Span

_MAX_LOSSES = 12
_EVIDENCE = {
    "log_timestamps": "by the log's timestamps",
    "stated": "as stated",
    "started_and_finished": "from start to finish",
    "receipt_run": "measured by receipt run",
    "wandb_summary": "by wandb",
    "nanochat_report": "by report.md",
}
_STEPS = {
    "trainer_total": "steps by the trainer's own total",
    "step_times": "steps by their printed times",
    "log_timestamps": "steps by the timestamps of their lines",
    "trainer_loop": "steps at most: the trainer's training loop",
}


def write_goodput(page: Page, document: Mapping[str, object]) -> None:
    """Add the share of the wall time in training steps and the losses, if known.

    ``~`` marks inferred values, ``+`` work that overlapped with other work.
    """
    goodput = mapping(document, "goodput")
    ratio, wall = real(goodput, "goodput_ratio"), real(goodput, "wall_time_s")
    if ratio is None and wall is None:
        return
    head = f"{_ratio(goodput, ratio)} of {UNKNOWN if wall is None else duration(wall)}"
    names = list(mapping(goodput, "badput_s"))[:_MAX_LOSSES]
    losses = [(name, real(goodput, "badput_s", name)) for name in names]
    ranked = sorted(((name, value) for name, value in losses if value), key=lambda pair: -pair[1])
    lost = [[Span(f"{_name(page, name)} ", "dim"), *_loss(goodput, name, value)] for name, value in ranked]
    page.gap()
    page.flow("goodput", [[Span(head)], *lost], indent=0, label_width=11)
    notes = _notes(page, goodput, losses)
    if notes:
        page.flow(" ", [[Span(note, "dim")] for note in notes], indent=0, label_width=11)


def _ratio(goodput: Mapping[str, object], ratio: float | None) -> str:
    """Return goodput as a value, or as the range that the evidence allows."""
    low, high = real(goodput, "range", "low"), real(goodput, "range", "high")
    if ratio is None or high is None or low == high:
        return UNKNOWN if ratio is None else percent(ratio)
    return f"at most {percent(high)}" if low is None else f"{percent(low)} to {percent(high)}"


def _stalls(goodput: Mapping[str, object]) -> str | None:
    """Return the number of stalls, and the longest one with its lines."""
    stalls = mapping(goodput, "stalls")
    number, total = whole(stalls, "count"), real(stalls, "total_s")
    longest = items(stalls, "longest")
    if not number or total is None or not longest:
        return None
    after, line = whole(longest[0], "after_line"), whole(longest[0], "line_number")
    length = real(longest[0], "duration_s")
    if after is None or line is None or length is None:
        return None
    many = f"{count(number)} stalls, {duration(total)}; the longest" if number > 1 else "a stall"
    return f"{many}: {duration(length)} between lines {after} and {line}"


def _notes(page: Page, goodput: Mapping[str, object], losses: Sequence[tuple[str, float | None]]) -> list[str]:
    """Return the evidence of the figures; nothing for a receipt before 1.2, which does not contain it."""
    steps = _say(page, goodput, "step_evidence", _STEPS)
    if steps is None:
        return []
    phase, wall = text(goodput, "phase"), _say(page, goodput, "evidence", _EVIDENCE)
    dark = [_name(page, name) for name, value in losses if value is None]
    stalls = _stalls(goodput)
    notes = [f"wall time {f'of {page.say(phase)} ' if phase else ''}{wall or UNKNOWN}", steps, *([stalls] if stalls else [])]
    return [*notes, f"not known: {', '.join(dark)}"] if dark else notes


def _say(page: Page, goodput: Mapping[str, object], key: str, table: Mapping[str, str]) -> str | None:
    slug = text(goodput, key)
    return None if slug is None else table.get(slug, page.say(slug).replace("_", " "))


def _name(page: Page, name: str) -> str:
    return page.say(name).replace("_", " ")


def _loss(goodput: Mapping[str, object], name: str, value: float) -> list[Span]:
    guessed = "~" if text(goodput, "parts", name, "how") == "inferred" else ""
    beside = real(goodput, "parts", name, "overlapped_s")
    more = [Span(f" +{duration(beside)} beside", "dim")] if beside else []
    return [Span(f"{guessed}{duration(value)}"), *more]
