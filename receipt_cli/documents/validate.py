"""Validate a document by its ``schema_version``: first its shape by schema, then the rules between fields."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from receipt_cli.definitions.reading import Path, explain, json_type, make_validator, refuse
from receipt_cli.documents.invariants.ablation import ABLATION_RULES
from receipt_cli.documents.invariants.captured import HEADER_RULES
from receipt_cli.documents.invariants.evaluation import EVALUATION_RULES
from receipt_cli.documents.invariants.golden import GOLDEN_RULES
from receipt_cli.documents.invariants.gpu_profile import GPU_PROFILE_RULES
from receipt_cli.documents.invariants.receipt import RECEIPT_RULES
from receipt_cli.documents.invariants.rule import PHASES, Rule, Severity, excused, withheld
from receipt_cli.documents.schemas import find_entry, get_json_schema, list_schemas, read_version
from receipt_cli.errors import DataError, InputError
from receipt_cli.header.header_file import checked_document
from receipt_cli.io.discovery import HEAD_BYTES
from receipt_cli.io.file_kinds import recognise
from receipt_cli.problems import pointer, split_pointer, value_at

_RULES: dict[str, tuple[Rule, ...]] = {
    "receipt": RECEIPT_RULES,
    "header": HEADER_RULES,
    "evaluation": EVALUATION_RULES,
    "ablation": ABLATION_RULES,
    "gpu_profile": GPU_PROFILE_RULES,
    "golden": GOLDEN_RULES,
}
KINDS = tuple(_RULES)
"""The kinds of document; the other schemas are for definitions."""

MAX_DEPTH = 64
"""Deepest nesting of a document that is accepted; the contract needs about ten levels."""
_MAX_BITS = 10_000
"""Largest integer in bits that schema errors can show: Python converts no larger one to text."""
_FLOAT_MAX = 1.7976931348623157e308
_NOT_FINITE = "NaN and infinity are not JSON"
_MARK = "\ufeff"
"""What some editors write before a text; a reader of headers leaves it out."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One error in a document, or a note on it.

    ``pointer`` is an RFC 6901 JSON pointer. ``rule`` names the broken rule: ``schema.KEYWORD``, a rule of
    ``invariants``, or one of this module.
    """

    pointer: str
    reason: str
    rule: str
    severity: Literal["error", "note"] = "error"


def validate_bytes(data: bytes, where: str, *, compiled: bool = True) -> list[Finding]:
    """Return the findings on the JSON document in ``data``; ``where`` names it in errors.

    NaN, infinities and repeated keys, which Python's reader accepts, are findings. Raises ``InputError`` for bytes that
    are not UTF-8 or not JSON, and ``DataError`` as ``validate_document`` does.
    """
    repeats = 0

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeats
        made = dict(items)
        if len(made) == len(items):
            return made
        repeats += 1
        return _Repeating(made, [key for key, _ in items])

    kind = recognise(data[:HEAD_BYTES])
    if kind is not None and not kind.is_document:
        raise InputError(f"is {kind.what}, not a document", where=where, try_=kind.way.format(where))
    try:
        text = data.decode("utf-8")
        document = json.loads(text.removeprefix(_MARK), object_pairs_hook=pairs)
        if text.startswith(_MARK) and not _is_header(document):
            raise InputError("document is not JSON", where=f"{where}:1", why="it begins with a BOM (byte order mark)")
    except UnicodeDecodeError as error:
        raise InputError("document is not UTF-8", where=where, why=str(error)) from error
    except json.JSONDecodeError as error:
        way = f"receipt parse {where}" if kind is None else ""
        raise InputError("document is not JSON", where=f"{where}:{error.lineno}", why=error.msg, try_=way) from error
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits, or too deep nesting
        raise InputError("document is not JSON that can be read", where=where, why=str(error)) from error
    found = [
        Finding(pointer(*path, key), "the key appears more than once", "duplicate_key")
        for path, value in (_walk(document) if repeats else ())
        for key in (value.repeated if isinstance(value, _Repeating) else ())
    ]
    return found + validate_document(document, compiled=compiled)


def validate_document(document: object, *, compiled: bool = True) -> list[Finding]:
    """Return the findings on ``document``, as read from JSON; it is valid if there are only notes.

    A header is valid if its reader takes it: what it lacks or has beyond the schema are notes. An unknown minor version is
    validated against the nearest older one, whose unknown fields are notes. A rule between fields is skipped if a part that
    it reads already has errors. The generated validator runs before jsonschema unless ``compiled`` is false; both accept
    the same documents. Raises ``DataError`` for an unknown major version.
    """
    if not isinstance(document, dict):
        return [Finding("", f"a document must be an object, not {json_type(document)}", "schema.type")]
    found = _findings(document, compiled)
    return _as_read(document, found) if _is_header(document) else found


def _is_header(document: object) -> bool:
    route = read_version(document.get("schema_version")) if isinstance(document, dict) else None
    return route is not None and route[0] == "header"


def _as_read(document: dict[str, Any], found: list[Finding]) -> list[Finding]:
    """Return the findings on a header file as its reader sees them: what the reader takes is no error, the rest is one."""
    try:
        checked_document(document, "")
    except InputError as error:
        refused = Finding("/header", f"{error.message}: {error.why}" if error.why else error.message, "header_unusable")
        return found if has_errors(found) else [*found, refused]
    return [finding if finding.reason == _NOT_FINITE else replace(finding, severity="note") for finding in found]


def _findings(document: dict[str, Any], compiled: bool) -> list[Finding]:
    found, readable = _check_values(document)
    if not readable:
        return found
    route = _route(document.get("schema_version"))
    if isinstance(route, Finding):
        return [*found, route]
    kind, version, newer = route
    if newer:
        reason = f"written by a newer receipt; fields unknown to {kind}/{version} are ignored"
        found.append(Finding("/schema_version", reason, "newer_minor", "note"))
    found += check_shape(document, kind, version, newer=newer, compiled=compiled)
    if newer:
        document = _known_part(document, [at.pointer for at in found if at.rule == "schema.additionalProperties"])
    wrong = [finding.pointer for finding in found if finding.severity == "error"]
    if "" in wrong:
        return found
    sound = document.keys() - {at.split("/")[1] for at in wrong}
    null = withheld(document) if kind == "receipt" and sound.issuperset(("derivation", *PHASES)) else frozenset()
    for rule in rules_of(kind):
        if sound.issuperset(rule.parts):
            broken = excused(rule.check(document), null)
            found += [Finding(at, reason, rule.name, rule.severity) for at, reason in broken]
    return found


def rules_of(kind: str) -> tuple[Rule, ...]:
    """Return the rules between the fields of a document of ``kind``, one of ``KINDS``."""
    return _RULES[kind]


def has_errors(findings: list[Finding]) -> bool:
    """Return whether any finding is an error, not a note."""
    return any(finding.severity == "error" for finding in findings)


class _Repeating(dict[str, Any]):
    """An object in which a key appears more than once."""

    def __init__(self, made: dict[str, Any], keys: list[str]) -> None:
        super().__init__(made)
        self.repeated = sorted({key for key in keys if keys.count(key) > 1})


def _walk(document: object) -> Iterator[tuple[Path, object]]:
    """Yield every value with its path, down to ``MAX_DEPTH``, without recursion."""
    stack: list[tuple[Path, object]] = [((), document)]
    while stack:
        path, value = stack.pop()
        yield path, value
        if len(path) <= MAX_DEPTH:
            if isinstance(value, dict):
                stack += [((*path, key), item) for key, item in value.items()]
            elif isinstance(value, list):
                stack += [((*path, number), item) for number, item in enumerate(value)]


def _check_values(document: object) -> tuple[list[Finding], bool]:
    """Return the findings on values that are not JSON, and whether validation can continue."""
    if _is_json(_once(document)):
        return [], True
    found: list[Finding] = []
    readable = True
    for path, value in _walk(document):
        if value is None or isinstance(value, bool):
            continue
        reason = ""
        if isinstance(value, str):
            if not value.isascii() and not _is_utf8(value):
                reason = "the text contains half of a surrogate pair"
        elif isinstance(value, float):
            if not math.isfinite(value):
                reason = _NOT_FINITE
        elif isinstance(value, int):
            if not -_FLOAT_MAX <= value <= _FLOAT_MAX:
                reason, readable = "the number is beyond float64", readable and value.bit_length() <= _MAX_BITS
        elif isinstance(value, dict):
            if any(not isinstance(key, str) or not _is_utf8(key) for key in value):
                reason, readable = "a key is not valid UTF-8 text", False
        elif not isinstance(value, list):
            reason, readable = f"{type(value).__name__} is not a JSON value", False
        if len(path) > MAX_DEPTH:
            reason, readable = f"nested deeper than {MAX_DEPTH} levels", False
        if reason:
            found.append(Finding(pointer(*path), reason, "json_value"))
    return found, readable


def _once(document: object) -> object:
    """Return the document without its summary if that is the same object as a phase's, so that it is checked once."""
    if not isinstance(document, dict) or not isinstance(phases := document.get("phases"), list):
        return document
    shared = any(isinstance(phase, dict) and phase.get("summary") is document.get("summary") for phase in phases)
    return {**document, "summary": None} if shared else document


def _is_json(document: object) -> bool:
    """Return whether every value is JSON: a fast check before the slower search for the faults."""
    level: list[Any] = [document]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is dict:
                try:
                    keys = "".join(value)
                except TypeError:
                    return False
                if not keys.isascii() and not _is_utf8(keys):
                    return False
                below += value.values()
            elif kind is list:
                below += value
            elif kind is str:
                if not value.isascii() and not _is_utf8(value):
                    return False
            elif kind is float or kind is int:
                if not -_FLOAT_MAX <= value <= _FLOAT_MAX:
                    return False
            elif value is not None and kind is not bool:
                return False
        if not below:
            return True
        level = below
    return False


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _route(stated: object) -> Finding | tuple[str, str, bool]:
    """Return the kind, the version to validate against, and whether the document is newer; or a finding."""
    kinds = ", ".join(KINDS)
    found = read_version(stated)
    if found is None:
        reason = f"schema_version must be KIND/MAJOR.MINOR; known kinds: {kinds}"
        return Finding("/schema_version", reason, "schema_version")
    kind, major, minor = found
    if kind not in KINDS:
        return Finding("/schema_version", f"unknown kind of document {kind}; known: {kinds}", "unknown_kind")
    known = [entry.order for entry in list_schemas() if entry.kind == kind]
    minors = [b for a, b in known if a == major]
    if not minors:
        newest = "{}.{}".format(*max(known))
        why = "written by a newer receipt" if major > max(known)[0] else "this version was never published"
        raise DataError(f"unknown schema version {stated}", why=f"{why}; this one reads {kind} up to {newest}")
    nearest = max((known_minor for known_minor in minors if known_minor <= minor), default=min(minors))
    return kind, f"{major}.{nearest}", minor != nearest


@cache
def _validator(kind: str, version: str) -> Any:
    """Return jsonschema's validator of one schema."""
    return make_validator(get_json_schema(find_entry(kind, version)))


def check_shape(
    document: dict[str, Any], kind: str, version: str, *, newer: bool = False, compiled: bool = True
) -> list[Finding]:
    """Return the findings on the shape of a document; if it is of a ``newer`` version, unknown fields are only notes."""
    if newer:
        document = {**document, "schema_version": f"{kind}/{version}"}
    refusal = refuse(kind, version, _once(document)) if compiled else None
    if refusal == "":
        return []
    try:
        validator = _validator(kind, version)
    except ModuleNotFoundError:
        if refusal is None:
            raise
        return [Finding("", refusal, "schema")]  # jsonschema is not installed in this interpreter
    found: dict[Finding, None] = {}  # an ordered set
    for error in validator.iter_errors(document):
        severity: Severity = "note" if newer and error.validator == "additionalProperties" else "error"
        for path, reason in explain(error):
            found[Finding(pointer(*path), reason, f"schema.{error.validator}", severity)] = None
    return list(found)


def _known_part(document: dict[str, Any], unknown: list[str]) -> dict[str, Any]:
    """Return ``document`` without the fields at ``unknown`` and their sources."""
    known = copy.deepcopy(document)
    for at in unknown:
        *path, last = split_pointer(at)
        del value_at(known, path)[last]
    header = known.get("header")
    sources: Any = header.get("sources") if isinstance(header, dict) else None
    for text in list(sources) if isinstance(sources, dict) else ():
        if any(f"/header{text}/".startswith(f"{at}/") for at in unknown):
            del sources[text]
    return known
