"""The parts of a SQL view of a store: columns with types and meanings, and the statement.

A column keeps its name, type and meaning forever; new ones are added at the end of a group. Times are UTC, numbers in base
units, unknown values NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

TEXT, WHOLE, REAL, FLAG, TIME = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMP"


class Column(NamedTuple):
    """One column: name, DuckDB type, meaning, and path in a receipt ("": computed)."""

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
