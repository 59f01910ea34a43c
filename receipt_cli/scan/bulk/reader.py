"""Read a block of whole records into a body, records of known layouts together.

Records whose layout has a template are read at once. What is left goes through the prefilter, and those with a literal one by
one. The results are merged in log order at the end of the block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np

from receipt_cli.numeric.array_types import Integers, Mask
from receipt_cli.problems import MAX_FIRST
from receipt_cli.records.envelope import plain
from receipt_cli.records.prefilter import Prefilter
from receipt_cli.records.split import vanishes_before_end
from receipt_cli.scan.book import PlacedProblems
from receipt_cli.scan.bulk.block import Records, bytes_at
from receipt_cli.scan.bulk.event_table import Column, EventTable, Rows
from receipt_cli.scan.bulk.layout_cache import LayoutCache
from receipt_cli.scan.bulk.mixed_decimals import LEAD
from receipt_cli.scan.bulk.recognise import WORD, Shelves, cut_words
from receipt_cli.scan.bulk.result import BlockResult
from receipt_cli.scan.bulk.template import Template
from receipt_cli.scan.layout import MAX_LENGTH, Layout
from receipt_cli.scan.segment import RuleKey, SegmentBody

ReadRecord: TypeAlias = Callable[[SegmentBody, bytes, int, int, bool, PlacedProblems], None]
"""``Engine.read_record``: body, bytes of the record, its ordinal and line, whether it is not UTF-8, where problems go."""
MIN_COUNT = 8
"""Records of a layout that were read one by one before it gets a template."""
MIN_ROWS = 12
"""Records of a width in a block that are worth the fixed cost of looking at them together."""
AT_ONCE = 128
"""Records read one by one before those that are left are compared with the templates that were made of them."""
MAX_TEMPLATES = 2048
MAX_IDLE = 64
"""Blocks without a record of a template after which it may be given up."""
_REST = -1000
_SERVED = -(1 << 60)
"""Counts of a layout that will not get a template soon, and of one that has one."""
_LARGE = 6 << 20


@cache
def keep_memory() -> None:
    """Let the C library keep what is freed, for the next block.

    glibc gives memory back, page by page, as soon as twice the largest block ever freed is free, and takes as long to
    get it again as a block takes to read. A large one that is never touched raises that bound (see ``mallopt(3)``).
    """
    np.empty(_LARGE, np.uint8)


class Templates:
    """The templates of the layouts that come often, each with a number, and their tables by rule and by grammar."""

    def __init__(self) -> None:
        self.made = 0
        """How many templates there ever were."""
        self._all: list[Template] = []
        self._block = 0
        self._again = 0
        """The block from which on it is worth looking for templates that are of no use."""
        self._last: list[int] = []
        """The last block in which each was of use."""

    def __len__(self) -> int:
        return len(self._all)

    def add(self, layout: Layout) -> None:
        """Make a template of ``layout``, of which many records came."""
        if len(self._all) >= MAX_TEMPLATES and self._block >= self._again:
            self._forget()
        if len(self._all) >= MAX_TEMPLATES:
            layout.count = _REST
            return
        layout.count = _SERVED
        self.made += 1
        self._enter(Template(layout), self._block)

    def _forget(self) -> None:
        """Give up those that were of no use for long; the others get new numbers."""
        known = list(zip(self._all, self._last, strict=True))
        self._all, self._last, self._again = [], [], self._block + MAX_IDLE
        for template, last in known:
            if self._block - last <= MAX_IDLE:
                self._enter(template, last)
            else:
                template.layout.count = _REST

    def _enter(self, template: Template, last: int) -> None:
        number, layout = len(self._all), template.layout
        if not number:
            self.shelves = Shelves()
            self.tables: dict[tuple[RuleKey, int], EventTable] = {}
            self.ignored: dict[str, list[int]] = {}
            self.near: dict[str, dict[int, str]] = {}
            self.special: list[int] = []
        self._all.append(template)
        self._last.append(last)
        self.shelves.add(number, layout)
        if not template.plain:
            self.special.append(number)
            return
        keys = [event.key for event in layout.events]
        for index, key in enumerate(keys):
            self.tables.setdefault((key, keys[:index].count(key)), EventTable()).add(number, template, index)
        for name in layout.ignored:
            self.ignored.setdefault(name, []).append(number)
        for name, rule in layout.near:
            self.near.setdefault(name, {})[number] = rule

    def __getitem__(self, number: int) -> Template:
        return self._all[number]

    def used(self, numbers: Integers) -> None:
        """Take note that a block has records of these."""
        self._block += 1
        for number in numbers.tolist():
            self._last[number] = self._block


class BulkReader:
    """Reads blocks of whole records; those of layouts that come often together, the others one by one."""

    def __init__(self, prefilter: Prefilter, read_record: ReadRecord, layouts: LayoutCache) -> None:
        """``read_record`` reads a single record that contains a literal; ``layouts`` are those known so far."""
        self._prefilter, self._read_record = prefilter, read_record
        self._templates = Templates()
        for layout in layouts.known():
            self.note(layout)

    def note(self, layout: Layout) -> None:
        """Make a template of ``layout``, if enough of its records were read one by one."""
        if layout.count >= MIN_COUNT and not layout.marks:
            self._templates.add(layout)

    def read_block(self, raw: bytes, problems: PlacedProblems) -> SegmentBody:
        """Return the body of the whole records ``raw``; ``problems`` gets their problems."""
        keep_memory()
        paired = _returns_are_ends(raw)
        buffer = plain(raw, keep_returns=paired)
        records = Records(buffer, paired=paired)
        bad = records.find_invalid()
        body = SegmentBody(len(records.starts), records.lines, records.count_blank(), len(bad))
        templates = self._templates
        result = BlockResult(problems)
        taken = np.zeros(len(records.starts), np.bool_)
        _read_templates(templates, records, np.arange(len(taken)), result, taken)
        rows = _candidates(self._prefilter, records, taken)
        step = AT_ONCE
        while len(rows):
            some, rows, known = rows[:step], rows[step:], templates.made
            starts, ends, lines = records.starts[some].tolist(), records.ends[some].tolist(), records.line_of(some).tolist()
            for row, start, end, line in zip(some.tolist(), starts, ends, lines, strict=True):
                self._read_record(body, buffer[start:end], row, line, row in bad, problems)
            if templates.made > known:  # the others of the block may have these layouts too
                _read_templates(templates, records, rows, result, taken)
                left = rows[~taken[rows]]
                step = AT_ONCE if len(rows) - len(left) >= step else 2 * step
                rows = left
        result.merge_into(body)
        return body


def _returns_are_ends(raw: bytes) -> bool:
    """True when no ``\\r`` comes to precede a ``\\n`` because the bytes between them vanish."""
    if b"\r" not in raw or b"\x08" in raw:
        return False
    data = np.frombuffer(raw, np.uint8)
    for byte in (0x00, 0x1B, 0x5E):
        if byte in raw:
            before = np.flatnonzero(data[1:] == byte)
            if any(vanishes_before_end(raw, at + 1) for at in before[data[before] == 0x0D].tolist()):
                return False
    return True


def _read_templates(templates: Templates, records: Records, rows: Integers, result: BlockResult, taken: Mask) -> None:
    """Read those of the records ``rows`` that have a template, and mark them in ``taken``."""
    ordinals, numbers = _recognise(templates, records, rows)
    if not len(ordinals):
        return
    counts = np.bincount(numbers, minlength=len(templates))
    templates.used(np.flatnonzero(counts))
    if templates.special and counts[templates.special].any():
        special = np.zeros(len(templates), np.bool_)
        special[templates.special] = True
        for number in np.flatnonzero(special & (counts >= MIN_ROWS)).tolist():
            _read_one(templates[number], ordinals[numbers == number], records, result, taken)
        kept = ~special[numbers]
        ordinals, numbers = ordinals[kept], numbers[kept]
        counts[special] = 0
    _read_together(templates, Rows(records, ordinals, records.starts[ordinals], numbers, counts), result, taken)


def _recognise(templates: Templates, records: Records, rows: Integers) -> tuple[Integers, Integers]:
    """Return those of the records ``rows``, ascending, that have a template, and the number of each one's."""
    if not len(templates):
        return rows[:0], rows[:0]
    lengths = records.lengths[rows]
    starts = records.starts[rows]
    words = (lengths + (WORD - 1)) // WORD
    fit = templates.shelves.lengths[np.minimum(lengths, MAX_LENGTH + 1)]
    fit &= (starts >= LEAD) & (starts + words * WORD <= len(records.buffer))
    some = np.flatnonzero(fit)
    short = words[some].astype(np.uint16)
    counts = np.bincount(short, minlength=1)
    order = some[np.argsort(short, kind="stable")] if np.count_nonzero(counts) > 1 else some
    stops = np.cumsum(counts)
    known = np.full(len(rows), -1, np.int64)
    for width in np.flatnonzero(counts >= MIN_ROWS).tolist():
        at = order[stops[width] - counts[width] : stops[width]]
        matrix = bytes_at(records.buffer, starts[at], width * WORD)
        known[at] = templates.shelves.by_words[width].recognise(cut_words(matrix, lengths[at]), lengths[at])
    found = np.flatnonzero(known >= 0)
    return rows[found], known[found]


def _read_together(templates: Templates, rows: Rows, result: BlockResult, taken: Mask) -> None:
    """Read records of any number of plain templates."""
    if not len(rows.numbers):
        return
    parts: list[tuple[RuleKey, EventTable, Rows, list[Column]]] = []
    bad = np.zeros(len(rows.numbers), np.bool_)
    for (key, _), table in templates.tables.items():
        held = table.freeze(len(templates))[rows.numbers]
        if held.any():
            part = rows if held.all() else rows.choose(held)
            columns, wrong = table.columns(part)
            parts.append((key, table, part, columns))
            if wrong is not None:
                bad[np.flatnonzero(held)[wrong]] = True
    if bad.any():  # these are read one by one
        _read_together(templates, rows.choose(~bad), result, taken)
        return
    taken[rows.ordinals] = True
    for key, table, part, columns in parts:
        result.pieces.setdefault(key, []).append(table.piece(part, columns))
    for name, members in templates.ignored.items():
        if rows.counts[members].any():
            result.ignored.setdefault(name, []).append(rows.ordinals[np.isin(rows.numbers, members)])
    for name, rules in templates.near.items():
        if rows.counts[list(rules)].any():
            missed = np.flatnonzero(np.isin(rows.numbers, list(rules)))
            first = missed[:MAX_FIRST]
            named = [rules[number] for number in rows.numbers[first].tolist()]
            _miss(result, rows.block, name, len(missed), named, rows.ordinals[first])


def _read_one(template: Template, ordinals: Integers, records: Records, result: BlockResult, taken: Mask) -> None:
    """Read records of one template, whose values are not all plain numbers."""
    matrix = bytes_at(records.buffer, records.starts[ordinals], template.length)
    numbers, inside = template.values(matrix)
    if inside is not None:
        ordinals, matrix, numbers = ordinals[inside], matrix[inside], numbers[:, inside]
        if not len(ordinals):
            return
    taken[ordinals] = True
    layout = template.layout
    pieces = template.pieces(matrix, numbers, ordinals, records.line_of(ordinals), result.problems)
    for event, piece in zip(layout.events, pieces, strict=True):
        result.pieces.setdefault(event.key, []).append(piece)
    for name in layout.ignored:
        result.ignored.setdefault(name, []).append(ordinals)
    for name, rule in layout.near:
        first = ordinals[:MAX_FIRST]
        _miss(result, records, name, len(ordinals), [rule] * len(first), first)


def _miss(result: BlockResult, records: Records, name: str, count: int, rules: Sequence[str], first: Integers) -> None:
    """Note near-misses of grammar ``name``: their count, and the rules that nearly matched the first of them."""
    places = zip(records.starts[first].tolist(), records.ends[first].tolist(), strict=True)
    texts = [records.buffer[start:end] for start, end in places]
    result.miss(name, count, zip(rules, first.tolist(), records.line_of(first).tolist(), texts, strict=True))


def _candidates(prefilter: Prefilter, records: Records, taken: Mask) -> Integers:
    """Return the records that hold a literal and are not taken, ascending."""
    left = np.flatnonzero(~taken)
    if not len(left):
        return left
    breaks = np.flatnonzero(np.diff(left) > 1)
    begins = records.starts[left[np.concatenate([[0], breaks + 1])]]
    stops = records.ends[left[np.concatenate([breaks, [len(left) - 1]])]]
    pieces = [records.buffer[begin:stop] for begin, stop in zip(begins.tolist(), stops.tolist(), strict=True)]
    found = np.array(prefilter.places(b"\n".join(pieces)), np.int64)  # records already taken contain literals, too
    lengths = stops - begins + 1
    firsts = np.cumsum(lengths) - lengths
    piece = np.searchsorted(firsts, found, "right") - 1
    places = begins[piece] + found - firsts[piece]
    rows = np.searchsorted(records.ends, places)
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = rows[1:] != rows[:-1]
    rows = rows[fresh]
    left_over: Integers = rows[~taken[rows]]
    return left_over
