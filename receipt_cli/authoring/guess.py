"""Guess rules for records that are not proven to be training records, from the likeliest roles or a person's answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from receipt_cli.authoring.forms import Body, Marked, forms_of
from receipt_cli.authoring.lint import MIN_LITERAL
from receipt_cli.authoring.roles import Answer, Assignment, Question, assign, names_of, settle, spellings
from receipt_cli.learn.readings import Reading
from receipt_cli.learn.tokens import split

MOST_GUESSES = 6
"""Most kinds of records that are tried."""
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?i:nan|inf(?:inity)?)")


@dataclass(frozen=True)
class Guess:
    """One kind of records: possible forms of its rule, its samples, and its open questions."""

    rule: str
    bodies: tuple[Body, ...]
    samples: tuple[bytes, ...]
    count: int
    questions: tuple[Question, ...]


def guesses(readings: Sequence[Reading]) -> Iterator[Guess]:
    """Yield guesses for the first ``readings`` of a survey, those most like training records first."""
    for reading in readings[:MOST_GUESSES]:
        guess = _guess([assign(reading, {})])
        if guess is not None:
            yield guess


def answered(readings: Sequence[Reading], known: Sequence[Sequence[Reading]], answers: Sequence[Answer]) -> Iterator[Guess]:
    """Yield guesses for the records with the most numbers in ``answers``; ``known`` groups come first.

    Raises ``UsageError`` for answers that fit no record.
    """
    groups = [*known, *([reading] for reading in readings)]
    fitting = sorted(groups, key=lambda group: -_fit(group[0], answers))
    if not fitting:
        settle(answers, ())  # raises unless the answers are only about the record
        return
    told, record = settle(answers, names_of(fitting[0][0]))
    for group in fitting[:MOST_GUESSES]:
        if _fit(group[0], answers) < _fit(fitting[0][0], answers):
            return
        guess = _guess([assign(reading, told, record) for reading in group])
        if guess is not None:
            yield guess


def _fit(reading: Reading, answers: Sequence[Answer]) -> int:
    """Return the number of answers that are about a number of the records."""
    names = spellings(names_of(reading))
    return sum(answer.name.lower() in names or answer.role.lower() in names for answer in answers)


def _guess(assigned: Sequence[Assignment]) -> Guess | None:
    """Return the guess for one group of records, whose first assignment is the most frequent; None without fields."""
    main = assigned[0]
    samples: list[bytes] = []
    marked: list[Marked] = []
    for each in assigned:
        for core in each.reading.shape.samples:
            found = _mark(core, each)
            if found is not None and found.last >= 0:
                marked.append(found)
                samples.append(core.strip())
    if not marked or not main.fields:
        return None
    fields = {name: spec for each in assigned for name, spec in each.fields.items()}
    bare = main.event == "step" and not any("metric" in spec or name not in _COUNTS for name, spec in fields.items())
    event = "progress" if bare else main.event
    body: Body = {"event": event}
    if main.epochs_from == 0 and "epoch_number" in fields:
        body["epochs_from"] = 0
    gate = _gate(marked)
    body["literal"] = gate or " "
    body["pattern"] = ""
    body["fields"] = fields
    values = {name: pattern for each in assigned for name, pattern in each.values.items()}
    first = marked[0].literals[0].lstrip()
    lead = r"(?<![\w/.-])" if first[:1].isalnum() else r"^[ \t]*+"
    bodies = list(forms_of(body, marked, values, lead))
    if gate is None:  # without a literal word, match whole lines
        lines = [made for made in bodies if "pattern" in made]
        bodies = [{**made, "pattern": rf"^\s*+{made['pattern'].removeprefix(lead)}[^\n]*+$"} for made in lines]
        shared = [char for char in " ,\t.:" if all(char.encode() in sample for sample in samples)]
        bodies = [{**made, "literal": shared[0]} for made in bodies] if shared else []
    rule = "evaluation" if event == "eval" else "progress" if event == "progress" else "train_step"
    questions = tuple(dict.fromkeys(question for each in assigned for question in each.questions))
    return Guess(rule, tuple(bodies), tuple(samples), sum(each.reading.shape.count for each in assigned), questions)


_COUNTS = frozenset({"step", "planned_steps", "epoch_number", "epoch_step", "epoch_steps", "epochs_planned"})


def _mark(core: bytes, assigned: Assignment) -> Marked | None:
    """Return a record with its fields marked; None if its numbers differ from its shape's."""
    parts = [part.decode("latin-1") for part in split(core)]
    tokens = parts[1::2]
    if len(tokens) != len(assigned.reading.shape.columns):
        return None
    fields: list[tuple[tuple[int, int, str], ...]] = [()] * len(tokens)
    for at, (name, total) in assigned.places.items():
        numbers = list(_NUMBER.finditer(tokens[at]))
        wanted = [name] if total is None else [name, total]
        if len(numbers) < len(wanted):
            return None
        end = len(tokens[at].rstrip()) if assigned.fields[name].get("printed_in") == "si" else numbers[0].end()
        spans = [(numbers[0].start(), end, name)]
        spans += [(numbers[1].start(), numbers[1].end(), total)] if total is not None else []
        fields[at] = tuple(spans)
    return Marked(tuple(parts[::2]), tuple(tokens), tuple(fields))


def _gate(marked: Sequence[Marked]) -> str | None:
    """Return the best literal of all records up to the last field; None without one of ``MIN_LITERAL`` characters."""
    texts = [" ".join(each.literals[: each.last + 1]) for each in marked]
    words = {piece.strip() for left in marked[0].literals[: marked[0].last + 1] for piece in left.split("  ")}
    ascii_words = [word for word in words if len(word) >= MIN_LITERAL and all(word in text for text in texts)]
    best = max(ascii_words, key=lambda word: (any(char.isalpha() for char in word), -abs(len(word) - 8)), default=None)
    return best.encode("latin-1").decode("utf-8", "replace") if best is not None else None
