"""``receipt store build``: turn an archive of logs into a store of receipts."""

from __future__ import annotations

import gc
import os
import sys
import time
from contextlib import closing, nullcontext
from heapq import merge
from pathlib import Path
from typing import Annotated, Literal

from receipt_cli.authoring.site_search import find_site
from receipt_cli.batch.coordinator import Batch
from receipt_cli.batch.coordinator import rederive as derive_all
from receipt_cli.batch.discovery import Labels, moment, read_list, read_mapping, walk
from receipt_cli.batch.model import REASONS, Engine, Manner, Report, Tally, find_causes, left_out_report, report_document
from receipt_cli.batch.pool import LocalPool
from receipt_cli.batch.remote import is_url
from receipt_cli.cli.output import note_some, print_line, style, write_stdout
from receipt_cli.cli.parameters import Argument, Grammar, Json, Option
from receipt_cli.definitions.search_path import find_folders
from receipt_cli.documents.canonical import canonical_line
from receipt_cli.errors import ExitCode, UsageError
from receipt_cli.io.duckdb import check_installed
from receipt_cli.render.differences import render_change, render_quarantine, render_summary
from receipt_cli.render.progress import BatchBar, BatchLines, shows_progress


def build(
    paths: Annotated[
        list[str] | None,
        Argument("PATH...", "Logs, folders of logs, patterns ('runs/**/*.log') and URLs (s3://, gs://, …)."),
    ] = None,
    *,
    store: Annotated[str, Option(metavar="FOLDER", help="Folder of the receipts; made if there is none.")],
    workers: Annotated[int | None, Option(least=1, most=1024, help="Logs at once; by default as many as cores.")] = None,
    engine: Annotated[
        Literal["local", "ray"], Option(help="Where logs are parsed: in processes here, or on the Ray cluster at RAY_ADDRESS.")
    ] = "local",
    paths_from: Annotated[str | None, Option(metavar="FILE", help="More paths, one a line; - is stdin.")] = None,
    root: Annotated[
        str | None, Option(metavar="FOLDER", help="Folder that names are relative to; by default the one above all paths.")
    ] = None,
    name: Annotated[
        str | None, Option(metavar="TEMPLATE", help="Names of runs by their paths: '{parent}-{stem}'; {stem} by default.")
    ] = None,
    lane: Annotated[str | None, Option(metavar="TEMPLATE", help="Lanes of runs by their paths, such as '{dir}'.")] = None,
    preset: Annotated[str | None, Option(metavar="TEMPLATE", help="Presets of runs by their paths.")] = None,
    mapping: Annotated[
        str | None, Option(metavar="CSV", help="Columns path (or pattern), name, lane, preset; before the templates.")
    ] = None,
    all_runs: Annotated[
        bool, Option("--all-runs/--last-run", help="A receipt for every run of a log, the default; or for its last.")
    ] = True,
    grammar: Grammar = None,
    series: Annotated[
        bool, Option("--series", help="Write the records of each run, too, to STORE/series: the report draws them.")
    ] = False,
    since: Annotated[
        str | None, Option(metavar="TIME", help="Only files changed since: 2026-01-31, RFC 3339, or an age (36h, 7d).")
    ] = None,
    list_left_out: Annotated[bool, Option("--list-left-out", help="List every path that is no log, and why.")] = False,
    json_output: Json = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Write nothing; list every value that would be added, removed or changed.")
    ] = False,
    again: Annotated[bool, Option("--again", help="Derive every log again, also those that are done or in quarantine.")] = False,
) -> None:
    """Derive a receipt of every log of an archive into a store.

    A log is skipped while its file, definitions and schema are those of its receipts. Interrupted jobs resume. A log that
    cannot be derived is quarantined with the reason and does not stop the rest. The run, header and attachments of an existing
    receipt are carried over unchanged. The store keeps the paths of each log; a template contains {path}, {dir}, {parent},
    {file} and {stem}, and counts where the receipt has no value. --json prints a line of JSON for each path, also those that
    are no logs, ordered by path. Exits 0 when every log has its receipt, else with the worst code of those in quarantine: 3 for
    a log that cannot be read, 70 for one that crashed its process or met an internal error; 6 when the store cannot be written.

    Example: receipt store build logs/ --store runs/ --lane '{dir}'
    """
    if is_url(store):
        raise UsageError("a store is a folder", where=store, try_="copy its files there afterwards: they never change")
    gc.enable()  # main() disabled it for short commands
    started = time.monotonic()
    every = [*(paths or ()), *(read_list(paths_from) if paths_from is not None else ())]
    if not every:
        raise UsageError("no path is given", try_="receipt store build FOLDER --store DIR")
    given = {"name": name, "lane": lane, "preset": preset}
    labels = Labels({key: text for key, text in given.items() if text is not None}, read_mapping(mapping) if mapping else ())
    if series:
        check_installed()
    archive = walk(every, root, since=moment(since, time.time()) if since is not None else None, store=store)
    unlisted = [f"cannot list {place}" for place in archive.unlisted]
    found = find_folders(archive.base or None)
    note_some([*unlisted, *find_site(archive.base or None).notes])
    only = os.path.abspath(grammar) if grammar is not None and os.path.isfile(grammar) else grammar
    manner = Manner(found.folders, only, all_runs, series)
    tally = Tally()
    try:
        shown = BatchBar(sys.stderr) if shows_progress(sys.stderr) else nullcontext(BatchLines(print_line))
        with shown as bar, closing(_engine(engine, workers)) as made:
            done = derive_all(archive.logs, Batch(Path(store), made, again, dry_run, bar, manner, labels, archive.base))
            others = sorted((*archive.left_out, *done.left_out), key=lambda each: each.name)
            for report in merge(done.reports, map(left_out_report, others), key=lambda each: each.log.name):
                tally.add(report)
                _tell(report, json_output, dry_run, list_left_out)
    except KeyboardInterrupt:
        print_line(f"receipt: note: interrupted after {tally.logs} of {len(archive.logs)} logs; the same command goes on there")
        raise
    if not json_output:
        write_stdout(_summary(tally, time.monotonic() - started, store, dry_run))
    worst = max(tally.worst_exit_code, ExitCode.INPUT if unlisted else ExitCode.OK)
    if worst:
        sys.exit(worst)


def _engine(name: str, workers: int | None) -> Engine:
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1  # often not all of the machine
    if name != "ray":
        return LocalPool(workers or usable)
    from receipt_cli.batch.ray_engine import RayEngine

    return RayEngine(workers or usable)


def _tell(report: Report, json_output: bool, dry_run: bool, list_left_out: bool) -> None:
    if json_output:
        write_stdout(canonical_line(report_document(report, compared=dry_run)))
    elif report.reason is not None:
        if list_left_out:
            path = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in report.log.name)  # in one line
            write_stdout(f"left out ({report.reason})  {path}\n")
    elif dry_run and report.same_as is None and report.change in ("written", "replaced"):
        causes = find_causes(report.differences)
        write_stdout(render_change(report.log.name, report.change, report.differences, style(), causes))


def _summary(tally: Tally, seconds: float, store: str, dry_run: bool) -> str:
    shown = style()
    counts = {name: tally.changes[name] for name in ("written", "replaced", "unchanged", "quarantined", "gone")}
    counts |= {"same bytes as another": tally.same}
    counts |= {f"left out: {REASONS[reason]}": number for reason, number in sorted(tally.left_out.items())}
    title = f"{store}: nothing was written" if dry_run else store
    text = render_summary(title, counts, tally.derived, tally.derived_bytes, seconds, shown, tally.unrecognised, tally.runs)
    records = [(r.log.name, _why(r)) for r in tally.quarantine]
    return text + render_quarantine(records, tally.changes["quarantined"], shown, f"receipt store ls {store} --quarantine")


def _why(report: Report) -> str:
    failure = report.failure
    assert failure is not None
    why = failure.detail or failure.why
    return f"{failure.error}: {why}" if why else failure.error
