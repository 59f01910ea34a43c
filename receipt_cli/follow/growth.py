"""Fold a growing log: scan each piece once, merge it, and take intermediate results from a copy."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Sequence
from pathlib import Path
from pickle import PickleBuffer

from receipt_cli.derive import Plan, Reading
from receipt_cli.errors import InputError, UsageError
from receipt_cli.events.streams import gathered_from
from receipt_cli.io.compression import HEAD, compression_of
from receipt_cli.io.copied_lines import CopiedLines
from receipt_cli.io.envelopes import Unpacker
from receipt_cli.io.joined_parts import Stream
from receipt_cli.io.source import SPOOLED, Source
from receipt_cli.scan.segment import Segment


class Followed(Source):
    """The part of a log read so far, as a finished source."""

    def __init__(self, path: str, *, once: bool) -> None:
        """``once``: the bytes of ``path`` can be read only once, and are kept for a second reading."""
        super().__init__(path, later=True)
        if once:
            self._spool = tempfile.SpooledTemporaryFile(SPOOLED)  # noqa: SIM115  # closed by close()
        self._once = once

    def add(self, block: bytes) -> None:
        """Append a block. Raises ``InputError`` and ``UsageError`` if the first block is not text."""
        if not self.size_bytes:
            self._look_at(block)
        self._hash(block)
        self.size_bytes += len(block)
        if self._spool is not None:
            self._spool.seek(0, os.SEEK_END)  # a second reading may have moved the position
            self._keep(block)
        elif not self._once:
            self._limit = self.size_bytes

    def _look_at(self, block: bytes) -> None:
        self._refuse(block[:HEAD])
        self._refuse_tar(block)
        packed = compression_of(block[:HEAD])
        if packed is not None:
            raise UsageError(f"{self.name} is compressed with {packed}", why="--follow reads text", try_="leave --follow out")


class Growth:
    """The fold of the part of a log read so far."""

    def __init__(self, path: str, plan: Plan, *, once: bool, workers: int | None = None) -> None:
        """``once`` as in ``Followed``; ``workers`` are for the second reading of an unrecognised log."""
        self.source = Followed(path, once=once)
        self._stream = Stream((self.source,), (Path(path).name,))
        self._plan = plan
        self._workers = workers
        self._unpacker = Unpacker()
        self._copied = CopiedLines()
        self._stretch = Segment()

    @property
    def size_bytes(self) -> int:
        """Bytes read."""
        return self.source.size_bytes

    @property
    def line_count(self) -> int:
        """Line ends read."""
        return self._stretch.body.lines + self._stretch.head_end.count(b"\n") + self._copied.kept_lines

    def add(self, blocks: Sequence[bytes]) -> None:
        """Append blocks. Raises as ``Followed.add``."""
        for block in blocks:
            self.source.add(block)
        self._stretch = self._with(self._stretch, [self._copied.feed(self._unpacker.feed(block)) for block in blocks])

    def _rest(self) -> list[bytes]:
        """Return the held-back text as if the log ended here."""
        open_end = self._unpacker.rest()
        text, copies = self._copied.rest(open_end)
        self.source.report_copies(copies)
        self.source.emptied = self._unpacker.emptied
        return [text]

    def _with(self, stretch: Segment, blocks: Sequence[bytes]) -> Segment:
        return self._plan.engine.merge(stretch, self._plan.engine.scan(blocks))

    def snapshot(self) -> Reading:
        """Return the reading of the log as if it ended here; it may grow afterwards. Raises ``ReceiptError``.

        Only an unrecognised log is read again.
        """
        return self._read(self._with(_copied(self._stretch), self._rest()))

    def finish(self) -> Reading:
        """Return the reading of the whole log, and consume the fold. Raises ``ReceiptError``, ``InputError`` for an empty log."""
        if not self.size_bytes:
            raise InputError("the log is empty", where=self.source.name)
        return self._read(self._with(self._stretch, self._rest()))

    def _read(self, segment: Segment) -> Reading:
        return self._plan.read(gathered_from(self._plan.engine, segment, self._stream), self._workers)


def _copied(segment: Segment) -> Segment:
    """Return a copy that shares the memory of large columns; it must be consumed before the original grows."""
    columns: list[PickleBuffer] = []
    rest = pickle.dumps(segment, protocol=5, buffer_callback=columns.append)
    copied: Segment = pickle.loads(rest, buffers=[column.raw() for column in columns])
    return copied
