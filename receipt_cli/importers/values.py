"""Find the meaning of the names in a foreign document, and read its values in base units; ambiguous values become problems.

A meaning comes from the format's table, then from the aliases of the metric registry. A name with an uncertain unit or meaning
is doubtful, and its value is ignored.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Literal

from receipt_cli.definitions.metrics import Alias, load_registry
from receipt_cli.definitions.units import MAX_TEXT, SPECIAL_UNITS, read_number
from receipt_cli.importers.text import Number, Value, at
from receipt_cli.problems import MAX_FIRST, Problem
from receipt_cli.records.split import spell_nonfinite
from receipt_cli.redaction.text import safe_text

Kind = Literal["metric", "other", "fact", "step", "ignored", "doubtful"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a printed name: its kind, canonical name, the unit of the printed number, scope and definition.

    ``unit`` is a key of ``units.UNITS``, None for a base unit. A ``fact`` is a single value of the run (``grammar.FACTS``).
    """

    kind: Kind
    name: str = ""
    unit: str | None = None
    scope: str | None = None
    definition: str | None = None


_SIZE = re.compile(r"(?<![a-z])[kmgt]b\)?\Z")
"""Ending of a memory metric's name in GB or MB, which may be powers of 1000 or of 1024 bytes."""
_MAX_KNOWN = 4096
STEP, IGNORED, DOUBTFUL = Meaning("step"), Meaning("ignored"), Meaning("doubtful")


def metric(name: str, unit: str | None = None, *, scope: str | None = None, definition: str | None = None) -> Meaning:
    """Return the meaning of a canonical metric."""
    return Meaning("metric", name, unit, scope, definition)


def other(name: str) -> Meaning:
    """Return the meaning of a metric outside the registry, even if the registry has its name."""
    return Meaning("other", name)


def fact(name: str, unit: str | None = None) -> Meaning:
    """Return the meaning of a single value of the run."""
    return Meaning("fact", name, unit)


@cache
def _spellings() -> dict[str, list[tuple[str, Alias]]]:
    """Return lower-case spelling → (metric name, alias) for the registry's aliases."""
    known: dict[str, list[tuple[str, Alias]]] = {}
    for entry in load_registry().metrics:
        for alias in entry.aliases:
            known.setdefault(alias.spelling.lower(), []).append((entry.name, alias))
    return known


class Names:
    """The names of one format.

    ``trainers`` are the registry's trainers whose spellings it may use, the likeliest first; without any, a spelling counts
    only if it has the same meaning in all trainers, in its base unit. ``prefixes`` map possible prefixes of a known spelling,
    such as ``train/``, to their replacements.
    """

    def __init__(self, table: Mapping[str, Meaning], trainers: Sequence[str] = (), prefixes: Mapping[str, str] | None = None):
        self._table = table
        self._trainers = trainers
        self._prefixes = prefixes or {}
        self._known: dict[str, Meaning | None] = {}

    def meaning(self, spelling: str) -> Meaning | None:
        """Return the meaning of ``spelling``, ``DOUBTFUL`` if it is uncertain, None for an unknown name."""
        if spelling not in self._known:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            tries = [spelling]
            tries += [new + spelling.removeprefix(old) for old, new in self._prefixes.items() if spelling.startswith(old)]
            found = (self._table.get(name) or self._alias(name) for name in tries)
            self._known[spelling] = next((meaning for meaning in found if meaning is not None), None)
        return self._known[spelling]

    def _alias(self, spelling: str) -> Meaning | None:
        lowered = spelling.lower()
        if lowered in load_registry().by_name:
            return Meaning("metric", lowered)
        known = _spellings().get(lowered, ())
        own = [(name, a) for trainer in self._trainers for name, a in known if a.trainer == trainer]
        meanings = {(name, alias.printed_in) for name, alias in (own[:1] if self._trainers else known)}
        if not meanings:
            size = _SIZE.search(lowered)
            before = lowered[: size.start()] if size is not None else ""
            return DOUBTFUL if "mem" in before or "vram" in before else None
        name, unit = next(iter(meanings))
        sure = unit not in SPECIAL_UNITS if own else len(meanings) == 1 and unit is None
        return Meaning("metric", name, unit) if sure else DOUBTFUL


MAX_WHOLE = 2**53
MAX_NAME = 128
"""Most characters of a name outside the registry."""
_MAX_VALUE = 64
"""Most characters of a value in a problem."""
_SHARES = ("train_accuracy", "val_accuracy", "test_accuracy", "memory_used_ratio")
"""Metrics with values from 0 to 1; another value is percent or has another meaning."""


@dataclass(slots=True)
class ProblemCounter:
    """The problems of a document: the number of each kind, and the first problems."""

    kinds: Counter[str] = field(default_factory=Counter)
    first: list[Problem] = field(default_factory=list)

    def add(self, kind: str, line: int | None, detail: str, excerpt: str = "") -> None:
        """Add a problem; ``line`` of the document is counted from 1, None if lines have no meaning in it."""
        self.kinds[kind] += 1
        if len(self.first) < MAX_FIRST:
            self.first.append(Problem(kind, line, safe_text(detail) or kind, safe_text(excerpt, _MAX_VALUE)))

    def add_repeated(self, keys: Sequence[str]) -> None:
        """Add a problem for each of the ``keys`` that an object has twice."""
        for key in dict.fromkeys(keys):
            self.add("repeated_key", None, f"{key[:128]} occurs twice in one object with different values: ignored both")


@dataclass(slots=True)
class RecordValues:
    """The values of one record of a document, in base units, as in a row of an event table."""

    step: int | None = None
    planned: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    others: dict[str, float] = field(default_factory=dict)
    facts: dict[str, float | str] = field(default_factory=dict)
    meanings: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)


def rfc3339(seconds: float | None) -> str | None:
    """Return seconds since 1970 as RFC 3339; None for what is no time of a computer."""
    if seconds is None or not 0 < seconds < 1 << 34:
        return None
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%dT%H:%M:%SZ}"


def read_record(
    record: Mapping[str, Value], names: Names, problems: ProblemCounter, line: int | None, where: str
) -> RecordValues:
    """Return the values of ``record``; ``where`` is its JSON pointer in problems. The first name of a metric is used."""
    values = RecordValues()
    for spelling, value in record.items():
        meaning = names.meaning(spelling)
        if value is None or (meaning is not None and meaning.kind == "ignored"):
            continue
        place = f"{where}/{safe_text(spelling, MAX_NAME)}"
        if meaning is None or meaning.kind == "other":
            name = spelling if meaning is None else meaning.name
            printed = as_number(value)
            number = None if printed is None else read_number(printed)
            if number is not None and 0 < len(name) <= MAX_NAME:
                values.others.setdefault(name, number)
            continue
        if meaning.kind == "doubtful":
            problems.add("ambiguous_unit", line, f"{place}: ambiguous unit or metric", str(value))
            continue
        if meaning.kind == "fact" and isinstance(value, str) and not isinstance(value, Number):
            values.facts.setdefault(meaning.name, value)
            continue
        number = number_of(value, meaning, problems, line, place)
        if number is not None:
            _put(values, meaning, number, problems, line, place)
    return values


def number_in(value: Value) -> float | None:
    """Return a printed number; None if ``value`` is not a number."""
    return read_number(value) if isinstance(value, Number) else None


def whole_step(value: Value) -> int | None:
    """Return a step, as printed or in a cell: a whole number of 0 or more; None for any other value."""
    number = read_number(value.strip()) if isinstance(value, str) else None
    return int(number) if number is not None and number >= 0 and _is_whole(number) else None


def python_value(value: Value) -> object:
    """Return the Python value of a setting; a number that is none becomes None."""
    if not isinstance(value, Number):
        return value
    try:
        return int(value)
    except ValueError:
        return number_in(value)


def number_of(value: Value, meaning: Meaning, problems: ProblemCounter, line: int | None, place: str) -> float | None:
    """Return a printed number in base units; None, with a problem, if it is not a number or impossible for the metric."""
    if value is None:
        return None
    printed = as_number(value)
    if printed is None:
        problems.add("wrong_type", line, f"{place}: not a number")
        return None
    number = read_number(printed, meaning.unit)
    if number is None:
        problems.add("unreadable_value", line, f"{place}: unreadable number", printed)
    elif not _possible(meaning, number):
        problems.add("value_out_of_range", line, f"{place}: cannot be {meaning.name}", printed)
        number = None
    return number


def as_number(value: Value) -> Number | None:
    """Return a number as printed, or None; a string counts only if it spells NaN or an infinity as logs do."""
    if isinstance(value, Number) or not isinstance(value, str) or len(value) > MAX_TEXT:
        return value if isinstance(value, Number) else None
    spelled = spelled_number(value)
    number = read_number(spelled)
    return None if number is None or math.isfinite(number) else Number(spelled)


def spelled_number(text: str) -> str:
    """Return the text of a cell without outer blanks; non-finite numbers are spelled as in logs."""
    return spell_nonfinite(b" " + text.strip().encode("utf-8", "replace"))[1:].decode("utf-8")


class Fields:
    """Single values of a document by their path (keys of objects), each read as one type.

    A missing or null value is None; a value of another type is None and a problem. ``file`` names the document in problems
    if it is not the main one.
    """

    def __init__(self, document: Value, problems: ProblemCounter, file: str = "") -> None:
        self.document = document
        self._problems = problems
        self._file = file

    def number(self, meaning: Meaning, *path: str) -> float | None:
        """Return a number in base units."""
        return number_of(at(self.document, *path), meaning, self._problems, None, self._pointer(path))

    def whole(self, *path: str) -> int | None:
        """Return a whole number."""
        value = at(self.document, *path)
        number = number_in(value)
        if number is not None and _is_whole(number):
            return int(number)
        if value is not None:
            self._problems.add("wrong_type", None, f"{self._pointer(path)}: not a whole number")
        return None

    def count(self, *path: str) -> int | None:
        """Return a whole number of 0 or more."""
        number = self.whole(*path)
        if number is not None and number < 0:
            self._problems.add("value_out_of_range", None, f"{self._pointer(path)}: not a count", str(at(self.document, *path)))
            return None
        return number

    def seconds(self, *path: str) -> float | None:
        """Return the duration at ``path`` in seconds; None if it is no finite number."""
        number = self.number(Meaning("metric", "elapsed_time_s"), *path)
        if number is not None and not math.isfinite(number):
            detail = f"{self._pointer(path)}: not a duration"
            self._problems.add("value_out_of_range", None, detail, str(at(self.document, *path)))
            return None
        return number

    def words(self, *path: str) -> str | None:
        """Return a string without outer blanks; None if it is empty."""
        return words(at(self.document, *path))

    def _pointer(self, path: Sequence[str]) -> str:
        return f"{self._file}/{'/'.join(path)}"


def words(value: Value) -> str | None:
    """Return a string without outer blanks; None if it is empty or not a string."""
    return value.strip() or None if isinstance(value, str) and not isinstance(value, Number) else None


def _put(values: RecordValues, meaning: Meaning, number: float, problems: ProblemCounter, line: int | None, place: str) -> None:
    if meaning.kind == "metric":
        values.metrics.setdefault(meaning.name, number)
        values.meanings.setdefault(meaning.name, (meaning.scope, meaning.definition))
    elif meaning.kind == "fact":
        values.facts.setdefault(meaning.name, number)
    elif _is_whole(number):
        values.step = int(number)
    else:
        problems.add("wrong_type", line, f"{place}: not a whole number")


def _is_whole(number: float) -> bool:
    return math.isfinite(number) and number == int(number) and abs(number) < MAX_WHOLE


def _possible(meaning: Meaning, number: float) -> bool:
    """Return whether a metric or fact may have this value; a metric may be non-finite, but an amount not negative."""
    if meaning.kind == "fact":
        return 0 <= number < math.inf
    if meaning.kind != "metric" or not math.isfinite(number):
        return True
    name, known = meaning.name, load_registry().by_name[meaning.name]
    amount = known.klass in ("rate", "counter") or known.unit == "byte"
    return not (amount and number < 0) and not (name in _SHARES and not 0 <= number <= 1)
