"""Work of a batch worker: identify a log, derive its receipt and store it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from receipt_cli.authoring.site_files import load_site
from receipt_cli.batch.discovery import local_stamp, reason_of
from receipt_cli.batch.model import Change, Failure, Identity, InTwoParts, LeftOut, Log, Manner, Reason, Report, Task
from receipt_cli.batch.pool import FLUSHER
from receipt_cli.batch.remote import fetched, is_url
from receipt_cli.definitions.accelerators import load_peaks
from receipt_cli.definitions.search_path import Folder
from receipt_cli.derive import Derivation, Options, Reading, read_log
from receipt_cli.documents.canonical import canonical_bytes, is_touched, run_id
from receipt_cli.documents.diff import Difference, differences
from receipt_cli.documents.validate import has_errors, validate_bytes
from receipt_cli.errors import DataError, ExitCode, InputError, ReceiptError
from receipt_cli.grammar.catalog import list_grammars, read_entry
from receipt_cli.grammar.site import NO_SITE, Site
from receipt_cli.header.collect import collect_header, renew_log_facts
from receipt_cli.header.document import log_facts
from receipt_cli.header.header_file import read_header_file
from receipt_cli.io.atomic import make_folder
from receipt_cli.io.compression import header_name, receipt_names, samples_name, times_name, unpacked
from receipt_cli.io.discovery import is_log_text, read_head
from receipt_cli.io.source import Source, Stream
from receipt_cli.receipts.assembly import DERIVED, Document, assemble, derived_part
from receipt_cli.receipts.production import require_valid
from receipt_cli.receipts.series_file import write_series
from receipt_cli.receipts.stated import header_facts
from receipt_cli.receipts.versions import RULES, SCHEMA_VERSION
from receipt_cli.redaction.text import mask_texts
from receipt_cli.scan.arrivals import find_arrivals
from receipt_cli.store.files import Store
from receipt_cli.store.index import keep_rows
from receipt_cli.store.places import place_bytes, write_place


@dataclass(frozen=True, slots=True)
class Captured:
    """Captured parts for a new receipt: from an ``old`` receipt, a header ``file``, or neither.

    ``current`` is the receipt in the store, if any.
    """

    options: Options
    old: Document | None = None
    file: Document | None = None
    current: Document | None = None
    notes: tuple[str, ...] = ()

    def assemble(self, derivation: Derivation, *, last: bool = True) -> tuple[Document, tuple[str, ...]]:
        """Return the receipt of ``derivation`` with the captured parts, and notes.

        The captured exit code belongs only to the ``last`` run of a log. Captured parts of an old receipt are kept, but header
        values from the log are read anew; if the parts were changed after they were written, their old digest still shows it.
        Without an old receipt the header comes from the header file and the log; this process's environment is not the run's
        and is not read. Raises ``InputError`` for an unusable header file.
        """
        if self.old is not None:
            header = mask_texts(renew_log_facts(self.old["header"], log_facts(derivation.facts)[0]))
            run = self.old["run"] if last else {**self.old["run"], "exit_code": None}
            evidence = self.old.get("evidence", ()) if last else ()
            document = assemble(derivation, run=run, header=header, attachments=self.old["attachments"], evidence=evidence)
            return document | ({"captured_sha256": self.old["captured_sha256"]} if is_touched(self.old) else {}), self.notes
        from_log, notes = log_facts(derivation.facts)
        header, more = collect_header(environ={}, header_file=self.file, log_facts=from_log, here=None, now=None)
        run = self.file["run"] if self.file is not None else {}
        run = run if last else {**run, "exit_code": None}
        return assemble(derivation, run=run, header=mask_texts(header)), (*self.notes, *notes, *more)


def captured(store: Store, sha256: str, beside: Sequence[str]) -> Captured:
    """Return the captured parts for the log with this digest; ``beside`` are all paths of its bytes.

    The current receipt in the store comes first, then a receipt beside one of the paths, then a header file, each from the first
    path that has one. Raises ``DataError`` if the stored receipt cannot be read, so that no captured part is lost, and
    ``InputError`` for a broken header file.
    """
    data = store.current(sha256)
    if data is not None:
        stored = _receipt(data)
        if stored is None:
            why = "its captured parts would be lost"
            raise DataError("the receipt in the store is damaged, or of a newer version", why=why)
        return Captured(Options.recorded(stored["derivation"]["options"]), old=stored, current=stored)
    notes: list[str] = []
    for path in beside:
        for name in receipt_names(os.path.basename(path)):
            old = _sibling(Path(path).with_name(name), sha256, notes)
            if old is not None:
                return Captured(Options.recorded(old["derivation"]["options"]), old=old, notes=tuple(notes))
    for path in beside:
        header = Path(path).with_name(header_name(os.path.basename(path)))
        if os.path.isfile(header):  # False for a name that is too long
            file = read_header_file(header)
            return Captured(Options(facts=header_facts(file["header"])), file=file, notes=tuple(notes))
    return Captured(Options(), notes=tuple(notes))


def _sibling(path: Path, sha256: str, notes: list[str]) -> Document | None:
    """Return the receipt at ``path`` if it is of the log with this digest."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # no file can have such a long name
            return None
        raise InputError("cannot read the receipt beside the log", why=error.strerror or str(error)) from error
    receipt = _receipt(data)
    if receipt is None:
        notes.append(f"{path.name} beside the log is not a valid receipt: skipped")
    elif receipt["derivation"]["log"]["sha256"] != sha256:
        notes.append(f"{path.name} beside the log belongs to another log: skipped")
    else:
        return receipt
    return None


def _receipt(data: bytes) -> Document | None:
    """Return the valid receipt in ``data`` if its version is known here, else None."""
    try:
        findings = validate_bytes(data, "")
        if has_errors(findings) or any(finding.rule == "newer_minor" for finding in findings):
            return None
    except ReceiptError:
        return None
    document: Document = json.loads(data)
    return document if document["schema_version"].startswith("receipt/") else None


MANNER = Manner()
_OFTEN_EMPTY = (".err", "")
"""Suffixes of files that many jobs leave empty; an empty one is not a log."""


@cache
def definitions_fingerprint(manner: Manner = MANNER) -> str:
    """Return 16 hex digits of all that determines the receipts of a log: rules, schema version, definitions, manner.

    Raises ``DataError``, and ``UsageError`` for a malformed grammar name.
    """
    site = _site(manner.folders)
    parts = [f"{RULES} {SCHEMA_VERSION} {site.catalogue.sha256} {site.registry.sha256} {load_peaks().sha256}"]
    parts += [f"{e.ref} {e.status} {hashlib.sha256(read_entry(e)).hexdigest()}" for e in list_grammars()]
    parts += [f"{grammar.ref} {grammar.sha256}" for grammar in site.grammars]
    if manner.grammar is not None:
        forced = site.find(manner.grammar)
        parts.append(f"only {forced.ref} {forced.sha256}")
    parts.append(f"{'every run' if manner.all_runs else 'last run'}{', series' if manner.series else ''}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _site(folders: tuple[Folder, ...]) -> Site:
    """Return the definitions in ``folders``, loaded once per process."""
    return load_site(folders) if folders else NO_SITE


def identify(log: Log) -> Identity | Failure | LeftOut:
    """Return the identity of a log's bytes, ``LeftOut`` for a folder's file that is no log, or the failure."""
    try:
        with _at_hand(log, ()) as path:
            return _identify(log, path)
    except (ReceiptError, OSError) as error:
        return _failure(error)


def _identify(log: Log, path: str) -> Identity | LeftOut:
    with open(path, "rb") as file:
        head = read_head(file)
    reason = _no_log(log, head)
    if reason is not None:
        return LeftOut(log.name, reason)
    source = Source(path).measure()
    if not source.size_bytes:
        raise InputError("the log is empty")
    steady = is_url(log.path) or local_stamp(os.stat(path)) == log.stamp
    return Identity(source.sha256, source.size_bytes, steady)


def _no_log(log: Log, head: bytes) -> Reason | None:
    """Return why a file with this ``head`` is not a log, or None. Of named files only our own documents are refused."""
    document = reason_of(head)
    if document is not None or log.named:
        return document
    if not head:
        return "empty" if PurePath(unpacked(log.name)).suffix in _OFTEN_EMPTY else None
    return None if is_log_text(head) else "script" if head.startswith(b"#!") else "binary"


@InTwoParts
def derive_receipt(task: Task) -> Generator[None, None, Report | Failure]:
    """Derive the receipt of a task's bytes, flush its files, and store it, or only compare it with the one in the store.

    Every error is returned as an answer, so that one log never stops the others.
    """
    try:
        if definitions_fingerprint(task.manner) != task.definitions:
            why = "this worker has other grammars, schemas or rules than the batch's main machine"
            return Failure(int(ExitCode.DATA), "definitions differ", why, fatal=True)
        if not task.compare and not Path(task.store).is_dir():
            return Failure(int(ExitCode.OUTPUT), "a worker cannot find the store", f"no folder {task.store}", fatal=True)
        made = _derive_any(task)
        if task.compare:
            return made.report
        store = Store(Path(task.store))
        places = [place_bytes(made.log.sha256, place) for place in task.places]
        with FLUSHER.written(store.scratch, [] if made.known else [*made.contents, *places]):
            yield
            return _stored(store, task, made)
    except MemoryError:
        raise  # the process is unusable; the pool retries with a fresh one
    except (ReceiptError, OSError) as error:
        return _failure(error)
    except Exception as error:  # a bug must cost only one receipt
        where = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"
        return Failure(int(ExitCode.BUG), "internal error", why[:500])


@dataclass(frozen=True, slots=True)
class _Made:
    """Receipts of a log's runs, their bytes, whether the store had one, the log, and the report before they are stored."""

    documents: Sequence[Document]
    contents: Sequence[bytes]
    known: bool
    log: Identity
    report: Report


def _derive_any(task: Task) -> _Made:
    """Derive from the first path that still has the task's bytes; if none has, from a copy of the first."""
    unread: Exception | None = None
    changed: Log | None = None
    for log in task.logs:
        try:
            derived = _derive_at(task, log)
        except (InputError, OSError) as error:
            unread = unread or error
            continue
        if derived is not None:
            return derived
        changed = changed or log
    if changed is not None:
        return _derive_copy(task, changed)
    assert unread is not None
    raise unread


def _derive_at(task: Task, log: Log) -> _Made | None:
    """Derive from the file at one path; None if it no longer contains the task's bytes."""
    with _at_hand(log, _siblings(log)) as path:
        beside = [path] if is_url(log.path) else [other.path for other in task.logs if not is_url(other.path)]
        kept = captured(Store(Path(task.store)), task.sha256, beside)
        reading = _read(path, kept.options, task.manner)
        return _make(task, kept, reading) if reading.gathered.log.sha256 == task.sha256 else None


def _derive_copy(task: Task, log: Log) -> _Made:
    """Derive from a copy of a file that is being written to, so that digest and receipt cover the same bytes."""
    with _at_hand(log, _siblings(log)) as path, TemporaryDirectory(prefix="receipt-") as folder:
        copy = os.path.join(folder, os.path.basename(path))
        shutil.copyfile(path, copy)
        for beside in (times_name(os.path.basename(path)), samples_name(os.path.basename(path))):
            with suppress(FileNotFoundError):
                shutil.copyfile(os.path.join(os.path.dirname(path), beside), os.path.join(folder, beside))
        kept = captured(Store(Path(task.store)), Source(copy).measure().sha256, [path])
        reading = _read(copy, kept.options, task.manner)
        size = reading.gathered.log.size_bytes
        return _make(task, kept, reading, f"the log is being written to: the receipt covers its first {size} bytes")


def _read(path: str, options: Options, manner: Manner) -> Reading:
    source = Source(path)
    try:
        source.listener = find_arrivals(path)
        streams = [Stream((source,), (os.path.basename(path),))]
        options = replace(options, grammar=manner.grammar or options.grammar)
        return read_log(streams, options, workers=1, site=_site(manner.folders), one_of_many=True)
    finally:
        source.close()


def _make(task: Task, kept: Captured, reading: Reading, *more: str) -> _Made:
    """Assemble and check the receipts of the runs; with ``compare``, compare the last one."""
    count = len(reading.launches)
    derivations = [reading.derivation(number) for number in (range(count) if task.manner.all_runs else [count - 1])]
    documents: list[Document] = []
    notes: tuple[str, ...] = ()
    for derivation in derivations:
        document, notes = kept.assemble(derivation, last=derivation is derivations[-1])
        require_valid(document, "receipt")
        documents.append(document)
    changes: tuple[Difference, ...] = ()
    if task.compare:
        parts = [derived_part(document, DERIVED) for document in (kept.current, documents[-1]) if document]
        changes = tuple(differences(*parts)) if kept.current else ()
    elif task.manner.series:
        for document, derivation in zip(documents, derivations, strict=True):
            path = Path(task.store) / "series" / derivation.log.sha256[:2] / f"{run_id(document)}.parquet"
            make_folder(path.parent)
            write_series(derivation, path)
    log = Identity(derivations[-1].log.sha256, derivations[-1].log.size_bytes)
    change: Change = "written" if not kept.current else "replaced" if changes else "unchanged"
    report = Report(task.logs[0], change, log, "", bool(derivations[-1].detection.chosen), True, notes=(*notes, *more))
    report = replace(report, differences=changes, runs=len(documents))
    return _Made(documents, [canonical_bytes(document) for document in documents], kept.current is not None, log, report)


def _stored(store: Store, task: Task, made: _Made) -> Report:
    log = made.log.sha256
    add = store.add_runs(made.documents, made.contents) if task.manner.all_runs else store.add(made.documents[-1])
    for place in task.places:
        write_place(store.root, store.scratch, log, place)
    if add.change != "unchanged":
        keep_rows(store, log, made.documents, made.contents)
    return replace(made.report, change=add.change, receipt=add.path)


def _siblings(log: Log) -> list[str]:
    name = os.path.basename(log.path)
    return [*receipt_names(name), header_name(name), times_name(name), samples_name(name)]


@contextmanager
def _at_hand(log: Log, siblings: Sequence[str]) -> Iterator[str]:
    """Yield a local path of the log. Raises ``FileNotFoundError`` if there is none."""
    if is_url(log.path):
        with fetched(log.path, siblings) as path:
            yield path
    else:
        os.stat(log.path)
        yield log.path


def _failure(error: ReceiptError | OSError) -> Failure:
    if isinstance(error, FileNotFoundError) or isinstance(error.__cause__, FileNotFoundError):
        return Failure(int(ExitCode.INPUT), "no such log", "", gone=True)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):  # while writing a temporary copy
        return Failure(int(ExitCode.OUTPUT), "cannot write", error.strerror or str(error), fatal=True)
    if isinstance(error, OSError):
        return Failure(int(ExitCode.INPUT), "cannot read the log", error.strerror or str(error))
    failure = Failure.of(error)
    if isinstance(error, DataError) and isinstance(error.__cause__, OSError):  # a file of this package, not the log
        return replace(failure, fatal=True)
    return failure
