"""A file of any bytes, compressed or nearly so, → its text: what was packed comes back, what is damaged is said."""

import bz2
import gzip
import hashlib
import lzma
import tempfile
from pathlib import Path

import zstandard

from receipt_cli.errors import InputError
from receipt_cli.io.compression import compression_of
from receipt_cli.io.source import Source
from tests.fuzz.feed import Feed

_FILE = Path(tempfile.mkdtemp(prefix="fuzz-")) / "log"
_PACK = (
    lambda text: text,
    lambda text: gzip.compress(text, 1),
    lambda text: zstandard.ZstdCompressor(level=1).compress(text),
    lambda text: lzma.compress(text, preset=0),
    lambda text: bz2.compress(text, 1),
    lambda text: gzip.compress(text[: len(text) // 2], 1) + gzip.compress(text[len(text) // 2 :], 1) + b"\0" * 100,
    lambda text: zstandard.ZstdCompressor(level=1, write_checksum=True).compress(text) * 2,
)
_MOST = 64 << 20
"""Bytes of text that an input of a few kilobytes may become before the test itself stops reading."""


def target(data: bytes) -> None:
    feed = Feed(data)
    pack, damage, repeats = feed.below(len(_PACK)), feed.pick((0, 0, 1, 2, 3)), feed.pick((1, 1, 50))
    places = [feed.below(1 << 16) for _ in range(damage)]
    values = [feed.byte() for _ in range(damage)]
    text = feed.rest() * repeats
    packed = bytearray(_PACK[pack](text))
    for place, value in zip(places, values, strict=True):
        if packed and value < 64:
            del packed[place % len(packed) :]
        elif packed:
            packed[place % len(packed)] = value
    _FILE.write_bytes(packed)
    try:
        source = Source(str(_FILE))
        read = bytearray()
        for block in source.blocks():
            read += block
            if len(read) > _MOST:
                source.close()
                return
    except InputError as error:
        assert error.render()
        return
    assert source.size_bytes == len(read) and source.sha256 == hashlib.sha256(read).hexdigest()
    if pack and text and not damage:
        assert read == text * (2 if pack == 6 else 1) and not source.problems
    elif source.compression is None:
        assert read == packed and compression_of(bytes(packed[:64])) is None


def seeds() -> list[bytes]:
    text = b"step 1 loss 2.5\nstep 2 loss 2.4\n" * 3
    made = [bytes([pack, 0, 0]) + text for pack in range(len(_PACK))]
    made += [bytes([pack, 2, 2, 0, 30, 200]) + text for pack in range(len(_PACK))]
    made += [bytes([pack, 2, 0, 0, 40, 1]) + text for pack in range(len(_PACK))]
    magics = (
        b"\x1f\x8b\x08",
        b"\x28\xb5\x2f\xfd",
        b"\xfd7zXZ\0",
        b"BZh9",
        b"\x50\x2a\x4d\x18\x08\0\0\0",
        b"PK\x03\x04",
        b"\x1f\x9d",
    )
    return [*made, *(b"\0\0\0" + magic + text for magic in magics), *(b"\0\0\0" + _PACK[pack](text) for pack in range(1, 7))]
