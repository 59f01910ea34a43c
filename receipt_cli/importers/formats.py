"""Which foreign format a document is in: each is recognised by what only it holds, and two never are at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from receipt_cli.errors import GrammarChoiceError, InputError, UsageError
from receipt_cli.importers import cppmega, cppmega_mlx, forgather_logs, hf_trainer_state, megacpp, nanochat_report, wandb_summary
from receipt_cli.importers.json_text import JsonText, NotJson, Value
from receipt_cli.importers.model import Found
from receipt_cli.importers.text import Document

Beside = Callable[[str], Document | None]
"""Gives the file of a name that stands with the document, or None."""


class UnknownFormat(GrammarChoiceError):
    """No format that can be imported explains the document, or it is not the one that was asked for."""


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """A format that is one JSON object."""

    name: str
    title: str
    recognise: Callable[[Value], bool]
    read: Callable[[JsonText, Value, Beside], Found]


def _alone(read: Callable[[JsonText, Value], Found]) -> Callable[[JsonText, Value, Beside], Found]:
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
        wandb_summary.FORMAT, "wandb-summary.json, with its metadata and config", wandb_summary.recognise, wandb_summary.read
    ),
)
FORMATS: dict[str, str] = {
    **{known.name: known.title for known in _OBJECTS},
    forgather_logs.FORMAT: "trainer_logs.json of Forgather",
    nanochat_report.FORMAT: "report.md of nanochat",
}
"""Every format that can be imported: its name and what it is."""


def check_format(wanted: str | None) -> None:
    """Raise ``UsageError`` for the name of a format that there is not."""
    if wanted is not None and wanted not in FORMATS:
        raise UsageError(f"no format {wanted!r}", why=f"known are {', '.join(sorted(FORMATS))}")


def read_format(document: Document, beside: Beside, wanted: str | None = None) -> Found:
    """Return what ``document`` says, read in the format that it is in.

    Raises ``InputError`` for broken JSON, ``UnknownFormat`` for a document in no known format or in another than
    ``wanted``, and ``UsageError`` for a format that there is not.
    """
    check_format(wanted)
    text = document.text
    found: Found | None = None
    if nanochat_report.recognise(text):
        found = nanochat_report.read(text)
    elif text.lstrip()[:1] == "[":
        found = _array(document)
    elif text.lstrip()[:1] == "{":
        found = _object(document, beside, wanted)
    if found is None:
        raise _unknown(document, wanted)
    if wanted is not None and found.format != wanted:
        raise UnknownFormat(f"is no {wanted}", where=document.name, why=f"it is {found.format}: {FORMATS[found.format]}")
    return found


def _array(document: Document) -> Found | None:
    json_text = JsonText(document.text)
    try:
        records = json_text.open_array().records
        if not forgather_logs.recognise(records):
            json_text.value()
            return None
        return _with_repeats(forgather_logs.read(json_text), json_text)
    except NotJson as error:
        raise _broken(document, error) from error


def _object(document: Document, beside: Beside, wanted: str | None) -> Found | None:
    json_text = JsonText(document.text)
    try:
        value = json_text.value()
        known = [form for form in _OBJECTS if form.recognise(value)]
        if not known and (runs := cppmega.runs_of(value)):
            raise UnknownFormat(
                "holds the summaries of several runs", where=document.name, why=f"of {', '.join(runs)[:200]}",
                try_=f"jq .{runs[0]} FILE | receipt import -" if runs[0].isidentifier() else "import them one by one",
            )  # fmt: skip
        chosen = next((form for form in known if form.name == wanted), known[0] if known else None)
        return None if chosen is None else _with_repeats(chosen.read(json_text, value, beside), json_text)
    except NotJson as error:
        raise _broken(document, error) from error


def _with_repeats(found: Found, json_text: JsonText) -> Found:
    for key in dict.fromkeys(json_text.repeated):
        found.doubts.add("repeated_key", None, f"{key[:128]} stands twice in one object, with different values: neither counts")
    return found


def _broken(document: Document, error: NotJson) -> InputError:
    return InputError("is not JSON", where=f"{document.name}:{error.line}", why=str(error))


def _unknown(document: Document, wanted: str | None) -> UnknownFormat:
    known = "".join(f"\n       {name:<26} {title}" for name, title in FORMATS.items())
    what = "no known format explains this document" if wanted is None else f"is no {wanted}"
    return UnknownFormat(what, where=document.name, why=f"these can be imported:{known}", try_="for a log: receipt parse LOG")
