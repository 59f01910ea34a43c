"""Read the lines of a stored file in blocks, with digests of its bytes."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from receipt_cli.io.compression import HEAD, compression_of, decompress, is_bomb

BLOCK = 1 << 20
MAX_LINE = 8 << 20
"""Longest record read, in bytes: a batch of 2,048 rows has 0.1 MB, a dictionary rarely over 1 MB."""
KEPT = 4096
"""Bytes kept of a longer record, enough for its type."""


class Line(NamedTuple):
    """One line without its end: ``data`` is all of it, or its first bytes if not ``whole``; ``number`` counts from 1."""

    number: int
    data: bytes
    whole: bool


def first_lines(stream: BinaryIO) -> list[bytes]:
    """Return the complete lines among the first ``BLOCK`` bytes of a file."""
    block = next(Lines(stream)._blocks(), b"")
    lines = block.split(b"\n")
    return lines if len(block) < BLOCK else lines[:-1]


class Lines:
    """The lines of one file, to be read once; after that, its digests, counts and ``damage`` (None for a sound file).

    ``size_bytes`` and ``sha256`` are of the decompressed bytes, ``stored_bytes`` and ``crc32`` of the stored file.
    ``open_end`` is set if the last line lacks its newline.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.size_bytes = 0
        self.stored_bytes = 0
        self.crc32 = 0
        self.line_count = 0
        self.damage: str | None = None
        self.compression: str | None = None
        self.open_end = False
        self._stream = stream
        self._head = b""
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Hex digest of the decompressed bytes read so far."""
        return self._digest.hexdigest()

    def __iter__(self) -> Iterator[Line]:
        rest, skipping = b"", False
        for block in self._blocks():
            pieces = (block if skipping else rest + block).split(b"\n")
            if skipping:
                if len(pieces) == 1:
                    continue
                yield self._line(rest, False)
                pieces, skipping = pieces[1:], False
            rest = pieces.pop()
            for piece in pieces:
                yield self._line(piece, len(piece) <= MAX_LINE)
            if len(rest) > MAX_LINE:
                rest, skipping = rest[:KEPT], True
        if rest or skipping:
            self.open_end = True
            yield self._line(rest, not skipping)

    def _line(self, data: bytes, whole: bool) -> Line:
        self.line_count += 1
        return Line(self.line_count, data if whole else data[:KEPT], whole)

    def _blocks(self) -> Iterator[bytes]:
        self._head = self._stored(HEAD)
        self.compression = compression_of(self._head)
        blocks = self._text() if self.compression is not None else iter(lambda: self._stored(BLOCK), b"")
        for block in blocks:
            self._digest.update(block)
            self.size_bytes += len(block)
            yield block

    def _text(self) -> Iterator[bytes]:
        assert self.compression is not None
        blocks = decompress(self.compression, self._stored)
        while True:
            try:
                block = next(blocks)
            except StopIteration as end:
                self.damage = end.value
                return
            if is_bomb(self.size_bytes + len(block), self.stored_bytes):
                self.damage = f"decompresses to over {self.size_bytes} bytes from {self.stored_bytes}: possibly a bomb"
                return
            yield block

    def _stored(self, size: int) -> bytes:
        """Return ``size`` stored bytes, fewer only at the end."""
        pieces, self._head = [self._head[:size]] if self._head else [], self._head[size:]
        missing = size - sum(map(len, pieces))
        while missing > 0 and (fresh := self._stream.read(missing)):
            self.stored_bytes += len(fresh)
            self.crc32 = zlib.crc32(fresh, self.crc32)
            pieces.append(fresh)
            missing -= len(fresh)
        return b"".join(pieces)
