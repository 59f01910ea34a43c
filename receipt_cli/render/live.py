"""Render a running job: progress, time of completion, metrics with their trends, and problems so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from receipt_cli.analysis.checks import contradicted_metrics
from receipt_cli.follow.hooks import running_failure
from receipt_cli.follow.watch import Figures, Snapshot
from receipt_cli.render.console import Page, Span, elide_middle
from receipt_cli.render.fields import UNKNOWN, items, mapping, real, text, truth, whole
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.scale import byte_size, count, duration, kind_of, measure, percent
from receipt_cli.render.spark import NOT_FINITE, sparkline
from receipt_cli.render.style import Role, Style

_NOTE = 24
"""Cells that the note behind a course has at least."""
_COURSES = (8, 48)
"""Cells of a course: the fewest and the most."""
_NAME = 48
_RATES = ("tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "samples_per_s_per_device", "flops_per_s_per_device")
_SHOWN: tuple[tuple[str, ...], ...] = (
    ("loss",),
    ("val_loss", "val_bpb", "val_perplexity", "val_accuracy"),
    ("grad_norm",),
    _RATES,
    ("step_time_s",),
    ("mfu_ratio",),
    ("peak_memory_allocated_bytes", "peak_memory_reserved_bytes", "peak_memory_bytes", "memory_allocated_bytes"),
)
"""The rows of metrics; of each the first that the log prints."""
_CURVES = ("loss", "val_loss", "val_bpb", "val_perplexity", "grad_norm")
_NOISE = 0.05
_MEMORY = "peak memory"
_LATER = ("has_steps", "completed")
"""Checks that are only false because the job is not over."""
_MAX_SEEN = 4
_HALF_A_DAY = 43200
_FAR = 1e9
"""Seconds beyond which a date means nothing."""


class _Row(NamedTuple):
    """A label, a value and a note; between them, where there is room, the trend in that many cells."""

    label: str
    value: str
    note: str = ""
    course: Callable[[int], str] | None = None
    bad: bool = False


def render_live(state: Snapshot, style: Style) -> str:
    """Return the lines for a running job; they fit an ordinary terminal."""
    page = Page(style)
    _head(page, state)
    for warning in state.warnings:
        page.prose(page.say(warning), "warn", indent=2, bullet="! ")
    if state.figures is None:
        page.line(Span("nothing has been read yet" if not state.size_bytes else "reading what is there …", "dim"), indent=2)
    else:
        _failure(page, state.figures)
        ratio = real(state.figures.document, "goodput", "goodput_ratio")
        goodput = _Row("goodput", UNKNOWN if ratio is None else percent(ratio))
        _write(page, [*_progress(page, state, state.figures), *_metrics(state.figures), goodput])
        _checks(page, state.figures)
        _seen(page, state.figures)
    page.line(Span(state.ends, "dim"), indent=2)
    return page.text()


def _head(page: Page, state: Snapshot) -> None:
    facts: list[list[Span]] = [[Span(elide_middle(page.say(state.name), _NAME), "heading")]]
    facts.append([Span(f"{byte_size(state.size_bytes)}, {count(state.line_count)} lines")])
    if state.heard_at is not None:
        facts.append([Span(f"last output {_clock(state.heard_at, time.time(), '%H:%M:%S')}")])
    if state.figures is not None:
        chosen = [text(grammar, "id") for grammar in items(state.figures.document, "derivation", "grammars")]
        facts.append([Span(page.say(", ".join(filter(None, chosen))) if chosen else "no grammar knows it yet", "dim")])
        if 2 * state.figures.size_bytes < state.size_bytes:
            facts.append([Span(f"figures of the first {byte_size(state.figures.size_bytes)}", "warn")])
    page.flow("", facts, indent=0)


def _clock(at: float, now: float, form: str) -> str:
    """Return a time of day in the local zone, behind its date where it is far from ``now``."""
    return time.strftime(form if abs(at - now) < _HALF_A_DAY else f"%Y-%m-%d {form}", time.localtime(at))


def _progress(page: Page, state: Snapshot, figures: Figures) -> Iterator[_Row]:
    """Yield how many of the planned steps are done, and when all will be."""
    summary = figures.summary
    first, last, planned, records = (whole(summary, "steps", key) for key in ("first", "last", "planned", "record_count"))
    if last is None:
        yield _Row("steps", f"{count(records)} records" if records else UNKNOWN)
        return
    done = last + (1 if first == 0 else 0)
    name = text(summary, "phase")
    notes = [f"of {page.say(name)}"] if name and len(items(figures.document, "phases")) > 1 else []
    restarts = whole(summary, "steps", "restart_count")
    notes += [f"restarted {'once' if restarts == 1 else f'{count(restarts)} times'}"] if restarts else []
    if not planned or planned < done:
        yield _Row("steps", count(done), ", ".join(notes))
        return
    ratio = done / planned
    yield _Row(
        "steps", f"{count(done)} of {count(planned)}", ", ".join([percent(ratio), *notes]), lambda width: _bar(ratio, width)
    )
    yield _Row("ETA", UNKNOWN) if running_failure(figures.document) else _eta(state, planned - done, summary)


def _bar(ratio: float, width: int) -> str:
    full = int(ratio * width)
    return "█" * full + "▁" * (width - full)


def remaining_seconds(state: Snapshot) -> float | None:
    """Return the seconds until the planned steps are done, at the steady step time, else the observed pace, or None."""
    summary = state.figures.summary if state.figures is not None else {}
    first, last, planned = (whole(summary, "steps", key) for key in ("first", "last", "planned"))
    printed = real(summary, "metrics", "step_time_s", "median")
    pace = printed if printed is not None else state.step_time_s
    if last is None or not planned or pace is None:
        return None
    return min(_FAR, max(0, planned - last - (1 if first == 0 else 0)) * pace)


def _eta(state: Snapshot, remaining: int, summary: Mapping[str, object]) -> _Row:
    """Return when the planned steps will be done, at the steady step time, else at the pace that was seen."""
    printed = real(summary, "metrics", "step_time_s", "median")
    pace = printed if printed is not None else state.step_time_s
    if remaining <= 0:
        return _Row("ETA", "done")
    if pace is None or state.heard_at is None:
        return _Row("ETA", UNKNOWN)
    seconds = remaining * pace
    until = _clock(state.heard_at + min(seconds, _FAR), state.heard_at, "%H:%M")
    source = "steady" if printed is not None else "as they came"
    return _Row("ETA", duration(seconds), f"{until}, at {duration(pace)} a step ({source})")


def _metrics(figures: Figures) -> Iterator[_Row]:
    metrics, doubtful = mapping(figures.summary, "metrics"), contradicted_metrics(figures.summary)
    for names in _SHOWN:
        name = next((name for name in names if name in metrics and name not in doubtful), None)
        if name is not None:
            yield _metric(name, mapping(metrics, name), figures.series.get(name) or ())


def _metric(name: str, statistic: Mapping[str, object], values: Sequence[float]) -> _Row:
    first, last, low, high, median = (real(statistic, key) for key in ("first", "last", "min", "max", "median"))
    broken = whole(statistic, "nonfinite_count") or 0
    curve = name in _CURVES
    bounds = None if curve or low is None or high is None else (low, high)

    def course(width: int) -> str:
        gap = NOT_FINITE if broken else " "
        return sparkline(values, width, bounds=bounds, least_span=0.0 if curve else _NOISE, gap=gap)

    figures = [("from", first), ("low", low)] if curve else [("median", median)]
    figures = [("median", median), ("high", high)] if name == "grad_norm" else figures
    notes = [f"{count(broken)} not finite"] if broken else []
    notes += [f"{word} {measure(name, value)}" for word, value in figures if value is not None]
    shown = measure(name, last) if last is not None else "not finite" if broken else UNKNOWN
    label = _MEMORY if kind_of(name) == "bytes" else metric_label(name)
    return _Row(label, shown, ", ".join(notes), course if len(values) > 1 else None, bool(broken))


def _write(page: Page, rows: Iterable[_Row]) -> None:
    """Add the rows, each part in its column."""
    lines = list(rows)
    label, value = (max(cell_len(getattr(row, part)) for row in lines) for part in ("label", "value"))
    least, most = _COURSES
    width = min(most, max(least, page.style.width - label - value - _NOTE - 8))
    for row in lines:
        course = row.course(width).ljust(width + 2) if row.course is not None else ""
        tone: Role = "bad" if row.bad else "strong"
        head = [Span(row.label.ljust(label + 2), "dim"), Span(row.value.ljust(value + 2), tone), Span(course, "accent")]
        page.line(*head, Span(row.note, "bad" if row.bad else "dim"), indent=2)


def _checks(page: Page, figures: Figures) -> None:
    page.gap()
    checks = mapping(figures.document, "checks")
    marks: Mapping[bool | None, tuple[str, Role]] = {True: ("✓", "good"), False: ("✗", "bad"), None: ("?", "dim")}
    facts: list[list[Span]] = []
    for name in checks:
        value = truth(checks, name)
        mark, role = marks[None if value is False and name in _LATER else value]
        facts.append([Span(f"{mark} {page.say(name)}", role)])
    page.flow("", facts)


def _failure(page: Page, figures: Figures) -> None:
    reason, failure = running_failure(figures.document), mapping(figures.document, "failure")
    line = whole(failure, "line_number")
    if reason is not None:
        place = f", line {line}" if line is not None else ""
        message = page.say(text(failure, "message") or "")
        page.prose(f"{page.say(reason)}{place}: {message}", "bad", indent=2, bullet="✗ ")


def _seen(page: Page, figures: Figures) -> None:
    """Add the markers in the log, including those that the job recovered from."""
    seen = [(text(entry, "id"), whole(entry, "count"), whole(entry, "last_line"))
            for entry in items(figures.document, "derivation", "observed")]  # fmt: skip
    markers = [[Span(page.say(name)), Span(f" ×{count(times)}, line {line}", "dim")]
            for name, times, line in seen if name and times and line is not None]  # fmt: skip
    if markers:
        more = [[Span(f"{count(len(markers) - _MAX_SEEN)} more", "dim")]] if len(markers) > _MAX_SEEN else []
        page.flow("seen", [*markers[-_MAX_SEEN:], *more], label_width=8)
