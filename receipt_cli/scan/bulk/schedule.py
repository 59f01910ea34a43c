"""Cut a log into pieces, small while its layouts are learned, and decide which of them are read in bulk.

Numpy takes as long to import as some thousand records take to be read one by one. How many there will be is
estimated from the first piece. Where a log is cut, and how its pieces are read, never shows in the result.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from receipt_cli.records.split import last_end

FIRST = 64 << 10
"""Bytes of the first piece; each further one is twice as long."""
LEAST = 16 << 10
"""Bytes below which a piece is not worth being read in bulk."""
WHOLE = 1 << 20
"""Bytes from which on pieces are not cut any more."""
LARGE = 16 << 20
"""Bytes of a log that is worth being read in bulk, whatever it contains."""
WORTH_IMPORT = 16_000
"""Records to be read one by one that are worth importing numpy."""
WORTH_CALL = 8000
"""The same once it is imported: templates have to be made."""


class Schedule:
    """What was read of a log so far: ``seen`` bytes, ``taken`` records that the prefilter let through."""

    def __init__(self) -> None:
        self.taken = 0
        self.in_bulk = False
        self._seen = 0
        self._size: int | None = None
        self._piece = FIRST

    def expect(self, size: int) -> None:
        """Announce a log, or another piece of one, of ``size`` bytes."""
        self._size = size

    def pieces(self, raw: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield the whole records ``raw`` in pieces, each with whether it is to be read in bulk."""
        at = 0
        while at < len(raw):
            end = self._cut(raw, at)
            piece = raw[at:end]  # the same object where it is all
            yield piece, self.begin(len(piece))
            at = end

    def _cut(self, raw: bytes, at: int) -> int:
        """Return where the next piece of whole records ``raw`` ends, which begins at ``at``."""
        size = self._piece
        while size < WHOLE and len(raw) - at - size > LEAST:
            end = last_end(raw[at : at + size])
            if end:
                return at + end
            size *= 2
        return len(raw)

    def begin(self, length: int) -> bool:
        """Take note of a piece of ``length`` bytes; return whether it is to be read in bulk."""
        self.in_bulk = self.in_bulk or self._is_worth_it()
        self._seen += length
        if length >= LEAST:
            self._piece *= 2
        return self.in_bulk and length >= LEAST

    def _is_worth_it(self) -> bool:
        """True when as many records as are worth it were taken one by one, or will be at this rate."""
        if self._seen < LEAST:
            return False
        worth = WORTH_CALL if "numpy" in sys.modules else WORTH_IMPORT
        if self._size is None or self._size <= self._seen:
            return self.taken >= worth
        return self._size >= LARGE or self.taken * (self._size - self._seen) >= worth * self._seen
