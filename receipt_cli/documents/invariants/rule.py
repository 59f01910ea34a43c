"""The type of a rule between the fields of a document, and helpers for rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from receipt_cli.patterns import compile_later
from receipt_cli.problems import pointer as pointer

Severity = Literal["error", "note"]
Document = dict[str, Any]
Broken = Iterator[tuple[str, str]]
"""(JSON pointer, reason) for each place where a rule is broken."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its name, the top-level parts that it reads (whose shape must be valid), and the check."""

    name: str
    parts: tuple[str, ...]
    check: Callable[[Document], Broken]
    severity: Severity = "error"


def said(check: bool | None) -> str:
    """Return the value of a check as JSON text."""
    return "null" if check is None else str(check).lower()


def pointer_parts(text: str) -> list[str]:
    """Return the unescaped keys of the JSON pointer ``text``; array indices stay strings."""
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


_ABSENT: Any = object()
PHASES = ("phases", "summary")
"""Parts of a receipt that ``summaries`` reads."""


def summaries(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (pointer, summary) for each phase, or for ``/summary`` if there is no phase."""
    for number, phase in enumerate(document["phases"]):
        yield pointer("phases", number, "summary"), phase["summary"]
    if not document["phases"] and document["summary"] is not None:
        yield "/summary", document["summary"]


def withheld(document: Document) -> frozenset[str]:
    """Return the pointers of fields that a problem made null; those in ``/summary`` also for the phases equal to it."""
    named = (field for problem in document["derivation"]["problems"]["first"] for field in problem.get("fields", ()))
    found = {field for field in named if _is_null(document, pointer_parts(field))}
    if not found:
        return frozenset()
    inside = [field.removeprefix("/summary") for field in found if field.startswith("/summary/")]
    primary = [n for n, phase in enumerate(document["phases"]) if phase["summary"] == document["summary"]]
    return frozenset(found | {pointer("phases", n, "summary") + field for n in primary for field in inside})


def _is_null(value: Any, path: list[str]) -> bool:
    for part in path:
        if isinstance(value, list):
            value = value[int(part)] if part.isdecimal() and int(part) < len(value) else _ABSENT
        else:
            value = value.get(part, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value is None


def excused(found: Broken, null: frozenset[str]) -> Broken:
    """Return the findings without those on the fields ``null``, which a problem withheld, and on their parents."""
    above = {at for figure in null for at in (figure, figure.rpartition("/")[0])}
    return ((at, reason) for at, reason in found if at not in above)


def is_import(document: Document) -> bool:
    """Return whether the receipt was imported from another system's document, which has values without records."""
    rules: str = document["derivation"]["rules"]
    return rules.startswith("import/")


_CONTROL = compile_later(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
"""C0 without the tab, DEL and C1."""


def check_texts(texts: Iterable[tuple[str, str | None]]) -> Broken:
    """Yield the pointers of texts with a control character."""
    for at, text in texts:
        if text is not None and _CONTROL.search(text):
            yield at, "contains a control character"
