"""Learn a grammar, as plain data, from the blocks of a log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

from receipt_cli.learn.between import (
    Training,
    evaluation_metric,
    induce_companions,
    induce_evaluations,
    induce_lines,
    unread_evaluations,
)
from receipt_cli.learn.counting import ABSENT, GLOBAL
from receipt_cli.learn.emit import Foreign, Induced, foreign, induce, siblings
from receipt_cli.learn.evidence import BAR, LINES, Decision, Log, decide, explain
from receipt_cli.learn.notices import Notices, banners, induce_banner, induce_saves, saves
from receipt_cli.learn.overview import find_lacks
from receipt_cli.learn.progress import heading_rule, induce_herald, induce_progress, induce_steps
from receipt_cli.learn.reading import Reading
from receipt_cli.learn.readings import without
from receipt_cli.learn.series import Group, read_shapes
from receipt_cli.learn.several import Several
from receipt_cli.learn.shapes import EVERY, Column, Miner
from receipt_cli.learn.tables import Table
from receipt_cli.learn.tokens import core_start
from receipt_cli.learn.vocabulary import Vocabulary, normalise
from receipt_cli.problems import Lack


class Evaluated(NamedTuple):
    """Records with the loss of an evaluation: its metric, one of them, how many there are, and if all of these are finite."""

    metric: str
    sample: bytes
    records: int
    finite: bool


@dataclass(frozen=True)
class Learned:
    """The rules that read a log, and how many records looked like metrics."""

    rules: tuple[Induced, ...]
    candidates: int
    silent: tuple[bytes, ...]
    """Records of an evaluation: no rule may read them."""
    needs_steps: bool
    """Records without a step that start over: only a progress bar can number them."""
    sure: bool
    """A counter and a training loss were found: enough beside a grammar that reads other lines of the log."""
    foreign: tuple[Foreign, ...] = ()
    """Records that other words precede, which are not read."""
    evaluated: tuple[Evaluated, ...] = ()
    """Records with the loss of an evaluation that are not read, if no such loss is."""
    siblings: tuple[tuple[bytes, int], ...] = ()
    """Unread records that differ from those of a rule only in a name: a sample and a count of each kind."""
    behind: tuple[tuple[bytes, int], ...] = ()
    """Unread training records after all that are read, and more than these: a sample and a count of each kind."""

    @property
    def records(self) -> int:
        """Records of the shapes that the rules were made from."""
        return sum(rule.records for rule in self.rules)

    @property
    def steps(self) -> int:
        """Records of steps that are whole: a bar is drawn many times for one."""
        steps = [rule for rule in self.rules if rule.body["event"] == "step" and not rule.body.get("redraw")]
        return max((rule.records for rule in steps), default=0)

    def definition(self, name: str, version: int, title: str) -> dict[str, Any]:
        """Return the grammar as its file has it, without samples."""
        return {
            "grammar": name,
            "version": version,
            "title": title,
            "upstream": "",
            "trainer": name,
            "layer": "trainer",
            "completion": "none",
            "rules": {rule.name: rule.body for rule in self.rules},
        }


class _Mined(NamedTuple):
    """What a log shows: its records, what was decided of them, and the lines between them."""

    log: Log
    decision: Decision
    bars: Induced | None
    several: Several
    banners: Notices
    saves: Notices
    records: int


def weigh_log(blocks: Iterable[bytes], vocabulary: Vocabulary) -> Decision:
    """Return the explanations of a log with their evidence, and which of them are read."""
    return _mine(blocks, vocabulary).decision


def _mine(blocks: Iterable[bytes], vocabulary: Vocabulary) -> _Mined:
    miner, table = Miner(_interesting(vocabulary), _heralds(vocabulary)), Table()
    begun, saved, several = banners(vocabulary), saves(vocabulary), Several()
    miner.listeners += [table.take, begun.take, saved.take]
    miner.mine(several.parted(blocks))
    readings = read_shapes(miner.shapes.values(), vocabulary)
    sure = any(reading.sure and reading.shape.count >= vocabulary.min_records for reading in readings)
    if not sure and (rows := table.settle()) is not None:
        readings = read_shapes([*miner.shapes.values(), rows], vocabulary)
    bars = induce_progress(readings)
    explanations, log = explain(readings, _others(readings, sure, vocabulary), bars is not None, vocabulary)
    return _Mined(log, decide(explanations, log), bars, several, begun, saved, miner.records)


def learn(blocks: Iterable[bytes], vocabulary: Vocabulary, lacking: list[Lack] | None = None, least: int = 0) -> Learned | None:
    """Mine a log for the records of its training. Reads ``blocks`` once; the result does not depend on how they are cut.

    Where nothing is learned, ``lacking`` is given what the nearest records lacked. If each kind of records has fewer than
    ``least``, the rules have a sample of their records and no pattern: the caller wants none of them.
    """
    mined = _mine(blocks, vocabulary)
    log, decision, bars = mined.log, mined.decision, mined.bars
    groups = [each.group for each in decision.chosen if each.group is not None]
    if groups and max(group.count for group in groups) < least:
        few = (Induced("train_step", {"event": "step"}, "", group, group.main.shape.samples[:1]) for group in groups)
        return Learned(tuple(few), mined.records, (), needs_steps=False, sure=False)
    rules = _steps(groups, [*log.readings], vocabulary) if groups else [rule for each in decision.chosen for rule in each.rules]
    mains = [group.main for group in groups]
    if not rules:
        if lacking is not None:
            lacking += find_lacks(log.readings, decision, vocabulary)
        return None
    rules = mined.several.reading(rules)
    if bars is not None and any(main.counter.mode == ABSENT for main in mains):
        rules = [bars, *rules]
    others = without(log.readings, [r for group in groups for r in group.readings])
    left = {found.sample: found for rule in rules for found in foreign(rule, others)}
    unread = [r for r in others if not any(r.shape.literals is template for rule in rules for template in rule.templates)]
    alike = tuple(found for rule in rules for found in siblings(rule, unread))
    banner = induce_banner(mined.banners, sum(rule.records for rule in rules))
    rules = rules if banner is None else [banner, *rules]
    saved = induce_saves(mined.saves, sum(rule.records for rule in rules))
    rules = rules if saved is None else [*rules, saved]
    silent = tuple(core for r in log.readings if r.evaluation for core in r.shape.samples[:2])
    starts_over, sure = any(main.starts_over for main in mains), any(each.sure for each in decision.chosen)
    evaluated, behind = _unread(groups, rules, others, vocabulary), _behind(groups, others)
    return Learned(tuple(rules), mined.records, silent[:64], starts_over, sure, tuple(left.values()), evaluated, alike, behind)


def _behind(groups: list[Group], others: list[Reading]) -> tuple[tuple[bytes, int], ...]:
    """Return the kinds of records of a training behind the last record of ``groups``, if they have more records than these."""
    end = max((group.span[1] for group in groups), default=EVERY)
    found = [r for r in others if r.plain and r.shape.first > end and not (r.apart or r.counter.tentative)]
    more = sum(r.shape.count for r in found) > sum(group.count for group in groups)
    return tuple((r.shape.samples[0], r.shape.count) for r in found) if more else ()


def _unread(groups: list[Group], rules: list[Induced], others: list[Reading], vocabulary: Vocabulary) -> tuple[Evaluated, ...]:
    """Return the evaluations beside the records of one group whose loss no rule reads, if none reads that of another."""
    known = {name for rule in rules for name in rule.fields}
    if len(groups) != 1 or groups[0].main.shape.header or known & {"val_loss", "test_loss"}:
        return ()  # where the rows of a table stand among other lines is unknown
    found = unread_evaluations(Training.of(groups[0]), others, vocabulary)
    return tuple(
        Evaluated(evaluation_metric(r, at, vocabulary), r.shape.samples[0], r.shape.count, _finite(r.shape.columns[at]))
        for r, at in found
    )


def _finite(column: Column) -> bool:
    """Return whether all numbers of a column are kept, and finite."""
    return len(column.numbers) == column.count and all(value is not None and isfinite(value) for value in column.numbers)


def _others(readings: list[Reading], sure: bool, vocabulary: Vocabulary) -> dict[str, list[Induced]]:
    """Return the rules of what may be records besides one line of one kind each, by the kind of the explanation."""
    steps = induce_steps(readings) if not sure else None
    return {LINES: induce_lines(readings, vocabulary), BAR: [steps] if steps is not None else []}


@cache
def _heralds(vocabulary: Vocabulary) -> Callable[[bytes], int]:
    return lambda record: vocabulary.section(record[core_start(record) :].decode("utf-8", "replace"))


def _steps(groups: list[Group], readings: list[Reading], vocabulary: Vocabulary) -> list[Induced]:
    rules: list[Induced] = []
    headings: list[Induced] = []
    evaluations: list[Induced] = []
    companions: list[Induced] = []
    for group in groups:
        others = without(readings, group.readings)
        rivals = [r for g in groups if g is not group for r in g.readings]
        free = without(others, rivals)
        rule = induce(group, f"train_step_{len(rules) + 1}" if rules else "train_step", free)
        announced = group.main.counter.heading
        heading = heading_rule(announced) if rule is not None and announced is not None and not headings else None
        herald = induce_herald(group) if rule is not None else None
        lacking = announced is not None and heading is None and not headings
        if rule is None or lacking or (group.main.counter.heralded and herald is None):
            continue
        rules.append(rule)
        headings += [found for found in (heading, herald) if found is not None]
        if group.main.shape.header:
            continue  # what stands between its rows is unknown
        training = Training.of(group)
        evaluations = evaluations or induce_evaluations(training, free, vocabulary)
        if len(groups) == 1:
            companions = induce_companions(training, rule, free, vocabulary)
    if not _one_count([rule.group for rule in rules if rule.group is not None]):
        for number, rule in enumerate(rules, start=1):
            rule.body["phase"] = f"stage_{number}"
    return [*headings, *evaluations, *rules, *companions]


def _one_count(groups: list[Group]) -> bool:
    """True when each group counts on where the one before it in the log ended: one stage, printed in two ways."""
    spans = []
    for group in sorted(groups, key=lambda g: g.span):
        step = group.main.counter.step
        column = group.main.shape.columns[step] if step is not None and group.main.counter.mode == GLOBAL else None
        if column is None or column.first is None or column.last is None:
            return len(groups) < 2
        spans.append((column.first, column.last))
    return all(before[1] < after[0] for before, after in pairwise(spans))


@cache
def _interesting(vocabulary: Vocabulary) -> frozenset[bytes]:
    """Return the words of which a record has one that names a counter or a metric."""
    lists = (vocabulary.step, vocabulary.loss, vocabulary.names, vocabulary.training, vocabulary.epoch, vocabulary.runs)
    phrases = [phrase for words in (*lists, vocabulary.scores, vocabulary.grades) for phrase in words]
    last = {re.split(r"[^a-z]+", text)[-1] for text in phrases} - vocabulary.foreign
    found = {word.encode("utf-8") for word in last if len(word) > 1}
    meant = (word for word, english in vocabulary.translations.items() if normalise(english).split()[-1].encode() in found)
    return frozenset(found).union(*({word.encode("utf-8"), word.capitalize().encode("utf-8")} for word in meant))
