"""The positions of tokens by the form of a record: its bytes with every digit masked.

The patterns that split a record do not depend on the values of digits, except those of envelopes with a literal digit:
forms with such an envelope are not kept. Words with digits are part of a shape: each spelling of them is looked up.

Whether the numbers of a record are collected at all, and what it heralds, does not depend on the values of digits either: what
is known of a record by its bytes with each digit as 0 holds for the logs that the process reads next.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from receipt_cli.learn.tokens import MAX_CORE, MAX_TOKENS, Number, Token, core_start, find_number, read_token, shape, split
from receipt_cli.records.envelope import MASK, NO_RANK, read_rank, starts

MAX_KEYS = 64
"""Spellings of the digits in the words of a form that are remembered."""
_RUN = re.compile(rb"\d+")
_DECIMAL = re.compile(rb"\d\.\d|=")
_SENTENCE = re.compile(rb"(?:[A-Za-z']{2,}[,.]? ){5}")
_DIGIT_HEAD = re.compile(rb"<0{1,3}>0 |#000\[|f0")
"""How masked envelopes begin that print a digit, and the name that is no host's: ``<13>1 ``, ``#033[``, ``f1:``."""
_DIGITS_BEFORE = re.compile(rb">0 |#000\[|f0")
Span = tuple[int, int]


@dataclass(eq=False, slots=True)
class Form:
    """The common layout of the records of one form.

    ``start`` and ``end`` are the bounds of the line behind its envelopes, ``bounds`` those of its parts: literal, token,
    literal, …; none where the record has no token, or too many. ``rank`` is the place of the digits of the rank, or the rank.
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
        return Form(at, end, (), None, (), NO_RANK, lasting, sentence, b"")
    bounds = [at]
    for part in parts:
        bounds.append(bounds[-1] + len(part))
    rank = _rank_place(record[:at])
    numbered = tuple((a, b) for a, b in list(pairwise(bounds))[::2] if _RUN.search(record, a, b))
    key = None if numbered else shape(parts)
    lasting = lasting and rank is not None
    rank = read_rank(record[:at]) if rank is None else rank
    return Form(at, end, tuple(bounds), key, numbered, rank, lasting, sentence, record[:end])


def has_plain_heads(record: bytes, at: int) -> bool:
    """True where the heads of ``record``, which end ``at`` a place, are those of all records that differ in digits alone."""
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
        """Return what a record shows that is not known; ``masked`` is the record with each digit as 0."""
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
