"""Import tables of kernels and copies printed by ``nsys stats --format csv`` as a ``gpu_profile`` document.

Columns are read by name: other versions of the report have more columns, in another order. Sizes of copies are left out,
because they are printed in rounded megabytes.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import BinaryIO

from receipt_cli.errors import InputError
from receipt_cli.gpu_profile.activity import MAX_NAMES, CopyTotals, Timing, Timings
from receipt_cli.gpu_profile.document import Document, assemble, directions, kernel_table
from receipt_cli.gpu_profile.session import ReadFile
from receipt_cli.gpu_profile.stream import LONGEST_NS, Line, Lines, StreamProblems, shown
from receipt_cli.receipts.production import UNDECLARED, Declared

NSYS_FORMAT = "nsys-stats"
_TOTAL = "Total Time (ns)"
_KERNELS = (_TOTAL, "Instances", "Min (ns)", "Max (ns)", "Name")
_COPIES = (_TOTAL, "Count", "Operation")
_WAYS = {
    "[CUDA memcpy Host-to-Device]": "host_to_device", "[CUDA memcpy HtoD]": "host_to_device",
    "[CUDA memcpy Device-to-Host]": "device_to_host", "[CUDA memcpy DtoH]": "device_to_host",
    "[CUDA memcpy Device-to-Device]": "device_to_device", "[CUDA memcpy DtoD]": "device_to_device",
    "[CUDA memcpy Host-to-Host]": "host_to_host", "[CUDA memcpy HtoH]": "host_to_host",
    "[CUDA memcpy Peer-to-Peer]": "peer_to_peer", "[CUDA memcpy PtoP]": "peer_to_peer", "[CUDA memset]": "fill",
}  # fmt: skip
_MOST = 1 << 60


class _Tables:
    """The tables of a report."""

    def __init__(self) -> None:
        self.kernels: Timings[str] = Timings(MAX_NAMES)
        self.all = Timing()
        self.moved: dict[str, CopyTotals] = {}
        self.seen: list[str] = []
        self.records = {"read": 0, "ignored": 0, "unread": 0}
        self.problems = StreamProblems()

    def read(self, name: str, lines: Lines) -> None:
        """Add the tables of one file."""
        header: list[str] = []
        for line in lines:
            if not line.data.strip():
                header = []
                continue
            cells = cells_of(line.data) if line.whole else []
            if _is_header(cells):
                header = cells
                self._begin(cells, name)
            elif len(cells) == len(header) and _kind(header):
                good = self._row(dict(zip(header, cells, strict=True)))
                if good:
                    self.records["read"] += 1
                else:
                    self._unread(f"{name}: a row cannot be read", line)
                continue
            elif header and cells[:1] and cells[0].replace(".", "").isdigit() and _kind(header):
                self._unread(f"{name}: a row is cut", line)
                continue
            self.records["ignored"] += 1
        if lines.damage is not None:
            self.problems.add("damaged_file", f"{name}: {lines.damage}")
            self.problems.add_loss("damaged_file")

    def _unread(self, detail: str, line: Line) -> None:
        self.problems.add("unreadable_row", detail, line=line.number, excerpt=line.data)
        self.problems.add_loss("unreadable_row")
        self.records["unread"] += 1

    def _begin(self, header: Sequence[str], name: str) -> None:
        kind = _kind(header)
        if kind in self.seen:
            raise InputError(f"has two tables of {kind}", where=name, why="cannot tell which profile each belongs to")
        self.seen += [kind] if kind else []

    def _row(self, row: Mapping[str, str]) -> bool:
        total = _number(row[_TOTAL])
        if "Instances" not in row:
            count = _number(row["Count"])
            if not count or total is None:
                return False
            self.moved.setdefault(_WAYS.get(row["Operation"], "unknown"), CopyTotals(size=None)).add(count, total, None)
            return True
        count, least, most = (_number(row[column]) for column in ("Instances", "Min (ns)", "Max (ns)"))
        name = shown(row["Name"])
        if not count or total is None or least is None or most is None or name is None:
            return False
        if not least * count <= total <= most * count or most >= LONGEST_NS:
            return False
        for timing in (self.kernels.at(name), self.all):
            timing.add(count, total, least, most)
        return True


def is_report(lines: Iterable[bytes]) -> bool:
    """Return whether one of ``lines`` is the header of a table of kernels or copies."""
    return any(_kind(cells) for cells in map(cells_of, lines) if _is_header(cells))


def read_report(files: Iterable[tuple[str, Callable[[], BinaryIO]]], declared: Declared = UNDECLARED) -> Document:
    """Return the document of a report in one or more files. Raises ``InputError`` for two tables of the same kind."""
    tables, read = _Tables(), []
    for name, opener in files:
        with opener() as stream:
            lines = Lines(stream)
            tables.read(name, lines)
        read.append(ReadFile(name, lines.sha256, lines.size_bytes, lines.line_count))
    lost = tables.problems.lost
    events = {
        "format": NSYS_FORMAT, "session_id": None, "application": None, "started_at": None, "duration_s": None,
        "complete": False, "lossy": bool(lost), "losses": [{"kind": kind, "count": lost[kind]} for kind in sorted(lost)],
        "busy_s": None, "busy_ratio": None, "kernels": kernel_table(tables.kernels.of, tables.all, tables.all.count),
        "copies": directions(tables.moved), "scopes": [], "devices": [], "hosts": [],
    }  # fmt: skip
    return assemble(events, declared, read, tables.records, tables.problems)


def cells_of(line: bytes) -> list[str]:
    """Return the cells of a CSV line, [] if it is not UTF-8."""
    try:
        return [cell.strip() for cell in next(csv.reader([line.decode("utf-8")], strict=True), [])]
    except (UnicodeDecodeError, csv.Error):
        return []


def _is_header(cells: Sequence[str]) -> bool:
    return len(cells) > 2 and len(set(cells)) == len(cells) and ("Operation" in cells or "Name" in cells) and any(
        "Time (" in cell or "Total (" in cell for cell in cells
    )  # fmt: skip


def _kind(header: Sequence[str]) -> str:
    return "kernels" if set(_KERNELS) <= set(header) else "copies" if set(_COPIES) <= set(header) else ""


def _number(text: str) -> int | None:
    """Return a whole number, also with commas or a zero fraction; None for anything else."""
    digits = text.replace(",", "").removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 and int(digits) < _MOST else None
