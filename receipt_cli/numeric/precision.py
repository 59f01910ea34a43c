"""The precision with which a value was printed: smaller differences mean nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from receipt_cli.numeric.array_types import Floats

MAX_LOOKED_AT = 2000
_EXACT = float(1 << 50)
"""Magnitude below which rounding a product of a float finds the intended whole number."""
_EXACT_POWER = 22
"""Largest power of ten that a float represents exactly."""
TOLERANCE = 0.02
"""Relative difference up to which reported and derived medians agree: printed digits and asynchronous timing."""


_DISTINCT = 4
"""Least number of distinct values that shows how a figure is printed; fewer may have been printed without trailing zeros."""


@dataclass(frozen=True, slots=True)
class Printing:
    """How the values of a figure were printed: with ``decimals`` behind the point, or with so many ``significant`` digits.

    Both are None if neither is known. Values count as ``exact`` then, and if few values with as many decimals do not show
    whether trailing zeros were printed.
    """

    decimals: int | None = None
    significant: int | None = None
    exact: bool = False

    @classmethod
    def of(cls, statistic: Mapping[str, Any] | None, values: Floats) -> Printing:
        """Return the printing of ``values`` ([n]), with the ``printed_digits`` of their statistic in a receipt."""
        digits = (statistic or {}).get("printed_digits")
        shown = {float(value) for value in values[:MAX_LOOKED_AT] if math.isfinite(value) and value}
        if digits is not None and digits["least"] == digits["greatest"]:
            padded = any(-Decimal(repr(value)).normalize().as_tuple().exponent < digits["least"] for value in shown)  # type: ignore[operator]
            return cls(decimals=digits["least"], exact=not padded and len(shown) < _DISTINCT)
        if len(shown) < _DISTINCT:
            return cls(exact=True)
        return cls(significant=max(len(Decimal(repr(value)).normalize().as_tuple().digits) for value in shown))

    def units(self, values: Floats) -> Floats:
        """Return the unit of the last printed digit of each value; 0 if it is exact."""
        if self.exact or self.decimals is self.significant is None:
            return np.zeros(len(values))
        if self.decimals is not None:
            return np.full(len(values), float(Decimal(1).scaleb(-self.decimals)))
        known = np.isfinite(values) & (values != 0)
        powers = np.floor(np.log10(np.abs(np.where(known, values, 1.0)))) - (self.significant or 0) + 1
        return np.where(known, 10.0**powers, 0.0)

    def text(self, value: float) -> str:
        """Return a value as it was printed, as far as that is known."""
        if self.decimals is not None and math.isfinite(value):
            return f"{value:.{max(self.decimals, 0)}f}"
        return f"{int(value)}" if value.is_integer() and abs(value) < _EXACT else repr(value)


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
    seen: dict[float, None] = {}
    for value in map(float, values):
        if len(seen) == MAX_LOOKED_AT:
            break
        if value in seen:
            continue
        seen[value] = None
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
