"""Wall time: the share in retained training steps, and the losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from receipt_cli.render.fields import UNKNOWN, mapping, real, text
from receipt_cli.render.scale import duration, percent
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
    head = f"{UNKNOWN if ratio is None else percent(ratio)} of {UNKNOWN if wall is None else duration(wall)}"
    names = list(mapping(goodput, "badput_s"))[:_MAX_LOSSES]
    losses = [(name, real(goodput, "badput_s", name)) for name in names]
    ranked = sorted(((name, value) for name, value in losses if value), key=lambda pair: -pair[1])
    lost = [[Span(f"{_name(page, name)} ", "dim"), *_loss(goodput, name, value)] for name, value in ranked]
    page.gap()
    page.flow("goodput", [[Span(head)], *lost], indent=0, label_width=11)
    notes = _notes(page, goodput, losses)
    if notes:
        page.flow(" ", [[Span(note, "dim")] for note in notes], indent=0, label_width=11)


def _notes(page: Page, goodput: Mapping[str, object], losses: Sequence[tuple[str, float | None]]) -> list[str]:
    """Return the evidence of the figures; nothing for a receipt before 1.2, which does not contain it."""
    steps = _say(page, goodput, "step_evidence", _STEPS)
    if steps is None:
        return []
    phase, wall = text(goodput, "phase"), _say(page, goodput, "evidence", _EVIDENCE)
    dark = [_name(page, name) for name, value in losses if value is None]
    notes = [f"wall time {f'of {page.say(phase)} ' if phase else ''}{wall or UNKNOWN}", steps]
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
