"""Decompress gzip, zstd, xz and bzip2 in bounded memory, and keep all text before damage.

Input of fixed size goes straight to the decoders of the C libraries. The file objects of the standard library return
different parts of a damaged stream in different versions of Python.
"""

from __future__ import annotations

import contextlib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from pathlib import PurePath
from typing import Any, NamedTuple, cast

from receipt_cli.errors import InputError

CHUNK = 64 * 1024
"""Bytes of input per call of a decoder."""
BLOCK = 1 << 20
"""Bytes of output collected before a block is yielded."""
HEAD = 10
"""Bytes needed to recognise the compression."""
_STEP = 4096
"""Bytes of output per call for xz and bzip2: at most this much text before damage is lost."""
_WINDOW = 1 << 28
"""Largest dictionary that a stream may request, in bytes; ``xz -9`` and ``zstd --long`` need a quarter of it."""

BOMBS = ((1 << 30, 1000), (100 << 30, 100))
"""Bomb limits: (text bytes, text bytes per stored byte); a stream over both is no log. Training logs reach ratios of 20 to
60, one line repeated without end 300 (gzip)."""

Read = Callable[[int], bytes]
"""Return this many bytes, fewer only at the end."""


def compression_of(head: bytes) -> str | None:
    """Return the compression that a file with this ``head`` (at least ``HEAD`` bytes) has, or None."""
    return next((name for name, known in COMPRESSIONS.items() if known.is_head(head)), None)


def unpacked(name: str) -> str:
    """Return a file's name without its compression suffix."""
    return next((name[: -len(end)] for end in SUFFIXES if name.lower().endswith(end)), name)


def decompress(compression: str, read: Read) -> Generator[bytes, None, str | None]:
    """Yield the text of all members of a compressed stream; return its fault, or None."""
    make = COMPRESSIONS[compression].decoder
    pending: list[bytes] = []
    size = given = 0
    raw = read(CHUNK)
    wrong: str | None = None
    while raw and wrong is None:
        decoder = make()
        while not decoder.eof and wrong is None:
            raw = raw or read(CHUNK)
            if not raw:
                wrong = "ends early"
                break
            try:
                for piece in decoder.feed(raw):
                    pending.append(piece)
                    size += len(piece)
                    if size >= BLOCK:
                        yield b"".join(pending)
                        given += size
                        pending, size = [], 0
            except decoder.errors:
                wrong = "is damaged"
            raw = decoder.rest
        if wrong is None:
            raw = _skip_padding(raw, read)
            if raw and compression_of(raw[:HEAD]) != compression:
                wrong = "is followed by something else, which was not read,"
    if pending:
        yield b"".join(pending)
    return wrong and f"the {compression} stream {wrong} after {given + size} bytes of text"


def is_bomb(given: int, stored: int) -> bool:
    """Return whether a stream of ``stored`` bytes that gave ``given`` bytes of text exceeds a bomb limit."""
    return any(given > size and given > ratio * stored for size, ratio in BOMBS)


def _skip_padding(raw: bytes, read: Read) -> bytes:
    """Return the input after any zero padding between or after members, at least ``HEAD`` bytes unless the file ends."""
    while True:
        raw = raw.lstrip(b"\0") or read(CHUNK)
        if not raw or raw[0]:
            return raw if len(raw) >= HEAD else raw + read(HEAD - len(raw))


class _Decoder(ABC):
    """Decoder of one member of a stream. After ``feed``, ``rest`` is the unused input."""

    def __init__(self, inner: Any, *errors: type[Exception]) -> None:
        self.inner = inner
        self.errors = errors
        self.rest = b""

    @property
    def eof(self) -> bool:
        return bool(self.inner.eof)

    @abstractmethod
    def feed(self, raw: bytes) -> Iterator[bytes]:
        """Yield the output of a piece of the member."""


class _Gzip(_Decoder):
    """gzip, by zlib-ng if installed, else by zlib: same bytes and errors, in twice the time."""

    def feed(self, raw: bytes) -> Iterator[bytes]:
        full = False
        while (raw or full) and not self.inner.eof:
            before = self.inner.copy()
            try:
                piece = self.inner.decompress(raw, BLOCK)
            except self.errors:
                yield from _salvage(before, raw, self.errors)
                raise
            full = len(piece) == BLOCK
            raw = self.inner.unconsumed_tail
            if piece:
                yield piece
        self.rest = self.inner.unused_data


def _salvage(inner: Any, raw: bytes, errors: tuple[type[Exception], ...]) -> Iterator[bytes]:
    """Yield the text of ``raw`` before the byte at which decoding fails."""
    for at in range(len(raw)):
        tail = raw[at : at + 1]
        while tail:
            try:
                piece = inner.decompress(tail, BLOCK)
            except errors:
                return
            tail = inner.unconsumed_tail
            if piece:
                yield piece


class _Stepped(_Decoder):
    """xz and bzip2: their decoders limit the output of a call and keep the rest of the input."""

    def feed(self, raw: bytes) -> Iterator[bytes]:
        while True:
            piece = self.inner.decompress(raw, _STEP)
            raw = b""
            if piece:
                yield piece
            if self.inner.eof or (self.inner.needs_input and not piece):
                break
        self.rest = self.inner.unused_data


class _Zstd(_Decoder):
    """zstd, one block of a frame at a time: its decoder returns all text of its input, up to 32,000 times as much."""

    def __init__(self) -> None:
        import zstandard

        super().__init__(zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj(), zstandard.ZstdError)
        self.steps = _zstd_steps()
        self.size = next(self.steps)

    def feed(self, raw: bytes) -> Iterator[bytes]:
        at = 0
        while at < len(raw) and not self.inner.eof:
            part = raw[at : at + self.size]
            at += len(part)
            piece = self.inner.decompress(part)
            self.size = self.steps.send(part)
            if piece:
                yield piece
        self.rest = self.inner.unused_data + raw[at:] if self.inner.eof else b""


def _zstd_steps() -> Generator[int, bytes, None]:
    """Yield how many bytes may be decoded at once, again and again; receive the bytes that were, at most that many.

    Input that is no frame gives arbitrary sizes; the decoder rejects it.
    """
    start = yield from _exactly(5)
    if start[1:4] == b"\x2a\x4d\x18":  # a skippable frame, without text
        yield from _exactly(int.from_bytes(start[4:] + (yield from _exactly(3)), "little"))
    else:
        flags = start[4]
        single = flags >> 5 & 1
        yield from _exactly(1 - single + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6])  # window, dictionary, size
        last = False
        while not last:
            head = int.from_bytes((yield from _exactly(3)), "little")
            last, kind, size = bool(head & 1), head >> 1 & 3, head >> 3
            yield from _exactly(1 if kind == 1 else size)  # run-length block: one byte; else all bytes of the block
    while True:
        yield 1  # the checksum


def _exactly(size: int) -> Generator[int, bytes, bytes]:
    """Yield the number of missing bytes until ``size`` were received; return the first 8 or more."""
    first = b""
    while size > 0:
        part = yield size
        size -= len(part)
        first += part if len(first) < 8 else b""
    return first


def _gzip() -> _Gzip:
    library: Any = zlib
    with contextlib.suppress(ImportError):
        from zlib_ng import zlib_ng as library
    return _Gzip(library.decompressobj(31), library.error)


def _xz() -> _Stepped:
    import lzma

    return _Stepped(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_WINDOW), lzma.LZMAError)


def _bzip2() -> _Stepped:
    import bz2

    return _Stepped(bz2.BZ2Decompressor(), OSError, ValueError)


def _is_zstd(head: bytes) -> bool:
    """Return whether a frame begins here, or a skippable frame, as pzstd writes first."""
    return head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5)


def _is_bzip2(head: bytes) -> bool:
    blocks = (b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90")  # digits of pi, or of its root
    return head.startswith(b"BZh") and head[3:4].isdigit() and any(block.startswith(head[4:HEAD]) for block in blocks)


class Compression(NamedTuple):
    """One format: the suffix of its files, a test of its first bytes, and a decoder of one member."""

    suffix: str
    is_head: Callable[[bytes], bool]
    decoder: Callable[[], _Decoder]


COMPRESSIONS: dict[str, Compression] = {
    "gzip": Compression(".gz", lambda head: head.startswith(b"\x1f\x8b"), _gzip),
    "zstd": Compression(".zst", _is_zstd, _Zstd),
    "xz": Compression(".xz", lambda head: head.startswith(b"\xfd7zXZ\x00"), _xz),
    "bzip2": Compression(".bz2", _is_bzip2, _bzip2),
}
"""Formats by the name of the program that unpacks them to standard output with ``-dc``."""
SUFFIXES = tuple(known.suffix for known in COMPRESSIONS.values())


def decompress_log(compression: str, read: Read, name: str, *, of_file: bool) -> Generator[bytes, None, str | None]:
    """Yield and return as ``decompress`` for a log. Raises ``InputError`` for a decompression bomb."""
    stored = given = 0

    def counted(size: int) -> bytes:
        nonlocal stored
        piece = read(size)
        stored += len(piece)
        return piece

    pieces = decompress(compression, counted)
    while True:
        try:
            piece = next(pieces)
        except StopIteration as end:
            return cast("str | None", end.value)
        given += len(piece)
        if is_bomb(given, stored):
            why = f"{given:,} bytes of text from {stored:,} (possible decompression bomb)"
            way = f"{compression} -dc {name} | receipt parse -" if of_file else ""
            raise InputError("decompresses to far more than a log does", where=name, why=why, try_=way)
        yield piece


def receipt_names(log: str) -> list[str]:
    """Return the names that a receipt beside this log may have: from the log's stem, or from its full name."""
    return list(dict.fromkeys(f"{name}.receipt.json" for name in (PurePath(unpacked(log)).stem, unpacked(log), log)))


def header_name(log: str) -> str:
    """Return the name of the header file beside this log."""
    return f"{PurePath(unpacked(log)).stem}.header.json"


def times_name(log: str) -> str:
    """Return the name of the file beside this log that says when its lines came."""
    return f"{unpacked(log)}.times"


def samples_name(log: str) -> str:
    """Return the name of the file beside this log that says what the GPUs did."""
    return f"{unpacked(log)}.gpu"


def running_name(log: str) -> str:
    """Return the name of the note that lies beside this log while its job runs."""
    return f"{PurePath(unpacked(log)).stem}.running.json"
