"""A block of whole records → the body that it gives, records of known layouts together.

Records whose layout has a template are read as matrices. What is left goes through the gate, and those with a literal
one by one. What both gave is put into the order of the log at the end of the block.
"""

from __future__ import annotations

from array import array
from functools import cache
from typing import TYPE_CHECKING, Protocol

from receipt_cli.columns import Bounded, RuleColumns, place
from receipt_cli.envelope import plain
from receipt_cli.examine import Found, excerpt
from receipt_cli.gate import Gate
from receipt_cli.layout import MAX_LENGTH, Layout
from receipt_cli.model import MAX_FIRST, NearMiss
from receipt_cli.order import in_order
from receipt_cli.records import is_utf8, vanishes_before_end
from receipt_cli.stretch import Body, RuleKey
from receipt_cli.templates import Piece, Template

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

MIN_COUNT = 48
"""Records of a layout that were read one by one before it gets a template."""
MIN_ROWS = 12
"""Records in a block for which a template is worth its fixed cost."""
MAX_TEMPLATES = 512
MAX_IDLE = 64
"""Blocks with too few records after which a template is given up."""
_REST = -1000
_SERVED = -(1 << 60)
"""Counts of a layout that will not get a template soon, and of one that has one."""
_LARGE = 6 << 20
_MAX_PIECES = 400
"""Stretches of records without a template that are searched each for itself; of more, the whole block is."""


@cache
def keep_memory() -> None:
    """Let the C library keep what is freed, for the next block.

    glibc gives memory back, page by page, as soon as twice the largest block ever freed is free, and takes as long to
    get it again as a block takes to read. A large one that is never touched raises that bound (see ``mallopt(3)``).
    """
    import numpy as np

    np.empty(_LARGE, np.uint8)


class Reader(Protocol):
    """What reads a single record: see ``scan.Engine.take``."""

    gate: Gate
    templates: Templates

    def take(self, body: Body, record: bytes, ordinal: int, line: int, bad: bool, found: Found) -> None:
        """Read one record that holds a literal."""


class Templates:
    """The templates of the layouts that come often, by length."""

    def __init__(self) -> None:
        self.by_length: dict[int, tuple[Template, ...]] = {}
        self._count = 0

    def add(self, layout: Layout) -> None:
        """Make a template of ``layout``, of which many records came."""
        if self._count < MAX_TEMPLATES:
            layout.count = _SERVED
            made = Template(layout)
            self._count += 1
            self.by_length[made.length] = (*self.by_length.get(made.length, ()), made)

    def used(self, template: Template, rows: int) -> None:
        """Take note of how many records of a block a template read; it goes when they are few for long."""
        template.idle = 0 if rows >= MIN_ROWS else template.idle + 1
        if template.idle > MAX_IDLE:
            kept = tuple(t for t in self.by_length.get(template.length, ()) if t is not template)
            self._count -= len(self.by_length.get(template.length, ())) - len(kept)
            self.by_length[template.length] = kept
            template.layout.count = _REST


def read_block(reader: Reader, body: Body, raw: bytes, found: Found) -> None:
    """Read all of the whole records ``raw`` into the empty ``body``."""
    import numpy as np

    keep_memory()
    buffer = plain(raw, keep_returns=_returns_are_ends(raw))
    records = _Records(buffer)
    body.blank = records.count_blank()
    body.lines, body.records = records.lines, len(records.starts)
    bad = records.find_invalid()
    body.undecodable = len(bad)
    harvest: dict[RuleKey, list[Piece]] = {}
    ignored: dict[str, list[Integers]] = {}
    missed: dict[str, Bounded[NearMiss]] = {}
    taken = _read_templates(reader.templates, records, harvest, ignored, missed, found)
    rows = _candidates(reader.gate, records, taken)
    starts, ends, lines = records.starts[rows].tolist(), records.ends[rows].tolist(), records.line_of(rows).tolist()
    for row, start, end, line in zip(rows.tolist(), starts, ends, lines, strict=True):
        reader.take(body, buffer[start:end], row, line, row in bad, found)
    for key, pieces in harvest.items():
        body.rules[key] = in_order(body.rules.get(key, RuleColumns()), pieces)
    for name, ordinals in ignored.items():
        both = np.concatenate([*ordinals, np.frombuffer(body.ignored.get(name, array("q")), np.int64)])
        merged = array("q")
        merged.frombytes(np.sort(both, kind="stable").tobytes())
        body.ignored[name] = merged
    for name, near in missed.items():
        known = body.near.setdefault(name, near)
        if known is not near:
            known.count += near.count
            known.first = sorted([*known.first, *near.first], key=lambda entry: entry[0])[:MAX_FIRST]


def _returns_are_ends(raw: bytes) -> bool:
    """True when no ``\\r`` comes to stand before a ``\\n`` by what vanishes between them."""
    import numpy as np

    if b"\r" not in raw or b"\x08" in raw:
        return False
    data = np.frombuffer(raw, np.uint8)
    for byte in (0x00, 0x1B, 0x5E):
        if byte in raw:
            before = np.flatnonzero(data[1:] == byte)
            if any(vanishes_before_end(raw, at + 1) for at in before[data[before] == 0x0D].tolist()):
                return False
    return True


class _Records:
    """Where the records of a block begin and end."""

    def __init__(self, buffer: bytes) -> None:
        import numpy as np

        self.buffer = buffer
        data = self.data = np.frombuffer(buffer, np.uint8)
        redraws = b"\r" in buffer
        self.ends = np.flatnonzero((data == 0x0A) | (data == 0x0D)) if redraws else np.flatnonzero(data == 0x0A)
        nexts = self.ends + 1
        self._before: Integers | None = None
        self.lines = len(self.ends)
        if redraws:
            newline = data[self.ends] == 0x0A
            halves = np.zeros(len(newline), np.bool_)  # the line feeds of ends of two bytes
            halves[1:] = newline[1:] & ~newline[:-1] & (self.ends[1:] == nexts[:-1])
            first = np.flatnonzero(halves) - 1
            newline[first] = True
            nexts[first] += 1
            self.ends, nexts, newline = self.ends[~halves], nexts[~halves], newline[~halves]
            self._before = np.cumsum(newline) - newline
            self.lines = int(newline.sum())
        self.starts = np.empty_like(self.ends)
        self.starts[0] = 0
        self.starts[1:] = nexts[:-1]
        self.lengths = self.ends - self.starts

    def find_invalid(self) -> set[int]:
        """Return the records that are not UTF-8."""
        import numpy as np

        if self.buffer.isascii() or is_utf8(self.buffer):
            return set()
        places = np.searchsorted(self.ends, np.flatnonzero(self.data >= 0x80))
        rows = places[np.flatnonzero(np.diff(places, prepend=-1))]
        spans = zip(rows.tolist(), self.starts[rows].tolist(), self.ends[rows].tolist(), strict=True)
        return {row for row, start, end in spans if not is_utf8(self.buffer[start:end])}

    def line_of(self, rows: Integers) -> Integers:
        """Return the line of the block, from 1, that each record stands in."""
        return rows + 1 if self._before is None else self._before[rows] + 1

    def count_blank(self) -> int:
        """Return how many records hold nothing but blanks and tabs."""
        import numpy as np

        some = np.flatnonzero(self.lengths)
        first, last = self.data[self.starts[some]], self.data[self.ends[some] - 1]
        edges = ((first == 0x20) | (first == 0x09)) & ((last == 0x20) | (last == 0x09))
        spans = zip(self.starts[some[edges]].tolist(), self.ends[some[edges]].tolist(), strict=True)
        blank = sum(1 for start, end in spans if not self.buffer[start:end].strip(b" \t"))
        return len(self.lengths) - len(some) + blank

    def view(self, width: int) -> NDArray[np.void]:
        """Return the ``width`` bytes from each place on."""
        import numpy as np

        return np.ndarray((len(self.buffer) - width + 1,), f"V{width}", self.buffer, strides=(1,))


def _read_templates(
    templates: Templates,
    records: _Records,
    harvest: dict[RuleKey, list[Piece]],
    ignored: dict[str, list[Integers]],
    missed: dict[str, Bounded[NearMiss]],
    found: Found,
) -> Flags:
    """Read the records that fit a template; return which they are."""
    import numpy as np

    taken = np.zeros(len(records.starts), np.bool_)
    known = list(templates.by_length.items())
    if not known:
        return taken
    short = np.minimum(records.lengths, MAX_LENGTH + 1).astype(np.uint16)
    order = np.argsort(short, kind="stable")
    ordered = short[order]
    for length, choices in known:
        if not choices:
            continue
        low, high = np.searchsorted(ordered, (length, length + 1))
        rows = order[low:high]
        for template in choices:
            if len(rows) < MIN_ROWS or template.width > len(records.buffer):
                templates.used(template, 0)
                continue
            rows = rows[records.starts[rows] <= len(records.buffer) - template.width]
            fits, matrix = template.fitting(records.view(template.width), records.starts[rows])
            mine, rest = rows[fits], rows[~fits]
            templates.used(template, len(mine))
            if not len(mine):
                continue
            numbers, inside = template.values(matrix)
            if inside is not None:
                rest = np.concatenate([rest, mine[~inside]])
                mine, matrix, numbers = mine[inside], matrix[inside], numbers[:, inside]
                if not len(mine):
                    rows = rest
                    continue
            taken[mine] = True
            _book(template, matrix, numbers, mine, records, harvest, ignored, missed, found)
            rows = rest
    return taken


def _book(
    template: Template,
    matrix: NDArray[np.uint8],
    numbers: NDArray[np.float64],
    rows: Integers,
    records: _Records,
    harvest: dict[RuleKey, list[Piece]],
    ignored: dict[str, list[Integers]],
    missed: dict[str, Bounded[NearMiss]],
    found: Found,
) -> None:
    layout = template.layout
    lines = records.line_of(rows)
    for name in layout.ignored:
        ignored.setdefault(name, []).append(rows)
    for event, piece in zip(layout.events, template.pieces(matrix, numbers, rows, lines, found), strict=True):
        harvest.setdefault(event.key, []).append(piece)
    for name, rule in layout.near:
        near = missed.setdefault(name, Bounded(MAX_FIRST))
        near.count += len(rows)
        for row, line, record in zip(rows[:MAX_FIRST].tolist(), lines.tolist(), matrix, strict=False):
            text = excerpt(record[: template.length].tobytes())
            near.first.append((place(row), NearMiss(name, rule, line, text)))
        near.first = sorted(near.first, key=lambda entry: entry[0])[:MAX_FIRST]


def _candidates(gate: Gate, records: _Records, taken: Flags) -> Integers:
    """Return the records that hold a literal and are not taken, ascending."""
    import numpy as np

    left = np.flatnonzero(~taken)
    if not len(left):
        return left
    breaks = np.flatnonzero(np.diff(left) > 1)
    if len(breaks) >= _MAX_PIECES or 2 * int(records.lengths[left].sum()) > len(records.buffer):
        places = np.array(gate.places(records.buffer), np.int64)
    else:
        begins = records.starts[left[np.concatenate([[0], breaks + 1])]].tolist()
        stops = records.ends[left[np.concatenate([breaks, [len(left) - 1]])]].tolist()
        found = [begin + at for begin, stop in zip(begins, stops, strict=True) for at in gate.places(records.buffer[begin:stop])]
        places = np.array(found, np.int64)
    rows = np.searchsorted(records.ends, places)
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = rows[1:] != rows[:-1]
    rows = rows[fresh]
    return rows[~taken[rows]]
