"""Build the events of one rule from records of many layouts: one piece, in log order.

A table contains the place and the printed form of each value, by layout; numpy looks them up for all records at
once. Layouts with many records in a block are read each for itself, which needs no looking up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.book import NAN
from receipt_cli.scan.bulk.block import Records, bytes_at
from receipt_cli.scan.bulk.decimals import DecimalPlan
from receipt_cli.scan.bulk.mixed_decimals import MixedDecimals
from receipt_cli.scan.bulk.prefixes import Prefixes
from receipt_cli.scan.bulk.template import Piece, Template, plan_of
from receipt_cli.scan.columns import POSITION_BITS
from receipt_cli.scan.layout import EventLayout, Value

if TYPE_CHECKING:

    from receipt_cli.numeric.array_types import Floats, Integers, Mask

MANY_ROWS = 1024
"""Records of a layout in a block from which on it is read for itself."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Records of a block that give an event of one rule: their ordinals, where they begin, their layouts' numbers.

    ``counts``: how many records of the block each layout has.
    """

    block: Records
    ordinals: Integers
    starts: Integers
    numbers: Integers
    counts: Integers

    def choose(self, rows: Mask) -> Rows:
        """Return some of the rows."""
        numbers = self.numbers[rows]
        counts = np.bincount(numbers, minlength=len(self.counts))
        return Rows(self.block, self.ordinals[rows], self.starts[rows], numbers, counts)


class _Field:
    """One value of a rule, in all layouts that print it."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        self.least: float | None = None
        self.may_fail = False
        self._plans: dict[DecimalPlan, int] = {}
        self._members: list[tuple[int, int, int, int]] = []
        self.mixed = MixedDecimals(())

    def add(self, number: int, start: int, plan: DecimalPlan, place: int) -> None:
        """Layout ``number`` prints it from ``start`` on, as the value ``place`` of its event."""
        self._members.append((number, start, self._plans.setdefault(plan, len(self._plans)), place))
        self.may_fail = self.may_fail or plan.first is not None

    def freeze(self, count: int) -> None:
        """Make the tables for the layouts below ``count``."""
        self.starts, self.plans, self.places = np.zeros((3, count), np.int64)
        self.plans[:] = -1
        numbers, starts, plans, places = np.array(self._members, np.int64).T
        self.starts[numbers], self.plans[numbers], self.places[numbers] = starts, plans, places
        if len(self.mixed.plans) < len(self._plans):
            self.mixed = MixedDecimals(tuple(self._plans))

    def convert(self, rows: Rows, some: Integers | None, out: Floats) -> None:
        """Write the values of the rows ``some`` (None: all) to ``out``, where their layouts have it."""
        numbers = rows.numbers if some is None else rows.numbers[some]
        plans = self.plans[numbers]
        if len(plans) and plans.min() < 0:
            held = np.flatnonzero(plans >= 0)
            some = held if some is None else some[held]
            numbers, plans = numbers[held], plans[held]
        if not len(plans):
            return
        if some is None:
            out[:] = self.mixed.convert(rows.block.buffer, rows.starts + self.starts[numbers], plans)
        else:
            out[some] = self.mixed.convert(rows.block.buffer, rows.starts[some] + self.starts[numbers], plans)


@dataclass(slots=True)
class Column:
    """The values of one field: of all rows, or of those in ``rows``."""

    kind: str
    name: str
    rows: Integers | None
    values: Floats


class EventTable:
    """The places and plans of one rule's values in all layouts that have its event."""

    def __init__(self) -> None:
        self._fields: dict[tuple[str, str], _Field] = {}
        self._members: list[tuple[int, int, int]] = []
        self._groups: dict[object, int] = {}
        self._prefixes: list[Prefixes] = []
        self._alone: dict[int, tuple[Template, list[_Field]]] = {}
        self._count = 0

    def add(self, number: int, template: Template, index: int) -> None:
        """Add event ``index`` of ``template``, which is plain and whose layout is known as ``number``."""
        layout = template.layout
        event = layout.events[index]
        listed: list[tuple[str, Value]] = [("numbers", value) for value in event.values]
        listed += [("unregistered", value) for value in event.unregistered]
        fields = []
        for place, (kind, value) in enumerate(listed):
            found = plan_of(layout, value)
            assert found is not None, "a value without a plan"
            one = self._fields.get((kind, value.name)) or _Field(kind, value.name)
            self._fields[kind, value.name] = one
            one.add(number, *found, place)
            fields.append(one)
        for at, least in event.bounds:
            fields[at].least = least
        self._members.append((number, event.offset, self._group(layout.sample, event, template.prefixes[index])))
        if len(layout.events) == 1:
            self._alone[number] = template, fields
        self._count = 0

    def _group(self, sample: bytes, event: EventLayout, prefixes: Prefixes | None) -> int:
        """Return which prefixes have the layout of this one, or -1 where it has none."""
        if event.prefix is None or prefixes is None:
            return -1
        text = np.frombuffer(sample, np.uint8, event.prefix.end)
        key = event.prefix.time, prefixes.moving.tobytes(), np.where(prefixes.moving, 0x30, text).astype(np.uint8).tobytes()
        group = self._groups.setdefault(key, len(self._groups))
        if group == len(self._prefixes):
            self._prefixes.append(prefixes)
        return group

    def freeze(self, count: int) -> Mask:
        """Make the tables for the layouts below ``count``; return which of them have the event."""
        if self._count != count:
            self._count = count
            self._offsets, self._group_of = np.zeros((2, count), np.int64)
            numbers, offsets, groups = np.array(self._members, np.int64).T
            self._offsets[numbers], self._group_of[numbers] = offsets, groups
            self._has = np.zeros(count, np.bool_)
            self._has[numbers] = True
            for one in self._fields.values():
                one.freeze(count)
        return self._has

    def columns(self, rows: Rows) -> tuple[list[Column], Mask | None]:
        """Return all values of the rows, by first appearance, and which rows have one that cannot be taken; None: none.

        Those are rows with values out of bounds, and with what looks like a number and is none.
        """
        count = len(rows.numbers)
        fields = [one for one in self._fields.values() if (rows.counts[one.plans >= 0]).any()]
        out = np.empty((len(fields), count))
        rest = self._convert_alone(rows, fields, out)
        made: list[tuple[int, int, Column]] = []
        bad: Mask | None = None
        for one, values in zip(fields, out, strict=True):
            one.convert(rows, rest, values)
            plans = one.plans[rows.numbers]
            held = None if plans.min() >= 0 else np.flatnonzero(plans >= 0)
            if held is not None and not len(held):
                continue
            values = values if held is None else values[held]
            wrong = values < one.least if one.least is not None else None
            if one.may_fail:
                wrong = np.isnan(values) if wrong is None else wrong | np.isnan(values)
            if wrong is not None and wrong.any():
                bad = np.zeros(count, np.bool_) if bad is None else bad
                bad[np.flatnonzero(wrong) if held is None else held[wrong]] = True
            first = 0 if held is None else int(held[0])
            made.append((first, int(one.places[rows.numbers[first]]), Column(one.kind, one.name, held, values)))
        return [column for _, _, column in sorted(made, key=lambda entry: entry[:2])], bad

    def _convert_alone(self, rows: Rows, fields: Sequence[_Field], out: Floats) -> Integers | None:
        """Convert the layouts with many rows each for itself; return the rows that are left, None: all."""
        many = [number for number in np.flatnonzero(rows.counts >= MANY_ROWS).tolist() if number in self._alone]
        if not many:
            return None
        index = {one: i for i, one in enumerate(fields)}
        left = np.ones(len(rows.numbers), np.bool_)
        for number in many:
            template, own = self._alone[number]
            mine = rows.numbers == number
            left &= ~mine
            if template.decimals is not None:
                places = np.flatnonzero(mine)
                matrix = bytes_at(rows.block.buffer, rows.starts[places], template.length)
                for one, values in zip(own, template.decimals.convert(matrix), strict=True):
                    out[index[one], places] = values
        return np.flatnonzero(left)

    def piece(self, rows: Rows, columns: Sequence[Column]) -> Piece:
        """Return the events of ``rows``, whose values are ``columns``."""
        at = (rows.ordinals << POSITION_BITS) + self._offsets[rows.numbers]
        made = Piece(at, rows.block.line_of(rows.ordinals), *self._heads(rows))
        for column in columns:
            (made.numbers if column.kind == "numbers" else made.unregistered)[column.name] = column.rows, column.values
        return made

    def _heads(self, rows: Rows) -> tuple[Integers, Floats]:
        """Return the rank and the clock of each row."""
        count = len(rows.numbers)
        groups = self._group_of[rows.numbers]
        lowest, highest = int(groups.min()), int(groups.max())
        if lowest == highest >= 0:
            return self._read_heads(rows.block.buffer, rows.starts, lowest)
        rank, clock = np.full(count, NO_RANK, np.int64), np.full(count, NAN)
        for group in distinct_values(groups[groups >= 0]).tolist() if highest >= 0 else ():
            some = np.flatnonzero(groups == group)
            rank[some], clock[some] = self._read_heads(rows.block.buffer, rows.starts[some], group)
        return rank, clock

    def _read_heads(self, buffer: bytes, starts: Integers, group: int) -> tuple[Integers, Floats]:
        prefixes = self._prefixes[group]
        return prefixes.read(bytes_at(buffer, starts, prefixes.prefix.end))
