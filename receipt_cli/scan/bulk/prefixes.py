"""Read the ranks and clocks of records whose prefixes have one layout, all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from receipt_cli.records.envelope import read_clock
from receipt_cli.scan.bulk.decimals import DecimalFields, DecimalPlan
from receipt_cli.scan.extraction import NOWHERE
from receipt_cli.scan.layout import MAX_KEPT, Prefix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from receipt_cli.numeric.array_types import Bytes, Floats, Integers

_KEY_DIGITS = 18
"""Digits that fit an int64."""
_TIME_DIGITS = 0x0F0F000F0F000F0F
"""The digits of eight bytes ``hh:mm:ss``."""


class Prefixes:
    """Ranks and clocks of records whose prefixes differ in their digits only: each day of a rank is read once."""

    def __init__(self, prefix: Prefix, moving: NDArray[np.bool_]) -> None:
        """``moving`` (at least ``prefix.end``,) marks the bytes that are digits and may vary."""
        self.prefix = prefix
        self.moving = moving[: prefix.end]
        varies = moving[: prefix.end].copy()
        if prefix.time != NOWHERE:
            varies[slice(*prefix.time)] = False
        self._columns = np.flatnonzero(varies)
        self._powers = 10 ** np.arange(min(_KEY_DIGITS, len(self._columns)), dtype=np.int64)[::-1]
        begin, end = prefix.fraction
        plan = DecimalPlan.of(b"0" * (end - begin)) if end > begin else None
        self._fraction = None if plan is None else DecimalFields([(begin, plan)])
        self._scale = float(10 ** (end - begin))
        self._keys = np.empty(0, np.int64)
        self._days = np.empty((4, 0), np.float64)
        """Keys of the digits that vary, ascending, and for each rank, clock at midnight, what to take off, if time counts."""

    def read(self, matrix: Bytes) -> tuple[Integers, Floats]:
        """Return the ranks and the clocks (n,) of the records in ``matrix`` (n, at least the prefix's length)."""
        rank, whole, offset, moves = self._days_of(matrix)
        ranks = rank.astype(np.int64)
        moving = moves > 0
        if not moving.any():
            return ranks, whole
        start = self.prefix.time[0]
        words = np.ascontiguousarray(matrix[:, start : start + 8]).view("<u8")[:, 0] & np.uint64(_TIME_DIGITS)
        words = words * np.uint64(10) + (words >> np.uint64(8))  # each pair of digits, where its first one was
        hour, minute, second = (((words >> np.uint64(at)) & np.uint64(0xFF)).view(np.int64) for at in (0, 24, 48))
        part = self._fraction.convert(matrix)[0] / self._scale if self._fraction is not None else 0.0
        clock = whole + (3600 * hour + 60 * minute + second) + part - offset
        if not moving.all():
            clock = np.where(moving, clock, whole)
        for row in np.flatnonzero(moving & ((hour > 23) | (minute > 59) | (second > 59))).tolist():
            clock[row] = read_clock(matrix[row, : self.prefix.end].tobytes())
        return ranks, clock

    def _days_of(self, matrix: Bytes) -> Floats:
        """Return the results of ``Prefix.day`` as columns (4, n)."""
        if not len(self._columns):
            return np.repeat(self._read_days(matrix[:1]), len(matrix), axis=1)
        digits = matrix[:, self._columns]
        if len(self._columns) > _KEY_DIGITS:
            _, first, which = np.unique(digits, axis=0, return_index=True, return_inverse=True)
            return self._read_days(matrix[first])[:, which.reshape(-1)]
        keys = (digits & 0x0F).astype(np.int64) @ self._powers
        at = np.searchsorted(self._keys, keys)
        known = np.zeros(len(keys), np.bool_)
        if len(self._keys):
            known = self._keys[np.minimum(at, len(self._keys) - 1)] == keys
        if not known.all():
            fresh, first = np.unique(keys[~known], return_index=True)
            if len(self._keys) > MAX_KEPT:
                self._keys, self._days = self._keys[:0], self._days[:, :0]
                fresh, first = np.unique(keys, return_index=True)
                known[:] = False
            read = self._read_days(matrix[np.flatnonzero(~known)[first]])
            both = np.concatenate([self._keys, fresh])
            order = np.argsort(both)
            self._keys, self._days = both[order], np.concatenate([self._days, read], axis=1)[:, order]
            at = np.searchsorted(self._keys, keys)
        return self._days[:, at]

    def _read_days(self, matrix: Bytes) -> Floats:
        """Return the results of ``Prefix.day``, computed one record at a time."""
        prefix = self.prefix
        texts = [row[: prefix.end].tobytes() for row in matrix]
        return np.array([prefix.day(text if prefix.time == NOWHERE else prefix.midnight(text)) for text in texts], np.float64).T
