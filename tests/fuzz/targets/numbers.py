"""Printed numbers: exactly what a decimal of unlimited digits gives, one by one and by the kernel."""

import math
import re
import struct
from decimal import Context, Decimal, localcontext

from receipt_cli.definitions.units import MAX_TEXT, SPECIAL_UNITS, UNITS, read_number, shift_of
from receipt_cli.records.envelope import MASK
from receipt_cli.scan.extraction.model import read_unregistered
from receipt_cli.scan.number_forms import scale_of
from receipt_cli.scan.presence import load_kernel
from tests.fuzz.feed import Feed

_NAMES: tuple[str | None, ...] = (None, *sorted(SPECIAL_UNITS), *sorted(UNITS))
_PLAIN = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_NATIVE = load_kernel()
_EXACT = Context(prec=5000, Emax=10**9, Emin=-(10**9))


def target(data: bytes) -> None:
    feed = Feed(data)
    unit = feed.pick(_NAMES)
    text = feed.rest().decode("latin-1")
    value = read_number(text, unit)
    assert value is None or isinstance(value, float)
    read_unregistered(text)
    if _PLAIN.fullmatch(text) and len(text) <= MAX_TEXT and unit not in ("suffix", "hms"):
        with localcontext(_EXACT):
            exact = Decimal(text) * (UNITS[unit].factor if unit in UNITS else 1)
            nearest = float(exact)
        if value is None:
            assert math.isinf(nearest), (text, unit)
        else:
            assert _bits(value) == _bits(nearest), (text, unit, value, nearest)
    shift = shift_of(unit)
    if shift is not None and text.isascii() and text.isdecimal() and len(text) <= MAX_TEXT:
        assert value == float(text + shift.decode())
    _columns(text, unit)


def _columns(text: str, unit: str | None) -> None:
    """Hold what the kernel makes of texts of one layout against reading each."""
    sample = text.encode("latin-1")
    scale = scale_of(sample.translate(MASK), unit)
    if scale is None or _NATIVE is None:
        return
    for row in (_turned(sample, by) for by in range(7)):
        value = _NATIVE.decimal(row[: scale.length], *scale[1:])
        assert value is None or _bits(value) == _bits(read_number(row.decode("latin-1"), unit)), (row, unit, value)


def _turned(sample: bytes, by: int) -> bytes:
    return bytes(48 + (byte - 48 + by * (at + 1)) % 10 if 48 <= byte < 58 else byte for at, byte in enumerate(sample))


def _bits(value: float | None) -> int:
    return int.from_bytes(struct.pack("d", math.nan if value is None else value), "little")


def seeds() -> list[bytes]:
    texts = (
        "131.97",
        "0.1",
        "1e-05",
        "3.14E+02",
        "-0",
        "-0.0",
        "nan",
        "-inf",
        "1,234,567.5",
        "0,123",
        "9007199254740993",
        "1" * 40,
        "0." + "3" * 40,
        "1e308",
        "1e9999",
        "4.9e-324",
        "131ms",
        "71.1GB",
        "9.99%",
        "1:02:03.5",
        "2 days, 1:02:03",
        "1.5K",
        "np.float64(0.5)",
        "179769313486231580793728971405301e276",
        ".5",
        "5.",
        "+7",
        "1_000",
        "0x10",
        "١٢",
        "2.4e-05 s",
        "12345678901234567.5",
    )
    return [bytes([unit]) + text.encode("latin-1", "ignore") for unit in range(0, len(_NAMES), 3) for text in texts]
