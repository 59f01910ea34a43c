"""Does a document that a job made itself keep its contract? With the standard library alone.

The schema is the one that ships, its rules between fields are those of ``receipt validate``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from receipt_cli.emit.document import Document

MAX_DEPTH = 64
_REFERENCE = "#/$defs/"


class Problem(NamedTuple):
    """One thing that is wrong: where (an RFC 6901 JSON pointer) and why."""

    pointer: str
    reason: str


class NotConforming(ValueError):
    """A document breaks its contract; ``problems`` says where."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0].pointer or '/'}: {problems[0].reason}{more}")
        self.problems = tuple(problems)


def require(document: Document, kind: str) -> Document:
    """Return ``document``. Raises ``NotConforming`` where it breaks the contract of ``kind``."""
    problems = check_document(document, kind)
    if problems:
        raise NotConforming(problems)
    return document


def check_document(document: Document, kind: str) -> list[Problem]:
    """Return what is wrong with a document of ``kind``, ``evaluation`` or ``ablation``; an empty list means valid."""
    problems = list(_values(document))
    if problems:
        return problems
    schema = _schema(kind)
    problems = [Problem(at, reason) for at, reason in _misfits(schema, document, "", schema["$defs"])]
    broken = {problem.pointer.split("/")[1] for problem in problems if problem.pointer}
    if kind == "evaluation":
        from receipt_cli.documents.invariants.evaluation import EVALUATION_RULES as RULES
    else:
        from receipt_cli.documents.invariants.ablation import ABLATION_RULES as RULES
    for rule in RULES:
        if all(part in document and part not in broken for part in rule.parts):
            problems += [Problem(at, reason) for at, reason in rule.check(document)]
    return problems


@cache
def _schema(kind: str) -> dict[str, Any]:
    import json

    from receipt_cli.definitions.resources import data_root

    found: dict[str, Any] = json.loads(data_root("schemas").joinpath(kind, "v1.0.schema.json").read_bytes())
    return found


def _values(value: Any, at: str = "", depth: int = 0) -> Iterator[Problem]:
    """Yield what is no JSON: NaN, numbers beyond float64, halves of surrogate pairs, other types, nesting without end."""
    if depth > MAX_DEPTH:
        yield Problem(at, f"nested deeper than {MAX_DEPTH} levels")
    elif isinstance(value, str):
        if not _is_utf8(value):
            yield Problem(at, "the text holds half of a surrogate pair")
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or not _is_utf8(key):
                yield Problem(at, "a key is not a text that UTF-8 can hold")
            else:
                yield from _values(item, _below(at, key), depth + 1)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            if item is not None and not (type(item) is float and item - item == 0):  # most are finite numbers
                yield from _values(item, f"{at}/{number}", depth + 1)
    elif isinstance(value, int | float):
        if not -sys.float_info.max <= value <= sys.float_info.max:
            yield Problem(at, "the number is not finite or beyond float64")
    elif value is not None:
        yield Problem(at, f"{type(value).__name__} is not a JSON value")


def _misfits(schema: Mapping[str, Any], instance: Any, at: str, defs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the innermost places at which ``instance`` breaks ``schema``, with what stands there to be kept."""
    from receipt_cli.documents.shape import ANNOTATIONS, surely_keeps

    if surely_keeps({**schema, "$defs": defs}, instance):
        return
    if "$ref" in schema:
        schema = {**schema, **defs[schema["$ref"].removeprefix(_REFERENCE)]}
        schema.pop("$ref")
    inner: list[tuple[str, str]] = []
    if isinstance(instance, dict):
        known = schema.get("properties", {})
        for key, item in instance.items():
            rest = schema.get("additionalProperties", True)
            if key in known or isinstance(rest, dict):
                inner += _misfits(known.get(key, rest), item, _below(at, key), defs)
            elif not rest:
                inner.append((_below(at, key), "unknown field"))
        inner += [(_below(at, key), "missing") for key in schema.get("required", ()) if key not in instance]
    elif isinstance(instance, list) and isinstance(schema.get("items"), dict):
        for number, item in enumerate(instance):
            inner += _misfits(schema["items"], item, f"{at}/{number}", defs)
    if inner:
        yield from inner
        return
    for keyword, value in schema.items():
        alone = {keyword: value, "$defs": defs}
        if keyword not in ANNOTATIONS and not surely_keeps(alone, instance):
            yield at, f"breaks {keyword}: {str(value)[:120]}"


def _below(at: str, key: str) -> str:
    return f"{at}/{key.replace('~', '~0').replace('/', '~1')}"


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
