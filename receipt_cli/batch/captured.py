"""Captured parts of a run (header, exit code, attachments) for a new receipt: from the store, or from files beside the log."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from receipt_cli.derive import Derivation, Options
from receipt_cli.documents.canonical import is_touched
from receipt_cli.documents.validate import has_errors, validate_bytes
from receipt_cli.errors import DataError, InputError, ReceiptError
from receipt_cli.header.collect import collect_header, renew_log_facts
from receipt_cli.header.from_log import log_facts
from receipt_cli.header.header_file import read_header_file
from receipt_cli.io.compression import header_name, receipt_names
from receipt_cli.receipts.assembly import Document, assemble
from receipt_cli.receipts.stated import header_facts
from receipt_cli.redaction.text import mask_texts
from receipt_cli.store.files import Store


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
        return Captured(_options(stored), old=stored, current=stored)
    notes: list[str] = []
    for path in beside:
        for name in receipt_names(os.path.basename(path)):
            old = _sibling(Path(path).with_name(name), sha256, notes)
            if old is not None:
                return Captured(_options(old), old=old, notes=tuple(notes))
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


def _options(receipt: Mapping[str, Any]) -> Options:
    return Options.recorded(receipt["derivation"]["options"])
