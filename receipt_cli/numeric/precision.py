"""The printed precision of a figure: differences below it mean nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal

MAX_LOOKED_AT = 2000
_EXACT = float(1 << 50)
"""Below it a product of a float is less than half from the whole number that is meant."""
_EXACT_POWER = 22
"""The largest power of ten that is a float."""
TOLERANCE = 0.02
"""Reported and derived medians that differ by no more than this share are consistent: printed digits and async timing."""


def printed_unit(digits: Mapping[str, int] | None, values: Iterable[float]) -> float:
    """Return the unit of the last digit as printed (``printed_digits`` of a receipt), else the one that ``values`` show."""
    if digits is None:
        return resolution(values)
    return float(Decimal(1).scaleb(-digits["greatest"])) if digits["greatest"] > 0 else 0.0


def resolution(values: Iterable[float]) -> float:
    """Return the unit of the last digit that ``values`` show, in their unit; 0.0 where it is unknown.

    The finest of them counts: ``131.9`` and ``132`` were printed with one decimal. A float that needs all its digits (a
    printed ``repr``, a rescaled figure) has none that is coarse; whole numbers show nothing, for trailing zeros may be exact.
    """
    most, unit = 0, 1.0
    for value in list(dict.fromkeys(map(float, values)))[:MAX_LOOKED_AT]:
        if -_EXACT < (scaled := value * unit) < _EXACT and round(scaled) / unit == value:
            continue  # the nearest float to a number of so few places, and so printed with no more
        digits, power = repr(value), 0  # numpy's names its type
        if "e" in digits:
            digits, _, exponent = digits.partition("e")
            power = int(exponent)
        point = digits.find(".")  # "nan" and "inf" have none
        places = (len(digits) - point - 1 if point >= 0 else 0) - power
        if places > most and digits[-2:] != ".0":
            most, unit = places, float(10**places) if places <= _EXACT_POWER else math.inf
    return float(Decimal(1).scaleb(-most)) if most else 0.0
