"""Rows of numbers under a header that names their cells (CSV, tabs, columns of blanks): records of one shape."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from receipt_cli.learn.shapes import EVERY, MAX_FORMS, Shape
from receipt_cli.learn.tokens import Form, core_start
from receipt_cli.records.envelope import MASK, NO_RANK

MAX_CELLS = 64
MAX_HELD = 1 << 20
"""Bytes that are kept until somebody asks for their table."""
_LOOKED_AT = 16 << 10
LOOKED_AT = 50
"""Records of a buffer that say whether all have the heads of a collector."""
_PLAIN = rb"[-+]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?\d++)?+|[nN]a[nN]|-?[iI]nf"
_CELL = rb"(?:\d++:\d\d(?::\d\d)?+(?:\.\d++)?+|(?:" + _PLAIN + rb")(?:[ ]?%|m?s|[mh])?+)(?![\w.%])"
_NEXT_CELL = rb"(?:[ ]*+[\t,;|][ ]*+|[ ]{1,80}+)" + _CELL
_PARTS = re.compile(rb"(" + _CELL + rb")")
_ROW = rb"[| \t]*+" + _CELL + rb"(?:" + _NEXT_CELL + rb"){1,63}+[ \t,;|]*+"
MAX_END = 200
"""Bytes of the end of a line that are looked at for two cells."""
_OF_CELLS = b"0123456789.:+-%eEnNaAiIfFmsh \t,;|"
"""What cells and the space between them are made of."""
_SPACE = b" \t,;|"
_SPACES = frozenset(_SPACE)
_MARKS = frozenset(b"\t,;|")
_LAST_CELLS = re.compile(_CELL + _NEXT_CELL + rb"[ \t,;|]*+\Z")
_RULE = rb"(?:[|+ \t:-]*-[|+ \t:-]*\n)?"  # a rule between the header and its rows
_NAMES = rb"([| \t]*+[A-Za-z](?:[^\n\d=:]|(?<=[A-Za-z@_])\d){3,1000}+)"
_FIRST = re.compile(rb"(?m)^" + _NAMES + rb"\n" + _RULE + rb"(" + _ROW + rb")$")
_HEADER, _BODY = re.compile(_NAMES), re.compile(_ROW)
GAP = 16
"""Lines of other writers that may stand between a header with marks between its cells and its rows."""
_BETWEEN = {mark: rb"[ \t]*+" + re.escape(mark) + rb"[ \t]*+" for mark in (b"|", b",", b";")} | {
    b"\t": rb"[ ]*+\t[ ]*+",
    b"  ": rb"[ \t]++",
}


class Table:
    """Finds the first table of numbers in a log, from buffers of whole records."""

    def __init__(self) -> None:
        self.shape: Shape | None = None
        """Its rows; where they are among the other records is unknown. None without a table."""
        self._row: re.Pattern[bytes] | None = None
        self._forms: dict[bytes, Form] = {}
        self._held: list[bytes] = []
        self._size = 0

    def take(self, buffer: bytes) -> None:
        """Keep ``buffer`` for ``settle``: a table counts only where nothing else is learned."""
        self._held.append(buffer)
        self._size += len(buffer)
        if self._size > MAX_HELD:
            self.settle()

    def settle(self) -> Shape | None:
        """Read what was taken; return the rows."""
        for buffer in self._held:
            self._read(buffer)
        self._held.clear()
        self._size = 0
        if self.shape is not None:
            self.shape.last, self.shape.places = EVERY, []
        return self.shape

    def _read(self, buffer: bytes) -> None:
        """Look for the header in ``buffer``, and for rows behind it; both may have the heads of a collector before them."""
        lines = buffer.split(b"\n")
        rows = [at for at, line in enumerate(lines) if line and line[-1] in _OF_CELLS and _ends_in_cells(line)]
        if not rows:
            return
        first = [record for record in buffer[:_LOOKED_AT].split(b"\n")[:LOOKED_AT] if record.strip()]
        headed = 2 * sum(core_start(record) > 0 for record in first) > len(first)
        text, at = _stripped(lines, rows) if headed else buffer, 0
        if self._row is None:
            found = self._header(text)
            head = core_start(buffer.lstrip(b"\n").partition(b"\n")[0]) if found is None and text is buffer else 0
            if head > 0:  # the redraws of a line have none
                text = _stripped(lines, rows)
                found = self._header(text)
            if found is None:
                return
            at = found
        assert self._row is not None and self.shape is not None
        read = [row.group().strip(b" \t") for row in self._row.finditer(text, at)]
        if read:
            self.shape.add_all([(self._form(row), row, at, NO_RANK) for at, row in enumerate(read, start=self.shape.count)])

    def _form(self, row: bytes) -> Form:
        masked = row.translate(MASK)
        if masked not in self._forms:
            if len(self._forms) >= MAX_FORMS:
                self._forms.clear()
            bounds = tuple(accumulate(map(len, _PARTS.split(row)), initial=0))
            self._forms[masked] = Form(0, len(row), bounds, b"", (), NO_RANK, True, False, None, row)
        return self._forms[masked]

    def _header(self, text: bytes) -> int | None:
        """Return the position of the first row of a table: below its header, or after a few other lines; None without one."""
        for found in _FIRST.finditer(text):
            if self._open(found[1], found[2]):
                return found.start(2)
        lines = text.split(b"\n")
        headers = [at for at, line in enumerate(lines) if not _MARKS.isdisjoint(line) and _HEADER.fullmatch(line) is not None]
        for header in headers:
            for at in range(header + 1, min(header + 2 + GAP, len(lines))):
                if _BODY.fullmatch(lines[at]) is not None and self._open(lines[header], lines[at]):
                    return sum(map(len, lines[:at])) + at
        return None

    def _open(self, header: bytes, row: bytes) -> bool:
        """Take a line above a row for the header, where it has as many names as the row has numbers."""
        header, width = header.strip(), len(re.findall(_CELL, row))
        separator = next((s for s in (b"|", b"\t", b",", b";") if s in header), b"  ")
        cells = re.split(rb" *[\t,;|] *| {2,}", header) if separator != b"  " or b"  " in header else header.split()
        names = [cell.decode("utf-8", "replace").strip() for cell in cells if cell.strip()]
        if len(names) != width or not 2 <= width <= MAX_CELLS:
            return False
        rows = re.compile(rb"(?m)^[| \t]*+" + _CELL + rb"(?:" + _BETWEEN[separator] + _CELL + rb"){%d}[ \t,;|]*+$" % (width - 1))
        if rows.fullmatch(row) is None:
            return False  # its cells stand apart otherwise
        first, *_, last = _PARTS.split(row.strip(b" \t"))
        between = b" " + separator + b" "  # blanks may stand beside it
        self._row, self.shape = rows, Shape(b"", [first, *[between] * (width - 1), last], [], 0, rank=NO_RANK, header=names)
        return True


def _ends_in_cells(line: bytes) -> bool:
    """True for a line that ends as a row does, or in so much as may be cells: few do."""
    end = line[len(line.rstrip(_OF_CELLS)) :]
    own = end.strip(_SPACE)
    return len(end) > MAX_END or (not _SPACES.isdisjoint(own) and _LAST_CELLS.search(end) is not None)


def _stripped(lines: Sequence[bytes], rows: Sequence[int]) -> bytes:
    """Return the lines that may be ``rows``, and some before each, without their heads; the others are empty."""
    kept = [b""] * len(lines)
    for at in {place for row in rows for place in range(max(0, row - 1 - GAP), row + 1)}:
        kept[at] = lines[at][core_start(lines[at]) :]
    return b"\n".join(kept)
