"""``receipt run``: run a command unchanged, and write its receipt when it ends."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, NoReturn

from receipt_cli.analysis.goodput.model import Wall
from receipt_cli.authoring.site_search import find_site
from receipt_cli.cli import parameters as shared
from receipt_cli.cli.output import note, print_line, style, tell
from receipt_cli.cli.parameters import Argument, Option, Output, PassedOn, Was
from receipt_cli.derive import Options, plan_reading
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import InputError, ReceiptError, UsageError
from receipt_cli.evidence.reading import slurm_evidence
from receipt_cli.follow.hooks import Hooks
from receipt_cli.io.atomic import check_new, write_atomically
from receipt_cli.io.compression import samples_name, times_name
from receipt_cli.receipts.production import (
    Product,
    Request,
    capture_header,
    produce,
    read_attachment,
    refusal,
    rfc3339_now,
    split_attachment,
)
from receipt_cli.redaction.text import mask_texts
from receipt_cli.render.card import render_card
from receipt_cli.wrap.job import Ended, Kept, NotStarted, check_command, run_job
from receipt_cli.wrap.orphan import Note, find_orphan
from receipt_cli.wrap.paths import Existing, Files, check_files, default_files, is_device, open_log
from receipt_cli.wrap.sampling import Sampled, Sampler, find_devices
from receipt_cli.wrap.tee import hold_standard_streams

SAMPLE_S = 5.0
"""Seconds between samples of GPUs and memory."""
EVIDENCE = "receipt_run"
"""Evidence of a wall time that ``receipt run`` measured."""


def run(
    command: Annotated[
        list[str] | None, Argument("COMMAND...", "The training command with its arguments; -- before it is optional."), PassedOn()
    ] = None,
    output: Annotated[
        Path | None, Output("Write the receipt to this file; default: <log's stem>.receipt.json."), Was("out")
    ] = None,
    log: Annotated[
        Path | None, Option(help="Write the log to this file; default: <name>-<UTC time>.log in this directory.")
    ] = None,
    stamp: Annotated[
        bool, Option("--stamp", help="Put a time stamp before each line of the log instead of times beside it.")
    ] = False,
    no_times: Annotated[bool, Option("--no-times", help="Do not write when each line came.")] = False,
    sample: Annotated[
        bool, Option("--sample", help="Sample GPU use, memory and power every 5 s into LOG.gpu, if NVML or nvidia-smi answers.")
    ] = False,
    append: Annotated[bool, Option("--append", help="Append to a log that exists, as another launch.")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace a log and a receipt that exist.")] = False,
    recover: Annotated[
        Path | None, Option(metavar="LOG", help="Run nothing: write the receipt of a log whose receipt run was killed.")
    ] = None,
    grammar: shared.Grammar = None,
    name: shared.RunName = None,
    lane: shared.Lane = None,
    preset: shared.Preset = None,
    attach: shared.Attach = None,
    stall: shared.Stall = None,
    on_failure: shared.OnFailure = None,
    on_end: shared.OnEnd = None,
    on_stall: shared.OnStall = None,
    quiet: Annotated[bool, Option("-q", "--quiet", help="Print nothing after the run unless something failed.")] = False,
) -> None:
    """Run a training command unchanged; keep its output, and write its receipt when it ends.

    Writes the header (git, GPUs, packages, host) before the command starts, the log while it runs, and the receipt when it
    exits for any reason. Output and signals pass through unchanged. Exits as the command does; 127 or 126 if it cannot be
    started.

    Example: receipt run --log run.log -- python train.py
    """
    if append and overwrite:
        raise UsageError("--append and --overwrite exclude each other")
    if recover is not None:
        if command:
            raise UsageError("--recover runs no command", try_=f"receipt run --recover {recover}")
        _recover(recover, output, quiet)
        return
    if not command:
        raise UsageError("missing argument: COMMAND", try_="receipt run -- COMMAND...")

    hooks = Hooks({"failure": on_failure, "end": on_end, "stall": on_stall}, stall)
    hold_standard_streams()
    gc.enable()  # this may take days
    now = rfc3339_now()
    existing: Existing = "append" if append else "overwrite" if overwrite else "refuse"
    files = Files.beside(log, output) if log is not None else default_files(command, name, now, output)
    check_files(files, existing)
    _check_options(str(files.log), grammar, attach or ())
    left: Note | None = None
    try:
        check_command(command)
        run = {"name": name, "lane": lane, "preset": preset, "started_at": now}
        device = is_device(files.log)
        notes = [] if device else _write_header(files, run, command)
        left = None if device else Note(files.log, _asked(command, now, files, grammar, attach or ()))
        looks: list[Callable[[], None]] = []
        if on_stall is not None and not device:
            looks.append(_Silence(files.log, grammar, hooks).look)
        sampler = None if device or not sample else _sampler(files.log, append, notes)
        if sampler is not None:
            looks.append(sampler.begin)
        beside = None if device or stamp or no_times else files.log.with_name(times_name(files.log.name)).absolute()
        if existing == "overwrite" and not device:
            for old in (samples_name, *((times_name,) if beside is None else ())):
                files.log.with_name(old(files.log.name)).unlink(missing_ok=True)
        kept = Kept(beside, append, stamp)
        ended = run_job(command, open_log(files.log, existing), _end_as, left.path if left is not None else None, looks, kept)
    except NotStarted as error:
        for path in (files.log, files.header) if existing == "refuse" else ():
            path.unlink(missing_ok=True)
        if left is not None:
            left.remove()
        tell(error)
        sys.exit(error.status)
    note(ended.notes)
    if device:
        note([f"{files.log} is not a readable file: no header and no receipt are written"])
    else:
        sampled = None if sampler is None else sampler.end()
        more = () if sampled is None or sampler is None else (f"gpu_samples={sampler.path}",)
        with _reported(files, ended):
            _write_receipt(files, ended, grammar, (*(attach or ()), *more), notes, sampled, quiet=quiet, hooks=hooks)
    if left is not None:
        left.remove()
    _end_as(ended.code)


def _asked(command: Sequence[str], now: str, files: Files, grammar: str | None, attachments: Sequence[str]) -> dict[str, object]:
    """Return the facts for a later receipt: the command with secrets masked, the time, file names and options."""
    return {
        "started_at": now,
        "command": mask_texts(shlex.join(command)),
        "header": files.header.name,
        "receipt": str(files.receipt.absolute()),
        "grammar": grammar,
        "attachments": list(attachments),
    }


def _recover(log: Path, output: Path | None, quiet: bool) -> None:
    """Write the receipt of a log whose ``receipt run`` was killed; facts that only it saw are null. Raises ``ReceiptError``."""
    files = Files.beside(log, output)
    found = find_orphan(log, files.header)
    if found is None:
        why = "there is no note of receipt run beside it" if log.is_file() else "no such log"
        raise InputError("nothing to recover", where=str(log), why=why, try_=f"receipt parse {log}")
    if found.state != "over":
        who = f"receipt run (process {found.pid}) runs" if found.state == "running" else "the command still prints"
        raise UsageError("the job is not over", where=str(log), why=who)
    receipt = output or found.receipt or files.receipt
    if output is None:
        check_new(receipt)
    request = Request(
        path=str(log),
        grammar=found.grammar,
        log_complete=found.log_complete,
        captured={"log_complete": found.log_complete, "log_loss": found.log_loss, "recovered": True},
        attachments=found.attachments,
        header_file=files.header if files.header.is_file() else None,
        environ=dict(os.environ),
    )
    product = _produced(request)
    write_atomically(receipt, canonical_bytes(product.document))
    found.note.unlink(missing_ok=True)
    if not quiet:
        _show(product, log, receipt, ["exit code, wall time and peak memory are unknown: receipt run was killed"])


def _check_options(log: str, grammar: str | None, attachments: Sequence[str]) -> None:
    """Raise the errors that would otherwise come at the end, with the receipt. Raises ``ReceiptError``."""
    site = find_site(log)
    if grammar is not None:
        plan_reading(Options(grammar), site=site)
    for stated in attachments:
        split_attachment(stated)


def _write_header(files: Files, run: dict[str, str | None], command: Sequence[str]) -> list[str]:
    """Write the header of this machine and of the command's Python beside the log; return notes. Raises ``ReceiptError``."""
    document, notes = capture_header(run, Path.cwd(), dict(os.environ), run["started_at"] or "", command=command)
    write_atomically(files.header, canonical_bytes(document))
    return notes


@contextlib.contextmanager
def _reported(files: Files, ended: Ended) -> Iterator[None]:
    """Report an error about the receipt; the exit code stays that of the command."""
    try:
        yield
    except ReceiptError as error:
        tell(error)
        print_line(f"receipt: the log is {files.log}, its header {files.header}")
    except Exception as error:  # a bug of ours, or a broken installation, must not become the exit status of the command
        print_line(f"receipt: error: no receipt: {type(error).__name__}: {error}")
        print_line(f"  the command ended with exit code {ended.code}; its log is {files.log}")
        print_line(f"  try: receipt parse {files.log} --header {files.header}")


def _write_receipt(
    files: Files,
    ended: Ended,
    grammar: str | None,
    attachments: tuple[str, ...],
    notes: Iterable[str],
    sampled: Sampled | None,
    *,
    quiet: bool,
    hooks: Hooks,
) -> None:
    wall_s = round(ended.wall_s, 3)
    loss = ended.loss
    evidence, more = slurm_evidence(os.environ)
    notes = [*notes, *more]
    request = Request(
        path=str(files.log),
        grammar=grammar,
        exit_code=ended.code,
        wall=Wall(wall_s, EVIDENCE),
        log_complete=loss is None,
        captured={
            "finished_at": rfc3339_now(),
            "wall_time_s": wall_s,
            "peak_rss_bytes": ended.peak_rss_bytes,
            "log_complete": loss is None,
            "log_loss": None if loss is None else asdict(loss),
            "sampled": None if sampled is None else sampled._asdict(),
        },
        attachments=attachments,
        evidence=evidence,
        header_file=files.header,
        environ=dict(os.environ),
    )
    product = _produced(request)
    write_atomically(files.receipt, canonical_bytes(product.document))
    hooks.call_at_end(str(files.log), product.document)
    hooks.finish()
    note(hooks.failed)
    if not quiet:
        _show(product, files.log, files.receipt, notes)


def _show(product: Product, log: Path, receipt: Path, notes: Iterable[str]) -> None:
    """Print notes and the card of the run on stderr; the last row names the receipt. A closed stderr is no error."""
    unread = refusal(product.derivation, str(log))
    note(dict.fromkeys([*notes, *product.notes, *([unread.message] if unread is not None else [])]))
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            last = ("receipt", str(receipt))
            sys.stderr.write(render_card(product.document, style(sys.stderr), log=str(log), last=last))


def _sampler(log: Path, append: bool, notes: list[str]) -> Sampler | None:
    """Return what samples this machine into the file beside ``log``; None, and a note, if no GPU answers."""
    look = find_devices(os.environ)
    if look is None:
        notes.append("--sample: neither NVML nor nvidia-smi answers, so nothing is sampled")
        return None
    return Sampler(log.with_name(samples_name(log.name)).absolute(), look, SAMPLE_S, append=append)


class _Silence:
    """Runs ``--on-stall`` once for each long silence of the log."""

    def __init__(self, log: Path, grammar: str | None, hooks: Hooks) -> None:
        self._log, self._grammar, self._hooks = log, grammar, hooks
        self._stalled = False

    def look(self) -> None:
        """Run ``--on-stall`` if the last output is too old. An error here does not reach the command."""
        with contextlib.suppress(Exception):
            silent = time.time() - self._log.stat().st_mtime >= self._hooks.stall_s
            if self._stalled and not silent:
                self._hooks.again("stall", str(self._log))
            if silent and not self._stalled and self._log.stat().st_size:
                request = Request(path=str(self._log), grammar=self._grammar, running=True, environ=dict(os.environ))
                self._hooks.call("stall", str(self._log), _produced(request).document)
            self._stalled = silent


def _produced(request: Request) -> Product:
    """Return the receipt, and leave out attached files that cannot be read. Raises ``ReceiptError``."""
    try:
        return produce(request)
    except UsageError:
        present: list[str] = []
        for stated in request.attachments:
            try:
                read_attachment(stated)
                present.append(stated)
            except UsageError as error:
                note([f"{error.message}: left out ({error.why})"])
        return produce(replace(request, attachments=present))


def _end_as(code: int) -> NoReturn:
    """Exit with the command's exit code, or by its signal, so that the caller sees the same."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # the core is the command's
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        signal.pthread_kill(threading.get_ident(), -code)  # not to the process: another thread waits for signals
    os._exit(code if code >= 0 else 128 - code)
