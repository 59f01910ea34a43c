"""The formats that can be imported. Each is recognised by its own keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from receipt_cli.errors import GrammarChoiceError, InputError, UsageError
from receipt_cli.importers import (
    cppmega,
    cppmega_mlx,
    forgather_logs,
    hf_trainer_state,
    megacpp,
    megacpp_samples,
    nanochat_report,
    wandb_summary,
)
from receipt_cli.importers.json_text import JsonText, NotJson, Value
from receipt_cli.importers.model import ForeignRun
from receipt_cli.importers.text import Document
from receipt_cli.importers.trackers import tables
from receipt_cli.importers.trackers.recognise import TITLES

Beside = Callable[[str], Document | None]
"""Takes a file name; returns that file of the document's folder, or None."""


class UnknownFormat(GrammarChoiceError):
    """The document's format is unknown, or is not the wanted one."""


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """A format whose document is one JSON object."""

    name: str
    title: str
    recognise: Callable[[Value], bool]
    read: Callable[[JsonText, Value, Beside], ForeignRun]


def _alone(read: Callable[[JsonText, Value], ForeignRun]) -> Callable[[JsonText, Value, Beside], ForeignRun]:
    return lambda json_text, document, beside: read(json_text, document)


_OBJECTS = (
    JsonFormat(
        hf_trainer_state.FORMAT,
        "trainer_state.json of the Hugging Face Trainer",
        hf_trainer_state.recognise,
        _alone(hf_trainer_state.read),
    ),
    JsonFormat(cppmega_mlx.FORMAT, "training receipt of cppmega_mlx", cppmega_mlx.recognise, _alone(cppmega_mlx.read)),
    JsonFormat(cppmega.FORMAT, "run summary of cppmega's log comparison", cppmega.recognise, _alone(cppmega.read)),
    JsonFormat(megacpp.RECEIPT, "MegaCpp training receipt (Modal)", megacpp.recognise, _alone(megacpp.read)),
    JsonFormat(
        megacpp.KERNEL_RECEIPT,
        "MegaCpp kernel receipt (FA4)",
        megacpp.recognise_kernel_receipt,
        _alone(megacpp.read_kernel_receipt),
    ),
    JsonFormat(
        megacpp_samples.LANE, "timed lane of MegaCpp's samples", megacpp_samples.recognise_lane, _alone(megacpp_samples.read_lane)
    ),
    JsonFormat(
        megacpp_samples.COMPILATION,
        "compile receipt of MegaCpp's samples",
        megacpp_samples.recognise_compilation,
        _alone(megacpp_samples.read_compilation),
    ),
    JsonFormat(
        megacpp_samples.GOODPUT,
        "goodput summary of MegaCpp's samples",
        megacpp_samples.recognise_goodput,
        _alone(megacpp_samples.read_goodput),
    ),
    JsonFormat(
        wandb_summary.FORMAT, "wandb-summary.json, with its metadata and config", wandb_summary.recognise, wandb_summary.read
    ),
    JsonFormat(
        tables.HISTORY,
        "history of Keras, as JSON",
        tables.is_history,
        _alone(lambda _, document: tables.read_history(ForeignRun(tables.HISTORY, producer="Keras", trainer="keras"), document)),
    ),
)
FORMATS: dict[str, str] = {
    **{known.name: known.title for known in _OBJECTS},
    forgather_logs.FORMAT: "trainer_logs.json of Forgather",
    nanochat_report.FORMAT: "report.md of nanochat",
    tables.CSV: "table of metrics: metrics.csv of Lightning, Keras's CSVLogger, our own export",
    tables.LINES: "JSON lines, an object with a step for each record",
    **TITLES,
}
"""Name → title of every format that can be imported."""


def check_format(wanted: str | None) -> None:
    """Raise ``UsageError`` for an unknown format."""
    if wanted is not None and wanted not in FORMATS:
        raise UsageError(f"unknown format {wanted!r}", why=f"known: {', '.join(sorted(FORMATS))}")


def read_format(document: Document, beside: Beside, wanted: str | None = None) -> ForeignRun:
    """Return the run in ``document``, whose format is recognised.

    Raises ``InputError`` for broken JSON, ``UnknownFormat`` for a document in an unknown format or not in ``wanted``, and
    ``UsageError`` if ``wanted`` is unknown.
    """
    check_format(wanted)
    text = document.text
    foreign: ForeignRun | None = None
    if nanochat_report.recognise(text):
        foreign = nanochat_report.read(text)
    elif text.lstrip()[:1] == "[":
        foreign = _array(document)
    elif text.lstrip()[:1] == "{":
        lines = tables.records_of(text)
        foreign = _object(document, beside, wanted) if lines is None else tables.read_lines(ForeignRun(tables.LINES), lines)
    elif tables.is_csv(text):
        foreign = tables.read_csv(ForeignRun(tables.CSV), text)
    if foreign is None:
        raise _unknown(document, wanted)
    if wanted is not None and foreign.format != wanted:
        raise UnknownFormat(f"is not {wanted}", where=document.name, why=f"it is {foreign.format}: {FORMATS[foreign.format]}")
    return foreign


def _array(document: Document) -> ForeignRun | None:
    json_text = JsonText(document.text)
    try:
        records = json_text.open_array().records
        if not forgather_logs.recognise(records):
            json_text.value()
            return None
        return _with_repeats(forgather_logs.read(json_text), json_text)
    except NotJson as error:
        raise _broken(document, error) from error


def _object(document: Document, beside: Beside, wanted: str | None) -> ForeignRun | None:
    json_text = JsonText(document.text)
    try:
        value = json_text.value()
        known = [form for form in _OBJECTS if form.recognise(value)]
        if not known and (runs := cppmega.runs_of(value)):
            raise UnknownFormat(
                "has the summaries of several runs", where=document.name, why=f"of {', '.join(runs)[:200]}",
                try_=f"jq .{runs[0]} FILE | receipt import -" if runs[0].isidentifier() else "import them one by one",
            )  # fmt: skip
        chosen = next((form for form in known if form.name == wanted), known[0] if known else None)
        return None if chosen is None else _with_repeats(chosen.read(json_text, value, beside), json_text)
    except NotJson as error:
        raise _broken(document, error) from error


def _with_repeats(foreign: ForeignRun, json_text: JsonText) -> ForeignRun:
    for key in dict.fromkeys(json_text.repeated):
        detail = f"{key[:128]} occurs twice in one object with different values: ignored both"
        foreign.problems.add("repeated_key", None, detail)
    return foreign


def _broken(document: Document, error: NotJson) -> InputError:
    return InputError("is not JSON", where=f"{document.name}:{error.line}", why=str(error))


def _unknown(document: Document, wanted: str | None) -> UnknownFormat:
    known = "".join(f"\n       {name:<26} {title}" for name, title in FORMATS.items())
    what = "the format of this document is unknown" if wanted is None else f"is not {wanted}"
    return UnknownFormat(what, where=document.name, why=f"these can be imported:{known}", try_="for a log: receipt parse LOG")
