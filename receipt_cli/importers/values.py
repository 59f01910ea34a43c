"""Values of a foreign document → numbers in base units and texts; what is in doubt is left out and counted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.definitions.units import read_number
from receipt_cli.importers.field_names import Meaning, Names
from receipt_cli.importers.json_text import Number, Value
from receipt_cli.problems import MAX_FIRST, Problem
from receipt_cli.redaction.text import safe_text

MAX_WHOLE = 2**53
MAX_NAME = 128
"""Characters of a name that the registry does not know."""
_MAX_VALUE = 64
"""Characters of a value that a problem quotes."""
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_SHARES = ("train_accuracy", "val_accuracy", "test_accuracy", "memory_used_ratio")
"""Metrics that are 0 to 1: beyond that the document means percent, or something else."""


@dataclass(slots=True)
class Doubts:
    """The problems of a document: counted, the first of them told."""

    count: int = 0
    first: list[Problem] = field(default_factory=list)

    def add(self, kind: str, line: int | None, detail: str, excerpt: str = "") -> None:
        """Count a problem; ``line`` is of the document, from 1, where it has lines that mean anything."""
        self.count += 1
        if len(self.first) < MAX_FIRST:
            self.first.append(Problem(kind, line, safe_text(detail) or kind, safe_text(excerpt, _MAX_VALUE)))


@dataclass(slots=True)
class Taken:
    """What one record of a document says: see ``timeline.Event``."""

    step: int | None = None
    planned: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    others: dict[str, float] = field(default_factory=dict)
    facts: dict[str, float | str] = field(default_factory=dict)
    meanings: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)


def take(record: Mapping[str, Value], names: Names, doubts: Doubts, line: int | None, where: str) -> Taken:
    """Return what ``record`` says; ``where`` is its JSON pointer, for problems. Of two names of one metric the first counts."""
    taken = Taken()
    for spelling, value in record.items():
        meaning = names.meaning(spelling)
        if value is None or (meaning is not None and meaning.kind == "ignored"):
            continue
        place = f"{where}/{safe_text(spelling, MAX_NAME)}"
        if meaning is None or meaning.kind == "other":
            name = spelling if meaning is None else meaning.name
            number = read_number(value) if isinstance(value, Number) else None
            if number is not None and 0 < len(name) <= MAX_NAME:
                taken.others.setdefault(name, number)
            continue
        if meaning.kind == "doubtful":
            doubts.add("ambiguous_unit", line, f"{place}: nothing says which unit or which metric this is", str(value))
            continue
        if meaning.kind == "fact" and isinstance(value, str) and not isinstance(value, Number):
            taken.facts.setdefault(meaning.name, value)
            continue
        number = number_of(value, meaning, doubts, line, place)
        if number is not None:
            _put(taken, meaning, number, doubts, line, place)
    return taken


def number_of(value: Value, meaning: Meaning, doubts: Doubts, line: int | None, place: str) -> float | None:
    """Return a printed number in base units; None, and a problem, for what is no number or cannot be this metric."""
    if value is None:
        return None
    if isinstance(value, str) and value in _NOT_FINITE:
        value = Number(value)  # wandb puts it between quotes, to stay within JSON
    if not isinstance(value, Number):
        doubts.add("wrong_type", line, f"{place}: is no number")
        return None
    number = read_number(value, meaning.unit)
    if number is None:
        doubts.add("unreadable_value", line, f"{place}: is no number that can be read", value)
    elif not _possible(meaning, number):
        doubts.add("value_out_of_range", line, f"{place}: cannot be {meaning.name}", value)
        number = None
    return number


def whole(value: Value, doubts: Doubts, line: int | None, place: str) -> int | None:
    """Return a whole number; None, and a problem, for anything else but null."""
    if value is None:
        return None
    number = read_number(value) if isinstance(value, Number) else None
    if number is None or not math.isfinite(number) or number != int(number) or abs(number) >= MAX_WHOLE:
        doubts.add("wrong_type", line, f"{place}: is no whole number")
        return None
    return int(number)


def count(value: Value, doubts: Doubts, line: int | None, place: str) -> int | None:
    """Return a whole number of 0 or more, as ``whole`` does."""
    number = whole(value, doubts, line, place)
    if number is not None and number < 0:
        doubts.add("value_out_of_range", line, f"{place}: is no count", str(value))
        return None
    return number


def seconds(value: Value, doubts: Doubts, line: int | None, place: str) -> float | None:
    """Return a duration in seconds; None, and a problem, for what is none."""
    number = number_of(value, Meaning("metric", "elapsed_time_s"), doubts, line, place)
    if number is not None and not math.isfinite(number):
        doubts.add("value_out_of_range", line, f"{place}: is no duration", str(value))
        return None
    return number


def words(value: Value) -> str | None:
    """Return a text without outer blanks, or None for anything else and for an empty one."""
    return value.strip() or None if isinstance(value, str) and not isinstance(value, Number) else None


def _put(taken: Taken, meaning: Meaning, number: float, doubts: Doubts, line: int | None, place: str) -> None:
    if meaning.kind == "metric":
        taken.metrics.setdefault(meaning.name, number)
        taken.meanings.setdefault(meaning.name, (meaning.scope, meaning.definition))
    elif meaning.kind == "fact":
        taken.facts.setdefault(meaning.name, number)
    elif not math.isfinite(number) or number != int(number) or abs(number) >= MAX_WHOLE:
        doubts.add("wrong_type", line, f"{place}: is no whole number")
    elif meaning.kind == "step":
        taken.step = int(number)
    else:
        taken.planned = int(number) if number > 0 else None


def _possible(meaning: Meaning, number: float) -> bool:
    """True unless a number can be no value of a metric (it may be not finite, but no negative amount) or no fact."""
    if meaning.kind == "fact":
        return 0 <= number < math.inf
    if meaning.kind != "metric" or not math.isfinite(number):
        return True
    name, known = meaning.name, load_registry().by_name[meaning.name]
    amount = known.klass in ("rate", "counter") or known.unit == "byte"
    return not (amount and number < 0) and not (name in _SHARES and not 0 <= number <= 1)
