"""Produce a validated receipt from a log and the captured facts of its job."""

from __future__ import annotations

import hashlib
import json
import sys
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

from receipt_cli.analysis.goodput.model import Wall
from receipt_cli.analysis.stated import JobEnd, StatedFact
from receipt_cli.authoring.site_search import find_site
from receipt_cli.derive import Derivation, Options, Reading, read_log
from receipt_cli.documents.invariants.evidence import contradictions
from receipt_cli.documents.validate import has_errors, validate_bytes, validate_document
from receipt_cli.errors import GrammarChoiceError, InputError, ReceiptError, UsageError, system_errors
from receipt_cli.events.file_order import SeveralRuns
from receipt_cli.events.table import Series
from receipt_cli.header.collect import collect_header
from receipt_cli.header.document import log_facts
from receipt_cli.header.header_file import header_document, read_header_file
from receipt_cli.header.values import TIMESTAMP_FORMAT, text
from receipt_cli.io.compression import samples_name, times_name
from receipt_cli.io.discovery import arrange, find_logs
from receipt_cli.io.source import Progress, Source, Stream
from receipt_cli.receipts.assembly import Document, assemble
from receipt_cli.receipts.prices import add_price
from receipt_cli.receipts.stated import header_facts, merge_facts
from receipt_cli.redaction.mask import count_masks, mask_secrets
from receipt_cli.redaction.text import mask_texts, safe_text
from receipt_cli.scan.arrivals import Arrivals, find_arrivals
from receipt_cli.scan.workers import AUTO

ARTEFACTS = ("torch_profile", "kernel_table", "kernel_report")
"""Facts of a log that are file paths: traces, kernel tables and kernel reports."""


@dataclass(frozen=True, slots=True)
class Request:
    """The log of a run, and the options of ``receipt parse``."""

    path: str
    more: tuple[str, ...] = ()
    """Further files of the same run; each, and ``path`` too, may be a folder."""
    grammar: str | None = None
    exit_code: int | None = None
    wall: Wall | None = None
    facts: tuple[StatedFact, ...] = ()
    """Facts of the run stated by the caller (``receipts.stated.read_facts``)."""
    log_complete: bool | None = None
    """Whether the job's wrapper wrote the whole log; None without a wrapper."""
    running: bool = False
    """Whether the job may still be running."""
    times: bool = True
    """Whether the file of times beside the log counts, if its lines have no stamps."""
    captured: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ``run`` that the job's wrapper measured."""
    name: str | None = None
    lane: str | None = None
    preset: str | None = None
    attachments: Sequence[str] = ()
    evidence: Sequence[Mapping[str, Any]] = ()
    """Records of schedulers about the job: entries of a receipt's ``evidence``."""
    header_file: Path | None = None
    here: Path | None = None
    workers: int | None = None
    progress: Progress | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    now: str | None = None


class Product(NamedTuple):
    """A valid receipt, its derivation, and notes for the user."""

    document: Document
    derivation: Derivation
    notes: tuple[str, ...]

    @property
    def series(self) -> Series:
        """Values of the primary phase's metrics in step order."""
        primary = self.derivation.primary
        return self.derivation.summaries[primary].series if primary is not None else Series()

    @property
    def clean(self) -> bool:
        """Whether the log has steps, and no problems, near misses or dropped cells."""
        derivation = self.derivation
        quiet = not derivation.problems[0] and not derivation.near_misses[0] and not derivation.ledger.dropped
        return quiet and derivation.checks.get("has_steps") is True


class InvalidReceipt(ReceiptError):
    """The program made a document that its own validator refuses: a bug; the document is not written."""


def produce(request: Request) -> Product:
    """Return the valid receipt of the last run in the log. Raises ``ReceiptError``."""
    return next(_produce(request, every=False))


def produce_all(request: Request) -> Iterator[Product]:
    """Yield the valid receipt of every run in the log or files. Raises ``ReceiptError``."""
    return _produce(request, every=True)


def _produce(request: Request, every: bool) -> Iterator[Product]:
    def read(options: Options, notes: list[str]) -> Iterator[Reading]:
        paths, left_out = find_paths([request.path, *request.more])
        notes += [f"{left_out} {'file looks' if left_out == 1 else 'files look'} like no log: left out"] if left_out else []
        return _read(request, options, open_streams(paths, progress=request.progress, times=request.times), every, notes)

    return produce_from(request, read, every=every)


def produce_from(
    request: Request, read: Callable[[Options, list[str]], Iterable[Reading]], *, every: bool = False
) -> Iterator[Product]:
    """Yield the receipt of the last run of each reading that ``read`` yields; with ``every``, of all its runs.

    ``read`` gets the options of the derivation and a list to add notes to; it is called after the rest of the request was
    checked. Raises ``ReceiptError``.
    """
    captured = None if request.header_file is None else read_header_file(request.header_file)
    attachments = [read_attachment(text) for text in request.attachments]
    run = mask_texts(dict(captured["run"])) if captured is not None else {}
    run |= {**_declared(request), **request.captured}
    options, notes = _options(request, captured)
    for reading in read(options, notes):
        count = len(reading.launches)
        numbers = range(count) if every else [count - 1]
        if count > 1 and not every:
            line = reading.launches[-1].line
            notes.append(f"the log has {count} runs; this is the last, from line {line} on: --all-runs writes a receipt for each")
        for number in numbers:
            last = number == count - 1
            mine = run if last else {**run, "exit_code": None}
            yield _product(request, reading.derivation(number), captured, mine, attachments, notes, last)


def find_paths(given: Sequence[str]) -> tuple[list[str], int]:
    """Return the result of ``find_logs``. Raises ``InputError``, and ``UsageError`` for stdin among several paths."""
    paths, left_out = find_logs(given)
    if "-" in paths and len(paths) > 1:
        raise UsageError("- must be the only file", why="stdin has no name to order it among other files")
    return paths, left_out


def open_streams(
    paths: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    progress: Progress | None = None,
    times: bool = True,
    samples: bool = True,
) -> list[Stream]:
    """Return the streams of a log's files; ``names`` as for ``arrange``.

    With ``times``, a single file takes the times of its records from the file beside it, if there is one, and with ``samples``
    what the GPUs did. Raises ``InputError``.
    """
    if len(paths) == 1:
        source = Source(paths[0], progress)
        source.listener = find_arrivals(paths[0], samples=samples) if times else None
        return [Stream((source,), (Path(paths[0]).name,))]
    streams: list[Stream] = []
    for files in arrange(paths, names):
        parts = tuple(Source(file.path, later=True) for file in files)
        streams.append(Stream(parts, tuple(f.name for f in files), files[0].rank, files[0].certain, files[0].attempt))
    return streams


def times_note(streams: Sequence[Stream]) -> list[str]:
    """Return a note if the file of times beside a log that was read does not fit it."""
    heard = [part.listener for stream in streams for part in stream.parts]
    return [f"{one.name} is not used: {one.problem}" for one in heard if isinstance(one, Arrivals) and not one.fits]


def missing_notes(streams: Sequence[Stream], *, times: bool, samples: bool) -> list[str]:
    """Return a note for the first file beside a log that a receipt depends on and that is not there."""
    part = streams[0].parts[0]
    if times and part.listener is None:
        return [f"{times_name(part.path)} is missing: the receipt has its times from that file"]
    if samples and isinstance(part.listener, Arrivals) and part.listener.samples is None:
        return [f"{samples_name(part.path)} is missing: the receipt has the idle time of its GPUs from that file"]
    return []


def _options(request: Request, captured: Document | None) -> tuple[Options, list[str]]:
    """Return the options of the derivation, including facts stated by the job's header, and notes."""
    header, _ = collect_header(environ=request.environ, header_file=captured, log_facts=(), here=None, now=None)
    facts, notes = merge_facts(request.facts, header_facts(mask_texts(header)))
    job = JobEnd.of(request.evidence)
    return Options(request.grammar, request.exit_code, request.wall, request.log_complete, facts, request.running, job), notes


def _read(request: Request, options: Options, streams: Sequence[Stream], every: bool, notes: list[str]) -> Iterator[Reading]:
    """Yield the reading of the streams; with ``every``, one for each run if they belong to several.

    Adds the site's notes to ``notes``.
    """
    try:
        site = find_site(request.path)
        notes += site.notes
        reading = read_log(streams, options, workers=request.workers, site=site)
        notes += times_note(streams)
        yield reading
    except UsageError as error:
        if not every or not isinstance(error, SeveralRuns):
            raise
        for group in error.groups:
            again = [replace(s, parts=tuple(Source(p.path, later=True) for p in s.parts)) for s in (streams[n] for n in group)]
            yield read_log(again, options, workers=request.workers, site=site)
    finally:
        for part in (part for stream in streams for part in stream.parts):
            part.close()


def _product(
    request: Request,
    derivation: Derivation,
    captured: Document | None,
    run: Mapping[str, Any],
    attachments: Sequence[Mapping[str, Any]],
    notes: Sequence[str],
    last: bool,
) -> Product:
    from_log, log_notes = log_facts(derivation.facts)
    header, more = collect_header(
        environ=request.environ, header_file=captured, log_facts=from_log, here=request.here, now=request.now
    )
    notes = [*notes, *log_notes, *more]
    named = [*attachments, *_named(derivation, {attachment["kind"] for attachment in attachments})]
    evidence = request.evidence if last else ()
    document = assemble(derivation, run=run, header=mask_texts(header), attachments=named, evidence=evidence)
    notes += masked_note(document)
    if evidence:
        notes += [f"evidence: {reason}" for _, reason in contradictions(document)]
    name = "stdin" if request.path == "-" else request.path
    require_valid(document, "receipt", name)
    if derivation.changed:
        size = derivation.log.size_bytes
        notes = [*notes, f"{name} changed while it was read: the receipt is of the {size} bytes read"]
    return Product(document, derivation, tuple(notes))


def _named(derivation: Derivation, kinds: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield an attachment for each printed path of an artefact whose kind is not in ``kinds``. Opens no file: logs are data."""
    for kind in ARTEFACTS:
        if kind in derivation.facts and kind not in kinds:
            yield {"kind": kind, "uri": safe_text(str(derivation.facts[kind][0])), "sha256": None, "size_bytes": None}


def require_valid(document: Document, kind: str, where: str = "") -> None:
    """Raise ``InvalidReceipt`` if a document that the program made is invalid; ``kind`` names it in the error."""
    wrong = next((f for f in validate_document(document) if f.severity == "error"), None)
    if wrong is not None:
        raise InvalidReceipt(f"made an invalid {kind}", why=f"{wrong.pointer}: {wrong.reason}", where=where)


def _declared(request: Request) -> dict[str, Any]:
    """Return the fields of ``run`` in the request. Raises ``UsageError`` for values that a receipt cannot contain."""
    declared, code = run_texts(name=request.name, lane=request.lane, preset=request.preset), request.exit_code
    if code is not None and not -(2**31) <= code < 2**32:
        raise UsageError(f"--job-exit {code} is out of range", why="must be between -2147483648 and 4294967295")
    return declared if code is None else {**declared, "exit_code": code}


def run_texts(**options: str | None) -> dict[str, Any]:
    """Return the given text options of a run, with secrets masked. Raises ``UsageError``."""
    return {key: mask_secrets(_text(f"--{key}", value)) for key, value in options.items() if value is not None}


def _text(what: str, value: str) -> str:
    try:
        return text(value)
    except ValueError as error:
        raise UsageError(f"{what} {error}", why=ascii(value)[:200]) from error


def masked_note(document: Document) -> list[str]:
    """Return a note with the number of masked secrets of each class in a receipt; [] without secrets."""
    captured = count_masks(*(document.get(key) for key in ("run", "header", "attachments", "evidence")))
    counts = Counter(captured) + Counter(document["derivation"]["redactions"])
    classes = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    return [f"possible secrets were masked: {classes}"] if counts else []


def refusal(derivation: Derivation, name: str) -> GrammarChoiceError | None:
    """Return the error for a log that no grammar or several grammars recognise; else None."""
    detection, ending = derivation.detection, derivation.ending
    if detection.chosen:
        return None
    unread = "no grammar recognises this log"
    if ending.failure is not None:
        unread = f"{ending.reason} at line {ending.line_number}: {safe_text(ending.message or '', 200)}; {unread}"
    name = "stdin" if name == "-" else name
    lines = derivation.lines
    if lines.undecodable > lines.matched + lines.ignored + lines.unmatched:
        why = f"{lines.undecodable} of {sum(lines)} lines cannot be decoded"
        return GrammarChoiceError("this is not text", where=name, why=why, try_="give the log that the job printed")
    tried = ", ".join(f"{c.id} ({c.alone} of {c.records} records alone)" for c in detection.candidates[:4])
    metrics = "".join(f"\n       {line}" for line in derivation.metric_lines)
    looks = f"\n       lines that look like metrics:{metrics}" if metrics else ""
    if derivation.lacks:
        shown = "".join(f"\n       {lack.seen:,} like {lack.line!r}: {lack.why}" for lack in derivation.lacks)
        looks = f"\n       the nearest records that no words explain:{shown}"

    log = "LOG" if name == "stdin" else quote(name)
    if detection.tie:
        names, way = " and ".join(detection.tie), f"receipt parse -g {detection.tie[0]} {log}"
        return GrammarChoiceError(f"{names} explain this log equally well", where=name, why=f"tried {tried}{looks}", try_=way)
    why = f"nearest: {tried}{looks}" if tried else f"no rule of any grammar matched{looks}"
    return GrammarChoiceError(unread, where=name, why=why, try_=f"receipt grammar learn {log}")


class Declared(NamedTuple):
    """Facts about a run stated by the caller of an import: texts of ``run``, and attachments."""

    run: Mapping[str, Any]
    attachments: Sequence[Mapping[str, Any]]


UNDECLARED = Declared({}, ())


def declare(*, name: str | None, lane: str | None, preset: str | None, attachments: Sequence[str]) -> Declared:
    """Return the facts in the options of an import; ``attachments`` are ``kind=uri``. Raises ``UsageError`` for other values."""
    run = run_texts(name=name, lane=lane, preset=preset)
    return Declared(run, [read_attachment(attachment) for attachment in attachments])


def split_attachment(option: str) -> tuple[str, str]:
    """Return (kind, uri) of ``kind=uri``. Raises ``UsageError``."""
    kind, separator, uri = option.partition("=")
    if not separator or not kind.isidentifier() or not uri:
        raise UsageError(f"--attach needs kind=uri, not {option!r}", try_="--attach trace=traces/run7.json.gz")
    _text("--attach", option)
    return kind, uri


def read_attachment(option: str) -> dict[str, Any]:
    """Return the attachment of ``kind=uri``, with digest and size for a local file. Raises ``UsageError``."""
    kind, uri = split_attachment(option)
    digest, size = None, None
    if uri.startswith("file:///") or "://" not in uri:
        path = Path(unquote(uri.removeprefix("file://")) if uri.startswith("file:///") else uri)
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                size = file.tell()
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read the attachment {uri!r}", why=str(error)) from error
    return {"kind": kind, "uri": mask_secrets(uri), "sha256": digest, "size_bytes": size}


def rfc3339_now() -> str:
    """Return the current time, such as ``2026-01-31T12:00:00Z``."""
    return datetime.now(UTC).strftime(TIMESTAMP_FORMAT)


def capture_header(
    run: Mapping[str, str | None],
    repository: Path,
    environ: Mapping[str, str],
    now: str,
    *,
    python: str | None = None,
    pid: int | None = None,
    command: Sequence[str] | None = None,
) -> tuple[Document, list[str]]:
    """Return the valid header document of this machine, ``repository`` and the job, and notes.

    The job's Python is ``python``, or that of the process ``pid`` (whose environment is then used) or of ``command``, else
    that of ``environ``. ``RECEIPT_PRICES`` names a table of prices. Raises ``UsageError`` and ``DataError``.
    """
    from receipt_cli.header.host import command_interpreter, process_interpreter  # starts programs

    if pid is not None:
        environ, python = process_interpreter(pid)
    elif command is not None:
        python = command_interpreter(command, environ)
    declared = {**run, **run_texts(**{key: run.get(key) for key in ("name", "lane", "preset")})}
    header, notes = collect_header(environ=environ, header_file=None, log_facts=(), here=repository, now=now, python=python)
    notes += add_price(header, environ)
    document = header_document(declared, mask_texts(header))
    require_valid(document, "header")
    return document, notes


MAX_DOCUMENT = 64 * 1024 * 1024
"""Largest receipt in bytes; a larger file is a log."""


def read_given(
    file: str,
    *,
    environ: dict[str, str],
    exit_code: int | None = None,
    progress: Callable[[str], AbstractContextManager[Progress | None]],
    masked: bool = True,
    workers: int | None = None,
) -> tuple[dict[str, Any], Product | None]:
    """Return (the valid receipt in ``file``, None), or the receipt of the log in ``file`` and its ``Product``.

    ``-`` is stdin; ``progress`` shows the progress of reading a log; ``workers`` is the number of scanning processes (None:
    automatic). If ``masked``, secrets in a receipt are masked again: its writer may have masked less. Raises ``ReceiptError``.
    """
    data = document_in(file)
    if data is None:
        with progress(file) as bar:
            product = produce(Request(path=file, exit_code=exit_code, workers=workers or AUTO, progress=bar, environ=environ))
        return product.document, product
    if exit_code is not None:
        raise UsageError("--job-exit needs a log; a receipt already has an exit code", where=file)
    if has_errors(validate_bytes(data, file)):
        raise InputError("is not a valid receipt", where=file, try_=f"receipt schema check {file}")
    document: dict[str, Any] = json.loads(data)
    if not document["schema_version"].startswith("receipt/"):
        raise InputError(f"is not a receipt but {document['schema_version']}", where=file)
    return mask_texts(document) if masked else document, None


def document_in(file: str) -> bytes | None:
    """Return the bytes of ``file`` (``-``: stdin, which is then read) if it is a document of any kind, None for a log.

    Raises ``InputError``.
    """
    if file == "-":
        if sys.stdin is None or b'"schema_version"' not in _peek():
            return None
        return sys.stdin.buffer.read()
    path = Path(file)
    if not path.is_file():
        return None
    with system_errors(InputError, "cannot read", file), path.open("rb") as stream:
        if not stream.read(512).removeprefix(BOM_UTF8).lstrip().startswith(b"{"):  # a BOM or blanks may precede it
            return None
        stream.seek(0)
        data = stream.read(MAX_DOCUMENT + 1)
    if len(data) > MAX_DOCUMENT:
        return None
    try:
        document = json.loads(data.removeprefix(BOM_UTF8))
    except (ValueError, RecursionError):
        return None
    return data if isinstance(document, dict) and "schema_version" in document else None


def _peek() -> bytes:
    """Return the first bytes of stdin, without consuming them, if they begin a JSON object, else b""."""
    head = cast("BufferedReader", sys.stdin.buffer).peek(512)
    return head[:512] if head.removeprefix(BOM_UTF8).lstrip().startswith(b"{") else b""
