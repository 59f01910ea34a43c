"""TensorBoard's event files: the messages of Protocol Buffers in them, and their framing (TFRecord)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import BinaryIO


def varint(value: int) -> bytes:
    """Encode an integer from -2**63 to 2**64 - 1: seven bits per byte, lowest first."""
    value &= (1 << 64) - 1
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def integer(number: int, value: int) -> bytes:
    """Encode field ``number`` as an int32, int64, bool or enum."""
    return varint(number << 3) + varint(value)


def double(number: int, value: float) -> bytes:
    """Encode field ``number`` as a double."""
    return varint(number << 3 | 1) + struct.pack("<d", value)


def single(number: int, value: float) -> bytes:
    """Encode field ``number`` as a float; a value out of range becomes an infinity."""
    try:
        return varint(number << 3 | 5) + struct.pack("<f", value)
    except OverflowError:
        return varint(number << 3 | 5) + struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def block(number: int, value: bytes | str) -> bytes:
    """Encode field ``number`` as a string, bytes or message."""
    data = value.encode("utf-8") if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


class Malformed(ValueError):
    """The bytes are no message in the wire format."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned integer at ``at`` and the position after it. Raises ``Malformed``."""
    value = 0
    for place in range(10):
        if at + place >= len(data):
            raise Malformed("an integer is cut off")
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & (1 << 64) - 1, at + place + 1
    raise Malformed("an integer is too long")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (number, value) of each field: an unsigned integer, or the bytes of a number, string or message.

    Raises ``Malformed``.
    """
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = read_varint(data, at)
            yield number, value
            continue
        if wire == 2:
            size, at = read_varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise Malformed(f"wire type {wire}")
        if at + size > len(data):
            raise Malformed("a field is cut off")
        yield number, data[at : at + size]
        at += size


def parts(data: bytes, number: int) -> list[bytes]:
    """Return the value of each field ``number`` that holds bytes. Raises ``Malformed``."""
    return [value for key, value in fields(data) if key == number and isinstance(value, bytes)]


def text(data: bytes, number: int) -> str:
    """Return the last string of field ``number``, "" if there is none. Raises ``Malformed``."""
    found = parts(data, number)
    return found[-1].decode("utf-8", "replace") if found else ""


def signed(value: int) -> int:
    """Convert an unsigned integer of the wire to an int32 or int64."""
    return value - (1 << 64) if value >> 63 else value


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
