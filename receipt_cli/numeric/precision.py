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
    finest = 0
    for value in list(dict.fromkeys(map(float, values)))[:MAX_LOOKED_AT]:  # numpy's repr names its type
        digits, _, power = repr(value).partition("e")  # of "nan" and "inf", which have no point, it is 0
        places = len(digits) - digits.find(".") - 1 if digits[-2:] != ".0" and "." in digits else 0
        finest = min(finest, int(power or 0) - places)
    return float(Decimal(1).scaleb(finest)) if finest else 0.0
