"""The type of every header leaf: one table from JSON pointer to the check of its value.

A check returns the value to store or raises ``ValueError`` with a reason that never quotes the value, which may be a
secret.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from receipt_cli.patterns import compile_later
from receipt_cli.problems import split_pointer

MAX_TEXT = 4096
"""Longest text of one leaf, in characters."""
MAX_MESSAGE = 80
"""Longest commit message, in characters."""
MAX_KEY = 128
MAX_ITEMS = 1024
"""Most entries of one list or map."""
TIMESTAMP_FORMAT = "%Y-%m-%dT%H:%M:%SZ"

_COMMIT = compile_later(r"[0-9a-fA-F]{4,64}")
_TIMESTAMP = compile_later(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_REPLACED = {"Cc": " ", "Zl": " ", "Zp": " ", "Cs": ""}
"""Replacements in a message for control characters, line separators and surrogates."""
_BIDI = dict.fromkeys((0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
"""Bidirectional controls, which change how a text looks."""
_UNSIGNED_64 = 2**64 - 1
_SIGNED_64_MIN = -(2**63)


def text(value: object) -> str:
    """Return ``value`` without outer blanks: 1 to 4096 characters without control characters."""
    if not isinstance(value, str):
        raise ValueError("must be a text")
    stripped = value.strip()
    if not stripped:
        raise ValueError("must not be empty")
    if len(stripped) > MAX_TEXT:
        raise ValueError(f"must have at most {MAX_TEXT} characters")
    if any(unicodedata.category(character) in _REPLACED or ord(character) in _BIDI for character in stripped):
        raise ValueError("must be valid UTF-8 without control characters")
    return stripped


def commit(value: object) -> str:
    """Return a git object name in lower case: 4 to 64 hexadecimal digits."""
    if not isinstance(value, str) or not _COMMIT.fullmatch(value.strip()):
        raise ValueError("must be 4 to 64 hexadecimal digits")
    return value.strip().lower()


def branch(value: object) -> str:
    """Return a branch name without ``refs/heads/``."""
    return text(text(value).removeprefix("refs/heads/"))


def message(value: object) -> str:
    """Return the first non-empty line, with control characters as blanks, cut to 80 characters."""
    if not isinstance(value, str):
        raise ValueError("must be a text")
    for line in re.split(r"[\r\n]+", value[: 64 * MAX_TEXT]):
        visible = "".join(_REPLACED.get(unicodedata.category(c), c) for c in line.translate(_BIDI))
        if visible.strip():
            return visible.strip()[:MAX_MESSAGE].rstrip()
    raise ValueError("must not be empty")


def truth(value: object) -> bool:
    """Return a JSON boolean."""
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def whole(value: object) -> int:
    """Return a whole number of 64 bits, signed or unsigned; a whole float counts."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not _SIGNED_64_MIN <= value <= _UNSIGNED_64:
        raise ValueError("must be a whole number of at most 64 bits")
    return value


def positive(value: object) -> int:
    """Return a whole number of 1 or more (a count of things that exist, a size in bytes)."""
    number = whole(value)
    if number < 1:
        raise ValueError("must be a whole number of 1 or more")
    return number


def scalar(value: object) -> str | int | float | bool:
    """Return a text, a finite number or a boolean."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("must be finite")
        return value
    if isinstance(value, str):
        return text(value)
    raise ValueError("must be a text, a number or a boolean")


def posture(value: object) -> Any:
    """Return a scalar, or an object of scalars and nulls such as ``{requested, observed}``, sorted by key."""
    if not isinstance(value, Mapping):
        return scalar(value)
    if not value or len(value) > MAX_ITEMS:
        raise ValueError(f"must have 1 to {MAX_ITEMS} keys")
    return {key(name): None if value[name] is None else scalar(value[name]) for name in sorted(value, key=str)}


def timestamp(value: object) -> str:
    """Return an RFC 3339 time in UTC with whole seconds, such as ``2026-01-31T12:00:00Z``."""
    if not isinstance(value, str) or not _TIMESTAMP.fullmatch(value):
        raise ValueError("must be an RFC 3339 time with Z and whole seconds")

    try:
        datetime.strptime(value, TIMESTAMP_FORMAT)
    except ValueError:
        raise ValueError("must be a valid date and time") from None
    return value


def key(value: object) -> str:
    """Return a key of an open map: a text of at most 128 characters."""
    name = text(value)
    if name != value or len(name) > MAX_KEY:
        raise ValueError(f"has a key with outer blanks or over {MAX_KEY} characters")
    return name


def packages(value: object) -> dict[str, str]:
    """Return a map of distribution name to version, sorted by name; entries without a version are dropped."""
    if not isinstance(value, Mapping) or len(value) > MAX_ITEMS:
        raise ValueError(f"must be an object of at most {MAX_ITEMS} texts")
    return {key(name): text(value[name]) for name in sorted(value, key=str) if value[name] is not None}


def accelerators(value: object) -> list[dict[str, Any]]:
    """Return a list of ``{name, count, memory_bytes}``, each nullable; other keys are dropped."""
    if not isinstance(value, list | tuple) or len(value) > MAX_ITEMS:
        raise ValueError(f"must be a list of at most {MAX_ITEMS} objects")
    return [_accelerator(entry) for entry in value]


def _accelerator(entry: object) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise ValueError("must be a list of objects {name, count, memory_bytes}")
    checks: dict[str, Callable[[object], Any]] = {"name": text, "count": positive, "memory_bytes": positive}
    try:
        return {n: None if entry.get(n) is None else check(entry[n]) for n, check in checks.items()}
    except ValueError as error:
        raise ValueError(f"has an entry that is not {{name, count, memory_bytes}}: {error}") from None


def cost(value: object) -> dict[str, Any]:
    """Return ``{hourly_rate, currency, source}``: a rate of 0 or more, the other two nullable."""
    if not isinstance(value, Mapping):
        raise ValueError("must be an object {hourly_rate, currency, source}")
    rate = value.get("hourly_rate")
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not math.isfinite(rate) or rate < 0:
        raise ValueError("must have an hourly_rate of 0 or more")
    names = ("currency", "source")
    return {"hourly_rate": rate} | {n: None if value.get(n) is None else text(value[n]) for n in names}


Check = Callable[[object], Any]

LEAVES: dict[str, Check] = {
    "/git/commit": commit,
    "/git/branch": branch,
    "/git/dirty": truth,
    "/git/message": message,
    "/software/python": text,
    "/software/platform": text,
    "/software/torch": text,
    "/software/cuda": text,
    "/software/trainer": text,
    "/software/packages": packages,
    "/hardware/accelerators": accelerators,
    "/hardware/cpu_count": positive,
    "/hardware/ram_bytes": positive,
    "/parallelism/world_size": positive,
    "/parallelism/data": positive,
    "/parallelism/tensor": positive,
    "/parallelism/pipeline": positive,
    "/parallelism/context": positive,
    "/parallelism/expert": positive,
    "/model/architecture": text,
    "/model/parameter_count": positive,
    "/model/parameter_digest": text,
    "/data/name": text,
    "/data/size_samples": positive,
    "/data/tokenizer": text,
    "/data/packing_policy": text,
    "/data/digest": text,
    "/cost": cost,
    "/cwd": text,
    "/collected_at": timestamp,
}
"""Check of every fixed leaf. A list or map that one source must give as a whole is one leaf."""

OPEN_MAPS: dict[str, Check] = {"/seeds": whole, "/flags": scalar, "/execution": posture}
"""Maps with free keys: pointer of the map → check of one value."""


def is_pointer(pointer: str) -> bool:
    """Return whether ``pointer`` names a leaf of the header."""
    if pointer in LEAVES:
        return True
    head, _, token = pointer.rpartition("/")
    return head in OPEN_MAPS and bool(token)


def checked(pointer: str, value: object) -> Any:
    """Return ``value`` as the header stores it at ``pointer``.

    Raises ``ValueError`` if the pointer is no leaf of the header or the value is not of its type.
    """
    if pointer in LEAVES:
        return LEAVES[pointer](value)
    if not is_pointer(pointer):
        raise ValueError("is not a field of the header")
    key(split_pointer(pointer)[-1])
    return OPEN_MAPS[pointer.rpartition("/")[0]](value)


JsonValue: TypeAlias = "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
"""A JSON value."""


class HeaderFact(NamedTuple):
    """One value of the header and its origin.

    ``pointer`` is a JSON pointer inside the header (``/git/commit``); ``value`` is in base units (bytes, counts) and of the
    pointer's type; ``source`` is ``env:NAME``, ``blob``, ``file``, ``log:LINE``, ``host`` or ``git``.
    """

    pointer: str
    value: JsonValue
    source: str


@dataclass(slots=True)
class FactCollector:
    """Result of a collector that never fails: facts, and a note for each fact left unknown."""

    facts: list[HeaderFact] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, pointer: str, value: object, source: str) -> None:
        """Add ``value`` as a fact; skip None; turn a value of the wrong type into a note."""
        if value is None:
            return
        try:
            self.facts.append(HeaderFact(pointer, checked(pointer, value), source))
        except ValueError as error:
            self.notes.append(f"{source}: {pointer} left out: {error}")

    def note(self, text: str) -> None:
        """Add the reason why a fact is unknown (for stderr)."""
        self.notes.append(text)
