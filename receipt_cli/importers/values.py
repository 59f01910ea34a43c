"""Read the values of a foreign document as numbers in base units and strings; ambiguous values become problems."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.definitions.units import MAX_TEXT, read_number
from receipt_cli.importers.field_names import Meaning, Names
from receipt_cli.importers.json_text import Number, Value, at
from receipt_cli.problems import MAX_FIRST, Problem
from receipt_cli.records.split import spell_nonfinite
from receipt_cli.redaction.text import safe_text

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


@dataclass(slots=True)
class RecordValues:
    """The values of one record of a document, in base units, as in an ``events.Event``."""

    step: int | None = None
    planned: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    others: dict[str, float] = field(default_factory=dict)
    facts: dict[str, float | str] = field(default_factory=dict)
    meanings: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)


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
        number = read_number(value) if isinstance(value, Number) else None
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
        """Return a finite duration in seconds."""
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
