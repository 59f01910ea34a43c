"""gzip through zlib-ng gives what the zlib of the standard library gives, of whole streams and of broken ones."""

import gzip
import io
import random
import sys
import zlib
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.io import compression as module
from receipt_cli.io.compression import decompress
from tests.tools.examples import costly

pytest.importorskip("zlib_ng")

WORDS = [b"iter 10: loss 3.2841, time 131.97ms\n", b"\n", b"loss", b"x" * 300, b"\x00" * 70, bytes(range(256))]
texts = st.lists(st.sampled_from(WORDS) | st.binary(max_size=40), max_size=60).map(b"".join)


def pack(text: bytes, level: int, strategy: int) -> bytes:
    made = zlib.compressobj(level, zlib.DEFLATED, 31, 8, strategy)
    return made.compress(text) + made.flush()


members = st.builds(pack, texts, st.integers(0, 9), st.sampled_from([zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY]))
tails = st.sampled_from([b"", b"\0" * 30, b"plain words", b"\x1f\x8b", b"\x1f\x8b\x08" + b"\0" * 20, b"\0" * 9 + b"x"])


def read(data: bytes, chunk: int) -> tuple[bytes, str | None]:
    pieces: list[bytes] = []
    with patch.object(module, "CHUNK", chunk):
        stream = decompress("gzip", io.BytesIO(data).read)
        while True:
            try:
                pieces.append(next(stream))
            except StopIteration as stop:
                return b"".join(pieces), stop.value


def both(data: bytes, chunk: int = 64 * 1024) -> tuple[bytes, str | None]:
    fast = read(data, chunk)
    with patch.dict(sys.modules, {"zlib_ng": None}):
        assert read(data, chunk) == fast
    return fast


FLIPS = st.lists(st.tuples(st.integers(0), st.integers(1, 255)), max_size=3)


@settings(max_examples=costly(800), deadline=None)
@given(st.lists(members, min_size=1, max_size=4), tails, st.none() | st.integers(0), FLIPS, st.sampled_from([7, 100, 65_536]))
def test_members_that_end_early_are_damaged_or_followed_by_something(
    parts: list[bytes], tail: bytes, end: int | None, flips: list[tuple[int, int]], chunk: int
) -> None:
    data = bytearray(b"".join(parts) + tail)
    for at, bits in flips:
        data[at % len(data)] ^= bits
    both(bytes(data if end is None else data[: end % len(data)]), chunk)


def test_every_bit_of_a_header_of_codes() -> None:
    """Where decoders differ most: whether the lengths of the codes make a complete set."""
    chance = random.Random(5)
    text = b"".join(b"iter %d: loss %.4f\n" % (n, chance.random()) for n in range(300))
    member = gzip.compress(text, mtime=0)
    for bit in range(8 * 90):
        data = bytearray(member)
        data[bit // 8] ^= 1 << bit % 8
        both(bytes(data))
    for at in range(90, len(member), 17):
        data = bytearray(member)
        data[at] ^= 1 << chance.randrange(8)
        assert both(bytes(data))[1] is not None


def test_a_hole_of_zeros() -> None:
    chance = random.Random(6)
    text = b"".join(b"iter %d: loss %.4f\n" % (n, chance.random()) for n in range(60_000))
    member = gzip.compress(text, mtime=0)
    at = len(member) // 2
    text_read, wrong = both(member[:at] + bytes(4096) + member[at + 4096 :])
    assert wrong is not None
    assert len(text_read) > len(text) // 3
