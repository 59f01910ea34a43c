"""Work of a batch worker: identify a log, derive its receipt and store it."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from receipt_cli.batch.captured import Captured, captured
from receipt_cli.batch.discovery import local_stamp
from receipt_cli.batch.model import Derived, Failure, Identity, LeftOut, Log, Task
from receipt_cli.batch.remote import fetched, is_url
from receipt_cli.definitions.accelerators import load_peaks
from receipt_cli.definitions.search_path import Folder
from receipt_cli.derive import Derivation, Options, read_log
from receipt_cli.documents.diff import Difference, differences
from receipt_cli.documents.validate import validate_document
from receipt_cli.errors import DataError, ExitCode, InputError, ReceiptError
from receipt_cli.grammar.catalog import list_grammars, read_entry
from receipt_cli.grammar.site import NO_SITE, Site
from receipt_cli.io.beside import header_name, receipt_names
from receipt_cli.io.compression import unpacked
from receipt_cli.io.discovery import HEAD_BYTES, is_log_text
from receipt_cli.io.source import Source, Stream
from receipt_cli.receipts.assembly import DERIVED, Document
from receipt_cli.receipts.production import InvalidReceipt
from receipt_cli.receipts.versions import RULES, SCHEMA_VERSION
from receipt_cli.store.files import Outcome, Store

_OFTEN_EMPTY = (".err", "")
"""Suffixes of files that many jobs leave empty; empty ones are not logs."""


@cache
def definitions_fingerprint(folders: tuple[Folder, ...] = ()) -> str:
    """Return 16 hex digits of the rules, the schema version and the bytes of every definition, also of those in ``folders``.

    Raises ``DataError``.
    """
    site = _site(folders)
    parts = [f"{RULES} {SCHEMA_VERSION} {site.catalogue.sha256} {site.registry.sha256} {load_peaks().sha256}"]
    parts += [f"{e.ref} {e.status} {hashlib.sha256(read_entry(e)).hexdigest()}" for e in list_grammars()]
    parts += [f"{grammar.ref} {grammar.sha256}" for grammar in site.grammars]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _site(folders: tuple[Folder, ...]) -> Site:
    """Return the definitions in ``folders``, which are loaded once a process."""
    if not folders:
        return NO_SITE
    from receipt_cli.authoring.site_files import load_site

    return load_site(folders)


def identify(log: Log) -> Identity | Failure | LeftOut:
    """Return the digest of a log's bytes; that it is none, for a file of a folder that does not look like one; or why not."""
    try:
        with _at_hand(log, ()) as path:
            return _identify(log, path)
    except (ReceiptError, OSError) as error:
        return _failure(error)


def _identify(log: Log, path: str) -> Identity | LeftOut:
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    empty = not head
    if not log.named and (PurePath(unpacked(log.name)).suffix in _OFTEN_EMPTY if empty else not is_log_text(head)):
        return LeftOut()
    identity = _digest(path)
    if not identity.size_bytes:
        raise InputError("the log is empty")
    steady = is_url(log.path) or local_stamp(os.stat(path)) == log.stamp
    return Identity(identity.sha256, identity.size_bytes, steady)


def _digest(path: str) -> Identity:
    source = Source(path)
    try:
        for _ in source.blocks():
            pass
    finally:
        source.close()
    return Identity(source.sha256, source.size_bytes)


def derive_receipt(task: Task) -> Derived | Failure:
    """Derive the receipt of a task's bytes and store it, or only compare it with the one that the store has.

    Every error is returned as an answer, so that one log never stops the others.
    """
    try:
        if definitions_fingerprint(task.folders) != task.definitions:
            why = "this worker has other grammars, schemas or rules than the machine that leads the batch"
            return Failure(int(ExitCode.DATA), "definitions differ", why, fatal=True)
        if not task.compare and not Path(task.store).is_dir():
            return Failure(int(ExitCode.OUTPUT), "a worker cannot find the store", f"no folder {task.store}", fatal=True)
        return _derive_any(task)
    except MemoryError:
        raise  # the process is unusable: the pool retries with a fresh one
    except (ReceiptError, OSError) as error:
        return _failure(error)
    except Exception as error:  # a bug, which must cost one receipt only
        where = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"
        return Failure(int(ExitCode.BUG), "internal error", why[:500])


def _derive_any(task: Task) -> Derived:
    """Derive from the first path that contains the task's bytes; if none does any more, from a copy of the first."""
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


def _derive_at(task: Task, log: Log) -> Derived | None:
    """Derive from the file of one path; None if it no longer contains the task's bytes."""
    with _at_hand(log, _siblings(log)) as path:
        beside = [path] if is_url(log.path) else [other.path for other in task.logs if not is_url(other.path)]
        kept = captured(Store(Path(task.store)), task.sha256, beside)
        derivation = _derivation(path, kept.options, _site(task.folders))
        return _deliver(task, kept, derivation) if derivation.log.sha256 == task.sha256 else None


def _derive_copy(task: Task, log: Log) -> Derived:
    """Derive from a copy of a file that is being written to: its digest and its receipt are to be of the same bytes."""
    with _at_hand(log, _siblings(log)) as path, TemporaryDirectory(prefix="receipt-") as folder:
        copy = os.path.join(folder, os.path.basename(path))
        shutil.copyfile(path, copy)
        kept = captured(Store(Path(task.store)), _digest(copy).sha256, [path])
        derivation = _derivation(copy, kept.options, _site(task.folders))
        size = derivation.log.size_bytes
        return _deliver(task, kept, derivation, f"the log is being written to: the receipt is of its first {size} bytes")


def _derivation(path: str, options: Options, site: Site) -> Derivation:
    source = Source(path)
    try:
        streams = [Stream((source,), (os.path.basename(path),))]
        return read_log(streams, options, workers=1, site=site, one_of_many=True).derivation()
    finally:
        source.close()


def _deliver(task: Task, kept: Captured, derivation: Derivation, *more: str) -> Derived:
    """Assemble, check and store the receipt, or compare it."""
    document, notes = kept.assemble(derivation)
    wrong = next((f for f in validate_document(document) if f.severity == "error"), None)
    if wrong is not None:
        raise InvalidReceipt("produced an invalid receipt", why=f"{wrong.pointer}: {wrong.reason}")
    changes: tuple[Difference, ...] = ()
    if task.compare:
        changes = tuple(differences(_derived_part(kept.current), _derived_part(document))) if kept.current else ()
        outcome = Outcome("written" if not kept.current else "replaced" if changes else "unchanged", "")
    else:
        outcome = Store(Path(task.store)).add(document)
    log, known = derivation.log, bool(derivation.detection.chosen)
    return Derived(log.sha256, log.size_bytes, outcome.change, outcome.path, known, (*notes, *more), changes)


def _derived_part(document: Document) -> Document:
    """Return the derived parts, without the version of the tool, which is not a fact of the run."""
    part = {key: document[key] for key in DERIVED}
    return {**part, "derivation": {key: value for key, value in part["derivation"].items() if key != "tool_version"}}


def _siblings(log: Log) -> list[str]:
    name = os.path.basename(log.path)
    return [*receipt_names(name), header_name(name)]


@contextmanager
def _at_hand(log: Log, siblings: Sequence[str]) -> Iterator[str]:
    """Give the path of a log that can be opened here. Raises ``FileNotFoundError`` where there is none."""
    if is_url(log.path):
        with fetched(log.path, siblings) as path:
            yield path
    else:
        os.stat(log.path)
        yield log.path


def _failure(error: ReceiptError | OSError) -> Failure:
    if isinstance(error, FileNotFoundError) or isinstance(error.__cause__, FileNotFoundError):
        return Failure(int(ExitCode.INPUT), "no such log", "", gone=True)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):  # of a temporary copy
        return Failure(int(ExitCode.OUTPUT), "cannot write", error.strerror or str(error), fatal=True)
    if isinstance(error, OSError):
        return Failure(int(ExitCode.INPUT), "cannot read the log", error.strerror or str(error))
    failure = Failure.of(error)
    if isinstance(error, DataError) and isinstance(error.__cause__, OSError):  # a file of this package, not the log
        return replace(failure, fatal=True)
    return failure
