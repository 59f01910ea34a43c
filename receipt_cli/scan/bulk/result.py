"""Collect the events of records that were read together, and merge them with the others in log order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.ordinals import OrdinalSet, ordinals_in
from receipt_cli.problems import MAX_FIRST, NearMiss
from receipt_cli.scan.book import PlacedProblems, excerpt
from receipt_cli.scan.bulk.template import Piece
from receipt_cli.scan.columns import Bounded, NumberColumn, RuleColumns, TextColumn, place
from receipt_cli.scan.segment import RuleKey, SegmentBody

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from receipt_cli.numeric.array_types import Integers


@dataclass(slots=True)
class BlockResult:
    """Events by rule, records that are ignored by grammar, near-misses, and problems, which go to ``problems``."""

    problems: PlacedProblems
    pieces: dict[RuleKey, list[Piece]] = field(default_factory=dict)
    ignored: dict[str, list[Integers]] = field(default_factory=dict)
    near: dict[str, Bounded[NearMiss]] = field(default_factory=dict)

    def miss(self, name: str, count: int, first: Iterable[tuple[str, int, int, bytes]]) -> None:
        """Count near-misses of grammar ``name``; rule, ordinal, line and bytes of the ``first`` of them."""
        near = self.near.setdefault(name, Bounded(MAX_FIRST))
        near.count += count
        for rule, ordinal, line, record in first:
            near.first.append((place(ordinal), NearMiss(name, rule, line, excerpt(record))))
        near.first = sorted(near.first, key=lambda entry: entry[0])[:MAX_FIRST]

    def merge_into(self, body: SegmentBody) -> None:
        """Put everything into ``body``, which has what was read one by one, in the order of the log."""

        for key, pieces in self.pieces.items():
            body.rules[key] = in_order(body.rules.get(key, RuleColumns()), pieces)
        for name, ordinals in self.ignored.items():
            body.ignored[name] = OrdinalSet.union(body.ignored.get(name, OrdinalSet()), *map(ordinals_in, ordinals))
        for name, near in self.near.items():
            known = body.near.setdefault(name, near)
            if known is not near:
                known.count += near.count
                known.first = sorted([*known.first, *near.first], key=lambda entry: entry[0])[:MAX_FIRST]


T = TypeVar("T")


def in_order(single: RuleColumns, pieces: list[Piece]) -> RuleColumns:
    """Return the events of one rule, those read one by one and those of all templates, in the order of the log."""
    if len(single):
        pieces = [_piece(single), *pieces]
    counts = [len(piece.at) for piece in pieces]
    at = np.concatenate([piece.at for piece in pieces])
    order = np.argsort(at, kind="stable")
    row = np.empty_like(order)
    row[order] = np.arange(len(order))
    first = np.cumsum([0, *counts[:-1]])
    made = RuleColumns(
        Cells.of(at[order]),
        Cells.of(np.concatenate([piece.line for piece in pieces])[order]),
        Cells.of(np.concatenate([piece.rank for piece in pieces])[order]),
        Cells.of(np.concatenate([piece.clock for piece in pieces])[order]),
    )

    def rows_of(index: int, rows: Integers | None) -> Integers:
        begin = first[index]
        return row[begin : begin + counts[index]] if rows is None else row[begin + rows]

    for kind in ("numbers", "unregistered"):
        parts: dict[str, list[tuple[Integers, NDArray[np.float64]]]] = {}
        for index, piece in enumerate(pieces):
            for name, (rows, values) in getattr(piece, kind).items():
                parts.setdefault(name, []).append((rows_of(index, rows), values))
        columns: dict[str, NumberColumn] = getattr(made, kind)
        for name, found in _by_appearance(parts):
            rows = np.concatenate([entry[0] for entry in found])
            values = np.concatenate([entry[1] for entry in found])
            if len(rows) == len(order):
                dense = np.empty(len(order))
                dense[rows] = values
                columns[name] = NumberColumn(Cells.of(dense))
            else:
                sorting = np.argsort(rows)
                columns[name] = NumberColumn(Cells.of(values[sorting]), Cells.of(rows[sorting]))
    texts: dict[str, list[tuple[Integers, list[str]]]] = {}
    for index, piece in enumerate(pieces):
        for name, (rows, words) in piece.texts.items():
            texts.setdefault(name, []).append((rows_of(index, rows), words))
    for name, entries in _by_appearance(texts):
        pairs = sorted((r, word) for rows, words in entries for r, word in zip(rows.tolist(), words, strict=True))
        text = made.texts[name] = TextColumn()
        for r, word in pairs:
            text.append(r, word)
    return made


def _by_appearance(parts: dict[str, list[tuple[Integers, T]]]) -> list[tuple[str, list[tuple[Integers, T]]]]:
    """Return the columns in the order in which they were first printed."""
    return sorted(parts.items(), key=lambda part: min(int(rows.min()) for rows, _ in part[1]))


def _piece(columns: RuleColumns) -> Piece:
    """Return events that were read one by one as a piece."""
    def numbers(found: dict[str, NumberColumn]) -> dict[str, tuple[Integers | None, NDArray[np.float64]]]:
        return {
            name: (None if len(column.values) == len(columns) else np.array(column.rows), np.array(column.values))
            for name, column in found.items()
        }

    return Piece(
        np.array(columns.at),
        np.array(columns.line),
        np.array(columns.rank),
        np.array(columns.clock),
        numbers(columns.numbers),
        {name: (np.array(text.rows), text.values) for name, text in columns.texts.items()},
        numbers(columns.unregistered),
    )
