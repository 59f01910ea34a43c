"""Read a foreign document up to a size limit, with its digest; parse its JSON with numbers as printed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, TypeAlias

from receipt_cli.errors import InputError
from receipt_cli.io.source import Source

MAX_BYTES = 64 << 20
"""Largest document in bytes; it is read as a whole."""
MAX_SIDECAR = 8 << 20
"""Largest file beside the document that is read, in bytes."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document after reading: ``name`` is for messages; digest and size are of its decompressed bytes."""

    name: str
    text: str
    sha256: str
    size_bytes: int

    @property
    def line_count(self) -> int:
        """Number of lines, including a last line without a newline."""
        return self.text.count("\n") + (1 if self.text and not self.text.endswith("\n") else 0)


def read_document(path: str) -> Document:
    """Return the text of ``path`` (``-``: stdin), decompressed. Raises ``InputError``."""
    source = Source(path, document=True)
    blocks: list[bytes] = []
    try:
        for block in source.blocks():
            blocks.append(block)
            if source.size_bytes > MAX_BYTES:
                raise InputError("is too large for a document of one run", where=source.name, why=f"over {MAX_BYTES} bytes")
    finally:
        source.close()
    for problem in source.problems:
        raise InputError("is damaged", where=source.name, why=problem.detail)
    data = b"".join(blocks)
    if not data.strip():
        raise InputError("the document is empty", where=source.name)
    return Document(source.name, _decode(data, source.name), source.sha256, source.size_bytes)


def read_beside(path: str, name: str) -> Document | None:
    """Return the text of the file ``name`` in the folder of ``path``; None if it is missing, too large or unreadable."""
    if path == "-":
        return None
    try:
        with Path(path).with_name(name).open("rb") as file:
            data = file.read(MAX_SIDECAR + 1)
        if len(data) > MAX_SIDECAR:
            return None
        return Document(name, _decode(data, name), hashlib.sha256(data).hexdigest(), len(data))
    except (OSError, ValueError, InputError):
        return None


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8", where=name, why=str(error)[:200]) from error


_SPACE = re.compile(r"[ \t\n\r]*")
_BETWEEN = re.compile(r"[ \t\n\r,]*")


class Number(str):
    """The text of a number as printed, including ``NaN``, ``Infinity`` and ``-Infinity``, which Python's writer prints."""

    __slots__ = ()


Value: TypeAlias = "bool | str | Number | list[Value] | dict[str, Value] | None"


class NotJson(ValueError):
    """The text is not readable JSON; ``line`` is the line of the error, from 1."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True, slots=True)
class Record:
    """One element of an array and its first line."""

    line: int
    value: Value


@dataclass(slots=True)
class Array:
    """The elements of an array. ``broken`` has (line, error) of faults in its text; ``lost`` counts unreadable records."""

    records: list[Record] = field(default_factory=list)
    broken: list[tuple[int, str]] = field(default_factory=list)
    lost: int = 0
    closed: bool = False


class JsonText:
    """One JSON text. ``repeated`` lists keys that an object has twice with different values; both are ignored."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.repeated: list[str] = []
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._pairs, parse_float=Number, parse_int=Number, parse_constant=Number
        )

    def value(self) -> Value:
        """Return the value of the whole text. Raises ``NotJson``."""
        try:
            found: Value = self._decoder.decode(self.text)
        except json.JSONDecodeError as error:
            raise NotJson(error.msg, error.lineno) from None
        except RecursionError:
            raise NotJson("nested too deep", 1) from None
        return found

    def array(self, path: Sequence[str]) -> Iterator[Record]:
        """Yield the elements of the array at ``path`` (keys of objects), which ``value`` has there."""
        at = self._space(0)
        for key in path:
            at = next(begin for name, begin in self._members(at) if name == key)
        return self._elements(at, Array(), inner=True)

    def open_array(self) -> Array:
        """Return the elements of an array that may lack its end, a comma, or the rest of its last element."""
        array = Array()
        array.records.extend(self._elements(self.text.find("["), array))
        return array

    def _space(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def _members(self, at: int) -> Iterator[tuple[str, int]]:
        """Yield (key, offset of its value) of the object at ``at``."""
        at = self._space(at + 1)
        while self.text[at : at + 1] == '"':
            key, at = scanstring(self.text, at + 1, True)
            at = self._space(self._space(at) + 1)
            yield key, at
            at = self._space(self._decoder.raw_decode(self.text, at)[1])
            at = self._space(at + 1) if self.text[at : at + 1] == "," else at

    def _elements(self, at: int, array: Array, *, inner: bool = False) -> Iterator[Record]:
        """Yield the elements of the array at ``at``, which is the whole text unless it is an ``inner`` one.

        Faults in its text are added to ``array``. Raises ``NotJson`` for elements that are nested too deep.
        """
        line, counted = 1, 0
        at += 1
        while True:
            found = _BETWEEN.match(self.text, at)
            at = found.end() if found else at
            line, counted = line + self.text.count("\n", counted, at), at
            if at >= len(self.text):
                array.broken.append((line - self.text.endswith("\n"), "the array is not closed"))
                return
            if self.text[at] == "]":
                rest = self._space(at + 1)
                array.closed = rest >= len(self.text)
                if array.closed or inner:
                    return
                array.broken.append((line, "the array continues after its end"))
                at = rest + 1 if self.text[rest] == "[" else rest
                continue
            try:
                value, at = self._decoder.raw_decode(self.text, at)
            except RecursionError:
                raise NotJson("nested too deep", 1) from None
            except json.JSONDecodeError as error:
                array.broken.append((line, f"unreadable record: {error.msg}"))
                array.lost += 1
                at = self.text.find("\n", at)
                if at < 0:
                    return
                continue
            yield Record(line, value)

    def _pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            different = {key for key, value in pairs if value != result[key]}
            self.repeated += sorted(different)
            result = {key: value for key, value in result.items() if key not in different}
        return result


def at(value: Value, *path: str) -> Value:
    """Return the value at ``path`` (keys of nested objects), or None."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def members(value: Value, *path: str) -> dict[str, Value]:
    """Return the object at ``path``, or {}."""
    found = at(value, *path)
    return found if isinstance(found, dict) else {}
