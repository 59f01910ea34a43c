"""The header file, written by ``receipt header`` at a job's start and read with its log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from receipt_cli.errors import InputError
from receipt_cli.header.document import ShapeError, facts_of, parse_object, unknown_note
from receipt_cli.header.facts import HeaderFact
from receipt_cli.header.values import text, timestamp

SCHEMA_VERSION = "header/1.0"
MAX_BYTES = 1 << 20
"""Largest header file read, in bytes."""
RUN_KEYS = ("name", "lane", "preset", "started_at")
_MAJOR = "header/1."


def header_document(run: Mapping[str, str | None], header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document to write: ``{schema_version, run{name, lane, preset, started_at}, header}``.

    Missing keys of ``run`` become null; ``started_at`` is RFC 3339 with ``Z`` and whole seconds. Raises ``ValueError`` for a
    run value of the wrong type or an unknown run key.
    """
    unknown = sorted(run.keys() - set(RUN_KEYS))
    if unknown:
        raise ValueError(f"run has no key {unknown[0]}")
    return {"schema_version": SCHEMA_VERSION, "run": _run(run), "header": dict(header)}


def read_header_file(path: Path) -> dict[str, Any]:
    """Return the checked document in ``path``: ``run`` with all four keys, ``header`` unchanged.

    Reads every later minor version of ``header/1``. Raises ``InputError`` if the file is missing, unreadable, over 1 MiB,
    not JSON, of another kind, or has a value of the wrong type.
    """
    where = str(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError("cannot read the header file", why=error.strerror or "", where=where) from None
    if len(content) > MAX_BYTES:
        raise InputError("header file is too large", why=f"at most {MAX_BYTES} bytes", where=where)
    try:
        document = parse_object(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError("header file is not UTF-8", where=where) from None
    except ShapeError as error:
        raise InputError("header file is not a JSON document", why=str(error), where=where) from None
    _opened(document, where)
    run = document.get("run")
    try:
        return document | {"run": _run({} if run is None else run)}
    except ValueError as error:
        raise InputError("header file cannot be used", why=str(error), where=where) from None


def file_facts(document: Mapping[str, Any], where: str = "header file") -> tuple[list[HeaderFact], list[str]]:
    """Return the facts of a header file's document, all with source ``file``, and a note of keys ignored.

    ``where`` names the file in messages. Raises ``InputError`` for another kind of document or a value of the wrong type.
    """
    facts, unknown = _opened(document, where)
    return facts, unknown_note(where, unknown)


def _opened(document: Mapping[str, Any], where: str) -> tuple[list[HeaderFact], list[str]]:
    version = document.get("schema_version")
    if not isinstance(version, str) or not version.startswith(_MAJOR):
        raise InputError(
            "not a header file",
            why=f"its schema_version is not {SCHEMA_VERSION}",
            try_="write one with `receipt header` when the job starts",
            where=where,
        )
    header = document.get("header")
    if not isinstance(header, Mapping):
        raise InputError("header file has no header object", where=where)
    try:
        return facts_of(header, "file")
    except ShapeError as error:
        raise InputError("header file cannot be used", why=str(error), where=where) from None


def _run(run: object) -> dict[str, str | None]:
    if not isinstance(run, Mapping):
        raise ValueError("/run must be an object")
    result: dict[str, str | None] = {}
    for name in RUN_KEYS:
        value = run.get(name)
        check = timestamp if name == "started_at" else text
        try:
            result[name] = None if value is None else check(value)
        except ValueError as error:
            raise ValueError(f"/run/{name} {error}") from None
    return result
