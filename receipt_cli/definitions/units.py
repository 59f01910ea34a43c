"""Convert a printed number and unit to base units exactly: the scaled decimal is rounded once, to the nearest float64."""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from functools import lru_cache
from typing import NamedTuple

from receipt_cli.patterns import compile_later

MAX_TEXT = 64
"""Longest printed number that is read, in characters."""


class Unit(NamedTuple):
    """A printed unit: its dimension and its size in base units."""

    dimension: str
    factor: Decimal


def _units() -> dict[str, Unit]:
    table: dict[str, Unit] = {"one": Unit("count", Decimal(1))}
    for name, seconds in {"ns": "1e-9", "us": "1e-6", "ms": "0.001", "s": "1", "min": "60", "h": "3600"}.items():
        table[name] = Unit("time", Decimal(seconds))
    for power, letter in enumerate("KMGT", start=1):
        table[letter] = Unit("count", Decimal(1000) ** power)
        table[f"{letter}B"] = Unit("bytes", Decimal(1000) ** power)
        table[f"{letter}iB"] = Unit("bytes", Decimal(1024) ** power)
    table["B"] = Unit("bytes", Decimal(1))
    table["thousand"], table["million"] = Unit("count", Decimal(1000)), Unit("count", Decimal(10) ** 6)
    table["billion"], table["P"] = Unit("count", Decimal(10) ** 9), Unit("count", Decimal(10) ** 15)
    for power, prefix in ((0, ""), (9, "G"), (12, "T"), (15, "P")):
        table[f"{prefix}FLOPS"] = Unit("flops", Decimal(10) ** power)
    table["percent"] = Unit("ratio", Decimal("0.01"))
    table["ratio"] = Unit("ratio", Decimal(1))
    return table


UNITS = _units()
SPECIAL_UNITS = frozenset({"si", "suffix", "hms"})
"""``si``: an optional suffix K, M, G, B, T or P (base 1000); ``suffix``: the text names its unit; ``hms``: ``1:02:03.5``."""


def known_units() -> list[str]:
    """Return the names of all units that a grammar may state, ordered by dimension and size."""
    return [*sorted(UNITS, key=lambda name: (UNITS[name].dimension, UNITS[name].factor, name)), *sorted(SPECIAL_UNITS)]


_SUFFIXES = {
    "%": "percent", "ns": "ns", "us": "us", "ms": "ms", "msec": "ms", "s": "s", "sec": "s", "secs": "s", "second": "s",
    "seconds": "s", "m": "min", "min": "min", "minutes": "min", "h": "h", "hr": "h", "b": "B", "bytes": "B", "TFLOPS": "TFLOPS",
    "TFLOP/s": "TFLOPS", "TFLOPs": "TFLOPS", "GFLOPS": "GFLOPS", "GFLOP/s": "GFLOPS", "PFLOPS": "PFLOPS", "PFLOP/s": "PFLOPS",
    **{f"{p}B": f"{p}B" for p in "KMGT"}, **{f"{p}iB": f"{p}iB" for p in "KMGT"}, **{f"{p}b": f"{p.upper()}B" for p in "kmgt"},
    "kB": "KB", "K": "K", "k": "K", "M": "M", "G": "G", "B": "billion", "T": "T", "P": "P",
}  # fmt: skip
_EXACT = Context(prec=80)
_NUMBER = compile_later(r"([-+]?(?:\d[\d,]*+\.?\d*+|\.\d++)(?:[eE][-+]?\d{1,4})?)\s*+([A-Za-z%/]*+)\Z", re.ASCII)
_THOUSANDS = compile_later(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?\Z", re.ASCII)
_NONFINITE = {
    "nan": math.nan, "-nan": math.nan, "+nan": math.nan, "inf": math.inf, "+inf": math.inf, "infinity": math.inf,
    "-inf": -math.inf, "-infinity": -math.inf, "+infinity": math.inf,
}  # fmt: skip
_FLOAT = compile_later(r"[-+]?\d++(?:\.\d*+)?(?:[eE][-+]?\d{1,4}+)?\Z", re.ASCII)
_POWERS = {Decimal(10) ** power: power for power in range(-9, 16)}
_SHIFTS: dict[str | None, str] = {None: "", "si": ""}
"""Units that shift the decimal point: ``float("131.97" + "e-3")`` is the exact product, rounded once."""
_SHIFTS.update((name, f"e{_POWERS[unit.factor]}") for name, unit in UNITS.items() if unit.factor in _POWERS)
_TIMES = {"d": "86400", "h": "3600", "m": "60", "s": "1", "ms": "0.001"}
_TIME = r" ?(?:d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?|s)?|s(?:ec(?:ond)?s?)?)"
MORE_TIME = rf"(?:{_TIME},? {{0,3}}(?:and )?\d{{1,6}}){{1,4}}(?:\.\d{{1,12}})?{_TIME}(?!\w)"
DURATION = rf"\d{{1,6}}{MORE_TIME}"
"""Patterns of a time in several units (``15m 1s``, ``2 days, 3 hours``, ``0h  2min``): without its first digits, and whole."""
_DURATION, _PARTS = compile_later(rf"{DURATION}\Z", re.ASCII), compile_later(r"([\d.]+) ?(ms|[dhms])")
_HMS = compile_later(r"(?:(\d{1,6}) days?, )?(?:(\d{1,6}):(?=[0-5]?\d:))?(\d{1,2}):([0-5]?\d(?:\.\d+)?)\Z", re.ASCII)


def shift_of(unit: str | None) -> bytes | None:
    """Return the suffix with which ``float(digits + suffix)`` is the value of ``unit`` in base units, or None."""
    return _SHIFTS[unit].encode("ascii") if unit in _SHIFTS else None


def read_number(text: str, unit: str | None = None) -> float | None:
    """Return the value of ``text`` in base units, or None if it is not one unambiguous number.

    ``unit`` is a key of ``UNITS`` or of ``SPECIAL_UNITS``, None for base units. ``text`` may have a suffix that agrees with
    ``unit`` (``131ms`` for ``ms``, ``71.1GB`` for ``GiB``, because trainers print MB for 2**20), or a percent sign if
    ``unit`` is None; a suffix of another size or dimension gives None. NaN and infinity are values.
    """
    if len(text) > MAX_TEXT:
        return None
    shift = _SHIFTS.get(unit)
    if shift is not None:
        if text.isascii() and text.removeprefix("-").replace(".", "", 1).isdecimal():
            return float(text + shift)
        if not shift and _FLOAT.match(text):
            return _finite(text)
    found = None if unit == "hms" else split_suffix(text)
    if found is None:
        lowered = text.lower()
        value = _NONFINITE.get(lowered, _NONFINITE.get(lowered.rstrip("%ms")))
        if value is None and unit in ("hms", "suffix") and _DURATION.match(text):
            return _read_duration(text)
        return _read_hms(text) if value is None and unit == "hms" else value
    number, suffix = found
    if "," in number:
        if not is_grouped(number):
            return None  # ``1,5`` may be a decimal comma: never guess
        number = number.replace(",", "")
    factor, power = _find_scale(suffix, unit)
    if factor is None:
        return None
    if power is None:
        return _finite(str(_EXACT.multiply(Decimal(number), factor)))
    if not power:
        return _finite(number)
    mantissa, _, exponent = number.lower().partition("e")
    return _finite(f"{mantissa}e{int(exponent or 0) + power}")


def _finite(text: str) -> float | None:
    """Return the nearest float64 of a decimal, or None if it overflows."""
    value = float(text)
    return None if math.isinf(value) else value


def split_suffix(text: str) -> tuple[str, str] | None:
    """Return the number at the start of ``text`` and the letters after it, or None; which digits it has does not matter."""
    found = _NUMBER.match(text)
    return None if found is None else (found.group(1), found.group(2))


def is_grouped(number: str) -> bool:
    """Return whether the commas of ``number`` separate thousands; its first digit is then not zero."""
    return _THOUSANDS.match(number) is not None


@lru_cache(maxsize=256)
def _find_scale(suffix: str, unit: str | None) -> tuple[Decimal | None, int | None]:
    """Return the factor to base units, and its exponent if it is a power of ten."""
    factor = find_factor(suffix, unit)
    return factor, None if factor is None else _POWERS.get(factor)


def find_factor(suffix: str, unit: str | None) -> Decimal | None:
    """Return the factor to base units, or None if ``suffix`` contradicts ``unit`` (see ``read_number``)."""
    if unit == "si":
        if not suffix:
            return Decimal(1)
        known = _SUFFIXES.get(suffix)
        return UNITS[known].factor if known and UNITS[known].dimension == "count" else None
    if unit == "suffix":
        known = None if suffix == "B" else _SUFFIXES.get(suffix)  # B is bytes or billions: only a declared unit decides
        return UNITS[known].factor if known else None
    if unit is None:
        if suffix == "%":
            return UNITS["percent"].factor  # unambiguously a ratio
        return None if suffix else Decimal(1)  # any other undeclared suffix is an unknown factor
    declared = UNITS[unit]
    if not suffix or suffix == unit:
        return declared.factor
    known = _SUFFIXES.get(suffix)
    if known is None or UNITS[known].dimension != declared.dimension:
        return None
    if unit.endswith("iB") and known[0] == unit[0]:
        return declared.factor  # trainers print MB for 2**20; MiB is never 10**6
    return declared.factor if UNITS[known].factor == declared.factor else None


@lru_cache(maxsize=256)
def find_ratio(unit: str, usual: str) -> Decimal | None:
    """Return how many ``usual`` one ``unit`` is, both as printed; None if their dimensions differ or are bytes.

    Units are times, FLOPS and rates: ``ktokens/s`` is 1000 ``token/s``.
    """
    one, other = _measure(unit), _measure(usual)
    if one is None or other is None or one[0].dimension != other[0].dimension:
        return None
    return one[0].factor * other[1] / (other[0].factor * one[1])


def _measure(unit: str) -> tuple[Unit, Decimal] | None:
    """Return the unit that a printed unit counts, and its period in seconds; None for bytes: MB may be 2**20."""
    known = UNITS.get(_SUFFIXES.get(unit, ""))
    if known is not None and known.dimension in ("time", "flops"):
        return known, Decimal(1)
    what, _, per = unit.partition("/")
    time, prefix = UNITS.get(_SUFFIXES.get(per, "")), UNITS["one"]
    if time is None or time.dimension != "time":
        return None
    if what[:1] in "kKMGT" and len(what) > 2:
        prefix, what = UNITS[_SUFFIXES[what[0]]], what[1:]
    what = what.lower().removesuffix("s")
    return Unit("token" if what == "tok" else what, prefix.factor), time.factor


def _read_duration(text: str) -> float | None:
    """Return the seconds of a time in several units; None if a unit is not smaller than the one before it."""
    parts = [(Decimal(number), Decimal(_TIMES[unit if unit == "ms" else unit[0]])) for number, unit in _PARTS.findall(text)]
    sizes = [size for _, size in parts]
    return float(sum(number * size for number, size in parts)) if sizes == sorted(set(sizes), reverse=True) else None


def _read_hms(text: str) -> float | None:
    found = _HMS.match(text)
    if found is None:
        return None
    days, hours, minutes, seconds = found.groups()
    whole = int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes) * 60
    return float(Decimal(whole) + Decimal(seconds))
