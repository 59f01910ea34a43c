"""Split a record into the literal texts of its shape, and the numbers, times and bars between them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache

from receipt_cli.patterns import compile_later, regex_later
from receipt_cli.records.envelope import head_ends

_pattern = compile_later if sys.version_info >= (3, 11, 5) else regex_later
"""``re`` takes less than half of the time; before 3.11.5 it gives up optional groups that it must keep."""
_NUMBER = (
    rb"(?<![\w.@])(?!\d(?:D [A-Za-z]|d (?i:loss)))(?:(?<!-)[-+])?+"  # 3D loss
    rb"(?:\d{1,3}(?:,\d{3})++(?:\.\d++)?+|\d++(?:\.\d++|\.(?=[eE]))?+|\.\d++)(?:[eE][-+]?\d++)?+"
    rb"(?:[ \t]?%|[A-Za-z]{1,8}(?:/[A-Za-z]{1,8})?+)?+(?!\w|\.\d)"
)
_WHOLE = rb"(?:\d{1,3}(?:,\d{3})++(?!\d)|\d{1,20}+)"
_SCALED = rb"(?:\d\.\d\d|\d\d\.\d)/\d{1,3}(?= \[\d\d:\d\d)"
"""Counts below a hundred in a bar of tqdm that scales its units: ``3.00/171 [00:01``, ``88.0/171 [00:13``."""
_MASK = _pattern(
    rb"(?<![ \t])([ \t]*+(?=[\[\d+\-.|\xe2nNiI?])(?:"  # what a token may begin with: most places are passed by
    rb"\[[^\[\]<>\r\n]{0,24}<[^\[\]<>,\r\n]{0,30},[ \t]*+[^\],\s]{1,16}(?=[\],])"  # [00:10<01:00, 3.2it/s
    rb"|\[\d{1,3}:\d\d(?::\d\d)?+,[ \t]*+[^\],\s]{1,16}(?=[\],])"  # [00:10, 3.2it/s
    rb"|(?<!\d)\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d:\d\d(?:[.,]\d++)?+(?:Z|[+-]\d\d:?\d\d)?+)?+(?!\w)"
    rb"|(?<![\w.])(?:-?\d{1,5} days?, *+)?+\d{1,4}:\d\d(?::\d\d)?+(?:[.,]\d++)?+(?: ?[AP]M)?+(?![\w:])"
    rb"|(?<![\w.])(?:\d{1,4}[dhm] ?\d{1,2}[hms](?: ?\d{1,2}[ms])?+|\d{1,2}s ?\d{1,3}ms)(?!\w)"
    rb"|(?<=%)\|(?:[ #=>.\-]|[\xe2][\x94-\x96][\x80-\xbf]){0,300}+\|?+"
    rb"|\[[=>.\-]{5,300}\]|(?:\xe2[\x94\x95][\x80-\xbf]){5,100}"
    rb"|(?<![\w.@])" + _SCALED + rb"|(?<![\w.@])" + _WHOLE + rb"[ \t]*+(?:/|of |out of )[ \t]*+" + _WHOLE + rb"(?!\w|\.\d)"
    rb"|(?<![\w.@])[-+]?[1-9]\d{0,2}(?:\.\d{3})++,\d++(?![\w.]|,\d)"  # 39.000,5: a comma for a point, or a list
    rb"|(?:(?<=[lL]oss|LOSS)|(?<=[aA]cc|[pP]pl))\d++\.\d++(?!\w|\.\d)"
    rb"|(?:(?<=(?<![\w./-])(?:[eE]poch|EPOCH|Batch|BATCH))|(?<=(?<![\w./-])(?:Iter|ITER|Step|STEP))"
    rb"|(?<=(?<![\w./-])(?:Ep|EP))|(?<=\[[eE])|(?<=\[ep))\d{1,6}+(?!\w|\.\d)"  # glued to their word
    rb"|(?:(?<=(?<![\w./-])(?:[eE]p|[iI]t)\.)|(?<=(?<![\w./-])(?:[iI]ter|[sS]tep)\.))\d{1,6}+(?!\w|\.\d)"  # Ep.3 It.20
    rb"|(?<=\[)\d{1,9} \| \d{1,9}(?=\])"  # Epoch: [3 | 600]
    rb"|" + _NUMBER + rb"|(?<![\w/])[-+]?(?:[nN][aA][nN]|NAN|[iI]nf|INF|[iI]nfinity)(?:ms|s|%)?+(?!\w)"
    rb"|(?<![\w/])(?:N/A|n/a|None|null|\?\?\?)(?![\w/])))"
)
_FRACTION = _pattern(rb"(\d[\d,]*+(?:\.\d{1,2}(?=/))?+)[ \t]*+(?:[/|]|of |out of )[ \t]*+(\d[\d,]*+)\Z")
_VALUE = _pattern(rb"([-+]?(?:\d[\d,]*+\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?+|[-+]?(?i:nan|inf(?:inity)?))([ \t]?%|[A-Za-z/]*+)\Z")
_DECIMAL_COMMA = _pattern(
    rb"(?<=[\s:=|])(?<!\d:)([-+]?\d{1,6}+),(?=\d{4}|(?<=[\s:=|+-]0,)\d{3}|(?<=[\s:=|+-]\d,)\d{1,3}[eE][-+])"
    rb"(?=\d++(?:[eE][-+]?\d++)?(?:[\s|;*%)\]]|,\s|\Z))"
)
MAX_TOKENS = 200
"""Most numbers in a record; the shape of a record with more is not learned."""
MAX_CORE = 8192
"""Bytes of a record behind its envelopes that are read."""

NUMBER, FRACTION, BAR, RATE, TIME, NOTHING = "number", "fraction", "bar", "rate", "time", "nothing"
SCALED = "."
"""Stands for the unit of a fraction whose count has decimals, which are zeros."""
ORDINALS = ("st", "nd", "rd", "th")
ODD = "odd"
"""A token that may change the kind of its column."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token between two literals: its kind, its value, the total of a fraction, and the unit glued to a number."""

    kind: str
    value: float | None = None
    total: float | None = None
    unit: str = ""
    grouped: bool = False
    integer: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """The position of a value (and the total of a fraction) in a record. ``like`` is the token of one record of the form."""

    like: Token
    value: slice | None
    total: slice | None

    def sort(self, *, whole: bool) -> str:
        """Return the sort of the tokens for a column of whole numbers only, or of any numbers."""
        if self.value is None:
            return NOTHING
        if self.like.value != self.like.value or (whole and not self.like.integer):
            return ODD
        return NUMBER if self.total is None else FRACTION


def core_start(record: bytes) -> int:
    """Return the start of the line itself, behind the prefixes of launchers and collectors."""
    at = 0
    for place in head_ends(record):
        if _COUNT_CELL.match(record[at:place]):
            break  # ``10 | loss …``: a table's first cell, not the name of a container
        at = place
    return at


_COUNT_CELL = _pattern(rb"\[?\d{1,12} {1,16}\| \Z")


def spell_points(records: bytes) -> bytes:
    """Return ``records``, of the same length, with a point in the place of each comma that cannot part thousands or a list.

    A rule that is learned of them reads numbers with a point; the same with a comma are read where a log is scanned.
    """
    return _DECIMAL_COMMA.sub(rb"\1.", records) if b"," in records else records


def split(core: bytes) -> list[bytes]:
    """Return the parts of a record: literal, token, literal, token, …, literal."""
    return _MASK.split(core)


def shape(parts: list[bytes]) -> bytes:
    """Return the key of a shape: its literals, each run of blanks as one blank, and which numbers have a total."""
    totals = bytes([1 + ((b"/" in text or b" | " in text) and text[-1:].isdigit()) for text in parts[1::2]])
    return b" ".join(b"\x01".join(parts[::2]).split()) + b"\x01" + totals


def read_token(text: bytes) -> Token:
    """Return the token of a text: one for equal texts, but one each for NaN, which differs from all others."""
    token = _known_token(text)
    return token if token.value == token.value else _known_token.__wrapped__(text)


@lru_cache(maxsize=4096)
def _known_token(text: bytes) -> Token:
    text = text.strip()
    found = _FRACTION.match(text) if b"/" in text or b"o" in text or b" | " in text else None
    if found is not None:
        number, total = (float(group.replace(b",", b"")) for group in found.groups())
        scaled = SCALED if b"." in text else ""
        return Token(FRACTION, number, total, scaled, grouped=b"," in text, integer=number.is_integer())
    found = _VALUE.match(text)
    if found is not None:
        number_text = found.group(1)
        try:
            value = float(number_text.replace(b",", b""))
        except ValueError:
            return Token(NOTHING)
        integer = number_text.replace(b",", b"").isdigit() and len(number_text) < 16
        return Token(NUMBER, value, None, found.group(2).decode("ascii").strip(), b"," in number_text, integer)
    if text.startswith(b"[") and b"," in text:
        return Token(RATE)
    if text[:1] in (b"|", b"[", b"\xe2"):
        return Token(BAR)
    return Token(NOTHING if text[:1] in b"Nn?" or (b":" not in text and b"," in text) else TIME)


def find_number(record: bytes, start: int, end: int) -> Number:
    """Return the positions of value and total of the token between ``start`` and ``end`` of ``record``."""
    text = record[start:end]
    token = read_token(text)
    at = start + len(text) - len(text.lstrip())
    found = _FRACTION.match(text.strip()) or _VALUE.match(text.strip())
    if found is None or token.value is None:
        return Number(token, None, None)
    value, total = (slice(at + found.start(group), at + found.end(group)) for group in (1, 2))
    return Number(token, value, total if token.total is not None else None)
