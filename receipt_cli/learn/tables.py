"""Rows of numbers under a header that names their cells (CSV, tabs, columns of blanks) → the rule that reads the rows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from receipt_cli.learn.counting import FEW
from receipt_cli.learn.emit import NUMBER_TEXT, Induced, Spec, field_name
from receipt_cli.learn.names import EPOCH, LOSS, METRIC, OTHERS, SCORE, STEP, VALIDATION_LOSS, Name, Role, read_role
from receipt_cli.learn.tokens import NUMBER, core_start
from receipt_cli.learn.vocabulary import Vocabulary, normalise

MAX_CELLS = 64
MAX_HELD = 1 << 20
"""Bytes that are kept until somebody asks for their table."""
KEPT = 1024
"""Rows that are kept to judge the columns by."""
_LOOKED_AT = 16 << 10
LOOKED_AT = 50
"""Records of a buffer that say whether all have the heads of a collector."""
_TIME = r"\d++:\d\d(?::\d\d)?+(?:\.\d++)?+"
_PLAIN = rb"[-+]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?\d++)?+|[nN]a[nN]|-?[iI]nf"
_CELL = rb"(?:" + _TIME.encode() + rb"|(?:" + _PLAIN + rb")(?:[ ]?%|m?s|[mh])?+)(?![\w.%])"
_UNIT = rb" %msh"
"""What a unit behind a number is made of: ``91.5%``, ``12.3s``, ``4.27m``."""
_WHOLE = r"\d++"
_NEXT_CELL = rb"(?:[ ]*+[\t,|][ ]*+|[ ]{1,80}+)" + _CELL
_ROW = rb"[| \t]*+" + _CELL + rb"(?:" + _NEXT_CELL + rb"){1,63}+[ \t,|]*+"
MAX_END = 200
"""Bytes of the end of a line that are looked at for two cells."""
_OF_CELLS = b"0123456789.:+-%eEnNaAiIfFmsh \t,|"
"""What cells and the space between them are made of."""
_SPACE = b" \t,|"
_SPACES = frozenset(_SPACE)
_MARKS = frozenset(b"\t,|")
_LAST_CELLS = re.compile(_CELL + _NEXT_CELL + rb"[ \t,|]*+\Z")
_RULE = rb"(?:[|+ \t:-]*-[|+ \t:-]*\n)?"  # a rule between the header and its rows
_NAMES = rb"([| \t]*+[A-Za-z][^\n\d=:]{3,1000}+)"
_FIRST = re.compile(rb"(?m)^" + _NAMES + rb"\n" + _RULE + rb"(" + _ROW + rb")$")
_HEADER, _BODY = re.compile(_NAMES), re.compile(_ROW)
GAP = 16
"""Lines of other writers that may stand between a header with marks between its cells and its rows."""
_BETWEEN = {
    b"\t": (rb"[ ]*+\t[ ]*+", r"[ ]*+\t[ ]*+"),
    b",": (rb"[ ]*+,[ ]*+", r"[ ]*+,[ ]*+"),
    b"|": (rb"[ \t]*+\|[ \t]*+", r"[ \t]*+\|[ \t]*+"),
    b"  ": (rb"[ \t]++", r"[ \t]++"),
}


class Table:
    """The first table of numbers of a log: the names of its cells, and its rows. Fed buffers of whole records."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.separator = b""
        self.count = 0
        self.rows: list[list[float]] = []
        self.times: set[int] = set()
        self.units: dict[int, set[bytes]] = {}
        self.sample = b""
        self._row: re.Pattern[bytes] | None = None
        self._held: list[bytes] = []
        self._size = 0

    def take(self, buffer: bytes) -> None:
        """Keep ``buffer`` for ``settle``: a table counts only where nothing else is learned."""
        self._held.append(buffer)
        self._size += len(buffer)
        if self._size > MAX_HELD:
            self.settle()

    def settle(self) -> Table:
        """Read what was taken."""
        for buffer in self._held:
            self._read(buffer)
        self._held.clear()
        self._size = 0
        return self

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
        assert self._row is not None
        for row in self._row.finditer(text, at):
            self.count += 1
            if len(self.rows) < KEPT:
                cells = re.findall(_CELL, row.group())
                self.times.update(at for at, cell in enumerate(cells) if b":" in cell)
                for at, cell in enumerate(cells):
                    self.units.setdefault(at, set()).add(cell[len(cell.rstrip(_UNIT)) :].strip())
                self.rows.append([math.nan if b":" in cell else float(cell.rstrip(_UNIT)) for cell in cells])
                self.sample = self.sample or row.group().strip()

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
        separator = next((s for s in (b"|", b"\t", b",") if s in header), b"  ")
        cells = re.split(rb" *[\t,|] *| {2,}", header) if separator != b"  " or b"  " in header else header.split()
        names = [cell.decode("utf-8", "replace").strip() for cell in cells if cell.strip()]
        if len(names) != width or not 2 <= width <= MAX_CELLS:
            return False
        between = _BETWEEN[separator][0]
        rows = re.compile(rb"(?m)^[| \t]*+" + _CELL + rb"(?:" + between + _CELL + rb"){%d}[ \t,|]*+$" % (width - 1))
        if rows.fullmatch(row) is None:
            return False  # its cells stand apart otherwise
        self.names, self.separator, self._row = names, separator, rows
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


def induce_table(table: Table, vocabulary: Vocabulary) -> Induced | None:
    """Return the rule of the rows of ``table`` where a cell is the loss, or a score beside a counter; else None."""
    if table.count < vocabulary.min_records:
        return None
    roles = [_role(name, vocabulary) for name in table.names]
    columns = list(zip(*table.rows, strict=True))
    counts = [
        role if role is not None and _is_counter(name, vocabulary) else None
        for name, role in zip(table.names, roles, strict=True)
    ]
    step = _counter(counts, columns, STEP)
    epoch = _counter(counts, columns, EPOCH)
    kinds = {role.kind for role in roles if role is not None}
    losses = sorted((role.rank, at) for at, role in enumerate(roles) if role is not None and role.kind == LOSS)
    plain = losses[0][1] if losses and len({rank for rank, _ in losses[:2]}) == len(losses[:2]) else None
    counted = step is not None or epoch is not None
    if plain is None and not (counted and table.count >= FEW and kinds & {*OTHERS}):
        return None
    if plain is not None and not counted and (table.count < FEW or len(set(columns[plain])) * 2 <= len(columns[plain])):
        return None
    fields: dict[str, Spec] = {}
    cells: list[str] = []
    for at, role in enumerate(roles):
        name, spec = "", {}
        if at in table.times:
            cells.append(rf"(?:{_TIME}|{NUMBER_TEXT})")
            continue
        units = table.units.get(at, set())
        if units - {b""}:
            percent = units == {b"%"} and role is not None and role.kind == SCORE
            behind = r"(?:[ ]?%|m?s|[mh])?+"
            if percent:
                name = field_name(table.names[at], set(fields))
                fields[name] = {"type": "number", "metric": "other", "printed_in": "percent"}
            cells.append(f"(?P<{name}>{NUMBER_TEXT})[ ]?%" if percent else NUMBER_TEXT + behind)
            continue
        if at == step:
            name, spec = "step", {"type": "integer"}
        elif at == epoch:
            name, spec = ("epoch", {"type": "number"}) if step is not None else ("epoch_number", {"type": "integer"})
        elif role is not None and (at == plain or role.kind in (METRIC, VALIDATION_LOSS)) and role.unit is None:
            name, spec = role.metric or "", {"type": "number"}
        elif role is not None and role.kind in OTHERS:
            name, spec = field_name(table.names[at], set(fields)), {"type": "number", "metric": "other"}
        if not name or name in fields:
            cells.append(NUMBER_TEXT)
            continue
        fields[name] = {**spec}
        cells.append(f"(?P<{name}>{NUMBER_TEXT if spec['type'] == 'number' else _WHOLE})")
    pattern = r"^[| \t]*+" + _BETWEEN[table.separator][1].join(cells) + r"[ \t,|]*+$"
    literal = " " if table.separator == b"  " else table.separator.decode()
    body: dict[str, Any] = {"event": "step", "literal": literal, "pattern": pattern, "fields": fields}
    if "epoch_number" in fields and columns[epoch or 0][0] == 0:
        body["epochs_from"] = 0
    return Induced("train_row", body, pattern, None, [table.sample], table.count)


def _role(name: str, vocabulary: Vocabulary) -> Role | None:
    words = normalise(vocabulary.english(name))
    evaluation = bool(set(words.split()) & vocabulary.evaluation)
    return read_role(Name(name, words, True, False, evaluation, None, None, None, False), NUMBER, vocabulary)


def _is_counter(name: str, vocabulary: Vocabulary) -> bool:
    """True for a column that is called a counter and nothing else: ``critic_steps`` counts something of its own."""
    words = [word for word in normalise(vocabulary.english(name)).split() if word not in vocabulary.training]
    return " ".join(words) in vocabulary.step or " ".join(words) in vocabulary.epoch


def _counter(roles: list[Role | None], columns: list[tuple[float, ...]], kind: str) -> int | None:
    """Return the surest column of whole numbers, called a counter, that hardly ever goes back."""
    found = [(role.rank, at) for at, role in enumerate(roles) if role is not None and role.kind == kind]
    for _, at in sorted(found):
        values = columns[at]
        rises = sum(b > a for a, b in pairwise(values))
        falls = sum(b < a for a, b in pairwise(values))
        twice = not falls and 2 * rises >= len(values) - 2  # two processes print each row
        if all(value.is_integer() and value >= 0 for value in values) and (twice or rises * 5 >= 4 * (len(values) - 1)):
            return at
    return None
