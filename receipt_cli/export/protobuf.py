"""Protocol buffers' wire format, as far as event files need it: fields of a message, in order, as bytes.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    """Return an integer from -2**63 to 2**64 - 1, seven bits a byte, the lowest first."""
    value &= (1 << 64) - 1
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def integer(number: int, value: int) -> bytes:
    """Return field ``number`` as an int32, int64, bool or enum."""
    return varint(number << 3) + varint(value)


def double(number: int, value: float) -> bytes:
    """Return field ``number`` as a double."""
    return varint(number << 3 | 1) + struct.pack("<d", value)


def single(number: int, value: float) -> bytes:
    """Return field ``number`` as a float; what is beyond its range becomes an infinity."""
    try:
        return varint(number << 3 | 5) + struct.pack("<f", value)
    except OverflowError:
        return varint(number << 3 | 5) + struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def block(number: int, value: bytes | str) -> bytes:
    """Return field ``number`` as a text, as bytes or as a message."""
    data = value.encode("utf-8") if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data
