"""The pieces of a block, read by template or one by one → columns in the order of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from receipt_cli.cells import Cells
from receipt_cli.columns import NumberColumn, RuleColumns, TextColumn
from receipt_cli.templates import Piece

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

T = TypeVar("T")


def in_order(single: RuleColumns, pieces: list[Piece]) -> RuleColumns:
    """Return the events of one rule, those read one by one and those of all templates, in the order of the log."""
    import numpy as np

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

    for kind in ("numbers", "others"):
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
    import numpy as np

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
        numbers(columns.others),
    )
