"""Name the cells of many rows together: what ``Naming`` makes of them one by one, to the last bit.

Rows whose texts have one form differ only in their digits, which are columns of integers (see ``scan.row_texts``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from receipt_cli.events.naming.blocks import Stretch, place_rows, ranks_of, stretches
from receipt_cli.events.naming.digits import read_part
from receipt_cli.events.naming.named import Named, Notes
from receipt_cli.grammar.model import Rule
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.lazy_numpy import np
from receipt_cli.scan.columns import RuleColumns
from receipt_cli.scan.extraction import Span, convert, is_other, plan_columns
from receipt_cli.scan.row_texts import RowTexts, places_of, with_digits

PIECE = 1 << 17
"""Texts that are named together."""
Part = tuple[str, Span, "Integers"]
"""A part of some texts: their form, where in it the part is, and the digits of the texts."""


class _Piece:
    """What the texts of a piece say: by name the numbers of those that have some, until each is in the order of the texts.

    ``records`` are those of the texts, ``lines`` where they are, ``own`` the lines that print their values, if others do.
    """

    def __init__(self, naming: Notes, made: Named, records: Integers, lines: Integers, own: Integers | None) -> None:
        self.naming, self.made = naming, made
        self.records, self.lines, self.own = records, lines, own
        self._found: dict[tuple[bool, str], tuple[Floats, Mask]] = {}
        self._begun: dict[tuple[bool, str], tuple[int, int]] = {}
        self._texts: list[tuple[int, int, str, str]] = []

    def add(self, name: str, at: Integers, texts: Part, cell: int = 0, *, field: bool) -> None:
        """Add what the texts ``at`` say in their ``cell``: in a field, or under a key that no field has."""
        spec = self.made.rule.fields[name] if field else None
        read = read_part(*texts, spec)
        values, begun = read.values, at
        if read.known is not None:
            begun, values = at[read.known], values[read.known]
        if len(begun):
            first, keeps = self.made.figure(name) if field else (name, False)
            count, key = len(self.records), (field, first)
            numbers, known = self._found.get(key) or self._found.setdefault(key, (np.empty(count), np.zeros(count, np.bool_)))
            self._begun[key] = min(self._begun.get(key, (count, 0)), (int(begun[0]), cell))
            if keeps:
                fresh = ~known[begun]
                begun, values = begun[fresh], values[fresh]
            numbers[begun] = values
            known[begun] = True
        for index, text in read.others:  # of a field alone
            assert spec is not None
            value, readable = convert(spec, text)
            place = int(at[index])
            if isinstance(value, str):
                self._texts.append((place, cell, name, value))
            elif not readable:
                self.naming.unreadable(self.made.rule, name, text, int(self.lines[place]))

    def close(self) -> Counter[str]:
        """Give everything to the columns, as the texts say it one after the other; return how many say what no field has."""
        others: Counter[str] = Counter()
        for field, name in sorted(self._found, key=self._begun.__getitem__):
            numbers, known = self._found[field, name]
            at = np.flatnonzero(known)
            into = self.made.number(name) if field else self.made.others[name]
            into.extend_with(self.records[at].astype(np.int64), numbers[at], None if self.own is None else self.own[at])
            if not field:
                others[name] = len(at)
        for place, _, name, text in sorted(self._texts):
            self.made.texts[name].append(int(self.records[place]), text)
        return others


def name_table(naming: Notes, rule: Rule, columns: RuleColumns) -> RuleColumns:
    """Bind the cells of each row to the latest header row before it; rows that do not fit it are none."""
    spec, cells = rule.table, columns.cells
    assert spec is not None
    made, kept = Named(rule), Cells[int]("q")
    headers, header = _distinct(columns.headers)
    names = [*(text.split("\t") for text in headers), []]  # the last: of rows that no header is before
    spans = {form: _cells_of(form)[spec.skip_cells :] for form in cells.forms}
    counts, wanted = (np.array([len(each) for each in lists], np.int64) for lists in (spans.values(), names))
    of, fitting = Cells[int]("q"), Cells[int]("q")
    for begin in range(0, len(cells), PIECE):
        rows, which = (held.whole()[begin : begin + PIECE] for held in (cells.rows, cells.which))
        latest, last = np.searchsorted(columns.headers.rows.whole(), rows) - 1, np.full(len(rows), len(headers))
        last[latest >= 0] = header.whole()[latest[latest >= 0]]
        fits = counts[which] == wanted[last]
        of.extend_array(last)
        fitting.extend_array(fits.astype(np.int64))
        kept.extend_array(rows[fits])
        for line in columns.line.whole()[rows[~fits]].tolist():
            naming.without_header(rule, line)
    done = 0
    for begin, groups in cells.pieces(_ends(0, len(cells))):
        part = slice(begin, begin + PIECE)
        fits, last = fitting.whole()[part], of.whole()[part]
        piece = _Piece(naming, made, done - 1 + np.cumsum(fits), columns.line.whole()[cells.rows.whole()[part]], None)
        done += int(fits.sum())
        for form, every, all_digits in groups:
            for number, at, digits in _divided(last, every, all_digits):
                if len(spans[form]) != len(names[number]):
                    continue
                fields, others = plan_columns(spec, names[number])
                for cell, (name, column) in enumerate(fields.items()):
                    piece.add(name, at, (form, spans[form][column], digits), cell, field=True)
                    naming.ledger.read[name] += len(at)
                for column, name in others.items():
                    piece.add(name, at, (form, spans[form][column], digits), column, field=False)
        naming.ledger.other.update(piece.close())
    return made.finish(columns, kept)


def name_blocks(naming: Notes, rule: Rule, columns: RuleColumns) -> RuleColumns | None:
    """Join the rows of each block to its opening line, or to the row that began it; None where that goes row by row."""
    spec, pairs = rule.block, columns.pairs
    assert spec is not None
    keys, key = _distinct(pairs, lambda form: form.partition("\t")[0])
    ranks = np.asarray(ranks_of(rule, columns))
    parts = list(stretches(spec, columns, ranks, PIECE))
    pieces = pairs.pieces(end for _, texts in parts for end in _ends(texts.start, texts.stop))
    made, opened, wanted = Named(rule), Cells[int]("q"), bytearray()
    for part, texts in parts:
        at, line = (cells.whole()[part] for cells in (columns.at, columns.line))
        rows = Stretch(at, line, ranks[part], pairs.rows.whole()[texts] - part.start, key.whole()[texts])
        placed = place_rows(spec, rows, naming.copied)
        if placed is None:
            return None
        blocks, openings = placed
        block = blocks[rows.texts]
        held = block >= 0
        for text in np.flatnonzero(~held).tolist():
            row = rows.texts[text]
            naming.orphan(rule, keys[rows.keys[text]], int(rows.at[row]), int(rows.line[row]))
        naming.joined.extend_array(rows.at[rows.texts[held]])
        first, same = _without_repeated(pairs, texts.start, block, rows.keys, len(keys), held)
        complete = {name: np.zeros(len(openings), np.bool_) for name in spec.requires}
        said = np.append(rows.line[openings], 0)
        for end in _ends(0, len(rows.texts)):
            begin, groups = next(pieces)
            within = slice(begin - texts.start, end)
            mine_in = block[within]
            piece = _Piece(naming, made, len(opened) + mine_in, said[mine_in], rows.line[rows.texts[within]])
            for form, every, all_digits in groups:
                cell = min(form.find("\t") + 1 or len(form), len(form)), len(form)
                for number, mine, digits in _divided(rows.keys[within], every, all_digits):
                    name = keys[number]
                    begun, again = first[within][mine], same[within][mine]
                    odd = held[within][mine] & ~again
                    field = spec.keys.get(name)
                    if field is not None:
                        fresh = mine[begun]
                        piece.add(field, fresh, (form, cell, digits[begun]), field=True)
                        _count(naming.ledger.read, field, int(again.sum()))
                        if field in complete:
                            complete[field][mine_in[fresh]] = True
                    elif is_other(spec, name):
                        piece.add(name, mine[begun], (form, cell, digits[begun]), field=False)
                        _count(naming.ledger.other, name, _readable(form, cell, digits[again]))
                    else:
                        odd = held[within][mine]
                    if name not in spec.ignore:
                        _count(naming.ledger.dropped, name, _readable(form, cell, digits[odd]))
            piece.close()
        opened.extend_array(openings + part.start)
        wanted += np.logical_and.reduce([np.ones(len(openings), np.bool_), *complete.values()]).tobytes()
    return made.finish(columns, opened, wanted)


def _ends(begin: int, end: int) -> list[int]:
    """Return where pieces end that texts from ``begin`` to ``end`` are named in."""
    return [*range(begin + PIECE, end, PIECE), *([end] if end > begin else [])]


def _distinct(texts: RowTexts, part: Callable[[str], str] = str) -> tuple[list[str], Cells[int]]:
    """Return the different texts, or the different beginnings of them that are such a ``part``, and which each has."""
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
    """Return the different rows of an array (int64 [n, k]), and which of them each is."""
    if (digits == digits[0]).all():
        return digits[:1], np.zeros(len(digits), np.int64)
    rows, which = np.unique(digits, axis=0, return_inverse=True)
    return rows, which.reshape(-1)


def _cells_of(form: str) -> list[tuple[int, int]]:
    """Return where the cells of a row of this form are."""
    ends = [at for at, char in enumerate(f"{form}\t") if char == "\t"]
    return list(zip([0, *(end + 1 for end in ends)], ends, strict=False))


def _divided(ids: Integers, at: Integers, digits: Integers) -> Iterator[tuple[int, Integers, Integers]]:
    """Yield by the number that ``ids`` has for a text: the texts among ``at``, and their digits."""
    of = ids[at]
    if (of == of[0]).all():
        yield int(of[0]), at, digits
        return
    for number in distinct_values(of).tolist():
        mine = of == number
        yield number, at[mine], digits[mine]


def _without_repeated(pairs: RowTexts, begin: int, block: Integers, key: Integers, keys: int, held: Mask) -> tuple[Mask, Mask]:
    """Return which texts are the first with their key in a block that is ``held``, and which are these or print the same.

    They are those of ``pairs`` from ``begin`` on.
    """
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
    """Return how many numbers a cell says that has no field."""
    known = read_part(form, cell, digits, None).known
    return len(digits) if known is None else int(known.sum())
