"""Format base units for people: ms and h, GiB, percent, k/M/G tokens, TFLOP/s.

No other module converts a receipt's base units. Numbers have three or four significant digits, a nonzero
number never reads as zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from receipt_cli.render.fields import UNKNOWN

Kind = Literal["time", "bytes", "ratio", "rate", "flops", "count", "physical", "plain"]

_SI = ("", "k", "M", "G", "T", "P", "E")
_IEC = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_NOUNS = {"tokens": "tok"}
_MAX_DECIMALS = 5  # most decimals of a value much smaller than the others in its row
_MAX_DIGITS = 4  # most digits of a value much larger than the others in its row
_LARGEST_FIXED = 1e7


def kind_of(metric: str) -> Kind:
    """Return the kind of quantity of a metric, by the unit at the end of its name."""
    if "flops_per_s" in metric or metric == "total_flops":
        return "flops"
    if metric.endswith("_per_s") or "_per_s_" in metric:
        return "rate"
    for ending, kind in _ENDINGS.items():
        if metric.endswith(ending):
            return kind
    return "plain"


_ENDINGS: dict[str, Kind] = {
    "_bytes": "bytes",
    "_ratio": "ratio",
    "_s": "time",
    "_count": "count",
    "_total": "count",
    "_hz": "physical",
    "_w": "physical",
    "_j": "physical",
    "_v": "physical",
    "_celsius": "physical",
}
_SYMBOLS = {"_hz": "Hz", "_w": "W", "_j": "J", "_v": "V", "_celsius": "°C"}
_PREFIXED = ("Hz", "W", "J")
"""Symbols that get a prefix if the value is large: 1.98 GHz, but never kilodegrees."""


def significant(value: float, digits: int = 3) -> str:
    """Return ``value`` with ``digits`` significant digits, never in e-notation."""
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return _fixed(value, max(0, digits - 1 - exponent))


def duration(seconds: float) -> str:
    """Return seconds as ``476 ms``, ``12.3 s``, ``3 min 24 s`` or ``2 h 50 min``."""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds >= 1e15:
        return f"{_scientific(seconds)} s"
    rounded = _round(seconds, 3)
    if rounded < 100:
        if rounded == 0:
            return "0 s"
        if rounded < 1e-9:
            return f"{_scientific(seconds)} s"
        if rounded < 1:
            divisor, unit = (1e-3, "ms") if rounded >= 1e-3 else (1e-6, "µs")
            return f"{significant(seconds / divisor)} {unit}"
        return f"{significant(seconds)} s"
    whole = round(seconds)
    if whole < 3600:
        return _two(whole, "min", "s")
    return _two(round(seconds / 60), "h", "min")


def clock(seconds: float) -> str:
    """Return seconds as ``2 h 4 min 49 s``: whole seconds from 10 s on, below that as ``duration`` does."""
    if not 9.5 <= seconds < 1e15:
        return duration(seconds)
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest if hours < 100 else 0, "s"))
    return " ".join(f"{amount} {unit}" for amount, unit in parts if amount)


def _two(amount: int, large: str, small: str) -> str:
    major, minor = divmod(amount, 60)
    return f"{count(major)} {large} {minor} {small}" if minor else f"{count(major)} {large}"


def byte_size(size: float) -> str:
    """Return bytes as ``512 B``, ``80 GiB`` (when it is exactly that) or ``73.65 GiB``."""
    step = _step(size, 1024, len(_IEC), 4)
    scaled = size / 1024**step
    if abs(scaled) >= _LARGEST_FIXED:
        return f"{_scientific(size)} B"
    return f"{count(scaled) if scaled == int(scaled) else _plain(scaled, 4)} {_IEC[step]}"


def percent(ratio: float) -> str:
    """Return a ratio from 0 to 1 as ``48.5 %``."""
    scaled = ratio * 100
    return f"{_plain(scaled, 3)} %"


def rate(value: float, unit: str = "tok/s") -> str:
    """Return a rate as ``1.10 M tok/s``."""
    return f"{si(value)} {unit}"


def flops(value: float) -> str:
    """Return floating-point operations per second as ``312 TFLOP/s``."""
    number, _, prefix = si(value).partition(" ")
    return f"{number} {prefix}FLOP/s"


def si(value: float) -> str:
    """Return a large number with an SI prefix: ``561 M``."""
    step = _step(value, 1000, len(_SI), 3)
    scaled = value / 1000.0**step
    if abs(scaled) >= 1e6:
        return _scientific(value)
    text = _plain(scaled, 3) if scaled != int(scaled) or step else count(scaled)
    return f"{text} {_SI[step]}" if step else text


def parameters(value: float) -> str:
    """Return a number of parameters as papers print it: ``561 M``, ``14.8 B``."""
    text = si(value)
    return text.removesuffix("G") + "B" if text.endswith("G") else text


def count(value: float) -> str:
    """Return a whole number as ``21400``, any other as ``number`` does."""
    if abs(value) >= 1e15:
        return _scientific(value)
    if value != int(value):
        return number(value)
    return f"{int(value)}"


def many(value: float, noun: str) -> str:
    """Return a count with its noun: ``1 run``, ``21 runs``."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def signed(value: float, form: Callable[[float], str]) -> str:
    """Return a difference with its sign: ``+1.2 s``; ``form`` gives the words of its size."""
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{form(abs(value))}"


def some(names: Sequence[str], most: int) -> str:
    """Return the first names, and how many more there are: ``a, b and 3 more``."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def number(value: float, digits: int = 4) -> str:
    """Return a number without a unit: ``2.719``, ``65536``, ``3.00e-4``."""
    return _plain(value, digits)


class Scale(NamedTuple):
    """One unit and one number of decimals for all values of a metric, so that they compare at a glance."""

    unit: str
    divisor: float
    decimals: int
    scientific: bool = False

    def format(self, value: float) -> str:
        """Return ``value`` in this unit, without the unit, with two to four significant digits."""
        scaled = value / self.divisor
        if scaled == 0:
            return "0"
        if self.scientific or abs(scaled) >= _LARGEST_FIXED:
            return _scientific(scaled)
        exponent = int(f"{scaled:.1e}".partition("e")[2])
        if scaled == int(scaled) and not self.decimals:
            return _fixed(scaled, 0)
        decimals = max(min(self.decimals, _MAX_DIGITS - 1 - exponent), 1 - exponent, 0)
        return _scientific(scaled) if decimals > max(self.decimals, _MAX_DECIMALS) else _fixed(scaled, decimals)


def scale_for(metric: str, values: Iterable[float]) -> Scale:
    """Return the scale for ``values`` of ``metric``, chosen by the first of them that is not zero."""
    typical = next((value for value in values if value), 0.0)
    kind = kind_of(metric)
    if kind == "bytes":
        step = _step(typical, 1024, len(_IEC), 4)
        return _decimal_scale(_IEC[step], 1024.0**step, typical, 4)
    if kind in ("rate", "flops"):
        step = _step(typical, 1000, len(_SI), 3)
        noun = _rate_unit(metric, kind)
        unit = f"{_SI[step]}{noun}" if kind == "flops" else f"{_SI[step]} {noun}".strip()
        return _decimal_scale(unit, 1000.0**step, typical, 3)
    if kind == "time":
        unit, divisor = _time_unit(_round(abs(typical), 3))
        return _decimal_scale(unit, divisor, typical, 3)
    if kind == "ratio":
        return _decimal_scale("%", 0.01, typical, 3)
    if kind == "physical":
        symbol = next(symbol for ending, symbol in _SYMBOLS.items() if metric.endswith(ending))
        step = _step(typical, 1000, len(_SI), 4) if symbol in _PREFIXED else 0
        return _decimal_scale(f"{_SI[step]}{symbol}", 1000.0**step, typical, 4 if step else 3)
    if typical == int(typical) and abs(typical) < _LARGEST_FIXED:
        return Scale("", 1.0, 0)
    if kind == "count":
        step = _step(typical, 1000, len(_SI), 3)
        return _decimal_scale(_SI[step], 1000.0**step, typical, 3)
    return _decimal_scale("", 1.0, typical, 4)


def measure(metric: str, value: float) -> str:
    """Return one value of ``metric`` with its unit: ``1.10 M tok/s``, ``476 ms``, ``2.719``."""
    kind = kind_of(metric)
    if kind == "rate":
        return rate(value, _rate_unit(metric, kind))
    if metric == "total_flops":
        return flops(value).removesuffix("/s")
    if kind == "plain":
        return number(value)
    if kind == "physical":
        scale = scale_for(metric, [value])
        return f"{scale.format(value)} {scale.unit}"
    simple = {"time": duration, "bytes": byte_size, "ratio": percent, "flops": flops, "count": count}
    return simple[kind](value)


def figure(metric: str, value: float | None) -> str:
    """Return a value of ``metric`` with its unit, a dash if it is unknown."""
    return UNKNOWN if value is None else measure(metric, value)


def _rate_unit(metric: str, kind: Kind) -> str:
    if kind == "flops":
        return "FLOP" if metric == "total_flops" else "FLOP/s"
    noun = metric.partition("_per_s")[0].rpartition("_")[2]
    return f"{_NOUNS.get(noun, noun[:10])}/s"


def _time_unit(seconds: float) -> tuple[str, float]:
    for unit, divisor, below in (("µs", 1e-6, 1e-3), ("ms", 1e-3, 1.0), ("s", 1.0, 600.0), ("min", 60.0, 36000.0)):
        if seconds < below and seconds > 0:
            return unit, divisor
    return ("h", 3600.0) if seconds else ("s", 1.0)


def _decimal_scale(unit: str, divisor: float, typical: float, digits: int) -> Scale:
    scaled = abs(typical / divisor)
    if scaled == 0:
        return Scale(unit, divisor, 0)
    rounded = _round(scaled, digits)
    if rounded < 1e-3 or rounded >= _LARGEST_FIXED:
        return Scale(unit, divisor, 0, scientific=True)
    return Scale(unit, divisor, max(0, digits - 1 - math.floor(math.log10(rounded))))


def _step(value: float, base: int, steps: int, digits: int) -> int:
    """Return the exponent, below ``steps``, of the power of ``base`` that divides ``value`` so that it is below ``base``."""
    size = abs(value)
    step = 0
    while step < steps - 1 and _round(size / float(base) ** step, digits) >= base:
        step += 1
    return step


def _round(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def _plain(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    rounded = abs(_round(value, digits))
    if rounded < 1e-3 or rounded >= _LARGEST_FIXED:
        return _scientific(value)
    return significant(value, digits)


def _fixed(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}"


def _scientific(value: float) -> str:
    if math.isinf(value):  # finite in its base unit
        return ">1e308" if value > 0 else "<-1e308"
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{mantissa}e{int(exponent)}"
