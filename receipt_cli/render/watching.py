"""Render many running jobs as one table: state, step, time of completion, loss, throughput and silence of each."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from receipt_cli.follow.jobs import JobState, State
from receipt_cli.follow.watch import Snapshot
from receipt_cli.render.console import Column, Page, Span, write_table
from receipt_cli.render.fields import UNKNOWN, mapping, real, whole
from receipt_cli.render.live import remaining_seconds
from receipt_cli.render.scale import count, duration, measure
from receipt_cli.render.spark import sparkline
from receipt_cli.render.style import Role, Style

_TREND = 12
_RATES = ("tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "samples_per_s_per_device", "steps_per_s")
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
    """Return the table of jobs, those that need somebody first; at most ``rows`` of them."""
    page = Page(style)
    found = {state: sum(job.state == state for job in states) for state in _ORDER}
    counts = [f"{count(number)} {state}" for state, number in found.items() if number]
    page.line(Span(f"{count(len(states))} logs: {', '.join(counts)}", "heading"))
    ordered = sorted(states, key=lambda job: (_ORDER.index(job.state), job.path))
    shown = ordered if rows is None else ordered[: max(1, rows)]
    names = _names([job.path for job in states])
    cells = [_row(job, names[job.path], page) for job in shown]
    write_table(page, _COLUMNS, cells, hidden=len(ordered) - len(shown), what="logs")
    return page.text()


def job_record(job: JobState) -> dict[str, object]:
    """Return a job for a line of JSON: figures are null where they are unknown."""
    figures = job.snapshot.figures if job.snapshot is not None else None
    summary = figures.summary if figures is not None else {}
    return {
        "log": job.path,
        "state": job.state,
        "reason": job.reason,
        "silent_s": None if math.isnan(job.silent_s) else round(job.silent_s, 1),
        "step": whole(summary, "steps", "last"),
        "planned": whole(summary, "steps", "planned"),
        "loss": real(summary, "metrics", "loss", "last"),
        "eta_s": remaining_seconds(job.snapshot) if job.snapshot is not None and job.state == "running" else None,
    }


def _names(paths: Sequence[str]) -> dict[str, str]:
    """Return the paths without the folders that all of them share."""
    parts = [path.split("/")[:-1] for path in paths]
    shared = 0
    while parts and all(len(folders) > shared and folders[shared] == parts[0][shared] for folders in parts):
        shared += 1
    return {path: "/".join(path.split("/")[shared:]) for path in paths}


def _row(job: JobState, name: str, page: Page) -> list[Span]:
    """Return the cells of a job."""
    said = job.state if job.reason is None or job.state == "nan" else f"{job.state}: {job.reason}"
    silence = UNKNOWN if math.isnan(job.silent_s) else duration(math.floor(job.silent_s))
    steps, eta, loss, trend, rate = _figures(job, job.snapshot, page)
    return [
        Span(page.say(name)),
        Span(page.say(said), _STYLES.get(job.state, "dim")),
        Span(steps),
        Span(eta, "dim"),
        Span(loss, "bad" if job.state == "nan" else "strong"),
        Span(trend, "accent"),
        Span(rate),
        Span(silence, "warn" if job.state == "stalled" else "dim"),
    ]


def _figures(job: JobState, snapshot: Snapshot | None, page: Page) -> tuple[str, str, str, str, str]:
    """Return step, ETA, loss, its trend, and throughput."""
    figures = snapshot.figures if snapshot is not None else None
    if snapshot is None or figures is None:
        return (UNKNOWN,) * 5
    summary = figures.summary
    last, planned = whole(summary, "steps", "last"), whole(summary, "steps", "planned")
    steps = UNKNOWN if last is None else count(last) if not planned else f"{count(last)} of {count(planned)}"
    seconds = remaining_seconds(snapshot) if job.state == "running" else None
    eta = UNKNOWN if seconds is None else f"{duration(seconds)} {time.strftime('%H:%M', time.localtime(time.time() + seconds))}"
    metrics = mapping(summary, "metrics")
    loss = real(metrics, "loss", "last")
    values = figures.series.get("loss") or ()
    name = next((name for name in _RATES if name in metrics), None)
    rate = real(metrics, name, "last") if name is not None else None
    trend = sparkline(values, _TREND) if len(values) > 1 else ""
    shown = "not finite" if job.state == "nan" else UNKNOWN if loss is None else measure("loss", loss)
    speed = UNKNOWN if rate is None or name is None else measure(name, rate)
    return steps, eta, shown, trend, f"{speed}/device" if name is not None and name.endswith("_per_device") else speed
