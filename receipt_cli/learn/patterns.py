"""Build the pieces of a rule's pattern from the literals and columns of a shape."""

from __future__ import annotations

import re
from dataclasses import dataclass

from receipt_cli.grammar.parse import PARTS
from receipt_cli.learn.counting import counted_unit
from receipt_cli.learn.names import OTHERS, PART, Name, Role, counter_of
from receipt_cli.learn.readings import INDENT, Reading
from receipt_cli.learn.shapes import Column, Shape
from receipt_cli.learn.tokens import BAR, FRACTION, NUMBER, ORDINALS, RATE, SCALED, TIME
from receipt_cli.learn.vocabulary import Vocabulary

REACH = 2000
"""Bytes behind the counter within which a field is looked for."""
NUMBER_TEXT, GROUPED_TEXT = PARTS["number"], PARTS["grouped"]
_WHOLE, _WHOLE_GROUPED = r"\d++", r"(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++)"
WHOLE = r"(?![\w%]|,\d)"
"""What must not follow a number: a letter of a word or of another record that tears it, or more digits."""
_BLANKS = r"[ \t]*+"
_SIDES = b"|,;{[(\"'-:*>"
"""Characters that may separate a key from the text before it."""
EVALUATION = "(?:val|valid|validation|eval|evaluation|test|dev)"
"""Words of an evaluation in a name."""


def literal(text: bytes) -> str:
    """Return the ASCII pattern of ``text``: a run of blanks matches any run of them, outer ones also none."""
    words = [re.escape(word.decode("latin-1")) if word.isascii() else _bytes(word) for word in text.split()]
    inner = r"[ \t]++".join(words)
    before = _BLANKS if text[:1].isspace() or not words else ""
    return before + inner + (_BLANKS if words and text[-1:].isspace() else "")


def _bytes(word: bytes) -> str:
    return "".join(re.escape(chr(b)) if b < 128 else f"\\x{b:02x}" for b in word)


def chunks(text: bytes) -> list[bytes]:
    """Return the runs of visible bytes of a literal, which every record contains.

    Of a run that is no UTF-8 the parts around the foreign bytes are returned, since a grammar is text; where nothing else is
    in it, no bytes.
    """
    return [part for word in text.split() for part in ([word] if word.isascii() else _decodable(word))]


def _decodable(word: bytes) -> list[bytes]:
    parts = word.decode("utf-8", "replace").split("\N{REPLACEMENT CHARACTER}")
    return [part.encode("utf-8") for part in parts if part] or [b""]


def context(shape: Shape, at: int, name: Name) -> str:
    """Return the pattern of the key before column ``at``, with its separator from the text before; it ends at the value."""
    left = shape.literals[at]
    key = name.text.encode("utf-8")
    place = left.rfind(key)
    before, behind = left[:place].rstrip(), left[place + len(key) :]
    gap = left[len(before) : place]
    if before and before[-1:] in _SIDES:
        return literal(before[-1:]) + (_BLANKS if gap else "") + literal(key) + literal(behind) + _BLANKS
    return _free(key) + literal(behind) + _BLANKS


def _free(key: bytes) -> str:
    """Return the pattern of a key without a word before it, in particular none of an evaluation.

    Where possible, the text before is checked behind the key: a search then jumps from one key to the next.
    """
    word = literal(key)
    late = bool(key) and len(key.split()) == 1 and not (key[:1].isspace() or key[-1:].isspace())
    first, behind = (word, word) if late else ("", "")
    return rf"{first}(?<![\w/.-]{behind})(?<!{EVALUATION}[ _/]{behind})" + ("" if late else word)


Spec = dict[str, str | int]
"""The declaration of a field in a grammar."""


@dataclass(frozen=True, slots=True)
class Value:
    """The pattern of a value, with its named group, and the declaration of the field."""

    pattern: str
    field: str
    spec: Spec


_OF = "of |out of "


def counter_value(
    column: Column, number: str, total: str | None, *, done: bool = False, lags: bool = False, only: int | None = None
) -> tuple[str, dict[str, Spec]]:
    """Return the pattern of a counter (``number``, and its ``total`` where it prints one) and the fields it fills.

    ``done``: at 0 nothing is done yet; but if it ``lags``, 0 is the first step, and what it shows at the end is no other.
    ``only``: the total that it has to have.
    """
    done = done and not lags
    whole = _WHOLE_GROUPED if column.grouped else _WHOLE
    suffix = rf"(?:{'|'.join(ORDINALS)})\b" if column.ordinal else counted_unit(column)
    fields: dict[str, Spec] = {number: {"type": "integer", "at_least": 1} if done else {"type": "integer"}}
    part = rf"[ \t]*+(?:/|{_OF}){_BLANKS}"
    if column.kind != FRACTION:
        return rf"(?P<{number}>{whole}){suffix}(?!\.?\d|{part}\d)", fields
    part = rf"[ \t]*+(?:[/|]|{_OF}){_BLANKS}"  # [3 | 600]
    if any(token.unit == SCALED for token in column.values):
        part = r"(?:\.0{1,2}+)?+" + part
    if total is None:
        return rf"(?P<{number}>{whole}){part}{whole}(?!\.?\d)", fields
    fields[total] = {"type": "integer"}
    unfinished = rf"(?!(?P={number})(?!\d))" if lags else ""
    end = whole if only is None else str(only)
    return rf"(?P<{number}>{whole}){part}{unfinished}(?P<{total}>{end})(?!\.?\d)", fields


def full_counter(column: Column, only: int | None = None) -> tuple[str, dict[str, Spec]]:
    """Return the pattern of ``14/14``: a bar of an epoch that is full; ``only``: what it counts to."""
    whole = str(only) if only is not None else _WHOLE_GROUPED if column.grouped else _WHOLE
    pattern = rf"(?P<epoch_step>{whole})[ \t]*+/{_BLANKS}(?P<epoch_steps>(?P=epoch_step))(?!\.?\d)"
    return pattern, {"epoch_step": {"type": "integer"}, "epoch_steps": {"type": "integer"}}


def metric_value(shape: Shape, at: int, name: Name, role: Role, taken: set[str]) -> Value | None:
    """Return how the metric of column ``at`` is read, or None where its unit changes from record to record."""
    column = shape.columns[at]
    units = {t.unit for t in column.values if t.kind == NUMBER}
    number = GROUPED_TEXT if column.grouped else NUMBER_TEXT
    field = role.metric or field_name(name.text or name.behind or name.before, taken)
    after = rf"(?=[ \t]*+{literal(name.behind.encode())}(?!\w))" if name.behind else ""
    spec: Spec = {"type": "number"}
    if role.kind in OTHERS:
        spec["metric"] = "other"
    if role.unit == "si":
        rest = r"(?!\w)" if name.text or name.follows is None else rf"[ \t]*+{_rate(name.follows, '')}"
        return Value(rf"(?P<{field}>{number}[KkMGBT]?+){rest}", field, {**spec, "printed_in": "si"})
    if len(units) > 1:
        if role.unit in ("ms", "s", "us", "min") and units <= {"ms", "s", "us", "sec", "min", "m"}:
            return Value(rf"(?P<{field}>{number}[ \t]?(?:ms|us|sec|min|s|m))(?!\w)", field, {**spec, "printed_in": "suffix"})
        return None
    glued = next(iter(units), "")
    if role.unit is not None:
        spec["printed_in"] = role.unit
    if glued:
        behind = r"[ \t]?" + re.escape(glued)
        if name.follows is not None and not name.follows.startswith(glued.lower()):
            return None
        tail = r"(?![\w/])" if "/" not in glued else r"(?!\w)"
        if name.follows is not None and name.text == "":
            tail = _rate(name.follows, glued)
        return Value(rf"(?P<{field}>{number}){behind}{after or tail}", field, spec)
    if name.follows is not None and not name.text:
        return Value(rf"(?P<{field}>{number})[ \t]*+{_rate(name.follows, '')}", field, spec)
    return Value(rf"(?P<{field}>{number}){WHOLE}{after}", field, spec)


def _rate(follows: str, done: str) -> str:
    what, _, time = follows.partition("/")
    rest = rf" ?/ ?(?i:{re.escape(time)})(?!\w)"
    return rest if done else rf"(?i:{re.escape(what)})" + rest


def field_name(text: str, taken: set[str]) -> str:
    """Return a name for the field of a printed name that the registry does not know; one that is not ``taken``."""
    base = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40] or "value"
    base = base if base[0].isalpha() else f"value_{base}"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    return name


def filler(column: Column, behind: bytes = b"") -> str:
    """Return the pattern of a token that is not read; ``behind`` it, a stroke may part it from a number of its own."""
    number = GROUPED_TEXT if column.grouped else NUMBER_TEXT
    if column.kind == BAR:
        return r"(?:\|[^|,\n]{0,400}+\|?+|\[[^\]\n]{0,400}\]|[^ \t\n]{0,400})"
    if column.kind == RATE:
        return r"\[[^\[\],\n]{0,80},[^\],\n]{0,40}"
    if column.kind in (NUMBER, FRACTION) and all(token.kind != TIME for token in column.values):  # ``9ms``, ``1s204ms``
        total = rf"[ \t]*+(?:/|(?:out )?of ){_BLANKS}\d++(?:,\d{{3}})*+"
        stroke = behind.lstrip()[:1] == b"/"
        total, unit = ("", "[A-Za-z]") if stroke else (rf"(?:{total})?+", "[A-Za-z/]")
        return rf"(?:{number}{total}(?:[ \t]?%|{unit}{{0,16}}+)|N/A|n/a|None|null|\?{{3}})"
    return r"[\w:.,/+-]{1,40}+(?: days?, [\d:.]{1,20}+| [\d:.,]{5,20}+)?+"


MOST_BARE = 24


def bare_figures(main: Reading, vocabulary: Vocabulary) -> dict[int, Role]:
    """Return the figures of unknown names that no separator parts from them, by their places: ``| sep -2.72 | rms 1.06``.

    Behind a separator each is kept under its label.
    """
    found: dict[int, Role] = {}
    for at, (name, column) in enumerate(zip(main.names, main.shape.columns, strict=True)):
        words = name.words.split()
        plain = column.kind == NUMBER and not column.integer and name.text and not name.sure and name.unit in (None, "%")
        apart = at in main.roles or name.evaluation or name.several or name.bracket or at <= main.glued
        spoken = 0 < len(words) <= 3 and vocabulary.foreign.isdisjoint(words) and name.text[:1].isalpha()
        moves = len({token.value for token in column.values}) > 1
        if plain and spoken and moves and not apart and counter_of(words, vocabulary) is None and len(found) < MOST_BARE:
            found[at] = Role(PART, unit="percent" if name.unit == "%" else None)
    return found


def beginning_of(reading: Reading, place: int, last: bytes) -> tuple[str, list[bytes]]:
    """Return the pattern of how a record begins, up to column ``place``, before which ``last`` stands, and the texts in it."""
    begin = reading.glued + 1 if reading.glued < place else 0
    pattern, texts = r"(?:^|(?<=\]))" if begin else "^", list[bytes]()
    pattern += rf"[ \t]{{{INDENT},}}+" if reading.indented else rf"[ \t]{{0,{INDENT - 1}}}+(?:\|[ \t]++)?"  # a mark is noise
    for at in range(begin, place + 1):
        words = reading.shape.literals[at] if at < place else last
        words = (words.lstrip(b"] ") if begin else words).lstrip() if at == begin else words
        texts += chunks(words)
        pattern += literal(words) + r"[ \t]*+"
        if at < place:
            pattern += filler(reading.shape.columns[at], reading.shape.literals[at + 1])
    return pattern, texts


def first_counter(reading: Reading) -> int | None:
    """Return the place of the first number that counts."""
    return min((at for at in (reading.counter.step, reading.counter.epoch) if at is not None), default=None)


def one_of(patterns: list[str]) -> str:
    """Return the pattern of what one of ``patterns`` matches."""
    return patterns[0] if len(patterns) == 1 else f"(?:{'|'.join(patterns)})"
