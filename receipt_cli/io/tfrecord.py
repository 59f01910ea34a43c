"""TFRecord, the framing of TensorBoard's event files: length, CRC-32C of the length, data, CRC-32C of the data.

tensorflow/core/lib/io/record_writer.h and record_reader.cc.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import BinaryIO

MAX_READ = 1 << 20
"""Longest record read, in bytes; a longer one is an image or a graph and is skipped."""
_MASK_DELTA = 0xA282EAD8
_HEAD = 12


class Broken(ValueError):
    """A record is damaged, or (``cut``) the file ends inside it."""

    def __init__(self, reason: str, *, cut: bool = False) -> None:
        super().__init__(reason)
        self.cut = cut


def framed(data: bytes) -> bytes:
    """Frame ``data`` as one record of a file."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", _masked_crc(length)) + data + struct.pack("<I", _masked_crc(data))


def _masked_crc(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of ``data``: RFC 3720, appendix B.4."""
    table, crc = _crc_table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


@cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


def is_record_head(head: bytes) -> bool:
    """Return whether ``head`` begins with the length of a record and its checksum."""
    return len(head) >= _HEAD and struct.unpack("<I", head[8:_HEAD])[0] == _masked_crc(head[:8])


def records(file: BinaryIO) -> Iterator[bytes]:
    """Yield each record of at most ``MAX_READ`` bytes. Raises ``Broken``."""
    while head := file.read(_HEAD):
        if len(head) < _HEAD:
            raise Broken("the file ends within a record", cut=True)
        if not is_record_head(head):
            raise Broken("the length of a record does not match its checksum")
        (size,) = struct.unpack("<Q", head[:8])
        if size > MAX_READ:
            file.seek(size, 1)
            if len(file.read(4)) < 4:
                raise Broken("the file ends within a record", cut=True)
            continue
        data, checksum = file.read(size), file.read(4)
        if len(data) < size or len(checksum) < 4:
            raise Broken("the file ends within a record", cut=True)
        if struct.unpack("<I", checksum)[0] != _masked_crc(data):
            raise Broken("a record does not match its checksum")
        yield data
