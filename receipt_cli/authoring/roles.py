"""Assign roles to the numbers of a record: the learned ones, or those in a person's answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.definitions.reading import similar
from receipt_cli.definitions.units import SPECIAL_UNITS, UNITS, known_units
from receipt_cli.detect.generic import load_generic
from receipt_cli.errors import UsageError
from receipt_cli.learn.counting import ABSENT, EPOCHS, GLOBAL, PER_EPOCH
from receipt_cli.learn.emit import GROUPED_TEXT, NUMBER_TEXT, UNIT, Cell, Induced, Spec, counter_cell, field_name, rule
from receipt_cli.learn.names import SCORE
from receipt_cli.learn.reading import Reading
from receipt_cli.learn.tokens import FRACTION, NUMBER
from receipt_cli.redaction.text import safe_text

COUNTING = ("step", "epoch", "epoch_step")
PLAIN = ("other", "skip")
"""Roles outside the registry: ``other`` keeps a number under its printed name, ``skip`` leaves it out of the rule."""
TRAIN, EPOCH, EVAL = RECORDS = "train", "epoch", "eval"
"""Kinds of records: a training step, the only record of an epoch, an evaluation."""
LIKELY = ("loss", "time")
"""Roles that are suggested first."""
_ANSWER = re.compile(r"(?P<name>[^=]+)=(?P<role>[^=:]+)(?::(?P<unit>[^=:]+))?")
SHOWN = 3


class Answer(NamedTuple):
    """A person's answer about a number: its printed name, its role, and its printed unit."""

    name: str
    role: str
    unit: str | None = None


class Question(NamedTuple):
    """An open question of a draft: ``text`` for a person, and possible values of ``--answer``, the likeliest first."""

    text: str
    answers: tuple[str, ...]


@dataclass
class Assignment:
    """How the numbers of one kind of records are read, by their columns, and what is open about them."""

    reading: Reading
    event: str = "step"
    cells: dict[int, Cell] = field(default_factory=dict)
    epochs_from: int = 1
    questions: list[Question] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = names_of(self.reading)

    @property
    def fields(self) -> dict[str, Spec]:
        """The declaration of each field."""
        return {name: spec for cell in self.cells.values() for name, spec in cell.fields.items()}

    def count(self, at: int, name: str, total: str | None = None, kind: str = "integer") -> None:
        """Read the column ``at`` as the counter ``name``, and the total that it prints as ``total``."""
        cell = counter_cell(self.reading.shape.columns[at], name, total)
        self.cells[at] = Cell(cell.pattern, {**cell.fields, name: {"type": kind}})

    def keep(self, at: int, name: str, unit: str | None = None, metric: str | None = None) -> None:
        """Read the column ``at`` as the field ``name``, which is of ``metric`` if that is another, and printed in ``unit``."""
        told = {"type": "number", "metric": metric, "printed_in": unit}
        spec: Spec = {key: value for key, value in told.items() if value is not None}
        number = GROUPED_TEXT if self.reading.shape.columns[at].grouped else NUMBER_TEXT
        scale = "[KkMGBT]?+" if unit == "si" else ""
        self.cells[at] = Cell(f"(?P<{name}>{number}{scale}){UNIT}", {name: spec})

    def ask(self, at: int, text: str, *roles: str, values: bool = True) -> None:
        """Ask about the number of the column ``at``, which may have one of ``roles``; show its first ``values``."""
        shown = f" ({self.values(at)})" if values else ""
        answers = tuple(f"{_word(self.names[at])}={role}" for role in roles)
        self.questions.append(Question(f"{self.names[at]!r}{shown} {text}", answers))

    def values(self, at: int) -> str:
        """Return the first values of the column ``at``, as text."""
        values = self.reading.shape.columns[at].numbers[:SHOWN]
        return ", ".join(f"{value:g}" for value in values if value is not None) or "no number"


def read_answers(options: Sequence[str]) -> list[Answer]:
    """Return the answers in the values of ``--answer``: ``NAME=ROLE`` or ``NAME=ROLE:UNIT``, separated by commas.

    Raises ``UsageError`` for a malformed answer or an unknown unit.
    """
    answers: list[Answer] = []
    for text in (part for option in options for part in option.split(",") if part.strip()):
        found = _ANSWER.fullmatch(text.strip())
        if found is None:
            raise UsageError(f"--answer needs NAME=ROLE, not {text!r}", try_="--answer step=epoch,cost=time:ms")
        unit = found["unit"]
        if unit is not None and unit not in UNITS and unit not in SPECIAL_UNITS:
            raise UsageError(f"--answer {text!r} has the unknown unit {unit!r}", why=f"units are {', '.join(known_units())}")
        answers.append(Answer(found["name"].strip(), found["role"].strip(), unit))
    return answers


def metric_of(role: str) -> str | None:
    """Return the registry metric for the name or short word ``role``, or None."""
    registry = load_registry()
    lowered = role.lower()
    return load_generic().answers.get(lowered) or (role if role in registry.by_name else registry.by_alias.get(lowered))


def names_of(reading: Reading) -> list[str]:
    """Return the printed name of each number of a record; ``#2`` for the second number if it has no unique name."""
    told = [(name.text or name.behind).strip() for name in reading.names]
    return [text if text and told.count(text) == 1 else f"#{at}" for at, text in enumerate(told, start=1)]


def spellings(names: Sequence[str]) -> dict[str, str]:
    """Return possible spelling in an answer → name: lower case, ``_`` for blanks, number such as ``#2``, or last word."""
    tails = [name.lower().split()[-1] for name in names]
    short = {tail: name for tail, name in zip(tails, names, strict=True) if tails.count(tail) == 1}
    places = {f"#{at}": name for at, name in enumerate(names, start=1)}
    whole = {text: name for name in names for text in (name.lower().replace(" ", "_"), name.lower())}
    return {**places, **short, **whole}


def settle(answers: Sequence[Answer], names: Sequence[str]) -> tuple[dict[str, Answer], str | None]:
    """Return name → answer, and the kind of the record if an answer gives it.

    ``step=epoch``: the number called ``step`` is the epoch; if there is no such number, the number called ``epoch`` is the
    step. Raises ``UsageError`` for unknown names and roles.
    """
    by_word = spellings(names)
    found: dict[str, Answer] = {}
    record: str | None = None
    for answer in answers:
        name, role = by_word.get(answer.name.lower()), answer.role
        if answer.name == "record" and name is None:
            if role not in RECORDS:
                raise UsageError(f"--answer record={role} is unknown", why=f"must be one of {', '.join(RECORDS)}")
            record = role
            continue
        if name is None and role.lower() in by_word and (answer.name in COUNTING or metric_of(answer.name) is not None):
            name, role = by_word[role.lower()], answer.name
        if name is None:
            raise UsageError(f"no number of the log is called {answer.name!r}", why=_near(answer.name, names))
        if role not in (*COUNTING, *PLAIN) and metric_of(role) is None:
            known = [*COUNTING, *PLAIN, *load_generic().answers, *load_registry().by_name]
            raise UsageError(f"--answer {name}={role}: unknown role {role!r}", why=_near(role, known), try_=_ROLES)
        found[name] = Answer(name, role, answer.unit)
    return found, record


_ROLES = "step, epoch, loss, time:ms, lr, other, skip, or a metric of: receipt schema show metrics"


def _near(word: str, known: Sequence[str]) -> str:
    shown = [safe_text(name, 40) for name in list(known)[:12]]
    return similar(word, known, f"there are {', '.join(shown)}" if shown else "no line of the log has a number")


def assign(reading: Reading, answers: Mapping[str, Answer], record: str | None = None) -> Assignment:
    """Return the fields of the records of ``reading``: roles by the answers, else its own; doubts become questions."""
    made = Assignment(reading, "eval" if record == "eval" or (reading.evaluation and record is None) else "step")
    columns = reading.shape.columns
    told = {at: answers[name] for at, name in enumerate(made.names) if name in answers}
    counted = _count(made, told, record)
    for at, column in enumerate(columns):
        answer = told.get(at)
        if at in counted or (answer is not None and answer.role in (*COUNTING, "skip")) or column.kind != NUMBER:
            continue
        if answer is not None:
            _add_answered(made, at, answer)
        elif at in reading.roles:
            _add_role(made, at)
    if made.fields.keys() <= STRUCTURE:
        _keep_others(made, told)
    if reading.evaluation and record is None:
        text = "it contains an evaluation word; is each such record a training step?"
        made.questions.append(Question(text, ("record=train",)))
    unread = [at for at, column in enumerate(columns) if at not in made.cells and at not in told and column.kind == NUMBER]
    for at in unread[:SHOWN]:
        if reading.names[at].text:
            made.ask(at, "is not read; what is it?", "other", *LIKELY)
    return made


STRUCTURE = frozenset({"step", "planned_steps", "epoch", "epoch_number", "epoch_step", "epoch_steps", "epochs_planned"})


def _word(name: str) -> str:
    return name.replace(" ", "_")


NO_EPOCH = Question("no number of the record is the epoch: write a rule with event: progress for the line that announces it", ())


def _count(made: Assignment, told: Mapping[int, Answer], record: str | None) -> set[int]:
    """Add the fields of the counters, and return their columns."""
    counter, columns = made.reading.counter, made.reading.shape.columns
    steps, inside, epochs = (
        [at for at, answer in told.items() if answer.role == role] for role in ("step", "epoch_step", "epoch")
    )
    per_epoch, each = bool(inside) or counter.mode == PER_EPOCH, record == "epoch" or counter.mode == EPOCHS
    step = next(iter([*steps, *inside]), counter.step if counter.step not in told else None)
    epoch = next(iter(epochs), counter.epoch if counter.epoch not in told else None)
    if made.event == "eval":
        if step is not None and counter.mode == GLOBAL:
            made.count(step, "step")
        return {at for at in (step, epoch) if at is not None}
    if steps:
        made.count(steps[0], "step", "planned_steps")
        if epochs:
            made.count(epochs[0], "epoch", kind="number")
    elif epoch is not None and ((per_epoch and step is not None) or ((each or step is None) and columns[epoch].integer)):
        if per_epoch and step is not None:
            made.count(step, "epoch_step", "epoch_steps")
        elif not each and not epochs:
            made.ask(epoch, "is read as the epoch, and each record as a whole epoch", "step", values=False)
        made.count(epoch, "epoch_number", "epochs_planned")
        made.epochs_from = min(int(columns[epoch].lowest), 1)
    elif inside:
        made.count(inside[0], "epoch_step", "epoch_steps")
        made.questions.append(NO_EPOCH)
    elif step is not None and counter.mode == GLOBAL:
        made.count(step, "step", "planned_steps")
        if epoch is not None:
            made.count(epoch, "epoch", kind="number")
        if counter.tentative:
            made.ask(step, "is read as the step, but too few records prove it", "skip")
    elif (found := _guess_step(made.reading, told)) is not None:
        made.count(found, "step", "planned_steps")
        made.ask(found, "rises; is it the step?", "step", "skip")
    else:
        why = "its number restarts, and its epoch is unknown" if counter.mode != ABSENT else "no number counts up"
        text = f"each record is counted as a step without a number: {why}"
        whole = [name for name, column in zip(made.names, columns, strict=True) if column.integer and column.count]
        made.questions.append(Question(text, tuple(f"{_word(name)}=step" for name in whole[:SHOWN])))
    return set(made.cells)


def _guess_step(reading: Reading, told: Mapping[int, Answer]) -> int | None:
    """Return a column of whole numbers that rises in nearly every record and never falls, or None."""
    for at, column in enumerate(reading.shape.columns):
        plain = column.kind in (NUMBER, FRACTION) and column.integer and at not in told and at not in reading.roles
        if plain and column.count > 1 and not column.drops and column.rises * 10 >= 9 * (column.count - 1):
            return at
    return None


ASSUMED = {"s": ("s", "ms", "min"), "byte": ("B", "MiB", "GiB"), "flop/s": ("FLOPS", "TFLOPS", "GFLOPS")}
"""Unit of a metric → the unit of a number that prints none, and others that it may have."""


def _add_answered(made: Assignment, at: int, answer: Answer) -> None:
    metric = None if answer.role == "other" else metric_of(answer.role)
    own = metric is not None and metric not in made.fields
    unit = answer.unit or _unit_of(made.reading, at)
    assumed = ASSUMED.get(load_registry().by_name[metric].unit) if metric is not None and unit is None else None
    if assumed is not None:
        unit, *scales = assumed
        text = f"no unit is printed beside {made.names[at]!r}: assumed {unit}"
        made.questions.append(Question(text, tuple(f"{_word(made.names[at])}={answer.role}:{scale}" for scale in scales)))
    name = metric if metric is not None and own else field_name(made.names[at], made.fields)
    made.keep(at, name, unit, None if own else metric or "other")


def _unit_of(reading: Reading, at: int) -> str | None:
    """Return the grammar's unit that is printed right after the numbers of a column, or None."""
    units = {token.unit for token in reading.shape.columns[at].values} - {""}
    behind = re.match(r"[ \t]+([A-Za-z]+)(?![\w/=:])", reading.shape.literals[at + 1].decode("utf-8", "replace"))
    units = units or ({behind[1]} if behind is not None else set())
    unit = next(iter(units)) if len(units) == 1 else None
    return load_generic().printed_units.get(unit or "", unit if unit in UNITS and len(unit or "") > 1 else None)


def _add_role(made: Assignment, at: int) -> None:
    role = made.reading.roles[at]
    name = role.metric if role.metric is not None else field_name(made.names[at], made.fields)
    if name in made.fields:
        return
    made.keep(at, name, role.unit, None if role.metric is not None else "other")
    if role.metric is None and role.kind != SCORE:
        made.ask(at, "is kept under its own name; is it a metric of the registry?", *LIKELY, "skip", values=False)


def _keep_others(made: Assignment, told: Mapping[int, Answer]) -> None:
    """Keep every unexplained number under its printed name, because a training record needs at least one value."""
    for at, column in enumerate(made.reading.shape.columns):
        if at in made.cells or column.kind != NUMBER or (at in told and told[at].role == "skip"):
            continue
        name = made.names[at]
        if made.event == "eval" and name.lower().split()[-1:] == ["loss"] and "val_loss" not in made.fields:
            made.keep(at, "val_loss")
            continue
        made.keep(at, field_name(name.replace("#", "number "), made.fields), _unit_of(made.reading, at), "other")
        made.ask(at, "is kept under its own name; what is it?", *LIKELY, "skip")


MOST_GUESSES = 6
"""Most kinds of records that are tried."""


class Guess(NamedTuple):
    """The rule of one kind of records, and its open questions."""

    rule: Induced
    questions: tuple[Question, ...]


def guesses(readings: Sequence[Reading]) -> Iterator[Guess]:
    """Yield guesses which numbers are step and loss: one for each of the readings that are most like training records."""
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
    main, members = assigned[0], [(each.reading.shape, each.cells) for each in assigned if each.cells]
    if not main.fields:
        return None
    fields = {name: spec for each in assigned for name, spec in each.fields.items()}
    bare = main.event == "step" and not any("metric" in spec or name not in STRUCTURE for name, spec in fields.items())
    event = "progress" if bare else main.event
    name = "evaluation" if event == "eval" else "progress" if event == "progress" else "train_step"
    keys: dict[str, Any] = {"epochs_from": 0} if main.epochs_from == 0 and "epoch_number" in fields else {}
    made = rule(name, event, members, blank=True, **keys)
    if made is None:
        return None
    questions = tuple(dict.fromkeys(question for each in assigned for question in each.questions))
    return Guess(made, questions)
