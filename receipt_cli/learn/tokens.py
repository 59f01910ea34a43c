"""Split a record into the literal texts of its shape, and the numbers, times and bars between them.

Their positions are kept by the form of a record: its bytes with every digit masked. The patterns that split a record do not
depend on the values of digits, except those of envelopes with a literal digit: forms with such an envelope are not kept. Words
with digits are part of a shape: each spelling of them is looked up.

Whether the numbers of a record are collected at all, and what it heralds, does not depend on the values of digits either: what
is known of a record by its bytes with each digit as 0 holds for the logs that the process reads next.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from receipt_cli.definitions.units import DURATION
from receipt_cli.patterns import compile_later, regex_later
from receipt_cli.records.envelope import MASK, NO_RANK, head_ends, read_rank, starts

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
    rb"|(?<![\w.])" + DURATION.encode() + rb"|(?<=%)\|(?:[ #=>.\-]|[\xe2][\x94-\x96][\x80-\xbf]){0,300}+\|?+"
    rb"|\[(?=[ .\-]{0,300}[=>#])[=>#.\- ]{5,300}\]|(?:\xe2[\x94\x95][\x80-\xbf]){5,100}"
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
_COMMA = rb",(?=\d{4}|(?<=[\s:=|+-]0,)\d{3}|(?<=[\s:=|+-]\d,)\d{1,3}[eE][-+])(?=\d++(?:[eE][-+]?\d++)?(?:[\s|;*%)\]]|,\s|\Z))"
_MAY_BE_DECIMAL, _DECIMAL_COMMA = _pattern(_COMMA), _pattern(rb"(?<=[\s:=|])(?<!\d:)([-+]?\d{1,6}+)" + _COMMA)
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
        """Return the kind of the token: a number, a fraction, or neither. If ``whole``, only whole numbers are numbers."""
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
    return _DECIMAL_COMMA.sub(rb"\1.", records) if _MAY_BE_DECIMAL.search(records) is not None else records


def split(core: bytes) -> list[bytes]:
    """Return the parts of a record: literal, token, literal, token, …, literal.

    The words that begin a record may have numbers glued to them: ``fold0 ep1: …``, ``E3 B40 …``.
    """
    begun = _GLUED.match(core)
    if begun is None:
        return _MASK.split(core)
    parts = _DIGITS.split(begun[0])
    rest = _MASK.split(core[begun.end() :])
    return [*parts[:-1], parts[-1] + rest[0], *rest[1:]]


_WORD_AND_DIGITS = rb"(?!(?:[fFlLrRvV]|[tT]op|[pP]rec)\d)[A-Za-z]{1,5}\d{1,6}(?=[\s:;,|\])])"
_GLUED = _pattern(
    rb"[^\w\s]{0,6}[ \t]?[^\w\s]?" + _WORD_AND_DIGITS + rb"(?:[^\w\n]{1,4}" + _WORD_AND_DIGITS + rb"){0,2}"
    rb"(?=[ ]{0,3}(?:[^\w\s.]|\t)| (?i:ep|epoch|step|iter|iteration|round)[ :=]{0,3}[\[(]?\d)"
)
_DIGITS = _pattern(rb"(\d+)")


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


MAX_KEYS = 64
"""Spellings of the digits in the words of a form that are remembered."""
_RUN = re.compile(rb"\d+")
_DECIMAL = re.compile(rb"\d\.\d|=")
_SENTENCE = re.compile(rb"(?:[A-Za-z']{2,}[,.]? ){5}")
_DIGIT_HEAD = re.compile(rb"<0{1,3}>0 |#000\[|f0")
"""How masked envelopes begin that print a digit, and the name that is no host's: ``<13>1 ``, ``#033[``, ``f1:``."""
_DIGITS_BEFORE = re.compile(rb">0 |#000\[|f0")
_PROCESS = re.compile(rb"\bpid=(\d++)")
Span = tuple[int, int]


@dataclass(eq=False, slots=True)
class Form:
    """The common layout of the records of one form.

    ``start`` and ``end`` are the bounds of the line behind its envelopes, ``bounds`` those of its parts: literal, token,
    literal, …; none where the record has no token, or too many. ``rank`` is the place of the digits of the rank, or the rank.
    ``process`` is that of the number of the process, if a head names one.
    ``key`` is the shape, None where words contain digits: those at ``numbered``. ``lasting`` is False where another
    record of the same form may have to be split differently. A ``sentence`` has words in a row, and no figure.
    """

    start: int
    end: int
    bounds: tuple[int, ...]
    key: bytes | None
    numbered: tuple[Span, ...]
    rank: Span | int
    lasting: bool
    sentence: bool
    process: Span | None
    _like: bytes
    _keys: dict[bytes, bytes] = field(default_factory=dict)
    _numbers: dict[int, Number] = field(default_factory=dict)

    def parts(self, record: bytes) -> list[bytes]:
        """Return the parts of ``record``, as ``split`` does."""
        return [record[a:b] for a, b in pairwise(self.bounds)]

    def key_of(self, record: bytes) -> bytes:
        """Return the key of the shape of ``record``."""
        if self.key is not None:
            return self.key
        own = b"\n".join([record[a:b] for a, b in self.numbered])
        key = self._keys.get(own)
        if key is None:
            if len(self._keys) >= MAX_KEYS:
                self._keys.clear()
            key = self._keys[own] = shape(self.parts(record))
        return key

    def rank_of(self, record: bytes) -> int:
        """Return the rank that printed ``record``, or ``NO_RANK``."""
        return self.rank if isinstance(self.rank, int) else int(record[self.rank[0] : self.rank[1]])

    def token(self, column: int, record: bytes) -> Token:
        """Return the token of a column in ``record``."""
        return read_token(record[self.bounds[2 * column + 1] : self.bounds[2 * column + 2]])

    def number(self, column: int) -> Number:
        """Return the position of a column's value."""
        found = self._numbers.get(column)
        if found is None:
            found = self._numbers[column] = find_number(self._like, *self.bounds[2 * column + 1 : 2 * column + 3])
        return found


def form_of(record: bytes) -> Form:
    """Return the form of ``record``."""
    at = core_start(record)
    core = record[at : at + MAX_CORE].rstrip()
    end = at + len(core)
    parts = split(core)
    lasting = has_plain_heads(record, at)
    sentence = _DECIMAL.search(record) is None and _SENTENCE.search(record) is not None
    if not 3 <= len(parts) <= 2 * MAX_TOKENS + 1:
        return Form(at, end, (), None, (), NO_RANK, lasting, sentence, None, b"")
    bounds = [at]
    for part in parts:
        bounds.append(bounds[-1] + len(part))
    rank = _rank_place(record[:at])
    numbered = tuple((a, b) for a, b in list(pairwise(bounds))[::2] if _RUN.search(record, a, b))
    key = None if numbered else shape(parts)
    lasting = lasting and rank is not None
    rank = read_rank(record[:at]) if rank is None else rank
    process = _PROCESS.search(record, 0, at)
    return Form(
        at, end, tuple(bounds), key, numbered, rank, lasting, sentence, process.span(1) if process else None, record[:end]
    )


def has_plain_heads(record: bytes, at: int) -> bool:
    """Whether records that differ from this one in digits alone have the same heads (``[rank0]:``), which end at ``at``."""
    masked = record.translate(MASK)
    if _DIGITS_BEFORE.search(masked, 0, at):
        return False
    return not any(_DIGIT_HEAD.match(masked, place) for place in (0, *starts(record)))


def _rank_place(prefix: bytes) -> Span | int | None:
    """Return the span of the rank's digits in ``prefix``, ``NO_RANK`` without a rank, None where it is uncertain."""
    rank = read_rank(prefix) if prefix else NO_RANK
    if rank == NO_RANK:
        return NO_RANK
    zeros = _RUN.sub(lambda found: b"0" * len(found[0]), prefix)
    for run in _RUN.finditer(prefix):
        start, end = run.span()
        ones = b"1" * (end - start)
        if read_rank(zeros[:start] + ones + zeros[end:]) == int(ones) and int(run[0]) == rank:
            return start, end
    return None


MAX_SEEN = 16384
"""Bytes of a record that are searched for words."""
MAX_HERALD = 160
"""Bytes of a line, with its envelope, that are searched for words of an evaluation or of training."""
MAX_KNOWN, MAX_BYTES = 1 << 15, 512
"""Records that are known, and the bytes of one at most; when there are more, all are forgotten."""
_DASHES = re.compile(rb"[-=*#][-=*#][-=*#]")
_RULED = re.compile(rb"(?<![\w=*#-])[-=*#]{3,}[ \t]*\d+[ \t]*[-=*#]{3,}[ \t]*$")
_DIGIT, _WORD = re.compile(rb"\d"), re.compile(rb"[a-z]+")
Looked = tuple[Form | None, int]
"""The form of a record, None without a digit or a known word; and 1, -1 or 0 as ``heralds`` says."""


class Looks:
    """Looks at records for words, in lower case; those of other scripts are looked for inside others.

    ``heralds`` returns 1 for a line that announces an evaluation, -1 for one that speaks of training, else 0. ``known`` is
    what was seen of records, by their bytes with each digit as 0.
    """

    def __init__(self, words: frozenset[bytes], heralds: Callable[[bytes], int] | None) -> None:
        self._words = words
        self._heralds = heralds
        foreign = sorted((re.escape(word) for word in words if not word.isascii()), key=len, reverse=True)
        self._foreign = re.compile(b"|".join(foreign)) if foreign else None
        self.known: dict[bytes, Looked] = {}

    def look(self, masked: bytes, record: bytes) -> Looked:
        """Return the form of a record that looks like none before, and the headings in it; ``masked``: with each digit as 0."""
        at = core_start(record)  # the name of a logger or of a service is no word of the line
        seen = masked[at : at + MAX_SEEN]
        told = not self._words.isdisjoint(_WORD.findall(seen.lower())) or bool(_DASHES.search(seen) and _RULED.search(seen))
        told = told or (self._foreign is not None and not seen.isascii() and self._foreign.search(seen) is not None)
        form = form_of(record) if told and _DIGIT.search(masked) else None
        head = record[:MAX_HERALD]
        looked = form, self._heralds(head) if self._heralds is not None else 0
        plain = form.lasting if form is not None else has_plain_heads(record, at)
        if len(record) <= MAX_BYTES and plain and (head == record or has_plain_heads(head, core_start(head))):
            if len(self.known) >= MAX_KNOWN:
                self.known.clear()
            self.known[masked] = looked
        return looked


@lru_cache(maxsize=2)
def looks(words: frozenset[bytes], heralds: Callable[[bytes], int] | None) -> Looks:
    """Return the ``Looks`` that this process has for these words."""
    return Looks(words, heralds)
