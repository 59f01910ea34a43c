"""Convert the numbers of one field, printed in several layouts, to float64 at once, each rounded once.

What ``decimals`` does for one layout, with the columns, masks and weights of each row's own layout: layouts are many
where floats are printed as they are, and each of them has few rows in a block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from receipt_cli.definitions.units import read_number
from receipt_cli.numeric.array_types import Floats, Integers, Words
from receipt_cli.scan.bulk.block import bytes_at
from receipt_cli.scan.bulk.decimals import (
    EXACT_INTEGER,
    EXACT_POWER,
    DecimalFields,
    DecimalPlan,
    add_digits,
    double_double,
    exact,
)

LEAD = 32
"""Bytes required before a number: it is read in words that end where it does."""
CHUNK = 8192
"""Rows converted at a time: their words stay in the second-level cache."""
_WORD = 8
_DIGIT = 0x0F


class MixedDecimals:
    """Numbers that have one of several plans each."""

    def __init__(self, plans: Sequence[DecimalPlan]) -> None:
        self.plans = tuple(plans)
        self._alone = [DecimalFields([(0, plan)]) for plan in plans]
        most = LEAD // _WORD
        self._stops = np.array([plan.words[0].stop for plan in plans], np.int64)
        spans = [1 + (plan.words[0].stop - plan.words[-1].stop) // _WORD for plan in plans]
        apart = [plan.largest >= 2**63 or span > most for plan, span in zip(plans, spans, strict=True)]
        self._apart = np.array(apart, np.bool_)
        self._words = np.where(self._apart, 0, spans)
        moves = max((len(word.masks) for plan in plans for word in plan.words), default=1)
        self._masks = np.zeros((most, moves, len(plans)), np.uint64)
        self._moves = np.zeros((most, len(plans)), np.int64)
        self._weights = np.zeros((most, len(plans)), np.uint64)
        for index, plan in enumerate(plans):
            for word in () if apart[index] else plan.words:
                at = (plan.words[0].stop - word.stop) // _WORD
                self._masks[at, : len(word.masks), index] = word.masks
                self._moves[at, index] = len(word.masks)
                self._weights[at, index] = word.weight
        self._largest = np.array([float(plan.largest) for plan in plans])
        self._power = np.array([plan.power for plan in plans], np.int64)
        self._factor = np.array([plan.factor for plan in plans])
        self._first = np.array([-1 if plan.first is None else plan.first for plan in plans], np.int64)
        self._turn = np.array([plan.turn if plan.exponent else 0 for plan in plans], np.int64)
        self._exponent_stops = np.array([plan.exponent[-1] + 1 if plan.exponent else 0 for plan in plans], np.int64)
        masks = [0x0F0F if len(plan.exponent) == 2 else 0x0F00 for plan in plans]
        self._exponent_masks = np.array(masks, np.uint16)

    def convert(self, buffer: bytes, places: Integers, which: Integers) -> Floats:
        """Return the values (n,) of the numbers that begin at ``places`` (n,) of ``buffer``, with the plans ``which`` (n,).

        At least ``LEAD`` bytes precede each place, and every number has its plan's layout. NaN as in
        ``DecimalPlan.convert``.
        """
        out = np.empty(len(places))
        for begin in range(0, len(places), CHUNK):
            some = slice(begin, begin + CHUNK)
            self._convert(buffer, places[some], which[some], out[some])
        return out

    def _convert(self, buffer: bytes, places: Integers, which: Integers, out: Floats) -> None:
        present = np.flatnonzero(np.bincount(which, minlength=len(self.plans)))
        if len(present) == 1:
            self._convert_alone(buffer, places, int(present[0]), out)
            return
        apart = present[self._apart[present]]
        for index in apart.tolist():
            rows = np.flatnonzero(which == index)
            values = np.empty(len(rows))
            self._convert_alone(buffer, places[rows], index, values)
            out[rows] = values
        if not len(apart):
            self._convert_together(buffer, places, which, present, out)
        elif len(apart) < len(present):
            rows = np.flatnonzero(~self._apart[which])
            values = np.empty(len(rows))
            self._convert(buffer, places[rows], which[rows], values)
            out[rows] = values

    def _convert_alone(self, buffer: bytes, places: Integers, index: int, out: Floats) -> None:
        text = bytes_at(buffer, places, self.plans[index].width)
        self._alone[index].convert(text, out[None])

    def _convert_together(self, buffer: bytes, places: Integers, which: Integers, present: Integers, out: Floats) -> None:
        integers = self._mantissas(buffer, places, which, present).view(np.int64)  # signed ones convert faster
        power, factor = self._power[which], self._factor[which]
        if self._turn[present].any():
            power += self._turn[which] * self._exponents(buffer, places, which)
        exact(integers, np.clip(power, -EXACT_POWER, EXACT_POWER), factor, out)
        large = self._largest[present].max() > EXACT_INTEGER
        if large or power.min() < -EXACT_POWER or power.max() > EXACT_POWER:
            hard = np.flatnonzero((self._largest[which] > EXACT_INTEGER) | (np.abs(power) > EXACT_POWER))
            products, certain = double_double(integers[hard], power[hard])
            out[hard] = products * factor[hard]
            self._read_rows(buffer, places, which, hard[~certain], out)
        if self._first[present].max() >= 0:
            first = np.frombuffer(buffer, np.uint8)[places + np.maximum(self._first[which], 0)]
            out[(self._first[which] >= 0) & (first == ord("0"))] = math.nan

    def _mantissas(self, buffer: bytes, places: Integers, which: Integers, present: Integers) -> Words:
        """Return the digits (n,) of each number as an integer."""
        count = int(self._words[present].max())
        window = bytes_at(buffer, places + (self._stops[which] - count * _WORD), count * _WORD).view("<u8")
        mantissa: Words = np.zeros(len(places), np.uint64)
        for at in range(count):
            printed = window[:, count - 1 - at]
            words = printed & self._masks[at, 0][which]
            for move in range(1, int(self._moves[at][present].max())):
                words |= (printed << np.uint64(_WORD * move)) & self._masks[at, move][which]
            add_digits(words)
            if (self._weights[at][present] != 1).any():
                words *= self._weights[at][which]
            mantissa += words
        return mantissa

    def _exponents(self, buffer: bytes, places: Integers, which: Integers) -> Integers:
        printed = bytes_at(buffer, places + (self._exponent_stops[which] - 2), 2).view("<u2")[:, 0]
        printed &= self._exponent_masks[which]
        return ((printed & np.uint16(_DIGIT)) * np.uint16(10) + (printed >> np.uint16(8))).astype(np.int64)

    def _read_rows(self, buffer: bytes, places: Integers, which: Integers, rows: Integers, out: Floats) -> None:
        """Read some rows one by one."""
        for row in rows.tolist():
            plan, place = self.plans[which[row]], int(places[row])
            value = read_number(buffer[place : place + plan.width].decode("ascii"), plan.unit)
            out[row] = math.nan if value is None else value
