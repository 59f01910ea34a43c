"""Convert columns of printed decimals of one byte layout to float64, each value exact and rounded once.

The bytes of a number are read as 64-bit words, eight columns at a time for all rows at once, and folded digit by digit
into integers; integer and power of ten then give the value:

- both exact in float64 (at most 2**53, at most 10**22): one division or multiplication is correctly rounded
  (W. D. Clinger, "How to read floating point numbers accurately", PLDI 1990);
- else in double-double arithmetic (T. J. Dekker, "A floating-point technique for extending the available precision",
  1971), which proves its rounding (A. Ziv's test) for all rows but those next to the middle of two float64s;
- those few, and integers that do not fit 63 bits, are read one by one, by ``units.read_number``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from receipt_cli.definitions.units import MAX_TEXT, find_factor, is_grouped, read_number, split_suffix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from receipt_cli.numeric.array_types import Bytes, Floats, Integers, Words

MAX_DIGITS = 24
"""Digits of a mantissa, leading zeros included: ``repr`` writes up to 21 before it turns to an exponent."""
CHUNK = 4096
"""Rows converted at a time: the words of a dozen fields stay in the second-level cache."""
EXACT_INTEGER = 2**53
EXACT_POWER = 22
SPLITTER = 2.0**27 + 1
SLACK = 2.0**-98
"""Relative error allowed for a double-double quotient or product; the bound is about 2**-101."""

_LAYOUT = re.compile(r"([-+]?)([\d,]*\.?\d*)(?:[eE]([-+]?)(\d{1,2}))?", re.ASCII)
_DIGITS = re.compile(r"\d", re.ASCII)
_WORD = 8
_DIGIT = 0x0F
_POWERS = 256
"""More than an exponent of two digits, the digits behind the point and a unit together make."""


@dataclass(frozen=True, slots=True)
class Word:
    """Eight columns of a mantissa that end before column ``stop``, or what there is of them.

    ``masks[k]`` keeps the digits that are to move ``k`` bytes, past the point and commas behind them. ``weight`` is what
    the last digit counts in the mantissa.
    """

    stop: int
    masks: tuple[int, ...]
    weight: int


@dataclass(frozen=True, slots=True)
class DecimalPlan:
    """How to convert all numbers of one layout: value = mantissa * 10**power * factor.

    ``largest`` is the largest mantissa; the odd part of the unit's factor is in the mantissa's weights. ``factor`` is the
    sign and the unit's power of two. ``exponent`` are the columns of the printed exponent's digits and ``turn`` its sign;
    ``first`` is the column of the first digit of a number with grouped thousands.
    """

    width: int
    unit: str | None
    words: tuple[Word, ...]
    largest: int
    factor: float
    power: int
    exponent: tuple[int, ...]
    turn: int
    first: int | None

    @classmethod
    def of(cls, sample: bytes, unit: str | None = None) -> DecimalPlan | None:
        """Return the plan for texts that have ``sample``'s bytes but for their digits, printed in ``unit``.

        None where ``read_number`` could not read such texts, and for more than ``MAX_DIGITS`` digits or more than two in
        the exponent. ``unit`` is as there.
        """
        text = _DIGITS.sub("1", sample.decode("latin-1"))
        parts = split_suffix(text)
        if parts is None or len(text) > MAX_TEXT or unit == "hms":
            return None
        number, suffix = parts
        factor, found = find_factor(suffix, unit), _LAYOUT.fullmatch(number)
        if factor is None or found is None or ("," in number and not is_grouped(number)):
            return None
        sign, mantissa, turn, exponent = found.groups()
        digits = sum(map(str.isdigit, mantissa))
        if digits > MAX_DIGITS:
            return None
        odd, scale, binary = _factors(factor)
        return cls(
            width=len(sample),
            unit=unit,
            words=_words(mantissa, len(sign), odd),
            largest=(10**digits - 1) * odd,
            factor=math.ldexp(-1.0 if sign == "-" else 1.0, binary),
            power=scale - len(mantissa.partition(".")[2]),
            exponent=tuple(range(len(number) - len(exponent), len(number))) if exponent else (),
            turn=-1 if turn == "-" else 1,
            first=len(sign) if "," in mantissa else None,
        )

    def convert(self, matrix: Bytes) -> Floats:
        """Return the values (n,) of ``matrix`` (n, width): those of ``read_number(row, unit)``, bit for bit.

        NaN where that returns None, which is only where a group of thousands begins with a zero. Digits must be digits and
        all other bytes the sample's; the caller has seen to that.
        """
        values: Floats = DecimalFields([(0, self)]).convert(matrix)[0]
        return values


class DecimalFields:
    """Several numbers of records of one layout, converted together."""

    def __init__(self, fields: Sequence[tuple[int, DecimalPlan]]) -> None:
        """``fields``: the column where each number begins, and its plan."""
        self.fields = tuple(fields)
        found = [(field, word) for field in range(len(fields)) for word in fields[field][1].words]
        found.sort(key=lambda pair: -len(pair[1].masks))  # those that move a digit form one slice
        self._stops = [fields[field][0] + word.stop for field, word in found]
        longest = max((len(word.masks) for _, word in found), default=0)
        self._masks = [
            np.array([word.masks[move] for _, word in found if move < len(word.masks)], np.uint64)[:, np.newaxis]
            for move in range(longest)
        ]
        self._order = [[found.index((field, word)) for word in plan.words] for field, (_, plan) in enumerate(fields)]

    def convert(self, matrix: Bytes, out: Floats | None = None) -> Floats:
        """Return the values (fields, n) of ``matrix`` (n, record width), written to ``out`` where given.

        The bytes of a row must be adjacent; rows may have any distance.
        """
        if out is None:
            out = np.empty((len(self.fields), len(matrix)), np.float64)
        for begin in range(0, len(matrix), CHUNK):
            rows = matrix[begin : begin + CHUNK]
            words = self._fold(rows)
            for (start, plan), order, values in zip(self.fields, self._order, out, strict=True):
                text = rows[:, start : start + plan.width]
                _finish(plan, [words[i] for i in order], text, values[begin : begin + CHUNK])
        return out

    def _fold(self, rows: Bytes) -> Words:
        """Return the integers (words, n) that the digits of each word spell."""
        words = np.empty((len(self._stops), len(rows)), np.uint64)
        for i, stop in enumerate(self._stops):
            if stop >= _WORD:
                words[i] = rows[:, stop - _WORD : stop].view("<u8")[:, 0]
            else:
                padded = np.zeros((len(rows), _WORD), np.uint8)
                padded[:, _WORD - stop :] = rows[:, :stop]
                words[i] = padded.view("<u8")[:, 0]
        moved = [(words[: len(mask)] << np.uint64(8 * move)) & mask for move, mask in enumerate(self._masks[1:], 1)]
        words &= self._masks[0]
        for digits in moved:
            words[: len(digits)] |= digits
        add_digits(words)
        return words


def add_digits(words: Words) -> None:
    """Turn each of ``words`` (adjacent) from eight digits, a byte each and the first one lowest, to what they spell."""
    # Neighbouring digits to numbers below 100, those below 10**4, those below 10**8.
    pairs, fours = words.view(np.uint16), words.view(np.uint32)
    pairs *= np.uint16(10 << 8 | 1)
    pairs >>= np.uint16(8)
    fours *= np.uint32(100 << 16 | 1)
    fours >>= np.uint32(16)
    words *= np.uint64(10_000 << 32 | 1)
    words >>= np.uint64(32)


def _factors(factor: Decimal) -> tuple[int, int, int]:
    """Return (a, b, c) with ``factor`` = a * 10**b * 2**c and ``a`` odd and no multiple of five."""
    number, divisor = factor.as_integer_ratio()
    powers = {2: 0, 5: 0}
    for prime in powers:
        while number % prime == 0:
            number, powers[prime] = number // prime, powers[prime] + 1
        while divisor % prime == 0:
            divisor, powers[prime] = divisor // prime, powers[prime] - 1
    return number, powers[5], powers[2] - powers[5]


def _words(mantissa: str, begin: int, weight: int) -> tuple[Word, ...]:
    """Return the words of a mantissa that begins at column ``begin``, the last digits first."""
    words = []
    for stop in range(len(mantissa), 0, -_WORD):
        piece = mantissa[max(0, stop - _WORD) : stop].rjust(_WORD)
        masks = [0] * (_WORD - sum(map(str.isdigit, piece)) - piece.count(" ") + 1)
        for i, letter in enumerate(piece):
            if letter.isdigit():
                move = piece.count(".", i) + piece.count(",", i)
                masks[move] |= _DIGIT << 8 * (i + move)
        digits = sum(map(str.isdigit, piece))
        if digits:
            words.append(Word(begin + stop, tuple(masks), weight))
        weight *= 10**digits
    return tuple(words)


def _finish(plan: DecimalPlan, words: Sequence[Words], text: Bytes, out: Floats) -> None:
    """Write the values of one field to ``out``; ``text`` (n, width) are its bytes."""
    mantissa = words[0] if plan.words[0].weight == 1 else words[0] * np.uint64(plan.words[0].weight)
    for word, values in zip(plan.words[1:], words[1:], strict=True):
        mantissa = mantissa + values * np.uint64(word.weight % 2**64)
    integers = mantissa.view(np.int64)  # signed ones convert faster
    power: int | Integers = plan.power
    if plan.exponent:
        power = plan.power + plan.turn * _exponents(text[:, list(plan.exponent)])
    lowest, highest = (power, power) if isinstance(power, int) else (int(power.min()), int(power.max()))
    if plan.largest <= EXACT_INTEGER and lowest >= -EXACT_POWER and highest <= EXACT_POWER:
        exact(integers, power, plan.factor, out)
    else:
        fits = _fits(plan, words) if plan.largest >= 2**63 else np.ones(len(out), np.bool_)
        products, certain = double_double(np.where(fits, integers, 0), power)
        np.multiply(products, plan.factor, out=out)
        _read_rows(plan, text, np.flatnonzero(~(certain & fits)), out)
    if plan.first is not None:
        out[text[:, plan.first] == ord("0")] = np.nan


def _fits(plan: DecimalPlan, words: Sequence[Words]) -> NDArray[np.bool_]:
    """Return which mantissas surely fit a signed 64-bit integer."""
    sizes = words[0].astype("f8") * plan.words[0].weight
    for word, values in zip(plan.words[1:], words[1:], strict=True):
        sizes += values.astype("f8") * word.weight
    return sizes < 2.0**62


def _read_rows(plan: DecimalPlan, text: Bytes, rows: NDArray[np.intp], out: Floats) -> None:
    """Read some rows one by one."""
    for row in rows.tolist():
        value = read_number(text[row].tobytes().decode("ascii"), plan.unit)
        out[row] = math.nan if value is None else value


def _exponents(digits: Bytes) -> Integers:
    values = (digits[:, 0] & _DIGIT).astype(np.int64)
    return values if digits.shape[1] == 1 else values * 10 + (digits[:, 1] & _DIGIT)


@cache
def _tens() -> tuple[Floats, Floats]:
    """Return the powers of ten up to the largest that a plan and an exponent can have, and what each lacks."""
    tens = [10**n for n in range(_POWERS)]
    return np.array([float(ten) for ten in tens]), np.array([float(ten - int(float(ten))) for ten in tens])


def exact(integers: Integers, power: int | Integers, factor: float | Floats, out: Floats) -> None:
    """Write ``integers`` * 10**power * factor to ``out``; of the steps, only one rounds."""
    if isinstance(power, int):
        if power < 0:
            np.divide(integers, float(10**-power) / factor, out=out)
        else:
            np.multiply(integers, float(10**power) * factor, out=out)
        return
    tens = _tens()[0]
    whole = integers * tens[np.maximum(power, 0)] if power.max() > 0 else integers
    np.divide(whole, tens[np.maximum(-power, 0)] / factor, out=out)


def double_double(integers: Integers, power: int | Integers) -> tuple[Floats, NDArray[np.bool_]]:
    """Return ``integers`` * 10**power as float64s, and which of them are correctly rounded for certain."""
    high: float | Floats
    low: float | Floats
    if isinstance(power, int):
        ten = 10 ** abs(power)
        high, low, down = float(ten), float(ten - int(float(ten))), power < 0
    else:
        turned = power < 0
        down = bool(turned.all())
        if not down and turned.any():
            values, certain = np.empty(len(integers)), np.empty(len(integers), np.bool_)
            for rows in (turned, ~turned):
                values[rows], certain[rows] = double_double(integers[rows], power[rows])
            return values, certain
        high, low = (table[np.abs(power)] for table in _tens())
    head = integers.astype(np.float64)
    tail = (integers - head.astype(np.int64)).astype(np.float64)
    if down:
        value = head / high
        product, error = _product(value, high)
        rest = ((head - product) - error + tail - value * low) / high
    else:
        value, rest = _product(head, high)
        rest = rest + (head * low + tail * high)
    slack = np.abs(value) * SLACK
    upper = value + (rest + slack)
    return upper, upper == value + (rest - slack)


def _product(left: Floats, right: float | Floats) -> tuple[Floats, Floats]:
    """Return ``left`` * ``right``, rounded, and the exact error of that."""
    product = left * right
    scaled = left * SPLITTER
    left_high = scaled - (scaled - left)
    left_low = left - left_high
    right_high = right * SPLITTER - (right * SPLITTER - right)
    right_low = right - right_high
    error = ((left_high * right_high - product) + left_high * right_low + left_low * right_high) + left_low * right_low
    return product, np.asarray(error)
