"""The hostile logs, each a generator that holds no more than a piece of it in memory."""

from __future__ import annotations

import bz2
import lzma
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.torture.hidden import STEPS, among, lines

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Hostile:
    """One hostile log. ``make(scale)`` yields its bytes: all of it at 1, and a log of the same kind at a fraction.

    ``code`` is how ``receipt parse`` ends; 0 where the hidden run must be told right. ``small`` is the scale of the tests,
    0 where only the whole one means anything. ``says`` must stand in what is said on standard error, or in the receipt.
    """

    name: str
    make: Callable[[float], Iterator[bytes]]
    code: int = 0
    small: float = 0.001
    says: str = ""
    hidden: bool = True
    least: float = 0.0
    """The smallest scale at which its bound is reached."""
    arguments: tuple[str, ...] = ()


def _count(whole: float, scale: float) -> int:
    return max(STEPS, int(whole * scale))


def ten_gigabytes(scale: float) -> Iterator[bytes]:
    """A log of 10 GB: two hundred lines of everything between two step lines."""
    source = random.Random(1)
    words = [bytes(source.choices(b"abcdefghijklmnopqrstuvwxyz_/.:", k=source.randrange(2, 14))) for _ in range(4000)]
    rows = 14_000 if scale == 1 else 1_000
    blocks = [b"\n".join(b" ".join(source.choices(words, k=9)) for _ in range(rows)) + b"\n" for _ in range(8)]
    size = sum(map(len, blocks)) // len(blocks)
    yield from among((blocks[n % len(blocks)] for n in range(_count(10e9 / size, scale))), 1)


def one_line(scale: float) -> Iterator[bytes]:
    """Lines, then 2 GB without a newline, then the rest."""
    steps = lines()
    yield b"".join(steps[: STEPS // 2])
    piece = bytes(random.Random(2).choices(b"abcdef0123456789 =:,", k=MIB))
    for _ in range(max(1, int(2 * GIB * scale) // MIB)):
        yield piece
    yield b"\n" + b"".join(steps[STEPS // 2 :])


def one_line_packed(scale: float) -> Iterator[bytes]:
    """The same, in gzip."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    for piece in one_line(scale):
        yield packer.compress(piece)
    yield packer.flush()


def templates(scale: float) -> Iterator[bytes]:
    """Ten million lines, no two of one shape."""
    source = random.Random(3)

    def noise() -> Iterator[bytes]:
        for first in range(0, _count(10e6, scale), 100):
            made = []
            for number in range(first, first + 100):
                letters = bytes(97 + (number >> shift) % 26 for shift in range(0, 30, 3))
                made.append(b"%s %s=%d (%s)\n" % (letters, letters[::-1], source.randrange(999), letters[3:7]))
            yield b"".join(made)

    yield from among(noise(), max(1, int(10e6 * scale) // 100 // STEPS))


def phases(scale: float) -> Iterator[bytes]:
    """A million phases: two stages of one trainer by turns, a step each."""
    rest = b" | loss: 2.0 | lrm: 1.00 | dt: 396.02ms | tok/sec: 13,225 | mfu: 0.58 | total time: 0.00m\n"
    for first in range(0, _count(500_000, scale), 1000):
        yield b"".join(b"step %05d/99999 (0.00%%)%sstep %05d (0.28%%)%s" % (n, rest, n, rest) for n in range(first, first + 1000))


def restarts(scale: float) -> Iterator[bytes]:
    """A million restarts, then the run."""
    pair = b"".join(lines()[:2])
    for _ in range(max(1, int(1000 * scale))):
        yield pair * 1000
    yield b"".join(lines())


def ranks(scale: float) -> Iterator[bytes]:
    """A hundred thousand ranks print the first steps, and one prints all."""
    count, steps = _count(100_000, scale), lines()
    for step in steps[:3]:
        for first in range(0, count, count // 100):
            yield b"".join(b"[rank%d]: %s" % (rank, step) for rank in range(first, first + count // 100))
    yield b"".join(b"[rank0]: %s" % step for step in steps[3:])


def nested(scale: float) -> Iterator[bytes]:
    """Dicts and arrays a hundred thousand deep, open and closed, among step lines."""
    depth = int(100_000 * max(scale, 0.2))
    shapes = [b"{'loss': " * depth, b"{" * depth + b"}" * depth, b"{'loss': " + b"[" * depth + b"]" * depth + b"}"]
    shapes.append(b'{"a":' * depth)
    yield from among((shape + b"\n" for _ in range(50) for shape in shapes), 1)


def digits(scale: float) -> Iterator[bytes]:
    """Numbers of ten thousand digits, and exponents beyond all floats, in fields of step lines."""
    long = b"9" * 10_000
    values = [long, b"-" + long, b"0." + long, b"1e" + long, b"1e999999", b"-1e-999999", b"0x" + long, b"1" + b",000" * 3000]

    def noise() -> Iterator[bytes]:
        for _ in range(max(1, int(200 * scale))):
            for value in values:
                yield b"note: loss %s, time %sms, mfu %s%%\n{'loss': %s, 'step': %s}\n" % ((value,) * 5)

    yield from among(noise(), 1)


def times(scale: float) -> Iterator[bytes]:
    """Stamps of the years 0, 9999 and 10000, month 13, the 30th of February, and seconds beyond all calendars."""
    stamps = [
        *(b"0000-01-01 00:00:00", b"9999-12-31 23:59:60", b"10000-01-01T00:00:00Z", b"2026-13-01 00:00:00"),
        *(b"2026-02-30 25:61:61", b"[99999999999999999999]", b"1e308", b"-9223372036854775808", b"0001-01-01"),
        *(b"1970-01-01T00:00:00+99:99", b"Feb 30 00:00:00"),
    ]
    count = _count(20_000, scale)
    source = random.Random(4)

    def noise() -> Iterator[bytes]:
        for _ in range(count):
            yield source.choice(stamps) + b" INFO trainer.py:12 saving checkpoint\n"

    yield from among(noise(), max(1, count // STEPS))


TRICKS = (
    *(b"\x1b]0;title\x07", b"\x1b[2J\x1b[H", b"\x1b]8;;http://example.invalid\x07link\x1b]8;;\x07", "‮gnitirw‬".encode()),
    *("​‌﻿".encode(), b"\xc2\x9b31m", b"\xc0\xaf\xe0\x80\xaf", b"\x00\x00", b"\xed\xa0\x80", b"\x1bP1$r\x1b\\", b"\x08\x08\x7f"),
)
"""Terminal escapes, marks of direction, zero-width and overlong characters, C1 controls, NULs and backspaces."""


def marks(scale: float) -> Iterator[bytes]:
    """Tricks of terminals around and inside of lines."""
    source = random.Random(5)

    def noise() -> Iterator[bytes]:
        for _ in range(_count(50_000, scale)):
            trick = source.choice(TRICKS)
            yield b"%sRuntimeWarning: %s overflow %s\n" % (trick, trick, trick)

    yield from among(noise(), max(1, _count(50_000, scale) // STEPS))
    yield b"".join(b"Traceback (most recent call last):\nRuntimeError: %sno%s\n" % (trick, trick) for trick in TRICKS)


def names(scale: float) -> Iterator[bytes]:
    """The same tricks in what a trainer names: metrics, ranks, phases, the model, files."""
    yield b"".join(b"loading weights file %smodel.bin from %s\n***** Running training %s*****\n" % (t, t, t) for t in TRICKS)
    for step in range(_count(2000, scale)):
        trick = TRICKS[step % len(TRICKS)]
        keys = b"'%sname%s': 1.0, 'eval_%s_loss': 2.0" % (trick, trick, trick)
        head = b"[rank%s0]: " % trick if step % 7 == 6 else b""
        yield b"%s{'loss': 2.5, 'grad_norm': 1.5, 'learning_rate': 1e-05, %s, 'epoch': %.2f}\n" % (head, keys, step / 100)


def _zeros(pack: Callable[[bytes], bytes], flush: Callable[[], bytes], scale: float) -> Iterator[bytes]:
    piece = bytes(8 * MIB)
    for _ in range(max(1, int(64 * GIB * scale) // len(piece))):
        yield pack(piece)
    yield flush()


def bomb_gz(scale: float) -> Iterator[bytes]:
    """64 GiB of zeros in gzip."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield from _zeros(packer.compress, packer.flush, scale)


def bomb_zst(scale: float) -> Iterator[bytes]:
    """64 GiB of zeros in zstd."""
    import zstandard

    packer = zstandard.ZstdCompressor(level=3).compressobj()
    yield from _zeros(packer.compress, packer.flush, scale)


def bomb_xz(scale: float) -> Iterator[bytes]:
    """64 GiB of zeros in xz."""
    packer = lzma.LZMACompressor(preset=0)
    yield from _zeros(packer.compress, packer.flush, scale)


def bomb_bz2(scale: float) -> Iterator[bytes]:
    """64 GiB of zeros in bzip2, a member many times over."""
    member = bz2.compress(bytes(256 * MIB))
    for _ in range(max(1, int(64 * GIB * scale) // (256 * MIB))):
        yield member


def bomb_of_bombs(scale: float) -> Iterator[bytes]:
    """4 GiB of zeros in a gzip stream inside of a gzip stream: the inner one is no text, and nobody unpacks it."""
    outer, inner = zlib.compressobj(9, zlib.DEFLATED, 31), zlib.compressobj(9, zlib.DEFLATED, 31)
    for piece in _zeros(inner.compress, inner.flush, scale / 16):
        yield outer.compress(piece)
    yield outer.flush()


def members(scale: float) -> Iterator[bytes]:
    """The run in two hundred thousand gzip members, most of them empty."""
    empty = zlib.compressobj(9, zlib.DEFLATED, 31).flush()
    for step in lines():
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        yield packer.compress(step) + packer.flush() + empty * int(500 * max(scale, 0.02))


def wide_window(scale: float) -> Iterator[bytes]:
    """A zstd frame that asks for a window of 2 GiB."""
    import zstandard

    parameters = zstandard.ZstdCompressionParameters(window_log=31, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    yield packer.compress(b"".join(lines())) + packer.flush()


CASES = (
    Hostile("10 GB in a pipe", ten_gigabytes, small=0.0005),
    Hostile("a line of 2 GB", one_line, small=0.01),
    Hostile("a line of 2 GB, gzip", one_line_packed, small=0.01),
    Hostile("10 million templates", templates, small=0.004),
    Hostile("a million phases", phases, small=0.004, hidden=False, says="phases_dropped", least=0.004),
    Hostile("a million restarts", restarts, small=0.02, hidden=False),
    Hostile("100,000 ranks", ranks, small=0.05, says="ranks_dropped", least=0.05),
    Hostile("100,000 brackets", nested, small=0.2),
    Hostile("10,000 digits", digits, small=0.2),
    Hostile("impossible times", times, small=0.1),
    Hostile("escapes and marks", marks, small=0.05),
    Hostile("marks in names", names, small=0.2, hidden=False, says='"loss"'),
    Hostile("members of gzip", members, small=0.02),
    Hostile("bomb of gzip", bomb_gz, code=3, small=0, says="unpacks to far more", least=0.02),
    Hostile("bomb of zstd", bomb_zst, code=3, small=0, says="unpacks to far more", least=0.02),
    Hostile("bomb of xz", bomb_xz, code=3, small=0, says="unpacks to far more", least=0.02),
    Hostile("bomb of bzip2", bomb_bz2, code=3, small=0, says="unpacks to far more", least=0.02),
    Hostile("bomb in a bomb", bomb_of_bombs, code=4, small=0.001, hidden=False),
    Hostile("zstd window of 2 GiB", wide_window, code=3, small=1, says="cannot be decompressed"),
)
