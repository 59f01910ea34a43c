"""A foreign document → a validated receipt that names its origin."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from receipt_cli.derive import Derivation
from receipt_cli.documents.validate import validate_document
from receipt_cli.errors import UsageError
from receipt_cli.events.streams import FileFacts, LogFacts
from receipt_cli.header.document import merge
from receipt_cli.header.values import text
from receipt_cli.importers.derive import derive_import
from receipt_cli.importers.formats import check_format, read_format
from receipt_cli.importers.model import ForeignRun
from receipt_cli.importers.text import Document, read_beside, read_document
from receipt_cli.receipts.assembly import assemble
from receipt_cli.receipts.production import InvalidReceipt, read_attachment
from receipt_cli.receipts.versions import SCHEMA_VERSION
from receipt_cli.redaction.mask import count_masks
from receipt_cli.redaction.text import mask_texts, safe_text

RULES = "import/1"
"""Version of everything in code that decides what an import derives; the producer's own steady window carries it too."""
_MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class Imported:
    """A valid receipt and what it was derive_importd from."""

    document: dict[str, Any]
    derivation: Derivation

    @property
    def series(self) -> Mapping[str, Sequence[float]]:
        """Values of the primary phase's metrics in step order, where the document holds them."""
        primary = self.derivation.primary
        return self.derivation.summaries[primary].series if primary is not None else {}


def import_document(
    path: str,
    *,
    wanted: str | None = None,
    name: str | None = None,
    lane: str | None = None,
    preset: str | None = None,
    attachments: Sequence[str] = (),
) -> Imported:
    """Return the receipt of the run that the document at ``path`` (``-``: stdin) is of.

    ``wanted`` is the format that it must be in; by default it is recognised. ``attachments`` are ``kind=uri``, beside those
    that the document names. Raises ``InputError`` for a document that
    cannot be read, ``UnknownFormat`` for one that nobody knows, and ``UsageError`` for options that no receipt can hold.
    """
    check_format(wanted)
    stated = _stated({"name": name, "lane": lane, "preset": preset})
    attached = [read_attachment(attachment) for attachment in attachments]
    document = read_document(path)
    foreign = read_format(document, partial(read_beside, path), wanted)
    derivation = derive_import(foreign, _log_facts(document, foreign))
    run = {key: value for key, value in foreign.run.items() if value is not None}
    masked = {key: _run_text(value) if isinstance(value, str) else value for key, value in run.items()}
    header = mask_texts(merge(foreign.header))
    attached = [*mask_texts(foreign.attachments), *attached]
    receipt = assemble(derivation, run={**masked, **stated}, header=header, attachments=attached)
    made = _named(receipt, foreign)
    findings = [finding for finding in validate_document(made) if finding.severity == "error"]
    if findings:
        raise InvalidReceipt("made an invalid receipt", why=f"{findings[0].pointer}: {findings[0].reason}", where=document.name)
    return Imported(made, derivation)


def _log_facts(document: Document, foreign: ForeignRun) -> LogFacts:
    """Return what was read, the document first; of several files the digest is of their digests."""
    records = foreign.matched + foreign.ignored + foreign.unmatched
    if not foreign.beside:
        return LogFacts(document.sha256, document.size_bytes, document.line_count, records)
    read = [document, *sorted(foreign.beside, key=lambda file: file.name)]
    names = [foreign.name, *(file.name for file in read[1:])]
    files = tuple(FileFacts(n, None, f.sha256, f.size_bytes, f.line_count) for n, f in zip(names, read, strict=True))
    digest = hashlib.sha256("".join(f"{file.sha256}\n" for file in read).encode("ascii")).hexdigest()
    return LogFacts(digest, sum(f.size_bytes for f in read), sum(f.line_count for f in read), records, files)


def _named(receipt: Mapping[str, Any], foreign: ForeignRun) -> dict[str, Any]:
    """Return the receipt with its origin: what was read, and by which rules; keys in schema order."""
    origin = {
        "kind": "import",
        "format": foreign.format,
        "format_version": _short(foreign.format_version, 100),
        "producer": _short(foreign.producer, _MAX_TEXT),
    }
    derivation: dict[str, Any] = {}
    for key, value in receipt["derivation"].items():
        derivation[key] = RULES if key == "rules" else value
        if key == "log":
            derivation["origin"] = origin
    told = {key: value for key, value in derivation.items() if key != "redactions"}
    derivation["redactions"] = count_masks(receipt["phases"], receipt["failure"], told)
    made = {**receipt, "schema_version": SCHEMA_VERSION, "derivation": derivation}
    if foreign.declared and not foreign.events:
        for summary in [made["summary"], *(phase["summary"] for phase in made["phases"])]:
            summary["steady_state"]["rule"] = RULES
    return made


def _short(value: str | None, limit: int) -> str | None:
    return (safe_text(value, limit) or None) if value is not None else None


def _run_text(value: str) -> str | None:
    """Return a text of the document fit for the captured part, or None where nothing of it is left."""
    return safe_text(value) or None


def _stated(options: Mapping[str, str | None]) -> dict[str, str]:
    stated: dict[str, str] = {}
    for key, value in options.items():
        if value is not None:
            try:
                stated[key] = text(value)
            except ValueError as error:
                raise UsageError(f"--{key} {error}", why=ascii(value)[:_MAX_TEXT]) from error
    return stated
