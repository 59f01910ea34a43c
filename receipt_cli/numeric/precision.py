"""The precision with which a value was printed: smaller differences mean nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal

MAX_LOOKED_AT = 2000
_EXACT = float(1 << 50)
"""Magnitude below which rounding a product of a float finds the intended whole number."""
_EXACT_POWER = 22
"""Largest power of ten that a float represents exactly."""
TOLERANCE = 0.02
"""Relative difference up to which reported and derived medians agree: printed digits and asynchronous timing."""


def printed_unit(digits: Mapping[str, int] | None, values: Iterable[float]) -> float:
    """Return the unit of the last printed digit: from a receipt's ``printed_digits``, else from ``values``."""
    if digits is None:
        return resolution(values)
    return float(Decimal(1).scaleb(-digits["greatest"])) if digits["greatest"] > 0 else 0.0


def resolution(values: Iterable[float]) -> float:
    """Return the unit of the last digit that ``values`` show, in their unit; 0.0 if unknown.

    The finest value counts: ``131.9`` and ``132`` were printed with one decimal. A float that needs all its digits (a
    ``repr``, a rescaled value) has no coarse unit; whole numbers show nothing, because trailing zeros may be exact.
    """
    most, unit = 0, 1.0
    for value in list(dict.fromkeys(map(float, values)))[:MAX_LOOKED_AT]:
        if -_EXACT < (scaled := value * unit) < _EXACT and round(scaled) / unit == value:
            continue  # needs no more decimal places than found so far
        digits, power = repr(value), 0  # a numpy float's repr would name its type
        if "e" in digits:
            digits, _, exponent = digits.partition("e")
            power = int(exponent)
        point = digits.find(".")  # "nan" and "inf" have none
        places = (len(digits) - point - 1 if point >= 0 else 0) - power
        if places > most and digits[-2:] != ".0":
            most, unit = places, float(10**places) if places <= _EXACT_POWER else math.inf
    return float(Decimal(1).scaleb(-most)) if most else 0.0
