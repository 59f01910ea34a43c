"""Facts from environment variables: single git values, and one JSON blob for the rest.

An empty variable counts as unset, because CI systems export empty ones. No message quotes a variable's value: it may be
a misplaced secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from receipt_cli.errors import UsageError
from receipt_cli.header.document import ShapeError, facts_of, parse_object, unknown_note
from receipt_cli.header.facts import HeaderFact
from receipt_cli.header.values import checked

GIT_VARIABLES = {
    "RECEIPT_GIT_COMMIT": "/git/commit",
    "RECEIPT_GIT_BRANCH": "/git/branch",
    "RECEIPT_GIT_DIRTY": "/git/dirty",
    "RECEIPT_GIT_MESSAGE": "/git/message",
}
BLOB_VARIABLE = "RECEIPT_BUILD_PROVENANCE"
MAX_BLOB_BYTES = 64 * 1024
"""Largest blob read, in bytes."""

_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_FLAT_GIT_KEYS = ("commit", "branch", "dirty", "message")


def variable_facts(environ: Mapping[str, str]) -> tuple[list[HeaderFact], list[str]]:
    """Return the facts of ``RECEIPT_GIT_COMMIT``, ``_BRANCH``, ``_DIRTY``, ``_MESSAGE``, and no notes.

    A commit is 4 to 64 hexadecimal digits; dirty is true, false, 1, 0, yes or no in any case; a message is cut to its first
    line and 80 characters. Raises ``UsageError`` with the variable's name.
    """
    facts: list[HeaderFact] = []
    for name, pointer in GIT_VARIABLES.items():
        text = environ.get(name, "").strip()
        if not text:
            continue
        try:
            value = _truth(text) if pointer == "/git/dirty" else text
            facts.append(HeaderFact(pointer, checked(pointer, value), f"env:{name}"))
        except ValueError as error:
            raise UsageError(f"{name} {error}", where=f"environment variable {name}") from None
    return facts, []


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise ValueError("must be one of true, false, 1, 0, yes, no")
    return _TRUTH[text.lower()]


def blob_facts(environ: Mapping[str, str]) -> tuple[list[HeaderFact], list[str]]:
    """Return the facts of the JSON in ``RECEIPT_BUILD_PROVENANCE`` and a note of the keys ignored.

    The object has the header's form; ``commit``, ``branch``, ``dirty`` and ``message`` may also be at its top. Raises
    ``UsageError`` with the variable's name for over 64 KiB, invalid JSON, a value of the wrong type, and a git key in both
    places.
    """
    text = environ.get(BLOB_VARIABLE, "").strip()
    if not text:
        return [], []
    where = f"environment variable {BLOB_VARIABLE}"
    if len(text) > MAX_BLOB_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BLOB_BYTES:
        raise UsageError(f"{BLOB_VARIABLE} is too large", why=f"at most {MAX_BLOB_BYTES} bytes", where=where)
    try:
        facts, unknown = facts_of(_nested(parse_object(text)), "blob")
    except ShapeError as error:
        raise UsageError(
            f"{BLOB_VARIABLE} cannot be used",
            why=str(error),
            try_='give a JSON object such as {"commit": "0123abcd", "dirty": false}',
            where=where,
        ) from None
    return facts, unknown_note(BLOB_VARIABLE, unknown)


def _nested(blob: dict[str, Any]) -> dict[str, Any]:
    flat = {name: blob[name] for name in _FLAT_GIT_KEYS if name in blob}
    if not flat:
        return blob
    nested = blob.get("git")
    if nested is None:
        nested = {}
    if not isinstance(nested, dict):
        raise ShapeError("/git must be an object")
    twice = sorted(flat.keys() & nested.keys())
    if twice:
        raise ShapeError(f"/{twice[0]} and /git/{twice[0]} are both given")
    rest = {name: value for name, value in blob.items() if name not in flat}
    return rest | {"git": nested | flat}
