"""Read the columns of a record by their declared names: whole numbers with numpy, mixed values one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from receipt_cli.gpu_profile.format import Batch
from receipt_cli.numeric.array_types import Integers

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
    columns: Sequence[tuple[int, ...]] = list(zip(*good, strict=True)) or [()] * len(chunk)
    result = {name: np.array(column, np.int64) for name, column in zip(chunk, columns, strict=True)}
    return result, size - len(good)


def exact_total(values: Integers) -> int:
    """Return the sum of at most ``CHUNK`` integers from 0 to below 2**62; it may exceed 64 bits."""
    low = values & 0xFFFFFFFF
    return (int((values >> 32).sum()) << 32) + int(low.sum())
