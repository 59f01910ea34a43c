"""One rule between the fields of a document, and the pointers that findings carry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal

from receipt_cli.lazy_dataclass import dataclass
from receipt_cli.lazy_pattern import compile_later

Severity = Literal["error", "note"]
Document = dict[str, Any]
Broken = Iterator[tuple[str, str]]
"""(JSON pointer, reason) for each place where a rule is broken."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its name, the top-level parts that it reads (their shape must be right), and the check."""

    name: str
    parts: tuple[str, ...]
    check: Callable[[Document], Broken]
    severity: Severity = "error"


def said(check: bool | None) -> str:
    """Return the value of a check as JSON has it."""
    return "null" if check is None else str(check).lower()


@lru_cache(maxsize=4096)
def pointer(*parts: str | int) -> str:
    """Return the RFC 6901 JSON pointer of the value that ``parts`` lead to."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def pointer_parts(text: str) -> list[str]:
    """Return what leads to the value that the JSON pointer ``text`` names; array positions stay texts."""
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def withheld(document: Document) -> frozenset[str]:
    """Return the pointers of the figures of a receipt that are null because a problem names them, of phases by their number."""
    fields = {field for problem in document["derivation"]["problems"]["first"] for field in problem.get("fields", ())}
    counts = [phase["summary"]["steps"]["record_count"] or 0 for phase in document["phases"]]
    primary = f"/phases/{counts.index(max(counts))}" if counts else ""
    return frozenset(fields | {primary + field for field in fields if field.startswith("/summary/")})


PHASES = ("phases", "summary")
"""Parts of a receipt in which ``summaries`` looks."""


def summaries(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each phase's summary with its pointer; the primary summary itself only when there is no phase."""
    for number, phase in enumerate(document["phases"]):
        yield pointer("phases", number, "summary"), phase["summary"]
    if not document["phases"] and document["summary"] is not None:
        yield "/summary", document["summary"]


def is_import(document: Document) -> bool:
    """Return whether the document was made from one of another system, which states figures without their records."""
    rules: str = document["derivation"]["rules"]
    return rules.startswith("import/")


_CONTROL = compile_later(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
"""C0 but for the tab, DEL and C1."""


def check_texts(texts: Iterable[tuple[str, str | None]]) -> Broken:
    """Yield the pointers of the texts that hold a control character."""
    for at, text in texts:
        if text is not None and _CONTROL.search(text):
            yield at, "holds a control character"
