"""Import a foreign document as a valid receipt or evaluation that states its origin; its format is recognised by its keys."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from receipt_cli.analysis.stated import Options, StatedFact
from receipt_cli.errors import GrammarChoiceError, InputError, UsageError
from receipt_cli.events.streams import FileFacts, LogFacts
from receipt_cli.header.document import merge
from receipt_cli.importers import megacpp, nanochat_report, trainer_logs, wandb_summary
from receipt_cli.importers.derive import derive_import
from receipt_cli.importers.model import ForeignRun, JsonFormat
from receipt_cli.importers.scores.importing import FORMATS as RESULTS
from receipt_cli.importers.scores.importing import evaluation, read_results, read_tables
from receipt_cli.importers.scores.printed import TABLES
from receipt_cli.importers.text import Document, JsonText, NotJson, read_beside, read_document
from receipt_cli.importers.trackers import tables
from receipt_cli.importers.trackers.recognise import TITLES, format_of, read
from receipt_cli.importers.wandb_summary import Beside
from receipt_cli.io.source import digest_of
from receipt_cli.receipts.assembly import assemble
from receipt_cli.receipts.production import UNDECLARED, Declared, require_valid
from receipt_cli.redaction.mask import count_masks
from receipt_cli.redaction.text import mask_texts, safe_text


class UnknownFormat(GrammarChoiceError):
    """The document's format is unknown, or is not the wanted one."""


_HUGGING_FACE = "trainer_state.json of the Hugging Face Trainer"
_OBJECTS = (
    JsonFormat(trainer_logs.HUGGING_FACE, _HUGGING_FACE, trainer_logs.is_state, trainer_logs.read_state),
    *megacpp.OBJECTS,
    JsonFormat(
        wandb_summary.FORMAT, "wandb-summary.json, with its metadata and config", wandb_summary.recognise, wandb_summary.read
    ),
    JsonFormat(tables.HISTORY, "history of Keras, as JSON", tables.is_history, tables.read_history),
)
FORMATS: dict[str, str] = {
    **{known.name: known.title for known in _OBJECTS},
    trainer_logs.FORGATHER: "trainer_logs.json of Forgather",
    nanochat_report.FORMAT: "report.md of nanochat",
    tables.CSV: "table of metrics: metrics.csv of Lightning, Keras's CSVLogger, TensorBoard's download, our own export",
    tables.LINES: "JSON lines, an object with a step for each record",
    **TITLES,
    **RESULTS,
}
"""Name → title of every format that can be imported."""


def read_format(document: Document, beside: Beside, wanted: str | None = None, session: str | None = None) -> ForeignRun:
    """Return the run in ``document``, whose format is recognised; ``session`` chooses one of several runs in a table.

    Raises ``InputError`` for broken JSON and for a table without figures, ``UnknownFormat`` for a document in an unknown
    format or not in ``wanted``, and ``UsageError`` for a ``session`` of a document of one run.
    """
    text, json_text = document.text, JsonText(document.text)
    foreign: ForeignRun | None = None
    try:
        if nanochat_report.recognise(text):
            foreign = nanochat_report.read(text)
        elif text.lstrip()[:1] == "[":
            foreign = _read_array(json_text)
        elif text.lstrip()[:1] == "{":
            lines = tables.records_of(text)
            foreign = _read_object(json_text, document.name, beside, wanted) if lines is None else tables.read_lines(lines)
        elif tables.is_csv(text):
            foreign = tables.read_csv(text, document.name, session)
    except NotJson as error:
        raise InputError("is not JSON", where=f"{document.name}:{error.line}", why=str(error)) from error
    if foreign is None:
        raise _unknown(document, wanted)
    if wanted is not None and foreign.format != wanted:
        raise UnknownFormat(f"is not {wanted}", where=document.name, why=f"it is {foreign.format}: {FORMATS[foreign.format]}")
    if session is not None and foreign.format != tables.CSV:
        raise UsageError(
            "--session needs a recording, database or table of several runs", why="this is none", where=document.name
        )
    foreign.problems.add_repeated(json_text.repeated)
    return foreign


def _read_array(json_text: JsonText) -> ForeignRun | None:
    if trainer_logs.is_array(json_text.open_array().records):
        return trainer_logs.read_array(json_text)
    json_text.value()
    return None


def _read_object(json_text: JsonText, where: str, beside: Beside, wanted: str | None) -> ForeignRun | None:
    value = json_text.value()
    known = [form for form in _OBJECTS if form.recognise(value)]
    if not known and (runs := megacpp.runs_of(value)):
        raise UnknownFormat(
            "has the summaries of several runs", where=where, why=f"of {', '.join(runs)[:200]}",
            try_=f"jq .{runs[0]} FILE | receipt import -" if runs[0].isidentifier() else "import them one by one",
        )  # fmt: skip
    chosen = next((form for form in known if form.name == wanted), known[0] if known else None)
    if chosen is not None and chosen.name == wandb_summary.FORMAT:
        return wandb_summary.read(json_text, value, beside)
    return None if chosen is None else chosen.read(json_text, value)


_STEP_COLUMN = "name the column of whole step numbers step, iteration or epoch"


def _unknown(document: Document, wanted: str | None) -> UnknownFormat:
    if wanted in (None, tables.CSV) and (reason := tables.refuse_csv(document.text)) is not None:
        return UnknownFormat("is a table that cannot be read as a run", where=document.name, why=reason, try_=_STEP_COLUMN)
    known = "".join(f"\n       {name:<26} {title}" for name, title in FORMATS.items())
    what = "the format of this document is unknown" if wanted is None else f"is not {wanted}"
    return UnknownFormat(what, where=document.name, why=f"these can be imported:{known}", try_="for a log: receipt parse LOG")


RULES = "import/2"
"""Version of all code that decides the result of an import; also the rule name of a producer's own steady window."""


def import_document(
    path: str,
    declared: Declared = UNDECLARED,
    *,
    wanted: str | None = None,
    session: str | None = None,
    otherwise: str | None = None,
    facts: tuple[StatedFact, ...] = (),
) -> dict[str, Any]:
    """Return the receipt of the run, or the evaluation of the results, in the document or folder at ``path`` (``-``: stdin).

    ``wanted`` is its format; None: recognise it. ``session`` is the run's id or name in a store of several runs,
    ``otherwise`` the name of a run without one. ``facts`` are stated facts of the run (``receipts.stated.read_facts``). The
    attachments of ``declared`` come after the document's. A document of no other format is searched for tables of scores.
    Raises ``InputError`` for an unreadable document, ``UnknownFormat`` if its format is unknown, and ``UsageError`` if
    ``wanted`` is.
    """
    if wanted is not None and wanted not in FORMATS:
        raise UsageError(f"unknown format {wanted!r}", why=f"known: {', '.join(sorted(FORMATS))}")
    found = format_of(path)
    if found is not None and wanted in (None, found):
        return _receipt(*read(path, found, session), declared, otherwise, facts)
    document, beside = read_document(path), partial(read_beside, path)
    results = read_results(document, beside, wanted) if session is None and wanted in (None, *RESULTS) else None
    if results is None and wanted == TABLES:
        results = read_tables(document, path)
        if results is None:
            raise UnknownFormat("has no table of scores", where=document.name)
    if results is None:
        try:
            return _receipt(read_format(document, beside, wanted, session), document, declared, otherwise, facts)
        except (UnknownFormat, InputError):  # a log may begin with a bracket, like JSON
            results = read_tables(document, path) if session is None and wanted is None else None
            if results is None:
                raise
    if facts:
        raise UsageError("--fact needs a document of a training", why="an evaluation has no figures that facts complete")
    return evaluation(results, document, declared)


def _receipt(
    foreign: ForeignRun, document: Document, declared: Declared, otherwise: str | None, facts: tuple[StatedFact, ...]
) -> dict[str, Any]:
    derivation = derive_import(foreign, _log_facts(document, foreign), Options(facts=facts))
    run = {key: value for key, value in foreign.run.items() if value is not None}
    if "name" not in run and otherwise is not None:
        run["name"] = otherwise
    masked = {key: safe_text(value) or None if isinstance(value, str) else value for key, value in run.items()}
    header = mask_texts(merge(foreign.header))
    attached = [*mask_texts(foreign.attachments), *declared.attachments]
    receipt = assemble(derivation, run={**masked, **declared.run}, header=header, attachments=attached)
    result = _with_origin(receipt, foreign)
    require_valid(result, "receipt", document.name)
    return result


def _log_facts(document: Document, foreign: ForeignRun) -> LogFacts:
    """Return the facts of the read files, the document first; several files have the digest of their digests."""
    records = foreign.matched + foreign.ignored + foreign.unmatched
    if not foreign.beside:
        return LogFacts(document.sha256, document.size_bytes, document.line_count, records)
    read = [document, *sorted(foreign.beside, key=lambda file: file.name)]
    names = [foreign.name, *(file.name for file in read[1:])]
    files = tuple(FileFacts(n, None, f.sha256, f.size_bytes, f.line_count) for n, f in zip(names, read, strict=True))
    digest = digest_of([file.sha256 for file in read])
    return LogFacts(digest, sum(f.size_bytes for f in read), sum(f.line_count for f in read), records, files)


def _with_origin(receipt: Mapping[str, Any], foreign: ForeignRun) -> dict[str, Any]:
    """Return the receipt with its origin and the import rules, with keys in schema order."""
    derivation: dict[str, Any] = {}
    for key, value in receipt["derivation"].items():
        derivation[key] = RULES if key == "rules" else value
        if key == "log":
            derivation["origin"] = foreign.origin()
    derivation["redactions"] = {}
    derivation["redactions"] = count_masks(receipt["phases"], receipt["failure"], derivation)
    result = {**receipt, "derivation": derivation}
    if foreign.declared and not foreign.count:
        for summary in [result["summary"], *(phase["summary"] for phase in result["phases"])]:
            summary["steady_state"]["rule"] = RULES
    return result
