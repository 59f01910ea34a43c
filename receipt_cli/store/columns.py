"""The parts of a SQL view of a store: columns with types and meanings, and the statement; the values of columns.

A column keeps its name, type and meaning forever; new ones are added at the end of a group. Times are UTC, numbers in base
units, unknown values NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

TEXT, WHOLE, REAL, FLAG, TIME = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMP"
_LARGEST = 2**63 - 1


class Column(NamedTuple):
    """One column: name, DuckDB type, meaning, and path in a document ("": computed)."""

    name: str
    type: str
    meaning: str
    source: str = ""


class View(NamedTuple):
    """One view: name, meaning of a row, columns, and statement."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    select: str


def names_of(columns: Sequence[Column], prefix: str = "") -> str:
    """Return the quoted names of columns for a statement, each after ``prefix``."""
    return ", ".join(f'{prefix}"{column.name}"' for column in columns)


def types_of(columns: Sequence[Column]) -> dict[str, object]:
    """Return name → type of columns, for DuckDB's ``from_json``."""
    return {c.name: [TEXT] if c.type == f"{TEXT}[]" else c.type for c in columns}


def entries(source: str, field: str, who: Sequence[Column], columns: Sequence[Column]) -> tuple[tuple[Column, ...], str]:
    """Return columns and statement of a view of the entries of the list ``field``, each after the columns ``who`` of its row.

    ``source`` is what follows the columns in the statement that selects the rows: ``FROM …``.
    """
    listed = f"(SELECT {names_of(who)}, unnest({field}) AS x {source})"
    return (*who, *columns), f"SELECT {names_of(who)}, {names_of(columns, 'x.')} FROM {listed}"


def values_of(columns: Sequence[Column], document: object) -> dict[str, Any]:
    """Return name → value of the columns that have a source, in ``document`` or a part of it; None if it lacks the value."""
    return {column.name: _value_of(column, document) for column in columns if column.source}


def _value_of(column: Column, document: object) -> object:
    value = document
    for key in _keys(column.source):
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list):
            value = value[int(key)] if int(key) < len(value) else None
        else:
            return None
    return whole(value) if column.type == WHOLE else timestamp(value) if column.type == TIME else value


@cache
def _keys(source: str) -> tuple[str, ...]:
    return tuple(source.split("."))


def whole(value: object) -> int | None:
    """Return a whole number of at most 64 bits, else None; JSON may write it as 3.0."""
    number = int(value) if isinstance(value, int | float) and value == value // 1 else None
    return number if number is not None and abs(number) <= _LARGEST else None


def timestamp(value: object) -> str | None:
    """Return an RFC 3339 time in UTC in DuckDB's form, to the microsecond; None for an impossible date."""
    if not isinstance(value, str):
        return None
    clock, _, fraction = value.removesuffix("Z").partition(".")
    leap = clock.endswith(":60")
    try:
        moment = datetime.fromisoformat(f"{clock[:-2]}59" if leap else clock)
        moment += timedelta(seconds=int(leap), microseconds=0 if leap else int(fraction[:6].ljust(6, "0")))
    except (ValueError, OverflowError):
        return None
    return moment.isoformat(sep=" ")
