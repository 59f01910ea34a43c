"""Protocol buffers' wire format, as far as TensorBoard and W&B files need it: read and write the fields of a message.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import struct
from collections.abc import Iterator


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
