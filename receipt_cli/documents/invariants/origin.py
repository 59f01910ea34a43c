"""Rules of a receipt that was imported from another system's document, and of values that only such a receipt may have."""

from __future__ import annotations

from typing import Any

from receipt_cli.documents.invariants.rule import Broken, Document, Rule, is_import, pointer, summaries

_PREFIX = "import:"


def _origin(document: Document) -> Broken:
    derivation: dict[str, Any] = document["derivation"]
    if is_import(document) is not ("origin" in derivation):
        named = "an origin is named" if "origin" in derivation else "no origin is named"
        yield "/derivation/rules", f"is {derivation['rules']} though {named}"
    elif is_import(document) and derivation["grammars"]:
        yield "/derivation/grammars", "an imported document needs no grammar"


def _imported_values(document: Document) -> Broken:
    names = {entry["name"] for entry in document["derivation"]["log"].get("files", ())}
    for text, source in document["header"]["sources"].items():
        if not source.startswith(_PREFIX):
            continue
        name, mark, _ = source.removeprefix(_PREFIX).partition("#")
        if not is_import(document):
            yield pointer("header", "sources", text), "is an imported document, but this receipt is of a log"
        elif mark and "/" not in name and name not in names:
            yield pointer("header", "sources", text), f"{name} is not in /derivation/log/files"


def _imported_window(document: Document) -> Broken:
    for at, summary in summaries(document):
        if summary["steady_state"]["rule"].startswith("import/") and not is_import(document):
            yield f"{at}/steady_state/rule", "is for an imported document, but this receipt is of a log"


ORIGIN_RULES: tuple[Rule, ...] = (
    Rule("origin", ("derivation",), _origin),
    Rule("imported_values", ("header", "derivation"), _imported_values),
    Rule("imported_window", ("phases", "summary", "derivation"), _imported_window),
)
