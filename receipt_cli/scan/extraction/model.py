"""The result of one rule on one record, and the parts shared by all syntaxes: time box, spans, conversion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic, process_time
from typing import TypeAlias

import regex

from receipt_cli.definitions.units import read_number
from receipt_cli.grammar.model import Field, Rule
from receipt_cli.problems import MAX_EXCERPT

TIME_BOX_S = 2.0
"""CPU seconds allowed for one rule on one record. ``regex`` counts ``clock()``, so time asleep or suspended does not
count. Shipped patterns are linear and stay far below."""
_SHORT_S = 0.01
MAX_EVENTS = 64
"""Most events of one rule in one record."""
MAX_KEY = 64
MAX_INTEGER = 1 << 53
"""The first integer that float64 may not hold exactly; values from here on are not read."""
DROPPED = "\0"
"""Prefix of columns whose cells are only counted: ``DROPPED``, a number, ``DROPPED``, the key."""
Converted: TypeAlias = tuple[float | str | None, bool]
Span = tuple[int, int]
NOWHERE: Span = (-1, -1)
"""The span of a text that the record holds in another form: escaped, or with marks inside."""


@dataclass(slots=True)
class Extraction:
    """One event as printed: its span in the record, the text of each field, and values of undeclared keys.

    ``spans`` and ``unregistered_spans`` are the spans of these texts and numbers; ``keys`` the spans of their keys and of
    values that made this an event; ``unread`` the spans of undeclared values that are not numbers; ``declared`` those of values
    the rule ignores. Tables and blocks have none of these.

    ``cells`` are texts that other records name, for the column ``column``: ``headers`` the column names of a table, ``cells``
    the cells of its other rows, ``pairs`` key and value of a block row; ``parts`` are their spans, blanks included. ``form``:
    the words before the event and the endings of its numbers (see ``scan/forms.py``).
    """

    start: int
    end: int
    texts: dict[str, str] = field(default_factory=dict)
    unregistered: dict[str, float] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)
    unregistered_spans: dict[str, Span] = field(default_factory=dict)
    keys: list[Span] = field(default_factory=list)
    unread: list[Span] = field(default_factory=list)
    declared: list[Span] = field(default_factory=list)
    column: str = ""
    cells: tuple[str, ...] = ()
    parts: list[Span] = field(default_factory=list)
    form: str = ""

    def reread(self, record: bytes) -> Extraction:
        """Return the part of the event that columns keep, with the texts that ``record`` has at the same spans."""
        event = Extraction(self.start, self.end, dict(self.texts), column=self.column, form=self.form)
        event.spans, event.unregistered_spans = self.spans, self.unregistered_spans
        for name, span in self.spans.items():
            if span != NOWHERE:
                event.texts[name] = clean_text(record[slice(*span)])
        for key, span in self.unregistered_spans.items():
            number = read_unregistered(clean_text(record[slice(*span)]))
            if number is not None:
                event.unregistered[key] = number
        event.cells = tuple([clean_text(record[slice(*span)]) for span in self.parts])
        return event

    def moved(self, to: Callable[[int], int]) -> Extraction:
        """Return the event with all offsets mapped by ``to``."""

        def move(span: Span) -> Span:
            return span if span == NOWHERE else (to(span[0]), to(span[1]))

        return Extraction(
            to(self.start),
            to(self.end),
            self.texts,
            self.unregistered,
            {name: move(span) for name, span in self.spans.items()},
            {name: move(span) for name, span in self.unregistered_spans.items()},
            [move(span) for span in self.keys],
            [move(span) for span in self.unread],
            [move(span) for span in self.declared],
            self.column,
            self.cells,
            [move(span) for span in self.parts],
            self.form,
        )


class PatternTimeout(Exception):
    """A pattern used up its time box or memory on one record."""


class Box:
    """A CPU time budget shared by several searches, from the first one on.

    Reading the CPU clock is a system call, so it starts only after the searches took ``_SHORT_S``, which do not count.
    """

    __slots__ = ("_begin", "_end")

    def __init__(self) -> None:
        self._begin: float | None = None
        self._end: float | None = None

    def left(self) -> float:
        """Return the remaining seconds. Raises ``TimeoutError``."""
        if self._end is None:
            if self._begin is None:
                self._begin = monotonic()
                return TIME_BOX_S
            if monotonic() - self._begin < _SHORT_S:
                return TIME_BOX_S
        now = process_time()
        if self._end is None:
            self._end = now + TIME_BOX_S
        if now >= self._end:
            raise TimeoutError
        return self._end - now


def fields_below(rule: Rule, event: Extraction) -> list[str]:
    """Return the fields of ``event`` that are below the bounds of ``rule``."""
    printed = {name: convert(rule.fields[name], event.texts[name])[0] for name in rule.bounds if name in event.texts}
    return [name for name, value in printed.items() if isinstance(value, float) and value < rule.bounds[name]]


def clean_text(raw: bytes) -> str:
    """Return the text of ``raw`` without the blanks around it."""
    return raw.decode("utf-8", "replace").strip()


def join_cells(column: str, cells: Iterable[str]) -> str:
    """Return the cells of a table or block row in the form that columns store."""
    joined = "\t".join(cells)
    return joined[:MAX_EXCERPT] if column == "pairs" else joined


def event_of(pattern: regex.Pattern[bytes], found: regex.Match[bytes]) -> Extraction:
    """Return the event of a match, with its named groups."""
    event = Extraction(found.start(), found.end())
    add_groups(event, pattern, found)
    return event


def add_groups(event: Extraction, pattern: regex.Pattern[bytes], found: regex.Match[bytes]) -> None:
    """Add the named groups of a match, without the blanks around them."""
    for name in pattern.groupindex:
        raw = found[name]
        if raw is not None:
            event.texts[name] = clean_text(raw)
            event.spans[name] = stripped(raw, found.start(name))


def stripped(raw: bytes, start: int) -> Span:
    """Return the span of ``raw``, which begins at ``start``, without the blanks around it."""
    begin = start + len(raw) - len(raw.lstrip())
    return begin, begin + len(raw.strip())


def read_unregistered(text: str) -> float | None:
    """Return the number in the value of an undeclared key, in base units, or None.

    numpy's repr of a number counts as a number, and so does an unambiguous unit (``38.5%``, ``12 ms``).
    """
    if text.startswith("np.") and text.endswith(")"):
        text = text[text.find("(") + 1 : -1]
    if not text or text[0] not in "+-.0123456789niNI":
        return None
    number = read_number(text)
    return read_number(text, "suffix") if number is None else number


def convert(spec: Field, text: str) -> Converted:
    """Return the value of ``text`` in base units and whether it could be read.

    ``(None, True)``: the trainer prints the value as unknown; ``(None, False)``: unreadable.
    """
    if text in spec.null_if:
        return None, True
    if spec.value is not None:
        try:
            found = spec.value.search(text, timeout=TIME_BOX_S)
        except (TimeoutError, MemoryError, RecursionError):
            return None, False
        if found is None or found.group(1) is None:
            return None, False
        text = found.group(1).strip()
    if spec.type in ("string", "boolean"):
        return text, bool(text)
    value = read_number(text, spec.unit)
    if value is None or (spec.type == "integer" and not (abs(value) < MAX_INTEGER and value == int(value))):
        return None, False
    return value, True
