"""Read the numbers in many texts of one form at once, bit for bit as ``convert`` and ``read_unregistered`` read each text."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from receipt_cli.grammar.model import Field
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.patterns import compile_later
from receipt_cli.scan.extraction.model import Span, convert, read_unregistered
from receipt_cli.scan.number_forms import is_plain, number_form, scale_of
from receipt_cli.scan.row_texts import places_of, with_digits

EXACT = 1 << 53
"""Largest integer up to which all integers are exact as float64."""
MOST_POWER = 22
"""Largest exact power of ten in float64: one operation with two exact numbers rounds once."""
_TENS = np.array([float(f"1e{power}") for power in range(MOST_POWER + 1)])
_NUMBER = compile_later(r"([-+]?)(0*)\.?(0*)(?:[eE]([-+]?)(0{1,2}))?")


class Read(NamedTuple):
    """The ``values`` of some texts; ``known``, the mask of those that are numbers (None: all); and of a field ``others``, index
    and text of each other one."""

    values: Floats
    known: Mask | None
    others: list[tuple[int, str]]


class _Recipe(NamedTuple):
    """How to compute a number from the integers in its text: whole x ``times`` x 10^(``power`` + exponent) x ``factor``.
    ``whole`` and ``exponent`` are the indexes of two of these integers; ``exponent`` is -1 if there is none, and the integer is
    subtracted if ``down``. ``negative``: the number has a minus sign."""

    whole: int
    exponent: int
    down: bool
    negative: bool
    times: int
    power: int
    factor: float


def read_part(form: str, span: Span, digits: Integers, spec: Field | None) -> Read:
    """Read one number of each of several texts that differ only in their digits: the part at ``span`` of their ``form``.
    ``digits`` are the integers of the texts (int64 [n, integers of the form]); ``spec`` is the field, None for an undeclared
    number."""
    begin, end = span
    part, count = form[begin:end], len(digits)
    if "0" not in part:
        value = _read_one(part, spec)
        if isinstance(value, float):
            return Read(np.full(count, value), None, [])
        texts = [(at, part) for at in range(count)] if spec is not None else []
        return Read(np.zeros(count), np.zeros(count, np.bool_), texts)
    recipe = _recipe(form, span, spec)
    if recipe is not None:
        values, known = _compute(recipe, digits)
        if known is None:
            return Read(values, None, [])
    else:
        values, known = np.zeros(count), np.zeros(count, np.bool_)
    places = places_of(form)
    others: list[tuple[int, str]] = []
    for at in np.flatnonzero(~known).tolist():
        text = with_digits(form, places, digits[at].tolist())[begin:end]
        value = _read_one(text, spec)
        if isinstance(value, float):
            values[at], known[at] = value, True
        elif spec is not None:
            others.append((at, text))
    return Read(values, known, others)


def _read_one(text: str, spec: Field | None) -> float | str | None:
    return read_unregistered(text) if spec is None else convert(spec, text)[0]


def _recipe(form: str, of: Span, spec: Field | None) -> _Recipe | None:
    """Return how to compute the numbers at ``of`` from the digits; None if each text must be parsed by itself."""
    begin, part = of[0], form[slice(*of)]
    if not part.isascii():
        return None
    masked, unit, span = part.encode("ascii"), None, (0, len(part))
    if spec is not None:
        unit, span = spec.unit, number_form(spec, masked).span
    elif not is_plain(masked):
        return None
    scale = scale_of(masked[slice(*span)], unit) if span[1] > span[0] else None
    found = _NUMBER.fullmatch(part, span[0], span[0] + scale.length) if scale is not None else None
    if scale is None or found is None:
        return None
    numbers = {place: number for number, place in enumerate(places_of(form))}
    start = begin + found.start(2 if found[2] else 3)
    whole = numbers.get((start, begin + (found.end(3) if found[3] else found.end(2))))
    exponent = numbers.get((begin + found.start(5), begin + found.end(5))) if found[5] else -1
    power = scale.power - len(found[3])
    if whole is None or exponent is None or (exponent < 0 and abs(power) > MOST_POWER):
        return None
    return _Recipe(whole, exponent, found[4] == "-", found[1] == "-", scale.times, power, scale.factor)


def _compute(recipe: _Recipe, digits: Integers) -> tuple[Floats, Mask | None]:
    """Return the numbers, and the mask of those that surely equal what the parser gives, bit for bit (None: all)."""
    whole = digits[:, recipe.whole]
    known = whole <= EXACT // recipe.times
    values = (whole * recipe.times).astype(np.float64)
    if recipe.exponent < 0:
        tens = _TENS[abs(recipe.power)]
        values = values / tens if recipe.power < 0 else values * tens
    else:
        exponent = digits[:, recipe.exponent]
        power = recipe.power - exponent if recipe.down else recipe.power + exponent
        known &= np.abs(power) <= MOST_POWER
        each = _TENS[np.minimum(np.abs(power), MOST_POWER)]
        values = np.where(power < 0, values / each, values * each)
    if recipe.factor != 1.0:
        values *= recipe.factor
    if recipe.negative:
        values = -values
    return values, None if known.all() else known
