"""Random numbers that are exactly what their printed form says, and printed times."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
ROWS = 256
"""Step records of one block."""


def decimal(values: Values, digits: int) -> Values:
    """Return ``values`` rounded to ``digits`` decimals: the float64 that their printed form reads as."""
    return np.rint(values * 10.0**digits) / 10.0**digits


def scaled(values: Values, digits: int, power: int) -> Values:
    """Return ``decimal(values, digits)`` times ten to the ``power``, with one rounding: what an exact rescaling gives."""
    mantissa = np.rint(values * 10.0**digits)
    power -= digits
    return mantissa * 10.0**power if power >= 0 else mantissa / 10.0**-power


def noise(random: np.random.Generator, mean: float, spread: float, count: int = ROWS) -> Values:
    """Return ``count`` normal values."""
    return random.normal(mean, spread, count)


def clock(seconds: Values, unit: Literal["ms", "us"]) -> list[str]:
    """Return ``YYYY-MM-DD HH:MM:SS.fff`` of seconds since 2025-03-01, to ``unit`` (``ms`` or ``us``)."""
    start = np.datetime64("2025-03-01", "s")
    times = start + np.rint(seconds * {"ms": 1e3, "us": 1e6}[unit]).astype(f"timedelta64[{unit}]")
    return "\n".join(np.datetime_as_string(times, unit=unit).tolist()).replace("T", " ").split("\n")
