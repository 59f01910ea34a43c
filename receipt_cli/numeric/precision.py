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
    for value in list(dict.fromkeys(values))[:MAX_LOOKED_AT]:  # those of an array, too: numpy's repr names its type
        shown = repr(float(value))
        digits = shown.partition(".")[2]
        if digits.isdigit():  # without an exponent: the shortest digits, of which a single 0 is none
            exponent = 0 if digits == "0" else -len(digits)
        else:
            small = Decimal(shown).normalize().as_tuple().exponent
            exponent = small if isinstance(small, int) else 0
        finest = min(finest, exponent)
    return float(Decimal(1).scaleb(finest)) if finest else 0.0
