"""A rule that was induced, and whether it reads the records that it was made from as they were understood."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from receipt_cli.grammar.model import compile_pattern
from receipt_cli.learn.counters import Group
from receipt_cli.learn.counting import EPOCHS, GLOBAL, passes_of
from receipt_cli.learn.names import PART
from receipt_cli.learn.readings import Reading
from receipt_cli.learn.tokens import read_token, split
from receipt_cli.learn.vocabulary import Vocabulary

ANCHOR = "^"
"""Stands for a record that a rule must not read, and that no word tells from those that it was made from."""


@dataclass(slots=True)
class Induced:
    """A rule as the grammar format has it, without samples, and the records it was made from."""

    name: str
    body: dict[str, Any]
    pattern: str
    group: Group | None
    samples: list[bytes] = field(default_factory=list)
    count: int = 0
    head: str = ""
    """The pattern of a record up to its last counter, where that precedes its figures."""

    @property
    def records(self) -> int:
        """Records that the rule was made from."""
        return self.group.count if self.group is not None else self.count

    @property
    def fields(self) -> Mapping[str, Any]:
        """The declared fields."""
        found: Mapping[str, Any] = self.body["fields"]
        return found

    def allows(self, found: Any) -> bool:
        """False for a match in which a counter is below the least value that it may have."""
        least = {name: spec["at_least"] for name, spec in self.fields.items() if "at_least" in spec}
        return all(found[name] is None or (read_token(found[name]).value or 0) >= value for name, value in least.items())


def before_training(group: Group) -> bool:
    """True where step 0 of a counter by tens has only a learning rate: a setting from before training."""
    main = group.main
    step = main.counter.step
    if step is None or {role.metric for role in main.roles.values() if role.metric is not None} != {"learning_rate"}:
        return False
    if any(role.kind == PART for role in main.roles.values()):
        return False
    firsts = [r.shape.columns[r.counter.step].first for r in group.readings if r.counter.step is not None]
    return 0 in firsts and (main.shape.columns[step].stride or 1) > 1


def wrong_fields(group: Group, rule: Induced, compiled: Any) -> set[str] | None:
    """Return the fields that the rule reads differently from the shapes of its records; None where it misses a record."""
    wrong: set[str] = set()
    seen, empty = Counter[str](), Counter[str]()
    for reading in group.readings:
        shape, counter = reading.shape, reading.counter
        places = {role.metric: at for at, role in reading.roles.items() if role.metric is not None}
        if counter.step is not None:
            places["step" if counter.mode == GLOBAL else "epoch_step"] = counter.step
        for core in shape.samples:
            parts = split(core)
            if len(parts) != 2 * len(shape.columns) + 1:
                continue
            if counter.heading is not None and counter.step is not None and counter.mode == EPOCHS:
                token, total = read_token(parts[2 * counter.step + 1]), passes_of(shape.columns[counter.step])
                if token.value != token.total or total not in (None, token.total):
                    continue  # only full bars are read, of passes in turn those of the first
            counted = read_token(parts[2 * counter.step + 1]) if counter.step is not None else None
            if counted is not None and reading.lags and counted.value == counted.total:
                continue  # what the full bar shows was shown before
            if counted is not None and not counted.value and ((reading.bar and not reading.lags) or before_training(group)):
                continue  # nothing is done yet
            found = compiled.search(core)
            if found is None or not rule.allows(found):
                if reading is group.main:
                    return None
                continue
            for name, text in found.groupdict().items():
                if name not in places or name not in rule.fields:
                    continue
                seen[name] += 1
                if text is None:
                    empty[name] += 1
                    continue
                want, have = read_token(parts[2 * places[name] + 1]), read_token(text)
                if have.value != want.value and not (have.value != have.value and want.value != want.value):
                    if name in ("step", "epoch_step"):
                        return None
                    wrong.add(name)
    return wrong | {name for name, count in empty.items() if 2 * count > seen[name]}


def twin_words(reading: Reading, rule: Induced, compiled: Any, vocabulary: Vocabulary) -> set[str]:
    """Return the words of evaluation in a record that the rule reads though it is none of training, or what is before it."""
    words: set[str] = set()
    for core in reading.shape.samples[:4]:
        found = compiled.search(core)
        if found is not None and rule.allows(found):
            spelled = re.findall(rb"[A-Za-z]+", core[found.start() :].lower())
            told = {w.decode() for w in spelled} & vocabulary.evaluation
            words |= told or {ANCHOR}
    return words


def words_between(reading: Reading, group: Group, rule: Induced, compiled: Any, vocabulary: Vocabulary) -> set[str]:
    """Return the words of evaluation between the counter and the first figure of a record that the rule reads wrongly.

    ``epoch: 0 validation, loss: 2.1`` begins as ``epoch: 0 end, loss: 2.2`` does; a word that the group has counts for nothing.
    """
    own = {word for r in group.readings for text in r.shape.literals for word in _WORDS.findall(text.lower())}
    words: set[str] = set()
    for core in reading.shape.samples[:4]:
        found = compiled.search(core)
        if found is not None and rule.allows(found):
            places = [found.start(name) for name in found.groupdict() if name in rule.fields and name not in STRUCTURAL]
            end = min((place for place in places if place >= 0), default=found.start())
            spelled = {word for word in _WORDS.findall(core[found.start() : end].lower()) if word not in own}
            words |= {word.decode() for word in spelled} & vocabulary.evaluation
    return words


STRUCTURAL = {"step", "planned_steps", "epoch_number", "epoch_step", "epoch_steps", "epochs_planned"}
"""Fields of a step record that say where it is."""
_WORDS = re.compile(rb"[a-z]+")
_DECIMALS = re.compile(rb"(?<=\d)\.\d{1,2}(?=/\d)")


def reads(reading: Reading, rule: Induced, compiled: Any) -> bool:
    """Return whether the rule reads a record of ``reading``."""
    return _reads_any(rule, compiled, reading.shape.samples[:4])


def _reads_any(rule: Induced, compiled: Any, cores: Iterable[bytes]) -> bool:
    return any((found := compiled.search(core)) is not None and rule.allows(found) for core in cores)


def reads_whole(reading: Reading, rule: Induced, compiled: Any) -> bool:
    """Return whether the rule reads a record of ``reading`` that counts as the later ones do: ``100/171``, not ``3.00/171``."""
    return _reads_any(rule, compiled, (_DECIMALS.sub(b"", core) for core in reading.shape.samples))


def reads_column(main: Reading, at: int, pattern: str, field: str) -> bool:
    """True where a pattern reads the column ``at`` of each kept record, and no other that is called so."""
    compiled = compile_pattern(pattern)
    for core in main.shape.samples:
        parts = split(core)
        if len(parts) == 2 * len(main.shape.columns) + 1:
            found = compiled.search(core)
            if found is None or found.span(field)[0] < 0 or found[field].strip() != parts[2 * at + 1].strip().rstrip(b"% "):
                return False
    return True


def samples_of(group: Group, rule: Induced, compiled: Any) -> list[bytes]:
    """Return up to four records, of different shapes first, each cut to the match of the rule."""
    picked: list[bytes] = []
    ordered = sorted(group.readings, key=lambda r: (-r.shape.count, r.shape.first))
    for turn in (0, -1):
        for reading in ordered:
            core = reading.shape.samples[turn]
            found = compiled.search(core)
            text = found.group().rstrip() if found and rule.allows(found) else b""
            if text and text not in picked and len(text) <= 1500:
                picked.append(text)
    return picked[:4]


_ANCHORS = re.compile(r"(?:\^|\(\?:\^\|\(\?<=\\\]\)\))\[ \\t\]\{0,\d+\}\+")


def read_elsewhere(rule: Induced, others: Iterable[Reading]) -> list[Reading]:
    """Return the readings of ``others`` that the rule would read if other words might precede its records.

    Not of records that count nothing: they are another kind of line of the same program.
    """
    loose = compile_pattern(_ANCHORS.sub("", rule.pattern))
    moving = (r for r in others if r.shape.count <= 2 or any(c.rises or c.drops for c in r.shape.columns if c.integer))
    told = [r for r in moving if not r.evaluation]
    return [r for r in told if not reads(r, rule, compile_pattern(rule.pattern)) and reads(r, rule, loose)]
