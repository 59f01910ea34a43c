"""Render running jobs: one with progress, metrics, trends and problems so far, or many as a table."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from receipt_cli.analysis.checks import contradicted_metrics
from receipt_cli.follow.hooks import running_failure
from receipt_cli.follow.jobs import JobState, State
from receipt_cli.follow.loop import Figures, Snapshot
from receipt_cli.render.console import Column, Page, Span, elide_middle, write_table
from receipt_cli.render.fields import UNKNOWN, items, mapping, real, text, truth, whole
from receipt_cli.render.metrics import NOT_FINITE, metric_label, sparkline
from receipt_cli.render.scale import byte_size, count, duration, kind_of, measure, percent
from receipt_cli.render.style import Role, Style

_NOTE = 24
"""Least cells of the note after a trend."""
_COURSES = (8, 48)
"""Fewest and most cells of a trend."""
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
"""Rows of metrics; each shows its first metric that the log prints."""
_CURVES = ("loss", "val_loss", "val_bpb", "val_perplexity", "grad_norm")
_NOISE = 0.05
_MEMORY = "peak memory"
_LATER = ("has_steps", "completed")
"""Checks that are false for any job that is not over."""
_MAX_SEEN = 4
_HALF_A_DAY = 43200
_FAR = 1e9
"""Most seconds to an estimated end."""


class _Row(NamedTuple):
    """A label, a value and a note; ``course`` returns a trend of the given number of cells."""

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
        page.prose(warning, "warn", indent=2, bullet="! ")
    if state.figures is None:
        page.line(Span("nothing has been read yet" if not state.size_bytes else "reading what is there …", "dim"), indent=2)
    else:
        _failure(page, state.figures)
        ratio = real(state.figures.document, "goodput", "goodput_ratio")
        goodput = _Row("goodput", UNKNOWN if ratio is None else percent(ratio))
        _write(page, [*_progress(state, state.figures), *_metrics(state.figures), *_speeds(state.figures), goodput])
        _checks(page, state.figures)
        _seen(page, state.figures)
    page.line(Span(state.ends, "dim"), indent=2)
    return page.text()


def _head(page: Page, state: Snapshot) -> None:
    facts: list[str] = [Span(elide_middle(page.say(state.name), _NAME), "heading")]
    facts.append(f"{byte_size(state.size_bytes)}, {count(state.line_count)} lines")
    if state.heard_at is not None:
        facts.append(f"last output {_clock(state.heard_at, time.time(), '%H:%M:%S')}")
    if state.figures is not None:
        chosen = [text(grammar, "id") for grammar in items(state.figures.document, "derivation", "grammars")]
        facts.append(Span(", ".join(filter(None, chosen)) or "no grammar knows it yet", "dim"))
        if 2 * state.figures.size_bytes < state.size_bytes:
            facts.append(Span(f"figures of the first {byte_size(state.figures.size_bytes)}", "warn"))
    page.flow("", facts, indent=0)


def _clock(at: float, now: float, form: str) -> str:
    """Return the local time of day, after its date if it is far from ``now``."""
    return time.strftime(form if abs(at - now) < _HALF_A_DAY else f"%Y-%m-%d {form}", time.localtime(at))


def _progress(state: Snapshot, figures: Figures) -> Iterator[_Row]:
    summary = figures.summary
    done, planned = _done(summary)
    if done is None:
        records = whole(summary, "steps", "record_count")
        yield _Row("steps", f"{count(records)} records" if records else UNKNOWN)
        return
    name = text(summary, "phase")
    notes = [f"of {name}"] if name and len(items(figures.document, "phases")) > 1 else []
    restarts = whole(summary, "steps", "restart_count")
    notes += [f"restarted {'once' if restarts == 1 else f'{count(restarts)} times'}"] if restarts else []
    if not planned or planned < done:
        yield _Row("steps", count(done), ", ".join(notes))
        return
    ratio = done / planned
    told = f"{count(done)} of {count(planned)}", ", ".join([percent(ratio), *notes])
    yield _Row("steps", *told, lambda width: ("█" * int(ratio * width)).ljust(width, "▁"))
    yield _Row("ETA", UNKNOWN) if running_failure(figures.document) else _eta(state, figures, planned - done)


def _done(summary: Mapping[str, object]) -> tuple[int | None, int | None]:
    first, last, planned = (whole(summary, "steps", key) for key in ("first", "last", "planned"))
    return None if last is None else last + (first == 0), planned


def _pace(state: Snapshot, figures: Figures) -> tuple[float | None, str]:
    """Return the seconds of a step, and where they are from: the steady step time, else the pace that was seen."""
    printed = real(figures.summary, "metrics", "step_time_s", "median")
    return (state.step_time_s, "as they came") if printed is None else (printed, "steady")


def remaining_seconds(state: Snapshot | None) -> float | None:
    """Return the seconds until the planned steps are done, or None."""
    if state is None or state.figures is None:
        return None
    (done, planned), (pace, _) = _done(state.figures.summary), _pace(state, state.figures)
    return None if done is None or not planned or pace is None else min(_FAR, max(0, planned - done) * pace)


def _eta(state: Snapshot, figures: Figures, remaining: int) -> _Row:
    pace, source = _pace(state, figures)
    if remaining <= 0:
        return _Row("ETA", "done")
    if pace is None or state.heard_at is None:
        return _Row("ETA", UNKNOWN)
    seconds = remaining * pace
    until = _clock(state.heard_at + min(seconds, _FAR), state.heard_at, "%H:%M")
    return _Row("ETA", duration(seconds), f"{until}, at {duration(pace)} a step ({source})")


def _metrics(figures: Figures) -> Iterator[_Row]:
    metrics, doubtful = mapping(figures.summary, "metrics"), contradicted_metrics(figures.summary)
    for names in _SHOWN:
        name = next((name for name in names if name in metrics and name not in doubtful), None)
        if name is not None:
            yield _metric(name, mapping(metrics, name), figures.series.get(name) or ())


def _speeds(figures: Figures) -> Iterator[_Row]:
    """Yield the step time and the rate by the clock, if the log does not print them."""
    metrics = mapping(figures.summary, "metrics")
    how = "as they came" if figures.came else "by the stamps"
    median, slow = (real(figures.summary, "step_times", key) for key in ("p50_s", "p90_s"))
    if "step_time_s" not in metrics and median and text(figures.summary, "step_times", "source") == "timestamps":
        yield _Row("step time", duration(median), f"90 % below {duration(slow)}, {how}" if slow else how)
    rate = clocked_rate(figures)
    if rate is not None and not any(name in metrics for name in _RATES):
        yield _Row("throughput", rate, f"{how}, waits included")


def clocked_rate(figures: Figures) -> str | None:
    """Return the rate by the clock: tokens, samples or steps in the time that passed; None if it is unknown."""
    realised = mapping(figures.summary, "realised")
    for name in ("tokens_per_s", "samples_per_s", "steps_per_s"):
        if value := real(realised, name):
            return measure(name, value)
    return None


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
    facts = []
    for name in checks:
        value = truth(checks, name)
        mark, role = marks[None if value is False and name in _LATER else value]
        facts.append(Span(f"{mark} {name}", role))
    page.flow("", facts)


def _failure(page: Page, figures: Figures) -> None:
    reason, failure = running_failure(figures.document), mapping(figures.document, "failure")
    line = whole(failure, "line_number")
    if reason is not None:
        place = f", line {line}" if line is not None else ""
        page.prose(f"{reason}{place}: {text(failure, 'message') or ''}", "bad", indent=2, bullet="✗ ")


def _seen(page: Page, figures: Figures) -> None:
    """Add the markers in the log, including those that the job recovered from."""
    seen = [(text(entry, "id"), whole(entry, "count"), whole(entry, "last_line"))
            for entry in items(figures.document, "derivation", "observed")]  # fmt: skip
    markers = [[name, Span(f" ×{count(times)}, line {line}", "dim")]
            for name, times, line in seen if name and times and line is not None]  # fmt: skip
    if markers:
        more = [Span(f"{count(len(markers) - _MAX_SEEN)} more", "dim")] if len(markers) > _MAX_SEEN else []
        page.flow("seen", [*markers[-_MAX_SEEN:], *more], label_width=8)


_TREND = 12
_SPEEDS = (*_RATES[:-1], "steps_per_s")
_STYLES: dict[State, Role] = {
    "failed": "bad",
    "nan": "bad",
    "unreadable": "bad",
    "stalled": "warn",
    "done": "good",
    "running": "plain",
}
_ORDER: tuple[State, ...] = ("failed", "nan", "stalled", "unreadable", "running", "waiting", "done")
_COLUMNS = (
    Column("log", least=12),
    Column("state", least=10),
    Column("step", right=True),
    Column("ETA", right=True, drop=1),
    Column("loss", right=True),
    Column("trend", drop=3),
    Column("throughput", right=True, drop=2),
    Column("silence", right=True),
)


def render_watch(states: Sequence[JobState], style: Style, *, rows: int | None = None) -> str:
    """Return the table of jobs, failed and stalled ones first; at most ``rows`` of them."""
    page = Page(style)
    found = {state: sum(job.state == state for job in states) for state in _ORDER}
    counts = [f"{count(number)} {state}" for state, number in found.items() if number]
    page.line(Span(f"{count(len(states))} logs: {', '.join(counts)}", "heading"))
    ordered = sorted(states, key=lambda job: (_ORDER.index(job.state), job.path))
    shown = ordered if rows is None else ordered[: max(1, rows)]
    names = _names([job.path for job in states])
    cells = [_row(job, names[job.path]) for job in shown]
    write_table(page, _COLUMNS, cells, hidden=len(ordered) - len(shown), what="logs")
    return page.text()


def job_record(job: JobState) -> dict[str, object]:
    """Return a job for a line of JSON; unknown figures are null."""
    summary = job.figures.summary if job.figures is not None else {}
    return {
        "log": job.path,
        "state": job.state,
        "reason": job.reason,
        "silent_s": None if math.isnan(job.silent_s) else round(job.silent_s, 1),
        "step": whole(summary, "steps", "last"),
        "planned": whole(summary, "steps", "planned"),
        "loss": real(summary, "metrics", "loss", "last"),
        "eta_s": remaining_seconds(job.snapshot) if job.state == "running" else None,
    }


def _names(paths: Sequence[str]) -> dict[str, str]:
    """Return path → path without the folders that all paths share."""
    parts = [path.split("/")[:-1] for path in paths]
    shared = 0
    while parts and all(len(folders) > shared and folders[shared] == parts[0][shared] for folders in parts):
        shared += 1
    return {path: "/".join(path.split("/")[shared:]) for path in paths}


def _row(job: JobState, name: str) -> list[str]:
    said = job.state if job.reason is None or job.state == "nan" else f"{job.state}: {job.reason}"
    silence = UNKNOWN if math.isnan(job.silent_s) else duration(math.floor(job.silent_s))
    head, silent = [name, Span(said, _STYLES.get(job.state, "dim"))], Span(silence, "warn" if job.state == "stalled" else "dim")
    return [*head, *(_figures(job, job.figures) if job.figures is not None else [UNKNOWN] * 5), silent]


def _figures(job: JobState, figures: Figures) -> list[str]:
    summary = figures.summary
    last, planned = whole(summary, "steps", "last"), whole(summary, "steps", "planned")
    steps = UNKNOWN if last is None else count(last) if not planned else f"{count(last)} of {count(planned)}"
    seconds = remaining_seconds(job.snapshot) if job.state == "running" else None
    eta = UNKNOWN if seconds is None else f"{duration(seconds)} {time.strftime('%H:%M', time.localtime(time.time() + seconds))}"
    metrics = mapping(summary, "metrics")
    loss = real(metrics, "loss", "last")
    values = figures.series.get("loss") or ()
    name = next((name for name in _SPEEDS if name in metrics), None)
    rate = real(metrics, name, "last") if name is not None else None
    trend = sparkline(values, _TREND) if len(values) > 1 else ""
    shown = "not finite" if job.state == "nan" else UNKNOWN if loss is None else measure("loss", loss)
    speed = clocked_rate(figures) or UNKNOWN if rate is None or name is None else measure(name, rate)
    lost = Span(shown, "bad" if job.state == "nan" else "strong")
    speed += "/device" if name is not None and name.endswith("_per_device") else ""
    return [steps, Span(eta, "dim"), lost, Span(trend, "accent"), speed]
