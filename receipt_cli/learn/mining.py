"""Blocks of a log → the shapes of its metric-looking records, with what their number columns do; bounded memory.

Shapes are counted over the whole log. Of each shape the first records and every 2^k-th are kept as samples, and the
columns that may be counters are followed to the end: how often they rise, stand still and go back, and what else
changes where they go back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from receipt_cli.envelope import read_rank
from receipt_cli.learn.tokens import FRACTION, MAX_CORE, MAX_TOKENS, NUMBER, Token, core_start, read_token, shape, split
from receipt_cli.records import RECORD_CAP, cap_records, last_end, normalise

MAX_SHAPES = 2000
KEPT_SHAPES = 500
"""When ``MAX_SHAPES`` are known, all but so many are forgotten: the rarest, the oldest first."""
FULL_RECORDS = 64
"""Records of a shape of which every column is read."""
MAX_SAMPLES = 24
MAX_DROPS = 64
MAX_SEEN = 16384
"""Bytes of a record that are searched for words."""
_END, _DIGIT, _WORD = re.compile(rb"[\n\r]"), re.compile(rb"\d"), re.compile(rb"[a-z]+")
MAX_TRACKED = 24
"""Columns of a shape that are followed as possible counters."""


@dataclass(slots=True)
class Column:
    """One place for a number in a shape. ``values`` are the first of them, as read; ``since`` counts those since it went back."""

    kind: str
    values: list[Token] = field(default_factory=list)
    count: int = 0
    rises: int = 0
    drops: int = 0
    since: int = 0
    first: float | None = None
    last: float | None = None
    lowest: float = 0.0
    integer: bool = True
    total: float | None = None
    totals: tuple[float, float] | None = None
    bare: int = 0
    stride: float | None = None
    strides: int = 0
    grouped: bool = False

    @property
    def one_total(self) -> bool:
        """True for a fraction whose total hardly changes: epochs of one length."""
        return self.totals is not None and not self.bare and self.totals[1] - self.totals[0] <= 0.01 * self.totals[1]

    @property
    def may_count(self) -> bool:
        """True for whole numbers that seldom go back, and for other numbers that never do."""
        steady = self.drops * 3 <= self.count if self.integer else not self.drops and self.rises * 2 >= self.count
        return self.count > 0 and steady

    def take(self, token: Token) -> int:
        """Add a value; return 1 when it rises, -1 when it goes back, else 0."""
        value = token.value
        if value is None or value != value:
            self.integer = self.integer and value is None
            return 0
        self.count += 1
        self.integer = self.integer and token.integer
        self.grouped = self.grouped or token.grouped
        if token.total is not None:
            low, high = self.totals or (token.total, token.total)
            self.totals = min(low, token.total), max(high, token.total)
            self.total = token.total
        else:
            self.bare += self.total is not None  # a fraction before, a plain number now
        last, self.last = self.last, value
        self.since += 1
        if last is None:
            self.first = self.lowest = value
            return 0
        if value > last:
            self.rises += 1
            step = value - last
            if step == self.stride:
                self.strides += 1
            elif self.strides < self.rises // 2 + 1:
                self.stride, self.strides = step, 1
            return 1
        if value < last:
            self.drops += 1
            self.since = 0
            self.lowest = min(self.lowest, value)
            return -1
        return 0


@dataclass(slots=True)
class Shape:
    """Records of one shape: their literals (of the first record), columns, samples, and where in the log they stand.

    ``drops`` holds, for the first records in which a counter went back, the last and the new values of the tracked columns.
    """

    key: bytes
    literals: list[bytes]
    columns: list[Column]
    first: int
    last: int = 0
    count: int = 0
    rank: int = -1
    followed: int = 0
    samples: list[bytes] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    drops: list[tuple[dict[int, float], dict[int, float]]] = field(default_factory=list)
    tracked: tuple[int, ...] = ()

    def take(self, record: bytes, core: bytes, parts: list[bytes], rank: int, number: int) -> None:
        """Add one record; ``number`` is its place among the metric-looking records of the log."""
        self.count += 1
        self.last = number
        keep = self.count <= 8 or self.count & (self.count - 1) == 0
        if keep and len(self.samples) < MAX_SAMPLES:
            self.samples.append(core)
            self.lines.append(number)
        if rank != self.rank:
            return
        self.followed += 1
        if self.followed <= FULL_RECORDS:
            places: Iterable[int] = range(len(self.columns))
        else:
            if self.followed == FULL_RECORDS + 1:
                counters = [i for i, c in enumerate(self.columns) if c.may_count]
                self.tracked = tuple(counters[:MAX_TRACKED])
            places = self.tracked
        before = {i: self.columns[i].last for i in places}
        fell = False
        for i in places:
            column = self.columns[i]
            token = read_token(parts[2 * i + 1])
            if self.followed <= FULL_RECORDS:
                column.values.append(token)
                if token.kind != column.kind and token.kind in (NUMBER, FRACTION):
                    column.integer = column.integer and column.kind not in (NUMBER, FRACTION)
                    column.kind = token.kind
            went = column.take(token)
            fell = fell or (went < 0 and column.integer)
        if fell and len(self.drops) < MAX_DROPS:
            after = {i: self.columns[i].last for i in before}
            self.drops.append(
                ({i: v for i, v in before.items() if v is not None}, {i: v for i, v in after.items() if v is not None})
            )


class Miner:
    """Collects the shapes of a log, record by record."""

    def __init__(self, words: frozenset[bytes]) -> None:
        """``words``, in lower case: a record with a digit and one of them is worth a look."""
        self.words = words
        self.shapes: dict[bytes, Shape] = {}
        self.records = 0

    def mine(self, blocks: Iterable[bytes]) -> Miner:
        """Take all records of ``blocks``, however they are cut."""
        for buffer in _whole_records(blocks):
            for record in _END.split(buffer):
                if _DIGIT.search(record) and not self.words.isdisjoint(_WORD.findall(record[:MAX_SEEN].lower())):
                    self.take(record)
        return self

    def take(self, record: bytes) -> None:
        """Take one record."""
        self.records += 1
        at = core_start(record)
        core = record[at : at + MAX_CORE].rstrip()
        parts = split(core)
        if not 3 <= len(parts) <= 2 * MAX_TOKENS + 1:
            return
        key = shape(parts)
        known = self.shapes.get(key)
        rank = read_rank(record[:at]) if at else -1
        if known is None:
            if len(self.shapes) >= MAX_SHAPES:
                self._forget()
            tokens = [read_token(text) for text in parts[1::2]]
            known = Shape(key, parts[::2], [Column(token.kind) for token in tokens], self.records, rank=rank)
            self.shapes[key] = known
        known.take(record, core, parts, rank, self.records)

    def _forget(self) -> None:
        kept = sorted(self.shapes.values(), key=lambda s: (-s.count, -s.last))[:KEPT_SHAPES]
        self.shapes = {s.key: s for s in sorted(kept, key=lambda s: s.first)}


def _whole_records(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield normalised buffers of whole, capped records; the open end of the log comes last."""
    rest = b""
    for block in blocks:
        data = rest + block
        end = last_end(data)
        if end:
            yield normalise(cap_records(data[:end])[0])
        rest = data[end:]
        if len(rest) > RECORD_CAP + 1:
            rest = rest[:RECORD_CAP] + (b"\r" if rest.endswith(b"\r") else b"")
    if rest:
        yield normalise(rest[:RECORD_CAP])
