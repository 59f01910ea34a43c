"""``receipt watch``: many growing logs on one screen."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from receipt_cli.authoring.site_search import find_site
from receipt_cli.cli.output import note, style, write_stdout
from receipt_cli.cli.parameters import Argument, Color, Grammar, Json, OnEnd, OnFailure, OnStall, Option, Stall
from receipt_cli.derive import Options, plan_reading
from receipt_cli.documents.canonical import canonical_line
from receipt_cli.errors import ExitCode
from receipt_cli.follow.hooks import STALL_S, Happening, Hooks
from receipt_cli.follow.jobs import JobState, watch_jobs
from receipt_cli.render.live import job_record, render_watch
from receipt_cli.render.progress import Screen, shows_progress
from receipt_cli.render.scale import duration
from receipt_cli.render.style import ColorChoice


def watch(
    paths: Annotated[list[str], Argument("PATH...", "Logs, or folders whose logs are watched, those that are new, too.")],
    once: Annotated[bool, Option("--once", help="Read what there is, print the table, and exit.")] = False,
    until_over: Annotated[bool, Option("--until-over", help="Exit once every job is done, has failed, or has stalled.")] = False,
    stall: Stall = None,
    on_failure: OnFailure = None,
    on_end: OnEnd = None,
    on_stall: OnStall = None,
    grammar: Grammar = None,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Watch many growing logs on one screen: state, step, time of completion, loss, throughput and silence of each.

    A job is running, stalled (silent for --stall seconds), failed, nan (its loss is not finite) or done. On a terminal the
    table is drawn again until Ctrl-C; elsewhere a line is printed for each failure, end and stall. With --once the table is
    printed, or with --json a line of JSON for each log. Exits 1 with --once or --until-over if a job has failed.

    Example: receipt watch logs/ --stall 900 --on-failure 'notify-send failed'
    """
    gc.enable()  # this may take days
    on_screen = not once and not json_output and shows_progress(sys.stdout)
    commands: dict[Happening, str | None] = {"failure": on_failure, "end": on_end, "stall": on_stall}
    hooks = Hooks(commands, stall_s=stall or STALL_S, quiet=on_screen)
    site = find_site(paths[0])
    note(site.notes)
    plan = plan_reading(Options(grammar), site=site)
    if on_screen:
        with Screen(sys.stdout) as screen:

            def draw(states: Sequence[JobState], happened: Sequence[tuple[Happening, JobState]]) -> None:
                screen.draw(_table(states, color, screen.rows))

            states = watch_jobs(paths, plan, hooks, draw, until_over=until_over)
            screen.clear()
        write_stdout(_table(states, color, None))
    else:

        def tell_happened(states: Sequence[JobState], happened: Sequence[tuple[Happening, JobState]]) -> None:
            for happening, job in happened if not once else ():
                write_stdout(_line(happening, job, json_output))

        states = watch_jobs(paths, plan, hooks, tell_happened, once=once, until_over=until_over)
        if once:
            write_stdout(b"".join(_record(job) for job in states) if json_output else _table(states, color, None))
    note(hooks.failed)
    if (once or until_over) and any(job.state in ("failed", "nan") for job in states):
        sys.exit(ExitCode.NO)


def _table(states: Sequence[JobState], color: ColorChoice, rows: int | None) -> str:
    return render_watch(states, style(color), rows=rows)


def _line(happening: Happening, job: JobState, json_output: bool) -> str | bytes:
    """Return what happened to a job, as a line of text or of JSON."""
    if json_output:
        return _record(job, happening)
    why = {"failure": job.reason or "", "end": "completed", "stall": f"no output for {duration(int(job.silent_s))}"}[happening]
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}  {happening:7}  {job.path}  {why}\n"


def _record(job: JobState, happening: Happening | None = None) -> bytes:
    return canonical_line(({"event": happening} if happening is not None else {}) | job_record(job))
