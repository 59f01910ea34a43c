"""How the numbers of texts with one form are read: texts that are equal after their digits become 0."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from receipt_cli.definitions.units import MAX_TEXT, find_factor, is_grouped, shift_of, split_suffix
from receipt_cli.grammar.digit_sensitivity import kept_after
from receipt_cli.grammar.model import Field, Rule
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import MASK
from receipt_cli.scan.extraction.model import DROPPED, NOWHERE, Extraction, Span

if TYPE_CHECKING:
    import regex

MAX_INTEGER_DIGITS = 15
MAX_TIMES = 1 << 40
_PLAIN = compile_later(rb"[-+]?(?:0+\.?0*|\.0+)(?:[eE][-+]?0{1,2})?")
_FORM = compile_later(r"[-+]?[\d,]*\.?\d*(?:[eE][-+]?\d{1,2})?", re.ASCII)


class NumberForm(NamedTuple):
    """For a masked text such as ``0.000 ms``: whether every text that it stands for is a number, and the span of that number."""

    direct: bool
    span: Span


_UNKNOWN = NumberForm(False, (0, 0))


def is_plain(masked: bytes) -> bool:
    """Return whether ``float`` reads texts of this form, whatever their digits are."""
    return len(masked) <= MAX_TEXT and _PLAIN.fullmatch(masked) is not None


def number_form(spec: Field, text: bytes) -> NumberForm:
    """Return how numbers of a field are read from ASCII texts with the masked form ``text``."""
    if spec.type not in ("number", "integer") or not 0 < len(text) <= MAX_TEXT:
        return _UNKNOWN
    return _number_form(spec.type, spec.unit, spec.null_if, spec.value, text)


@lru_cache(4096)
def _number_form(
    kind: str, unit: str | None, null_if: frozenset[str], pick: regex.Pattern[str] | None, text: bytes
) -> NumberForm:
    if any(null.encode("utf-8", "replace").translate(MASK) == text for null in null_if):
        return _UNKNOWN
    begin, end = 0, len(text)
    if pick is not None:
        found = pick.search(text.decode("ascii"))
        if kept_after(pick.pattern) != frozenset() or found is None or found.group(1) is None:
            return _UNKNOWN
        part = found.group(1)
        begin = found.start(1) + len(part) - len(part.lstrip())
        end = begin + len(part.strip())
    number, shift = text[begin:end], shift_of(unit)
    if not is_plain(number) or shift is None or (shift and (b"e" in number or b"E" in number)):
        return NumberForm(False, (begin, end)) if kind == "number" else _UNKNOWN
    if kind == "integer" and (shift or not number.lstrip(b"+-").isdigit() or len(number) > MAX_INTEGER_DIGITS):
        return _UNKNOWN
    return NumberForm(True, (begin, end))


class Scale(NamedTuple):
    """The number of a text: its first ``length`` bytes, times ``times`` * 10**``power`` * ``factor``.

    ``times`` is odd and ``factor`` a power of two: the product is rounded once.
    """

    length: int
    times: int
    power: int
    factor: float


@lru_cache(4096)
def scale_of(masked: bytes, unit: str | None) -> Scale | None:
    """Return the scale of texts of the form ``masked``, printed in ``unit``.

    None if ``read_number`` may return None for some of them, other than for a thousands group that starts with zero.
    """
    text = masked.translate(_ONES).decode("latin-1")
    parts = split_suffix(text)
    if parts is None or len(text) > MAX_TEXT or unit == "hms":
        return None
    number, suffix = parts
    factor = find_factor(suffix, unit)
    if factor is None or _FORM.fullmatch(number) is None or ("," in number and not is_grouped(number)):
        return None
    times, power, binary = _factors(factor)
    return Scale(len(number), times, power, math.ldexp(1.0, binary)) if times <= MAX_TIMES else None


def decimals_in(record: bytes, rule: Rule, event: Extraction) -> dict[str, int | None]:
    """Return the decimals that each number of an event shows in base units; see ``decimals_of``."""
    found: dict[str, int | None] = {}
    for name, span in (*event.spans.items(), *event.unregistered_spans.items()):
        spec, masked = rule.fields.get(name), record[slice(*span)].strip().translate(MASK)
        if name.startswith(DROPPED) or (spec is not None and spec.type not in ("number", "integer")):
            continue
        if span == NOWHERE:
            found[name] = None
        elif b"0" in masked:  # else NaN or empty
            found[name] = printed_decimals(spec, masked) if masked.isascii() else None
    return found


_ONES = bytes.maketrans(b"0", b"1")


@lru_cache(4096)
def decimals_of(masked: bytes, unit: str | None) -> int | None:
    """Return the number of decimals that numbers ``masked`` show in base units, if printed in ``unit``.

    ``131.97`` ms are 0.13197 s: five. None if an exponent or a unit that is no power of ten leaves it open.
    """
    scale = scale_of(masked, unit)
    if scale is None or scale.times != 1 or scale.factor != 1.0 or b"e" in masked[: scale.length].lower():
        return None
    return len(masked[: scale.length].partition(b".")[2]) - scale.power


def printed_decimals(spec: Field | None, masked: bytes) -> int | None:
    """Return the number of decimals that numbers of the form ``masked`` show; ``spec`` is their field, None for no field."""
    if spec is None:
        return decimals_of(masked, None)
    start, end = number_form(spec, masked).span if spec.value is not None else (0, len(masked))
    return decimals_of(masked[start:end], spec.unit) if end > start else None


def _factors(factor: Decimal) -> tuple[int, int, int]:
    """Return (a, b, c) with ``factor`` = a * 10**b * 2**c and ``a`` coprime to ten."""
    number, divisor = factor.as_integer_ratio()
    powers = {2: 0, 5: 0}
    for prime in powers:
        while number % prime == 0:
            number, powers[prime] = number // prime, powers[prime] + 1
        while divisor % prime == 0:
            divisor, powers[prime] = divisor // prime, powers[prime] - 1
    return number, powers[5], powers[2] - powers[5]
