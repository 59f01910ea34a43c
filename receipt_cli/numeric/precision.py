"""The printed precision of a figure: differences below it mean nothing."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

MAX_LOOKED_AT = 2000
TOLERANCE = 0.02
"""Reported and derived medians that differ by no more than this share are consistent: printed digits and async timing."""


def resolution(values: Iterable[float]) -> float:
    """Return the unit of the last digit that ``values`` show, in their unit; 0.0 where it is unknown.

    The finest of them counts: ``131.9`` and ``132`` were printed with one decimal. A float that needs all its digits (a
    printed ``repr``, a rescaled figure) has none that is coarse; whole numbers show nothing, for trailing zeros may be exact.
    """
    most = 0
    for text in map(repr, list(dict.fromkeys(map(float, values)))[:MAX_LOOKED_AT]):  # numpy's repr names its type
        digits, power = text, 0
        if "e" in text:
            digits, _, exponent = text.partition("e")
            power = int(exponent)
        point = digits.find(".")  # "nan" and "inf" have none
        places = (len(digits) - point - 1 if point >= 0 else 0) - power
        if places > most and digits[-2:] != ".0":
            most = places
    return float(Decimal(1).scaleb(-most)) if most else 0.0
