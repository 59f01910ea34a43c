"""The records of a block: where each begins and ends, and their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from receipt_cli.records.split import is_utf8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from receipt_cli.numeric.array_types import Integers


def bytes_at(buffer: bytes, places: Integers, width: int) -> NDArray[np.uint8]:
    """Return the ``width`` bytes (n, width) from each of ``places`` (n,) on; all of them must be in ``buffer``."""
    view: NDArray[np.void] = np.ndarray((len(buffer) - width + 1,), f"V{width}", buffer, strides=(1,))
    return view[places].view(np.uint8).reshape(len(places), width)


class Records:
    """The records of a normalised block (see ``envelope.plain``) that ends where a record does.

    With ``paired`` a ``\\r\\n`` in it is one end, as printed; without, what stood between the two has vanished.

    ``starts``, ``ends`` and ``lengths`` (n,) are places in ``buffer``; ``data`` are its bytes.
    """

    def __init__(self, buffer: bytes, *, paired: bool) -> None:
        self.buffer = buffer
        data = self.data = np.frombuffer(buffer, np.uint8)
        redraws = b"\r" in buffer
        self.ends = np.flatnonzero(data == 0x0A) if not redraws else np.flatnonzero(data <= 0x0D)
        if redraws:
            found = data[self.ends]
            self.ends = self.ends[(found == 0x0A) | (found == 0x0D)]
        nexts = self.ends + 1
        self._before: Integers | None = None
        self.lines = len(self.ends)
        if redraws:
            newline = data[self.ends] == 0x0A
            halves = np.zeros(len(newline), np.bool_)  # the line feeds of ends of two bytes
            if paired:
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
        if self.buffer.isascii() or is_utf8(self.buffer):
            return set()
        places = np.searchsorted(self.ends, np.flatnonzero(self.data >= 0x80))
        rows = places[np.flatnonzero(np.diff(places, prepend=-1))]
        spans = zip(rows.tolist(), self.starts[rows].tolist(), self.ends[rows].tolist(), strict=True)
        return {row for row, start, end in spans if not is_utf8(self.buffer[start:end])}

    def line_of(self, rows: Integers) -> Integers:
        """Return the line of the block, from 1, that contains each record."""
        return rows + 1 if self._before is None else self._before[rows] + 1

    def count_blank(self) -> int:
        """Return how many records hold nothing but blanks and tabs."""
        some = np.flatnonzero(self.lengths)
        first, last = self.data[self.starts[some]], self.data[self.ends[some] - 1]
        edges = ((first == 0x20) | (first == 0x09)) & ((last == 0x20) | (last == 0x09))
        spans = zip(self.starts[some[edges]].tolist(), self.ends[some[edges]].tolist(), strict=True)
        blank = sum(1 for start, end in spans if not self.buffer[start:end].strip(b" \t"))
        return len(self.lengths) - len(some) + blank
