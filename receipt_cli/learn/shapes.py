"""Collect the shapes of a log's metric-looking records and the behaviour of their columns, in bounded memory.

Shapes are counted over the whole log. Of each shape the first records and every 2^k-th are kept as samples, and the
columns that may be counters are followed to the end: how often they rise and go back, and the other changes where they
go back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from receipt_cli.learn.tokens import (
    FRACTION,
    NUMBER,
    ODD,
    ORDINALS,
    Form,
    Looked,
    Token,
    core_start,
    looks,
    read_token,
    spell_points,
)
from receipt_cli.records.envelope import MASK
from receipt_cli.records.split import RECORD_CAP, cap_records, last_end, normalise, without_marks

MAX_SHAPES = 2000
KEPT_SHAPES = 500
"""When ``MAX_SHAPES`` are known, all but so many are forgotten: the rarest, the oldest first."""
FULL_RECORDS = 64
"""Records of a shape of which every column is read."""
MAX_SAMPLES = 24
MAX_DROPS = 64
MAX_PLACES = 1 << 12  # records of a shape whose places in the log are kept
MAX_FORMS = 1 << 13
MAX_BYTES = 8 << 20
"""Forms of records that are remembered, and the bytes that they have together; when there are more, all are forgotten."""
MAX_HERALDS = 4
INDENT = 24
"""Blanks before a record that stands in a second column of the screen: more than any nesting indents."""
EVERY = 1 << 30
"""More records than a log has."""
MAX_TRACKED = 24
"""Columns of a shape that are followed as possible counters."""


@dataclass(slots=True)
class Column:
    """One place for a number in a shape. ``values`` are the first of them, as read; ``since`` counts those since it went back.

    ``switches`` counts how often the total changes.
    """

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
    switches: int = 0
    bare: int = 0
    stride: float | None = None
    strides: int = 0
    grouped: bool = False

    @property
    def numbers(self) -> list[float | None]:
        """The first values."""
        return [token.value for token in self.values]

    @property
    def distinct(self) -> int:
        """How many of the first values differ."""
        return len({*self.numbers})

    @property
    def varies(self) -> bool:
        """True where hardly two of the first values are equal: equal values are a setting."""
        return 2 * self.distinct > len(self.values)

    @property
    def ordinal(self) -> bool:
        """True for ``1st``, ``2nd``, ``19342th``."""
        return self.integer and any(token.unit in ORDINALS for token in self.values)

    @property
    def one_total(self) -> bool:
        """True for a fraction whose total hardly changes: epochs of one length."""
        return self.totals is not None and not self.bare and self.totals[1] - self.totals[0] <= 0.01 * self.totals[1]

    @property
    def may_count(self) -> bool:
        """True for whole numbers that seldom go back, and for other numbers that never do."""
        steady = self.drops * 3 <= self.count if self.integer else not self.drops and self.rises * 2 >= self.count
        return self.count > 0 and steady

    @property
    def stays(self) -> int:
        """How often a number was no more than the one before."""
        return max(0, self.count - 1 - self.rises)

    def add(self, token: Token) -> bool:
        """Add the value of a token to the column; return whether it is smaller than the value before."""
        value = token.value
        if value is None or value != value:
            self.integer = self.integer and value is None
            return False
        self.integer = self.integer and token.integer
        return bool(self.add_all([value], [] if token.total is None else [token.total], grouped=token.grouped))

    def add_all(self, values: Sequence[float], totals: Sequence[float], *, grouped: bool) -> list[int]:
        """Add values one by one; return the indices of those that went back.

        All are numbers (not NaN); all have a total, or none has. ``integer`` does not change.
        """
        self.grouped = self.grouped or grouped
        if totals:
            low, high = self.totals or (totals[0], totals[0])
            self.totals = min(low, *totals), max(high, *totals)
            self.switches += sum(a != b for a, b in pairwise([self.total, *totals]) if a is not None)
            self.total = totals[-1]
        elif self.total is not None:
            self.bare += len(values)  # fractions before, plain numbers now
        if self.last is None:
            self.first = self.lowest = self.last = values[0]
        last, rises, stride, strides, fell = self.last, self.rises, self.stride, self.strides, []
        for at, value in enumerate(values):
            if value > last:
                rises += 1
                step = value - last
                if step == stride:
                    strides += 1
                elif strides < rises // 2 + 1:
                    stride, strides = step, 1
            elif value < last:
                fell.append(at)
                self.lowest = min(self.lowest, value)
            last = value
        self.last, self.rises, self.stride, self.strides = last, rises, stride, strides
        self.count += len(values)
        self.drops += len(fell)
        self.since = len(values) - 1 - fell[-1] if fell else self.since + len(values)
        return fell


Found = tuple[Form, bytes, int, int]
"""A record that was found and not yet read: its form, its bytes, its number and its rank."""


@dataclass(slots=True)
class Shape:
    """Records of one shape: their literals (of the first record), columns, samples, and their positions in the log.

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
    """The places of the samples among the records of all shapes."""
    places: list[int] = field(default_factory=list)
    """Those of the first records."""
    drops: list[tuple[dict[int, float], dict[int, float]]] = field(default_factory=list)
    tracked: tuple[int, ...] = ()
    writers: set[bytes] = field(default_factory=set)
    """The processes that heads name: one of them, or two."""
    heralded: int = 0
    """Records that are the first behind a line that announces an evaluation."""
    heralds: frozenset[bytes] = frozenset()
    """The texts of such lines, without their envelopes."""
    header: Sequence[str] = ()
    """The names of the columns, if they stand on a line above the records."""
    sectioned: bool = False
    """True where every record is somewhere between such a line and the next that speaks of training."""

    def texts(self, end: int | None = None) -> list[bytes]:
        """Return the literals, up to the column ``end``, with one blank for each run of them, and none outside."""
        return [b" ".join(text.split()) for text in self.literals[:end]]

    @property
    def spoken(self) -> list[bytes]:
        """The texts between the numbers; if a header names the columns, each of its names as if it stood before its number."""
        return [*(f"| {name}: ".encode() for name in self.header), b""] if self.header else self.literals

    @property
    def indented(self) -> bool:
        """True for records in a second column of the screen."""
        return all(not core[:INDENT].strip() for core in self.samples)

    def words_before(self, plain: Shape) -> bytes | None:
        """Return the words before the records of ``plain`` that make those of this shape; None if there is another difference."""
        own, end = self.literals[0].strip(), plain.literals[0].strip()
        alike = self.literals[1:] == plain.literals[1:] and own.endswith(end)
        kinds = ([column.kind for column in shape.columns] for shape in (self, plain))
        return own[: len(own) - len(end)] if alike and next(kinds) == next(kinds) else None

    def falls(self, at: int) -> list[tuple[dict[int, float], dict[int, float]]]:
        """Return the pairs of values (before, after) for each kept record at which the column ``at`` went back."""
        return [(before, after) for before, after in self.drops if at in before and at in after and after[at] < before[at]]

    def add_all(self, records: Sequence[Found]) -> None:
        """Add records, in their order."""
        for at, (form, record, number, _) in enumerate(records, start=self.count + 1):
            if (at <= 8 or at & (at - 1) == 0) and len(self.samples) < MAX_SAMPLES:
                self.samples.append(record[form.start : form.end])
                self.lines.append(number)
        for form, record, _, _ in records if len(self.writers) < 2 else ():
            if form.process is not None:
                self.writers.add(record[slice(*form.process)])
        self.places += [number for _, _, number, _ in records[: MAX_PLACES - len(self.places)]]
        self.count += len(records)
        self.last = records[-1][2]
        own = [(form, record) for form, record, _, rank in records if rank == self.rank]
        first = max(0, FULL_RECORDS + 1 - self.followed)
        for form, record in own[:first]:
            self._follow(form, record)
        if len(own) > first and not self._follow_all(own[first:]):
            for form, record in own[first:]:
                self._follow(form, record)

    def _follow(self, form: Form, record: bytes) -> None:
        """Read the values of one record."""
        self.followed += 1
        if not self.columns:
            self.columns = [Column(read_token(text).kind) for text in form.parts(record)[1::2]]
        if self.followed <= FULL_RECORDS:
            places: Sequence[int] = range(len(self.columns))
        else:
            if self.followed == FULL_RECORDS + 1:
                counters = [i for i, c in enumerate(self.columns) if c.may_count]
                self.tracked = tuple(counters[:MAX_TRACKED])
            places = self.tracked
        columns, full = self.columns, self.followed <= FULL_RECORDS
        before = [columns[i].last for i in places]
        fell = False
        for i in places:
            column = columns[i]
            token = form.token(i, record)
            if full:
                column.values.append(token)
                if token.kind != column.kind and token.kind in (NUMBER, FRACTION):
                    column.integer = column.integer and column.kind not in (NUMBER, FRACTION)
                    column.kind = token.kind
            fell = (column.add(token) and column.integer) or fell
        if fell:
            self._note(dict(zip(places, before, strict=True)), {i: self.columns[i].last for i in places})

    def _note(self, before: dict[int, float | None], after: dict[int, float | None]) -> None:
        if len(self.drops) < MAX_DROPS:
            self.drops.append(
                ({i: v for i, v in before.items() if v is not None}, {i: v for i, v in after.items() if v is not None})
            )

    def _follow_all(self, records: Sequence[tuple[Form, bytes]]) -> bool:
        """Read the tracked values of many records, column by column; return False where they must be read one by one."""
        forms = {form for form, _ in records}
        for i in self.tracked:
            sorts = {form.number(i).sort(whole=self.columns[i].integer) for form in forms}
            if ODD in sorts or len(sorts) > 1 or self.columns[i].last is None:
                return False
        read: dict[int, tuple[float | None, list[float]]] = {}
        falls: set[int] = set()
        for i in self.tracked:
            column = self.columns[i]
            values, totals = _values(i, records, forms, total=False), _values(i, records, forms, total=True)
            read[i] = column.last, values
            if values:
                fell = column.add_all(values, totals, grouped=any(form.number(i).like.grouped for form in forms))
                falls.update(fell if column.integer else ())
        for at in sorted(falls)[: MAX_DROPS - len(self.drops)]:
            before = {i: values[at - 1] if at and values else last for i, (last, values) in read.items()}
            self._note(before, {i: values[at] if values else last for i, (last, values) in read.items()})
        self.followed += len(records)
        return True


def _values(column: int, records: Sequence[tuple[Form, bytes]], forms: set[Form], *, total: bool) -> list[float]:
    """Return the values (or totals) of a column, one a record; empty where its tokens have none."""
    numbers = [(form, form.number(column)) for form in forms]
    found = [(form, number.total if total else number.value) for form, number in numbers]
    places = {form: place for form, place in found if place is not None}
    if len(places) < len(found):
        return []
    if any(number.like.grouped for _, number in numbers):
        return [float(record[places[form]].replace(b",", b"")) for form, record in records]
    return [float(record[places[form]]) for form, record in records]


class Miner:
    """Collects the shapes of a log, record by record."""

    def __init__(self, words: frozenset[bytes], heralds: Callable[[bytes], int] | None = None) -> None:
        """``words``, in lower case: records with a digit and one of them are collected.

        Words of other scripts are looked for inside others. A number in a rule of dashes may be that of an epoch.
        ``heralds`` returns 1 for a line that announces an evaluation, -1 for one that speaks of training, else 0.
        """
        self._looks = looks(words, heralds)
        self._heralded: dict[bytes, tuple[int, set[bytes]]] = {}
        self._outside: set[bytes] = set()
        self.listeners: list[Callable[[bytes], None]] = []
        """Are given each buffer of whole records, too."""
        self.shapes: dict[bytes, Shape] = {}
        self.records = 0
        self._own: dict[bytes, Looked] = {}
        self._room = MAX_BYTES
        self._found: dict[bytes, list[Found]] = {}

    def mine(self, blocks: Iterable[bytes]) -> Miner:
        """Collect the records of ``blocks``, however they are cut."""
        announced, evaluating, known = b"", False, self._looks.known
        for buffer in _whole_records(blocks):
            lines = spell_points(buffer.replace(b"\r", b"\n"))
            for listener in self.listeners:
                listener(lines)
            for record, masked in zip(lines.split(b"\n"), lines.translate(MASK).split(b"\n"), strict=True):
                try:
                    form, said = known[masked]
                except KeyError:
                    form, said = self._look(masked, record)
                told = record if said > 0 else b""
                evaluating = said >= 0 and (evaluating or said > 0)
                if form is None:
                    announced = told or announced
                    continue
                self.records += 1
                if form.bounds:
                    key = form.key or form.key_of(record)
                    if announced and not told:
                        self._herald(key, announced)
                    if not evaluating:
                        self._outside.add(key)
                    found = (form, record, self.records, form.rank_of(record))
                    try:
                        self._found[key].append(found)
                    except KeyError:
                        self._open(key, found)
                    if told or not form.sentence:
                        announced = told  # a sentence is no record
                else:
                    announced = told or announced
            self._read()
        self._read(lone=True)
        for key, shape in self.shapes.items():
            count, heralds = self._heralded.get(key, (0, set[bytes]()))
            shape.heralded, shape.heralds, shape.sectioned = count, frozenset(heralds), key not in self._outside
        return self

    def _herald(self, key: bytes, line: bytes) -> None:
        """Note that ``line`` announces the record of the shape ``key``."""
        count, lines = self._heralded.get(key, (0, set[bytes]()))
        if len(lines) < MAX_HERALDS:
            lines.add(line[core_start(line) :].strip())
        self._heralded[key] = count + 1, lines

    def _look(self, masked: bytes, record: bytes) -> Looked:
        """Return what a record shows that is not known of other logs, too: this log's records of its form show the same."""
        own = self._own.get(masked)
        if own is not None:
            return own
        looked = self._looks.look(masked, record)
        if masked not in self._looks.known and (looked[0] is None or looked[0].lasting):
            self._room -= len(masked)
            if self._room < 0 or len(self._own) >= MAX_FORMS:
                self._own.clear()
                self._room = MAX_BYTES - len(masked)
            self._own[masked] = looked
        return looked

    def _open(self, key: bytes, found: Found) -> None:
        """Note the first record of a shape since the last were read."""
        if key not in self.shapes:
            if len(self.shapes) >= MAX_SHAPES:
                self._read()
                kept = sorted(self.shapes.values(), key=lambda s: (-max(s.count, 1), -s.last))[:KEPT_SHAPES]
                self.shapes = {s.key: s for s in sorted(kept, key=lambda s: s.first)}
                self._found = {key: found for key, found in self._found.items() if key in self.shapes}
            form, record, number, rank = found
            self.shapes[key] = Shape(key, form.parts(record)[::2], [], number, number, rank=rank)
            found = form, record[: form.end], number, rank  # it may wait
        self._found[key] = [found]

    def _read(self, *, lone: bool = False) -> None:
        """Read the collected records; only ones of their shape wait until ``lone``, since most are never needed."""
        waiting = {}
        for key, found in self._found.items():
            known = self.shapes[key]
            if lone or known.count or len(found) > 1:
                known.add_all(found)
            else:
                waiting[key] = found
        self._found = waiting


def _whole_records(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield normalised buffers of whole, capped records; the open end of the log comes last."""
    rest = b""
    for block in blocks:
        data = rest + block
        end = last_end(data)
        if end:
            yield without_marks(normalise(cap_records(data[:end])[0]))
        rest = data[end:]
        if len(rest) > RECORD_CAP + 1:
            rest = rest[:RECORD_CAP] + (b"\r" if rest.endswith(b"\r") else b"")
    if rest:
        yield without_marks(normalise(rest[:RECORD_CAP]))
