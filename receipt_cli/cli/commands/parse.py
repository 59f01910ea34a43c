"""``receipt parse``: turn a log into a receipt."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from receipt_cli.authoring.site_search import find_site
from receipt_cli.cli import parameters as shared
from receipt_cli.cli.output import note, progress, style, write_stdout
from receipt_cli.cli.parameters import Argument, Option, Output
from receipt_cli.derive import Options, Reading, plan_reading
from receipt_cli.documents.canonical import canonical_bytes, canonical_line
from receipt_cli.errors import ExitCode, OutputError, UsageError
from receipt_cli.io.atomic import make_folder, write_atomically
from receipt_cli.io.compression import SUFFIXES, header_name, running_name
from receipt_cli.receipts.production import Product, Request, produce, produce_all, produce_from, refusal, rfc3339_now
from receipt_cli.scan.workers import AUTO

if TYPE_CHECKING:
    from receipt_cli.follow.hooks import Hooks
    from receipt_cli.follow.loop import Snapshot, Until, Watch


def parse(
    logs: Annotated[
        list[str],
        Argument(
            "LOG...", f"The log: a file (also {' '.join(SUFFIXES)}), or - for stdin; or all files of one run, or their folder."
        ),
    ],
    json_output: shared.Json = False,
    output: Annotated[
        Path | None,
        Output("Write the receipt to this file or into this folder; with --all-runs, all receipts; - prints it.", dash="kept"),
    ] = None,
    series: Annotated[
        Path | None, Option(help="Write each record to this Parquet file; with --all-runs, the runs' files to this folder.")
    ] = None,
    html: Annotated[Path | None, Option(help="Write a page of the run, with its curves, to this HTML file.")] = None,
    all_runs: Annotated[
        bool,
        Option("--all-runs", help="Write a receipt of every run in the log, not of the last alone; --json prints JSON lines."),
    ] = False,
    follow: Annotated[
        bool, Option("--follow", help="Parse a log that still grows, or a pipe, until the job is over; Ctrl-C ends it.")
    ] = False,
    idle: Annotated[
        int | None, Option(least=1, metavar="SECONDS", help="With --follow: the job is over after so long without output.")
    ] = None,
    pid: Annotated[int | None, Option(least=1, help="With --follow: the job is over once this process has exited.")] = None,
    stall: shared.Stall = None,
    on_failure: shared.OnFailure = None,
    on_end: shared.OnEnd = None,
    on_stall: shared.OnStall = None,
    grammar: shared.Grammar = None,
    exit_code: shared.JobExit = None,
    wall: Annotated[
        str | None,
        Option(metavar="TIME|FILE", help="Wall time of the job: 3h10m, seconds, or a wandb-summary.json, report.md or receipt."),
    ] = None,
    fact: shared.Fact = None,
    name: shared.RunName = None,
    lane: shared.Lane = None,
    preset: shared.Preset = None,
    attach: shared.Attach = None,
    header: Annotated[Path | None, Option(help="Header file that `receipt header` wrote at job start.")] = None,
    evidence: shared.Evidence = None,
    job: Annotated[str | None, Option(metavar="ID", help="With --evidence: the job, if a file has several.")] = None,
    here: Annotated[bool, Option("--here", help="This machine and this .git are the run's: record them.")] = False,
    no_times: Annotated[bool, Option("--no-times", help="Leave out the times in the file beside the log, LOG.times.")] = False,
    strict: Annotated[
        bool, Option("--strict", help="Exit 1 on lines unread or almost read, dropped numbers, or a log without steps.")
    ] = False,
    workers: Annotated[
        int | None, Option(least=1, most=256, help="Processes that scan without the kernel; by default as many as pay.")
    ] = None,
    full: shared.Full = False,
) -> None:
    """Turn a training log into a receipt.

    Prints how the run ended in at most eight lines, and with --full the rest; --json prints the receipt itself, -o writes
    it to a file. Several files, such as rank*.log or a folder, are the ranks and the rotated parts of one run. If a log
    contains several runs, the receipt covers the last.
    Parsing a failed run still exits 0. Exits 2 for files of several runs, 3 for a log that cannot be read, 4 when no grammar
    recognises it, or two do.

    Example: receipt parse run.log -o run.receipt.json
    """
    from receipt_cli.receipts.stated import read_facts

    if html is not None and all_runs:
        raise UsageError("--html writes the page of one run", why="--all-runs writes a receipt of each")
    stated = None
    if wall is not None:
        from receipt_cli.importers.wall_time import read_wall

        stated = read_wall(wall)
    request = Request(
        path=logs[0],
        more=tuple(logs[1:]),
        grammar=grammar,
        exit_code=exit_code,
        wall=stated,
        facts=read_facts(fact) if fact else (),
        name=name,
        lane=lane,
        preset=preset,
        attachments=tuple(attach or ()),
        evidence=_read_evidence(evidence or (), job),
        header_file=header,
        here=Path.cwd() if here else None,
        workers=workers or AUTO,
        times=not no_times,
        environ=dict(os.environ),
        now=rfc3339_now() if here else None,
    )
    if str(output) == "-":  # stdout has the receipt in place of the card
        output, json_output = None, True
    output = _in_folder(output, logs[0], every=all_runs)
    if header is None and not (here or follow or request.more):
        request = _with_header_of_orphan(request)
    if series is not None:
        from receipt_cli.io.duckdb import check_installed

        check_installed()
    if follow:
        from receipt_cli.follow.hooks import Hooks

        hooks = Hooks({"failure": on_failure, "end": on_end, "stall": on_stall}, stall)
        products = _follow(request, every=all_runs, idle=idle, pid=pid, output=output, hooks=hooks)
        if not products[-1].derivation.options.running:
            hooks.call_at_end(logs[0], products[-1].document)
        hooks.finish()
        note(hooks.failed)
    elif any(option is not None for option in (idle, pid, stall, on_failure, on_end, on_stall)):
        raise UsageError("--idle, --pid, --stall and --on-failure, --on-end, --on-stall go with --follow")
    else:
        with progress(logs[0]) as bar:
            request = replace(request, progress=bar)
            products = list(produce_all(request)) if all_runs else [produce(request)]
    note(dict.fromkeys(text for product in products for text in product.notes))
    if output is not None:
        for path, product in zip(_paths(output, ".json", products, all_runs), products, strict=True):
            write_atomically(path, canonical_bytes(product.document))
    for product in products:
        if json_output:
            write_stdout((canonical_line if all_runs else canonical_bytes)(product.document))
            continue
        from receipt_cli.render.receipt import render_receipt

        shown, running = product.series if full else None, product.derivation.options.running
        write_stdout(render_receipt(product.document, style=style(), series=shown, full=full, log=logs[0], running=running))
    if series is not None:
        from receipt_cli.receipts.series_file import write_series

        for path, product in zip(_paths(series, ".parquet", products, all_runs), products, strict=True):
            write_series(product.derivation, path)
    if html is not None:
        from receipt_cli.cli.commands.report import write_run_page

        write_run_page(products[0], html, logs[0])
    for product in products:
        error = refusal(product.derivation, logs[0])
        if error is not None:
            raise error
    if strict and not all(product.clean for product in products):
        sys.exit(ExitCode.NO)


def _with_header_of_orphan(request: Request) -> Request:
    """Return the request with the header of a ``receipt run`` that was killed before it wrote the receipt."""
    log = Path(request.path)
    if request.path == "-" or not log.name or not log.with_name(running_name(log.name)).is_file() or os.name == "nt":
        return request
    from receipt_cli.wrap.orphan import find_orphan

    header = log.with_name(header_name(log.name))
    found = find_orphan(log, header)
    if found is None or found.state != "over":
        return request
    note([f"receipt run was killed before it wrote the receipt of {log}: receipt run --recover {log} writes it"])
    captured = {"log_complete": found.log_complete, "log_loss": found.log_loss, "recovered": True}
    header_file = header if header.is_file() else None
    return replace(request, header_file=header_file, log_complete=found.log_complete, captured={**captured, **request.captured})


def _read_evidence(files: Sequence[Path], job: str | None) -> Sequence[dict[str, Any]]:
    if not files:
        if job is not None:
            raise UsageError("--job goes with --evidence", try_="--evidence FILE --job ID")
        return ()
    from receipt_cli.evidence.reading import MAX_FILES, read_evidence

    if len(files) > MAX_FILES:
        raise UsageError(f"--evidence is given {len(files)} times", why=f"a receipt has at most {MAX_FILES} entries")
    return read_evidence(files, job)


def _in_folder(output: Path | None, log: str, *, every: bool) -> Path | None:
    """Return the file of the receipt: ``output``, or ``STEM.receipt.json`` in the folder ``output``."""
    if output is None or every or not output.is_dir():
        return output
    name = Path(log).name
    packed = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")
    return output / f"{Path(name.removesuffix(packed)).stem or 'stdin'}.receipt.json"


def _paths(output: Path, suffix: str, products: Sequence[Product], all_runs: bool) -> list[Path]:
    """Return the file of the run, or of every run in the folder ``output``; their names sort in the order of the runs."""
    if not all_runs:
        return [output]
    make_folder(output)
    width = len(str(len(products)))
    return [output / f"run-{number:0{width}d}{suffix}" for number in range(1, len(products) + 1)]


def _follow(
    request: Request, *, every: bool, idle: int | None, pid: int | None, output: Path | None, hooks: Hooks
) -> list[Product]:
    """Follow a log until its job is over, with a live view on a terminal, and return the result.

    ``idle`` (seconds) and ``pid`` as ``Until`` has them; ``output`` is the file of the receipt. Raises ``ReceiptError``.
    """
    from receipt_cli.follow.loop import Until, follow

    if request.more:
        raise UsageError("--follow takes one log", try_="receipt parse LOG --follow")
    if output is not None and not every:
        _check_folder(output)
    gc.enable()  # this may take days
    until = Until(idle, pid)

    def read(options: Options, notes: list[str]) -> list[Reading]:
        site = find_site(request.path)
        notes += site.notes
        plan = plan_reading(options, site=site)
        with _watch(request.path, until, hooks) as watch:
            return [follow(request.path, plan, until, notes, watch=watch, workers=request.workers, times=request.times)]

    return list(produce_from(request, read, every=every))


def _check_folder(output: Path) -> None:
    """Raise an error, before the log is read, if the folder of ``output`` cannot be written to; a pipe can be read only once."""
    folder = output.absolute().parent
    if not folder.is_dir():
        raise OutputError("cannot write", where=str(output), why=f"there is no folder {folder}")
    if not output.exists() and not os.access(folder, os.W_OK):
        raise OutputError("cannot write", where=str(output), why="the folder cannot be written to")


@contextmanager
def _watch(path: str, until: Until, hooks: Hooks) -> Iterator[Watch | None]:
    """Yield a ``Watch`` that draws the job on stderr and calls its commands; None if it would do neither."""
    from receipt_cli.render.progress import shows_progress

    visible = sys.stderr is not None and shows_progress(sys.stderr)
    if not visible and not hooks:
        yield None
        return
    from receipt_cli.follow.hooks import running_failure
    from receipt_cli.follow.loop import Watch
    from receipt_cli.render.live import render_live
    from receipt_cli.render.progress import Screen

    class Terminal(Watch):
        def show(self, state: Snapshot) -> None:
            hooks.again("stall", path)
            if state.figures is not None and running_failure(state.figures.document) is not None:
                hooks.call("failure", path, state.figures.document)
            if visible:
                screen.draw(render_live(state, style(sys.stderr)))

        def leave(self, message: str) -> None:
            if visible:
                screen.leave(message)

        def silent(self, seconds: float) -> None:
            if seconds >= hooks.stall_s and self.snapshot is not None and self.snapshot.figures is not None:
                hooks.call("stall", path, self.snapshot.figures.document)

    with Screen(sys.stderr) as screen:
        yield Terminal("stdin" if path == "-" else Path(path).name, until.describe(path))
