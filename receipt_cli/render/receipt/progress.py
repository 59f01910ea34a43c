"""Progress of the primary phase: the spread of its step times, realised throughput, and its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping

from receipt_cli.render.fields import UNKNOWN, items, mapping, real, text, truth, whole
from receipt_cli.render.scale import count, duration, measure, number
from receipt_cli.render.terminal.page import Page, Span

_QUANTILES = (("p50_s", "median"), ("p90_s", "90 %"), ("p99_s", "99 %"))
_TAILS = 1.25
"""The spread is shown where a step in a hundred takes so many times the median."""


def write_progress(page: Page, document: Mapping[str, object]) -> None:
    """Add step times that vary, throughput that is not the printed one, and what was saved; nothing where nothing is known."""
    summary = mapping(document, "summary")
    identities = {text(one, "name"): one for one in items(summary, "identities")}
    lines = (
        ("step time", _step_times(mapping(summary, "step_times"))),
        ("realised", _realised(mapping(summary, "realised"), identities)),
        ("saved", _checkpoints(mapping(summary, "checkpoints"))),
    )
    if any(facts for _, facts in lines):
        page.gap()
    for label, facts in lines:
        if facts:
            page.flow(label, facts, indent=0, label_width=11)
    for one in identities.values():
        if truth(one, "holds") is False and not (text(one, "name") or "").startswith("realised_"):
            left, right = real(one, "left"), real(one, "right")
            shown = (UNKNOWN if side is None else number(side, 4) for side in (left, right))
            page.prose(f"{page.say(text(one, 'detail') or '')}: {' against '.join(shown)}", "warn", indent=2, bullet="! ")


def _step_times(found: Mapping[str, object]) -> list[list[Span]]:
    middle, high = real(found, "p50_s"), real(found, "p99_s")
    if not middle or high is None or high < _TAILS * middle:
        return []
    return [
        [Span(f"{label} ", "dim"), Span(UNKNOWN if (value := real(found, key)) is None else duration(value))]
        for key, label in _QUANTILES
    ]


def _realised(found: Mapping[str, object], identities: Mapping[str | None, object]) -> list[list[Span]]:
    """Return the rate of tokens, else of samples, over the time that passed."""
    length = real(found, "duration_s")
    for unit in ("tokens", "samples"):
        rate, one = real(found, f"{unit}_per_s"), identities.get(f"realised_{unit}_per_s")
        if length is None or rate is None:
            continue
        facts = [[Span(f"{measure(f'{unit}_per_s', rate)} over {duration(length)}")]]
        if truth(one, "holds") is False and (printed := real(one, "left")) is not None:
            facts.append([Span(f"the steps print {measure(f'{unit}_per_s', printed)}", "dim")])
        return facts
    return []


def _checkpoints(found: Mapping[str, object]) -> list[list[Span]]:
    total, step, took = whole(found, "count"), whole(found, "last_step"), real(found, "duration_s")
    if not total:
        return []
    facts = [[Span(f"{count(total)} checkpoint{'s' if total > 1 else ''}")]]
    if step is not None:
        facts.append([Span(f"the last at step {count(step)}")])
    if took:
        facts.append([Span(f"{duration(took)} together", "dim")])
    unsaved, seconds = whole(found, "unsaved_step_count"), real(found, "unsaved_time_s")
    if unsaved:
        facts.append([Span(f"{count(unsaved)} steps{f' ({duration(seconds)})' if seconds else ''} since", "warn")])
    return facts
