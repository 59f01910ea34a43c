"""Name the cells of many rows at once.
Rows whose texts have one form differ only in their digits, which are columns of integers (see ``scan.row_texts``)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from receipt_cli.events.naming.digits import read_part
from receipt_cli.events.table import Source, values_at
from receipt_cli.grammar.model import Block, Grammar, Rule
from receipt_cli.numeric.array_types import Array, Floats, Integers, Mask
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.spill import slices
from receipt_cli.problems import EXCERPT_BYTES, MAX_FIRST, Problem
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import POSITION_BITS, NumberColumn, RuleColumns, TextColumn
from receipt_cli.scan.extraction.model import Span, convert
from receipt_cli.scan.extraction.table import is_other, plan_columns
from receipt_cli.scan.row_texts import RowTexts, places_of, with_digits


@dataclass(slots=True)
class Ledger:
    """Counts numeric cells by key: ``read`` into fields, kept under their label as ``other`` metrics, and ``dropped``."""

    read: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def take(self, columns: Iterable[RuleColumns]) -> None:
        """Count the cells in the columns of rules. Cells without a name in their own record are counted when they get one."""
        for one in columns:
            for name, numbers in one.numbers.items():
                self.read[name] += len(numbers.values)
            for name, numbers in one.unregistered.items():
                self.other[name] += len(numbers.values)
            self.dropped += one.dropped


class Stretch(NamedTuple):
    """Rows of a rule, from 0: ``at`` (position in the log), ``line`` and ``rank`` of each; for each text its row (``texts``,
    ascending) and the id of its key (``keys``)."""

    at: Integers
    line: Integers
    rank: Integers
    texts: Integers
    keys: Integers


def place_pieces(
    spec: Block, columns: RuleColumns, ranks: Integers, keys: Integers, copied: Sequence[int]
) -> Iterator[tuple[slice, slice, Stretch, Integers, Integers]]:
    """Cut the rows of a rule between blocks, and yield for each piece what ``place_rows`` finds in it.

    A piece comes as a slice of the rows, a slice of their texts, the rows, their blocks and the openings. It has about
    ``PIECE`` rows, or all rows if several ranks print them by turns.
    """
    texts, count, begin, first = columns.pairs.rows.whole(), len(columns), 0, 0
    usual = size = count if (ranks != ranks[0]).any() else PIECE
    while begin < count:
        end = min(count, begin + size)
        last = int(np.searchsorted(texts, end))
        at, line = (cells.whole()[begin:end] for cells in (columns.at, columns.line))
        rows = Stretch(at, line, ranks[begin:end], texts[first:last] - begin, keys[first:last])
        blocks, openings = place_rows(spec, rows, copied)
        if end < count and blocks[-1] >= 0:  # the last block may go on
            cut = int(openings[-1]) if len(openings) else 0
            if not cut:
                size *= 2
                continue
            end, kept = begin + cut, int(np.searchsorted(rows.texts, cut))
            last = first + kept
            rows = Stretch(at[:cut], line[:cut], rows.rank[:cut], rows.texts[:kept], rows.keys[:kept])
            blocks, openings = blocks[:cut], openings[:-1]
        yield slice(begin, end), slice(first, last), rows, blocks, openings
        begin, first, size = end, last, usual


def place_rows(spec: Block, rows: Stretch, copied: Sequence[int]) -> tuple[Integers, Integers]:
    """Return the number of the block of each row (-1: none), and the rows that begin the blocks, ascending.
    ``copied``: the numbers (ascending) of lines that are left out when the lines between two rows are counted."""
    labels, count = rows.rank, len(rows.at)
    order: Integers | None = None
    index: Array = np.arange(count, dtype=np.int32 if count < 1 << 31 else np.int64)
    key = np.full_like(index, -1)
    key[rows.texts] = rows.keys
    place = rows.at >> POSITION_BITS
    if len(copied):
        place = place - np.searchsorted(np.asarray(copied), rows.line)
    far = np.append(False, np.diff(place) > spec.gap + 1)
    breaks = index == 0
    if (labels != labels[0]).any():
        labels = labels if spec.open is None else _ranks_joined(index, key < 0, labels)
        order = np.argsort(labels, kind="stable")
        key, labels = key[order], labels[order]
        far = np.append(False, np.diff(place[order]) > spec.gap + 1)
        breaks[1:] = labels[1:] != labels[:-1]
    del place
    start = _opened(index, key < 0, breaks, far) if spec.open is not None else _bare(index, key, breaks | far)
    begins = start == index
    openings = np.flatnonzero(begins)
    number = np.cumsum(begins, dtype=index.dtype) - 1
    if order is not None:
        openings = order[openings]
        number = np.append(np.argsort(np.argsort(openings)), -1)[number]
        openings.sort()
    block = np.where(start >= 0, number[start], -1)
    if order is not None:
        block[order] = block.copy()
    return block, openings


def _ranks_joined(index: Array, opening: Mask, ranks: Integers) -> Integers:
    """Return the ranks; a row without one gets that of the opening line (mask ``opening``) before it, if all so far have one."""
    latest = np.maximum.accumulate(np.where(opening, index, -1))
    bare = ranks == NO_RANK
    joins = bare & ~opening & (latest >= 0) & ~np.maximum.accumulate(bare & opening)
    return np.where(joins, ranks[latest], ranks)


def _opened(index: Array, opening: Mask, breaks: Mask, far: Mask) -> Array:
    """Return for each row the index of the opening line (mask ``opening``) of its block, -1 if it has none.
    It has none if no opening line came since the first row of its rank (mask ``breaks``), or if a row after that line, up to this
    one, is too many lines after the row before it (mask ``far``). ``index`` counts the rows from 0."""
    latest = np.maximum.accumulate(np.where(opening, index, -1))
    held = latest >= np.maximum.accumulate(np.where(breaks, index, 0))
    torn = np.cumsum(far & ~opening, dtype=index.dtype)
    held &= torn == torn[latest]
    return np.where(held, latest, -1)


def _bare(index: Array, key: Array, breaks: Mask) -> Array:
    """Return for each row the first row of its block, for blocks without an opening line.
    A block begins at a row in the mask ``breaks``, or at a ``key`` that the running block already has."""
    order = np.argsort(key, kind="stable")
    again = key[order[1:]] == key[order[:-1]]
    before = np.full_like(index, -1)
    before[order[1:][again]] = order[:-1][again]
    repeats = np.searchsorted(np.maximum.accumulate(before), index)  # where a key first comes again, from each row on
    places = np.append(np.flatnonzero(breaks), len(key))
    following = np.minimum(repeats, places[np.searchsorted(places[:-1], index, side="right")]).tolist()
    start = np.zeros_like(index)
    at = 0
    while at < len(following):
        start[at] = at
        at = following[at]
    return np.maximum.accumulate(start)


class Notes:
    """Collects the counts and the problems of the cells of one grammar's rules."""

    def __init__(self, grammar: Grammar, ledger: Ledger, copied: Sequence[int]) -> None:
        """``copied``: the numbers (ascending) of lines that are left out when the lines between two rows are counted."""
        self.grammar, self.ledger, self.copied = grammar, ledger, copied
        self.found: list[Problem] = []
        self.orphans: list[Orphans] = []
        self.joined: Cells[int] = Cells("q")
        """Positions of the rows that joined a block: a row without a block of one rule may have joined one of another rule."""

    def problems(self) -> tuple[list[Problem], int]:
        """Return the problems found, and how many are left out because only the first rows without a heading are named.

        A row that several rules have no heading for counts once, for the last of them.
        """
        first: list[Problem] = []
        count = 0
        for number in reversed(range(len(self.orphans))):
            later = (orphans.at for orphans in self.orphans[number + 1 :])
            seen = np.unique(np.concatenate([self.joined.whole(), *(cells.whole() for cells in later)]))
            alone, found = self.orphans[number].without(seen)
            count += alone
            first += found
        return [*self.found, *first], count - len(first)

    def unreadable(self, rule: Rule, name: str, text: str, line: int) -> None:
        """Note a value of a field that cannot be read."""
        detail = f"{self.grammar.ref} {rule.name}.{name}: {text[:64]!r}"
        self.found.append(Problem("unreadable_value", line, detail, text[:EXCERPT_BYTES]))


class Orphans:
    """The rows (n) of a rule that belong to no block: ``at`` (position in the log) of each, ascending."""

    def __init__(self, rule: Rule, keys: Sequence[str]) -> None:
        self.rule, self.keys = rule, keys
        self.at, self._line, self._key = Cells[int]("q"), Cells[int]("q"), Cells[int]("q")

    def add(self, at: Integers, line: Integers, key: Integers) -> None:
        """Add rows with their lines, and the index of each row's key in ``keys``."""
        for cells, values in zip((self.at, self._line, self._key), (at, line, key), strict=True):
            cells.extend_array(values)

    def without(self, seen: Integers) -> tuple[int, list[Problem]]:
        """Return how many rows are not at the positions ``seen`` (ascending), and the problems of the first of them."""
        count, first = 0, list[Problem]()
        for part in slices(len(self.at)):
            alone = ~np.isin(self.at.whole()[part], seen, assume_unique=True)
            count += int(np.count_nonzero(alone))
            line, key = (cells.whole()[part][alone][: MAX_FIRST - len(first)].tolist() for cells in (self._line, self._key))
            first += [
                Problem("block_row_without_opening", at, f"{self.rule.name}: {self.keys[which][:64]!r}", "")
                for at, which in zip(line, key, strict=True)
            ]
        return count, first


PIECE = 1 << 17
"""Number of texts that are named together."""
Part = tuple[str, Span, "Integers"]
"""A part of some texts: their form, the span of the part in it, and the digits of the texts."""
Key = tuple[bool, str]
"""A figure: whether it is in a field, and the name of the field or of the key."""


class _Columns:
    """Collects the columns of a rule while its cells are being named.

    A record is known by its first row; the records come in order. If a record has several values of a figure, the first counts
    for a metric, else the last. The line is that of the first, 0 if the record itself prints it.
    """

    def __init__(self, notes: Notes, rule: Rule, columns: RuleColumns) -> None:
        self.notes, self.rule, self.scanned = notes, rule, columns
        self._first = {target: name for name, target in reversed([(n, f.target) for n, f in rule.fields.items()])}
        self.rows = Cells[int]("q")
        self.texts: defaultdict[str, TextColumn] = defaultdict(TextColumn)
        """The named texts of each field, by the index of their record."""
        self.printed = {True: columns.numbers, False: columns.unregistered}
        """The numbers that records print themselves, by whether a field has them."""
        self.named: dict[bool, dict[str, NumberColumn]] = {True: {}, False: {}}

    def figure(self, name: str) -> str:
        """Return the first field with the target of a field: all fields of one target are one figure."""
        return self._first[self.rule.fields[name].target]

    def extend(self, figure: Key, places: Integers, values: Floats, lines: Integers) -> None:
        """Add the values of a figure for the records at the indexes ``places`` (ascending), and the ``lines`` that print them."""
        field, name = figure
        column = self.named[field].setdefault(name, NumberColumn())
        if column.lines is None and lines.any():
            column.lines = Cells("q")
            column.lines.extend_bytes(bytes(8 * len(column.values)))
        if column.lines is not None:
            column.lines.extend_array(lines)
        if len(places):
            follow = places[-1] - places[0] == len(places) - 1
            column.extend_bytes(values.tobytes(), None if follow else places.tobytes(), int(places[0]))

    def close(self) -> RuleColumns:
        """Return the columns; figures without a field are in the order in which the records name them."""
        rows, scanned, texts = self.rows, self.scanned, dict[str, TextColumn]()
        for name, text in scanned.texts.items():
            for row, value in zip(text.rows, text.values, strict=True):
                place = bisect_left(rows, row)
                if place < len(rows) and rows[place] == row:
                    texts.setdefault(name, TextColumn()).append(place, value)
        for name, text in self.texts.items():
            texts.setdefault(name, TextColumn()).extend(text, 0)
        at, line, rank = (part.picked(rows) for part in (scanned.at, scanned.line, scanned.rank))
        numbers, others = ({name: one for name, one in named.items() if len(one.values)} for named in self.named.values())
        firsts = {name: -1 if name in scanned.unregistered else column.rows[0] for name, column in others.items()}
        others = {name: others[name] for name in sorted(others, key=firsts.__getitem__)}
        return RuleColumns(at, line, rank, scanned.clock.picked(rows), numbers, texts, others)


class _Part:
    """Collects the values of the texts of some records, and passes them on in the order of the records.

    The records begin at ``rows``. For each text, ``records`` is the index of its record, ``lines`` the line of that, and ``own``
    the line of the text itself (None: it is that of the record).
    """

    def __init__(self, made: _Columns, rows: Integers, records: Integers, lines: Integers, own: Integers | None) -> None:
        self.made, self.rows, self.records, self.lines, self.own = made, rows, records, lines, own
        self._found: dict[Key, list[tuple[Integers, Floats]]] = {}
        self._begun: dict[Key, tuple[int, int]] = {}
        self._texts: list[tuple[int, int, str, str]] = []
        self.said: Counter[str] = Counter()
        """For each key without a field the number of texts that have a number, known once the part is closed."""

    def add(self, name: str, at: Integers, texts: Part, cell: int = 0, *, field: bool) -> None:
        """Add the values in one part (``texts``) of the texts at the indexes ``at``: of the field or, if not ``field``, the key
        ``name``. ``cell`` orders the parts of one text."""
        spec = self.made.rule.fields[name] if field else None
        read = read_part(*texts, spec)
        said, values = (at, read.values) if read.known is None else (at[read.known], read.values[read.known])
        if len(said):
            key = field, self.made.figure(name) if field else name
            begun = int(said[0]), cell
            self._begun[key] = min(self._begun.get(key, begun), begun)
            self._found.setdefault(key, []).append((said, values))
        for index, text in read.others:  # only fields have other texts
            assert spec is not None
            value, readable = convert(spec, text)
            place = int(at[index])
            if isinstance(value, str):
                self._texts.append((place, cell, name, value))
            elif not readable:
                self.made.notes.unreadable(self.made.rule, name, text, int(self.lines[place]))

    def close(self, wanted: Mask | None = None) -> None:
        """Pass the records, or those in the mask ``wanted``, on to the columns."""
        made = self.made
        kept = np.ones(len(self.rows), np.bool_) if wanted is None else wanted
        places = len(made.rows) - 1 + np.cumsum(kept)
        printed = [(field, name) for field, columns in made.printed.items() for name in columns]
        for figure in dict.fromkeys((*printed, *sorted(self._found, key=self._begun.__getitem__))):
            records, values, lines = self._figures(figure)
            mine = slice(None) if wanted is None else wanted[records]
            made.extend(figure, places[records[mine]], values[mine], lines[mine])
        for place, _, name, text in sorted(self._texts):
            if kept[record := self.records[place]]:
                made.texts[name].append(int(places[record]), text)
        made.rows.extend_array(self.rows[kept])

    def _figures(self, figure: Key) -> tuple[Integers, Floats, Integers]:
        """Return the records (ascending) that have a figure, their values, and the lines that print these."""
        field, name = figure
        parts = self._found.get(figure, [])
        first = field and self.made.rule.fields[name].target[0] == "metric"
        numbers, known = np.empty(len(self.records)), np.zeros(len(self.records), np.bool_)
        for said, each in reversed(parts) if first else parts:
            numbers[said], known[said] = each, True
        at = np.flatnonzero(known)
        if not field:
            self.said[name] = len(at)
        records, values = self.records[at].astype(np.int64, copy=False), numbers[at]
        lines = np.broadcast_to(np.int64(0), len(at)) if self.own is None else self.own[at]
        if (column := self.made.printed[field].get(name)) is not None:
            index, printed = values_at(column, self.rows)
            before = np.arange(len(printed)) if index is None else index
            records, values = np.append(before, records), np.append(printed, values)
            lines = np.append(np.zeros_like(before), lines)
        if (records[1:] > records[:-1]).all():
            return records, values, lines
        order = np.argsort(records, kind="stable")
        changes = np.flatnonzero(np.diff(records[order]))
        firsts, lasts = order[np.append(0, changes + 1)], order[np.append(changes, len(order) - 1)]
        return records[firsts], values[firsts if first else lasts], lines[firsts]


def name_cells(notes: Notes, rule: Rule, columns: RuleColumns) -> RuleColumns:
    """Return the columns of a rule with all cells named."""
    if rule.table is not None:
        return _name_table(notes, rule, columns)
    return columns if rule.block is None else _name_blocks(notes, rule, columns)


def _name_table(notes: Notes, rule: Rule, columns: RuleColumns) -> RuleColumns:
    """Name the cells of each row by the latest header row before it; rows that do not fit it are no records."""
    spec, cells = rule.table, columns.cells
    assert spec is not None
    made = _Columns(notes, rule, columns)
    headers, header = _distinct(columns.headers)
    names = [*(text.split("\t") for text in headers), []]  # the last: for rows before any header
    spans = {form: _cells_of(form)[spec.skip_cells :] for form in cells.forms}
    counts, wanted = (np.array([len(each) for each in lists], np.int64) for lists in (spans.values(), names))
    for begin, groups in cells.pieces(_ends(0, len(cells))):
        rows, which = (held.whole()[begin : begin + PIECE] for held in (cells.rows, cells.which))
        latest, last = np.searchsorted(columns.headers.rows.whole(), rows) - 1, np.full(len(rows), len(headers))
        last[latest >= 0] = header.whole()[latest[latest >= 0]]
        fits = counts[which] == wanted[last]
        for line in columns.line.whole()[rows[~fits]].tolist():
            notes.found.append(Problem("table_row_without_header", line, f"{rule.name}: cells do not fit the header", ""))
        piece = _Part(made, rows[fits], np.cumsum(fits) - 1, columns.line.whole()[rows], None)
        for form, every, all_digits in groups:
            for number, at, digits in _divided(last, every, all_digits):
                if len(spans[form]) != len(names[number]):
                    continue
                fields, others = plan_columns(spec, names[number])
                for cell, (name, column) in enumerate(fields.items()):
                    piece.add(name, at, (form, spans[form][column], digits), cell, field=True)
                    notes.ledger.read[name] += len(at)
                for column, name in others.items():
                    piece.add(name, at, (form, spans[form][column], digits), column, field=False)
        piece.close()
        notes.ledger.other.update(piece.said)
    return made.close()


def _name_blocks(notes: Notes, rule: Rule, columns: RuleColumns) -> RuleColumns:
    """Join the rows of each block to its opening line, or to the row that began it."""
    spec, pairs = rule.block, columns.pairs
    assert spec is not None
    keys, key = _distinct(pairs, lambda form: form.partition("\t")[0])
    ranks = Source.of(notes.grammar, rule, columns).ranks
    ends = deque[int]()
    pieces = pairs.pieces(iter(ends.popleft, -1))
    made, orphans = _Columns(notes, rule, columns), Orphans(rule, keys)
    for part, texts, rows, blocks, openings in place_pieces(spec, columns, ranks, key.whole(), notes.copied):
        ends += _ends(texts.start, texts.stop)
        block = blocks[rows.texts]
        held = block >= 0
        alone = np.flatnonzero(~held)
        alone = alone[np.diff(rows.texts[alone], append=-1) != 0]  # the last text of each row
        if len(alone):
            orphans.add(rows.at[rows.texts[alone]], rows.line[rows.texts[alone]], rows.keys[alone])
        notes.joined.extend_array(rows.at[rows.texts[held]])
        first, same = _without_repeated(pairs, texts.start, block, rows.keys, len(keys), held)
        complete = {name: np.zeros(len(openings), np.bool_) for name in spec.requires}
        said = np.append(rows.line[openings], 0)[block]
        records = _Part(made, openings + part.start, block, said, rows.line[rows.texts])
        while ends:
            begin, groups = next(pieces)
            for form, every, all_digits in groups:
                cell = min(form.find("\t") + 1 or len(form), len(form)), len(form)
                for number, mine, digits in _divided(rows.keys, begin - texts.start + every, all_digits):
                    name = keys[number]
                    begun, again = first[mine], same[mine]
                    odd = held[mine] & ~again
                    field = spec.keys.get(name)
                    if field is not None:
                        fresh = mine[begun]
                        records.add(field, fresh, (form, cell, digits[begun]), field=True)
                        _count(notes.ledger.read, field, int(again.sum()))
                        if field in complete:
                            complete[field][block[fresh]] = True
                    elif is_other(spec, name):
                        records.add(name, mine[begun], (form, cell, digits[begun]), field=False)
                        _count(notes.ledger.other, name, _readable(form, cell, digits[again]))
                    else:
                        odd = held[mine]
                    if name not in spec.ignore:
                        _count(notes.ledger.dropped, name, _readable(form, cell, digits[odd]))
        records.close(np.logical_and.reduce([np.ones(len(openings), np.bool_), *complete.values()]))
    if len(orphans.at):
        notes.orphans.append(orphans)
    return made.close()


def _ends(begin: int, end: int) -> list[int]:
    """Return the end of each piece of at most ``PIECE`` texts in which the texts from ``begin`` to ``end`` are named."""
    return [*range(begin + PIECE, end, PIECE), *([end] if end > begin else [])]


def _distinct(texts: RowTexts, part: Callable[[str], str] = str) -> tuple[list[str], Cells[int]]:
    """Return the distinct texts, or what ``part`` leaves of them (a beginning), and the index of each text among these."""
    numbers: dict[str, int] = {}
    parts = {form: part(form) for form in texts.forms}
    of_form = np.array([numbers.setdefault(text, len(numbers)) for text in parts.values()], np.int64)
    found = Cells[int]("q")
    if not any("0" in text for text in parts.values()):
        for begin in range(0, len(texts), PIECE):
            found.extend_array(of_form[texts.which.whole()[begin : begin + PIECE]])
        return list(numbers), found
    for begin, groups in texts.pieces(_ends(0, len(texts))):
        piece = of_form[texts.which.whole()[begin : begin + PIECE]]
        for form, at, all_digits in groups:
            places = places_of(parts[form])
            rows, which = _distinct_rows(all_digits[:, : len(places)])
            known = [with_digits(parts[form], places, row) for row in rows.tolist()]
            piece[at] = np.array([numbers.setdefault(text, len(numbers)) for text in known])[which]
        found.extend_array(piece)
    return list(numbers), found


def _distinct_rows(digits: Integers) -> tuple[Integers, Integers]:
    """Return the distinct rows of an array (int64 [n, k]), and the index among them of each row."""
    if (digits == digits[0]).all():
        return digits[:1], np.zeros(len(digits), np.int64)
    rows, which = np.unique(digits, axis=0, return_inverse=True)
    return rows, which.reshape(-1)


def _cells_of(form: str) -> list[tuple[int, int]]:
    """Return the spans of the cells in a row of this form."""
    ends = [at for at, char in enumerate(f"{form}\t") if char == "\t"]
    return list(zip([0, *(end + 1 for end in ends)], ends, strict=False))


def _divided(ids: Integers, at: Integers, digits: Integers) -> Iterator[tuple[int, Integers, Integers]]:
    """Group the texts at the indexes ``at`` by their id, ``ids[at]``; yield each id with the indexes and digits of its texts."""
    of = ids[at]
    if (of == of[0]).all():
        yield int(of[0]), at, digits
        return
    for number in distinct_values(of).tolist():
        mine = of == number
        yield number, at[mine], digits[mine]


def _without_repeated(pairs: RowTexts, begin: int, block: Integers, key: Integers, keys: int, held: Mask) -> tuple[Mask, Mask]:
    """Return two masks of texts: the first of each key in its ``block``, and these with their exact repetitions.
    The texts are those of ``pairs`` from ``begin`` on; only those in the mask ``held`` are in a block."""
    places = np.flatnonzero(held)
    codes = block[places].astype(np.int64) * keys + key[places]
    ordered = np.sort(codes)
    if not (ordered[1:] == ordered[:-1]).any():
        return held, held
    _, firsts, which = np.unique(codes, return_index=True, return_inverse=True)
    first = np.zeros(len(held), np.bool_)
    first[places[firsts]] = True
    same = first.copy()
    again = ~first[places]
    repeated, model = places[again], places[firsts[which[again]]]
    same[repeated] = [text == other for text, other in zip(pairs.at(begin + repeated), pairs.at(begin + model), strict=True)]
    return first, same


def _count(counter: Counter[str], name: str, number: int) -> None:
    if number:
        counter[name] += number


def _readable(form: str, cell: tuple[int, int], digits: Integers) -> int:
    """Return how many of the texts have a number in a ``cell`` (span of their ``form``) without a field."""
    known = read_part(form, cell, digits, None).known
    return len(digits) if known is None else int(known.sum())
