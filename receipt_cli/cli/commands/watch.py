"""``receipt watch``: many growing logs on one screen."""

from __future__ import annotations

import gc
import sys
from contextlib import closing, nullcontext
from datetime import UTC, datetime
from typing import Annotated

from receipt_cli.authoring.site_search import find_site
from receipt_cli.cli.output import note, style, write_lines, write_stdout
from receipt_cli.cli.parameters import Argument, Grammar, Json, OnEnd, OnFailure, OnStall, Option, Stall
from receipt_cli.derive import Options, plan_reading
from receipt_cli.errors import ExitCode
from receipt_cli.follow.hooks import Happening, Hooks
from receipt_cli.follow.jobs import JobState, watch_jobs
from receipt_cli.render.live import job_record, render_watch
from receipt_cli.render.progress import Screen, shows_progress
from receipt_cli.render.scale import duration


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
) -> None:
    """Watch many growing logs on one screen: state, step, time of completion, loss, throughput and silence of each.

    A job is running, stalled (silent for --stall seconds), failed, nan (its loss is not finite) or done. On a terminal the
    table is drawn again until Ctrl-C; elsewhere a line is printed for each failure, end and stall. With --once the table is
    printed, or with --json a line of JSON for each log. Exits 1 with --once or --until-over if a job has failed.

    Example: receipt watch logs/ --stall 900 --on-failure 'notify-send failed'
    """
    gc.enable()  # this may take days
    on_screen = not once and not json_output and shows_progress(sys.stdout)
    hooks = Hooks({"failure": on_failure, "end": on_end, "stall": on_stall}, stall, quiet=on_screen)
    site = find_site(paths[0])
    note(site.notes)
    plan = plan_reading(Options(grammar), site=site)
    states: list[JobState] = []
    screen = Screen(sys.stdout) if on_screen else None
    with screen or nullcontext(), closing(watch_jobs(paths, plan, hooks, once=once, until_over=until_over)) as seen:
        for states, happened in seen:
            if screen is not None:
                screen.draw(render_watch(states, style(), rows=screen.rows))
            for happening, job in happened if screen is None and not once else ():
                _tell(happening, job, json_output)
    if once and json_output:
        write_lines(map(job_record, states))
    elif once or on_screen:
        write_stdout(render_watch(states, style()))
    note(hooks.failed)
    if (once or until_over) and any(job.state in ("failed", "nan") for job in states):
        sys.exit(ExitCode.NO)


def _tell(happening: Happening, job: JobState, json_output: bool) -> None:
    if json_output:
        return write_lines([{"event": happening, **job_record(job)}])
    why = {"failure": job.reason or "", "end": "completed", "stall": f"no output for {duration(int(job.silent_s))}"}[happening]
    write_stdout(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}  {happening:7}  {job.path}  {why}\n")
