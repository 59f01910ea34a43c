"""Read a recorded stream: its lines, batches and names; count its problems and losses."""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np

from receipt_cli.gpu_profile.format import Batch
from receipt_cli.io.compression import HEAD, compression_of, decompress, is_bomb
from receipt_cli.numeric.array_types import Integers
from receipt_cli.problems import MAX_EXCERPT, MAX_FIRST, Problem
from receipt_cli.redaction.text import safe_text

_OF_A_KIND = 5
"""Most problems of one kind among those kept, so that the first twenty differ."""
_LOOKED_AT = 4 * MAX_EXCERPT


@dataclass(slots=True)
class StreamProblems:
    """``count`` problems, the ``first`` of them, and the number ``lost`` of each kind (None: an unknown number)."""

    count: int = 0
    first: list[Problem] = field(default_factory=list)
    lost: dict[str, int | None] = field(default_factory=dict)
    _kinds: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, detail: str, *, line: int | None = None, excerpt: bytes | str = "", count: int = 1) -> None:
        """Count a problem (``count`` similar ones); ``detail`` names the file, ``line`` is the line in it."""
        self.count += count
        self._kinds[kind] += 1
        if len(self.first) >= MAX_FIRST or self._kinds[kind] > _OF_A_KIND:
            return
        head = excerpt[:_LOOKED_AT]
        text = head.decode("utf-8", "replace") if isinstance(head, bytes) else head
        reason = safe_text(detail[:_LOOKED_AT]) or kind
        self.first.append(Problem(kind, line, reason, safe_text(text)))

    def add_loss(self, kind: str, count: int | None = 1) -> None:
        """Count known losses; None: an unknown number."""
        before = self.lost.get(kind, 0)
        self.lost[kind] = None if before is None or count is None else before + count


BLOCK = 1 << 20
MAX_LINE = 8 << 20
"""Longest record read, in bytes: a batch of 2,048 rows has 0.1 MB, a dictionary rarely over 1 MB."""
KEPT = 4096
"""Bytes kept of a longer record, enough for its type."""


class Line(NamedTuple):
    """One line without its end: ``data`` is all of it, or its first bytes if not ``whole``; ``number`` counts from 1."""

    number: int
    data: bytes
    whole: bool


def first_lines(stream: BinaryIO) -> list[bytes]:
    """Return the complete lines among the first ``BLOCK`` bytes of a file."""
    block = next(Lines(stream)._blocks(), b"")
    lines = block.split(b"\n")
    return lines if len(block) < BLOCK else lines[:-1]


class Lines:
    """The lines of one file, to be read once; after that, its digests, counts and ``damage`` (None for a sound file).

    ``size_bytes`` and ``sha256`` are of the decompressed bytes, ``stored_bytes`` and ``crc32`` of the stored file.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.size_bytes = 0
        self.stored_bytes = 0
        self.crc32 = 0
        self.line_count = 0
        self.damage: str | None = None
        self._stream = stream
        self._head = b""
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Hex digest of the decompressed bytes read so far."""
        return self._digest.hexdigest()

    def __iter__(self) -> Iterator[Line]:
        rest, skipping = b"", False
        for block in self._blocks():
            pieces = (block if skipping else rest + block).split(b"\n")
            if skipping:
                if len(pieces) == 1:
                    continue
                yield self._line(rest, False)
                pieces, skipping = pieces[1:], False
            rest = pieces.pop()
            for piece in pieces:
                yield self._line(piece, len(piece) <= MAX_LINE)
            if len(rest) > MAX_LINE:
                rest, skipping = rest[:KEPT], True
        if rest or skipping:
            yield self._line(rest, not skipping)

    def _line(self, data: bytes, whole: bool) -> Line:
        self.line_count += 1
        return Line(self.line_count, data if whole else data[:KEPT], whole)

    def _blocks(self) -> Iterator[bytes]:
        self._head = self._stored(HEAD)
        compression = compression_of(self._head)
        blocks = self._text(compression) if compression is not None else iter(lambda: self._stored(BLOCK), b"")
        for block in blocks:
            self._digest.update(block)
            self.size_bytes += len(block)
            yield block

    def _text(self, compression: str) -> Iterator[bytes]:
        blocks = decompress(compression, self._stored)
        while True:
            try:
                block = next(blocks)
            except StopIteration as end:
                self.damage = end.value
                return
            if is_bomb(self.size_bytes + len(block), self.stored_bytes):
                self.damage = f"decompresses to over {self.size_bytes} bytes from {self.stored_bytes}: possibly a bomb"
                return
            yield block

    def _stored(self, size: int) -> bytes:
        """Return ``size`` stored bytes, fewer only at the end."""
        pieces, self._head = [self._head[:size]] if self._head else [], self._head[size:]
        missing = size - sum(map(len, pieces))
        while missing > 0 and (fresh := self._stream.read(missing)):
            self.stored_bytes += len(fresh)
            self.crc32 = zlib.crc32(fresh, self.crc32)
            pieces.append(fresh)
            missing -= len(fresh)
        return b"".join(pieces)


Json: TypeAlias = "dict[str, Any]"
"""A JSON object as ``json.loads`` returns it."""

CHUNK = 4096
"""Rows added up at a time: the sum of so many durations below ``LONGEST_NS`` fits into 64 bits."""
LONGEST_NS = 1 << 50
"""Upper bound of a duration in nanoseconds, 13 days: a longer kernel, copy or fill is an error."""
LATEST_NS = 1 << 62
"""Upper bound of a time in nanoseconds since 1970: a time after 2116 is an error."""
MAX_DEVICE = 1023
_MAX_COLUMNS = 256


class Unreadable(ValueError):
    """No row of a batch can be read; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Rows:
    """``count`` rows of a batch as columns by name; rows of another length are left out and counted in ``torn``."""

    base_ns: int
    columns: dict[str, tuple[Any, ...]]
    count: int
    torn: int
    unknown: tuple[str, ...]


def is_whole(value: object) -> bool:
    """Return whether ``value`` is an integer and no boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def real(value: object) -> float | None:
    """Return a number as a float, finite or not; None for anything else, and for an integer beyond float64."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def whole(value: object, least: int, most: int) -> int | None:
    """Return an integer, or one in a string, if it is at least ``least`` and below ``most``; else None."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 19:
        value = int(value)
    return value if is_whole(value) and least <= value < most else None  # type: ignore[operator,return-value]


def rows_of(record: Json, known: Batch) -> Rows:
    """Return the rows of ``record``. Raises ``Unreadable``."""
    names, rows, base = record.get("columns"), record.get("rows"), record.get("base_time_ns")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not 0 < len(names) <= _MAX_COLUMNS:
        raise Unreadable("it declares no columns")
    if len(set(names)) < len(names):
        raise Unreadable("it declares a column twice")
    missing = [name for name in known.needed if name not in names]
    if missing:
        raise Unreadable(f"it has no column {missing[0]}")
    if not isinstance(rows, list):
        raise Unreadable("it has no rows")
    if whole(base, 0, LATEST_NS) is None or isinstance(base, str):
        raise Unreadable("its base_time_ns is no time")
    try:
        if set(map(type, rows)) - {list}:
            raise ValueError
        columns = list(zip(*rows, strict=True))
        if rows and len(columns) != len(names):
            raise ValueError
        torn = 0
    except ValueError:
        straight = [row for row in rows if isinstance(row, list) and len(row) == len(names)]
        columns, torn = list(zip(*straight, strict=True)), len(rows) - len(straight)
    unknown = tuple(name for name in names if not known.knows(name))
    named = dict(zip(names, columns or [()] * len(names), strict=True))
    return Rows(int(base), named, len(rows) - torn, torn, unknown)  # type: ignore[arg-type]


def whole_columns(rows: Rows, bounds: dict[str, tuple[int, int]]) -> Iterator[tuple[dict[str, Integers], int]]:
    """Yield chunks of the columns of ``bounds`` as int64 [n], and the number of rows left out of each chunk.

    A row is left out unless all its values are integers, at least the lower and below the upper bound of their column.
    """
    for start in range(0, rows.count, CHUNK):
        chunk = {name: rows.columns[name][start : start + CHUNK] for name in bounds}
        size = min(CHUNK, rows.count - start)
        try:
            if any(set(map(type, column)) - {int} for column in chunk.values()):
                raise OverflowError
            result = {name: np.array(column, np.int64) for name, column in chunk.items()}
        except OverflowError:
            yield _sifted(chunk, bounds, size)
            continue
        good = np.ones(size, np.bool_)
        for name, (least, most) in bounds.items():
            good &= (result[name] >= least) & (result[name] < most)
        lost = size - int(np.count_nonzero(good))
        yield ({name: column[good] for name, column in result.items()} if lost else result), lost


def _sifted(chunk: dict[str, tuple[Any, ...]], bounds: dict[str, tuple[int, int]], size: int) -> tuple[dict[str, Integers], int]:
    good = [
        row
        for row in zip(*chunk.values(), strict=True)
        if all(is_whole(value) and least <= value < most for value, (least, most) in zip(row, bounds.values(), strict=True))
    ]
    columns = np.array(good, np.int64).reshape(len(good), len(chunk)).T
    return dict(zip(chunk, columns, strict=True)), size - len(good)


def exact_total(values: Integers) -> int:
    """Return the sum of at most ``CHUNK`` integers from 0 to below 2**62; it may exceed 64 bits."""
    low = values & 0xFFFFFFFF
    return (int((values >> 32).sum()) << 32) + int(low.sum())


MAX_NAME = 2000
"""Longest name kept, in characters."""
_MAX_ENTRIES = 1 << 17
_MAX_CHARACTERS = 32 << 20
"""Most characters of all names in one dictionary."""
_DIGITS = 19


class Dictionary:
    """The names of one kind: ``kernel_dict`` or ``scope_name_dict``. Updates may come anywhere in the stream."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._names: dict[int, str | None] = {}
        self._characters = 0

    def update(self, record: Json, problems: StreamProblems, file: str, line: int) -> None:
        """Add the names of this kind from a ``dictionary_update``."""
        declared = record.get(self.key)
        if declared is None:
            return
        if not isinstance(declared, dict):
            problems.add("unreadable_value", f"{file}: {self.key} is not a dictionary", line=line)
            return
        for text, name in declared.items():
            if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS) or not isinstance(name, str):
                problems.add("unreadable_value", f"{file}: {self.key} has an entry that names no id", line=line, excerpt=text)
            elif not self._put(int(text), name[:MAX_NAME]):
                problems.add("name_twice", f"{file}: {self.key}: id {int(text)} has two names; neither is used", line=line)

    def name(self, identity: int) -> str | None:
        """Return the name of an id, safe for a document; None for an unknown or ambiguous id."""
        name = self._names.get(identity)
        return None if name is None else shown(name)

    def _put(self, identity: int, name: str) -> bool:
        if identity in self._names:
            if self._names[identity] == name:
                return True
            self._names[identity] = None
            return False
        if len(self._names) < _MAX_ENTRIES and self._characters + len(name) <= _MAX_CHARACTERS:
            self._characters += len(name)
            self._names[identity] = name
        return True


def shown(name: str) -> str | None:
    """Return a recorded name, safe for a document; None if nothing of it is left."""
    return safe_text(name, MAX_NAME) or None
