"""Decompress gzip, zstd, xz and bzip2 in bounded memory, with all text before a damage.

Input is taken in pieces of fixed size and handed to the decoders of the C libraries, never through the file objects of
the standard library: what those give of a damaged stream depends on the version of Python.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple, Protocol, cast

from receipt_cli.errors import InputError

CHUNK = 64 * 1024
"""Bytes of input that a decoder gets at once."""
BLOCK = 1 << 20
"""Bytes of output that are gathered before they are given."""
HEAD = 10
"""Bytes that decide which compression it is."""
_STEP = 4096
"""Bytes of output of xz and bzip2 that are asked for at once: what a damage can cost."""
_WINDOW = 1 << 28
"""Memory that a stream may ask for its dictionary; ``xz -9`` and ``zstd --long`` need a quarter of it."""

BOMBS = ((1 << 30, 1000), (100 << 30, 100))
"""What is no log any more: that many bytes of text from a stream that is so many times smaller. Text of trainers packs
20 to 60 times, the dullest of it (one line over and over) by gzip 300 times."""

Read = Callable[[int], bytes]
"""Return that many bytes, fewer only at the end."""


def compression_of(head: bytes) -> str | None:
    """Return which compression the first ``HEAD`` bytes of a file announce, or None."""
    return next((name for name, known in COMPRESSIONS.items() if known.is_head(head)), None)


def unpacked(name: str) -> str:
    """Return a file's name without the suffix of its compression."""
    return next((name[: -len(end)] for end in SUFFIXES if name.lower().endswith(end)), name)


def decompress(compression: str, read: Read) -> Generator[bytes, None, str | None]:
    """Yield the text of all members of a compressed stream; return what is wrong with it, or None."""
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
    """Return whether ``given`` bytes of text from ``stored`` bytes of a stream are what no log gives."""
    return any(given > size and given > ratio * stored for size, ratio in BOMBS)


def _skip_padding(raw: bytes, read: Read) -> bytes:
    """Return what follows the zeros that may stand between and after members."""
    while True:
        raw = raw.lstrip(b"\0") or read(CHUNK)
        if not raw or raw[0]:
            return raw if len(raw) >= HEAD else raw + read(HEAD - len(raw))


class _Decoder(Protocol):
    """One member of a stream. After ``feed``, ``rest`` is the input that it did not take."""

    errors: tuple[type[Exception], ...]
    rest: bytes

    @property
    def eof(self) -> bool: ...

    def feed(self, raw: bytes) -> Iterator[bytes]: ...


class _Gzip:
    """gzip, by zlib-ng, or by the zlib of the standard library: the same bytes and the same errors, in twice the time."""

    def __init__(self) -> None:
        self.inner, self.errors = _inflater()
        self.rest = b""

    @property
    def eof(self) -> bool:
        return bool(self.inner.eof)

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


def _inflater() -> tuple[Any, tuple[type[Exception], ...]]:
    """Return what decodes one gzip member, and the errors that it raises."""
    library: Any = zlib
    with contextlib.suppress(ImportError):
        from zlib_ng import zlib_ng as library
    return library.decompressobj(31), (library.error,)


def _salvage(inner: Any, raw: bytes, errors: tuple[type[Exception], ...]) -> Iterator[bytes]:
    """Yield the text of ``raw`` before the byte that breaks the stream."""
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


class _Stepped:
    """xz and bzip2: decoders that give at most so much at once, and keep the rest of their input."""

    def __init__(self, inner: Any, errors: tuple[type[Exception], ...]) -> None:
        self.inner = inner
        self.errors = errors
        self.rest = b""

    @property
    def eof(self) -> bool:
        return bool(self.inner.eof)

    def feed(self, raw: bytes) -> Iterator[bytes]:
        while True:
            piece = self.inner.decompress(raw, _STEP)
            raw = b""
            if piece:
                yield piece
            if self.inner.eof or (self.inner.needs_input and not piece):
                break
        self.rest = self.inner.unused_data


class _Zstd:
    """zstd, a block of the frame at a time: it gives all that its input holds, up to 32 thousand times as much."""

    def __init__(self) -> None:
        import zstandard

        self.errors: tuple[type[Exception], ...] = (zstandard.ZstdError,)
        self.inner = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
        self.rest = b""
        self.steps = _zstd_steps()
        self.size = next(self.steps)

    @property
    def eof(self) -> bool:
        return bool(self.inner.eof)

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
    """Yield how many bytes of a frame may be decoded at once, again and again, and be sent that many or fewer.

    Of what is no frame, any number: it is the decoder that judges.
    """
    start = yield from _exactly(5)
    if start[1:4] == b"\x2a\x4d\x18":  # a skippable frame: nothing comes of it
        yield from _exactly(int.from_bytes(start[4:] + (yield from _exactly(3)), "little"))
    else:
        flags = start[4]
        single = flags >> 5 & 1
        yield from _exactly(1 - single + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6])  # window, dictionary, size
        last = False
        while not last:
            head = int.from_bytes((yield from _exactly(3)), "little")
            last, kind, size = bool(head & 1), head >> 1 & 3, head >> 3
            yield from _exactly(1 if kind == 1 else size)  # one byte, as often as the size says; or the bytes themselves
    while True:
        yield 1  # the checksum


def _exactly(size: int) -> Generator[int, bytes, bytes]:
    """Yield how many bytes are missing until ``size`` were sent; return the first few of them, which tell of the rest."""
    first = b""
    while size > 0:
        part = yield size
        size -= len(part)
        first += part if len(first) < 8 else b""
    return first


def _xz() -> _Stepped:
    import lzma

    return _Stepped(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_WINDOW), (lzma.LZMAError,))


def _bzip2() -> _Stepped:
    import bz2

    return _Stepped(bz2.BZ2Decompressor(), (OSError, ValueError))


def _is_zstd(head: bytes) -> bool:
    """Return whether a frame begins here, or a skippable one, such as pzstd writes first."""
    return head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5)


def _is_bzip2(head: bytes) -> bool:
    blocks = (b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90")  # digits of pi, or of its root
    return head.startswith(b"BZh") and head[3:4].isdigit() and any(block.startswith(head[4:HEAD]) for block in blocks)


class Compression(NamedTuple):
    """One format: the suffix of its files, its first bytes, and what decodes one member of it."""

    suffix: str
    is_head: Callable[[bytes], bool]
    decoder: Callable[[], _Decoder]


COMPRESSIONS: dict[str, Compression] = {
    "gzip": Compression(".gz", lambda head: head.startswith(b"\x1f\x8b"), _Gzip),
    "zstd": Compression(".zst", _is_zstd, _Zstd),
    "xz": Compression(".xz", lambda head: head.startswith(b"\xfd7zXZ\x00"), _xz),
    "bzip2": Compression(".bz2", _is_bzip2, _bzip2),
}
"""By the name of the program that unpacks it to standard output with ``-dc``."""
SUFFIXES = tuple(known.suffix for known in COMPRESSIONS.values())


def decompress_log(compression: str, read: Read, name: str, *, of_file: bool) -> Generator[bytes, None, str | None]:
    """Yield the text of a log, and return as ``decompress`` does. Raises ``InputError`` for what unpacks without end."""
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
