"""Attach companion lines that follow their step records one by one: their values become those of the records.

Otherwise a trainer that prints timers behind every step line leaves no two records without something between them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from receipt_cli.events.compact.frame import STEP, Frame, labels
from receipt_cli.events.compact.regular import worth_it
from receipt_cli.events.rows import KeptRows, are_many
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.spill import ascends, scratch
from receipt_cli.scan.columns import NumberColumn, RuleColumns

Read = tuple[Grammar, Rule, RuleColumns]
Attached = Mapping[tuple[str, str], Mapping[str, "Integers"]]
"""By grammar and rule of step records: by companion, the rows (ascending) that have its values."""


def attach(read: Sequence[Read], unseen: Container[tuple[str, str]]) -> tuple[list[Read], Attached]:
    """Return what was read, companions attached to the step records that they follow, and which of these have which.

    A companion's lines that something parts from the record before them stay what they are. ``unseen`` are the rules that
    have no events.
    """
    made = {(g.id, r.name): (g, r, columns) for g, r, columns in read}
    found: dict[tuple[str, str], dict[str, Integers]] = {}
    for key, (grammar, rule, columns) in list(made.items()):
        if key in unseen or rule.redraw or not worth_it(rule, columns) or _may_be_copied(rule, columns):
            continue
        companions = {k: (r, c) for k, (g, r, c) in made.items() if g is grammar and _may_follow(r, c)}
        others = [c.at.whole() for k, (_, _, c) in made.items() if k not in companions and k != key and k not in unseen]
        for its_key, (companion, its) in companions.items():
            rule, columns = made[key][1:]
            if len(labels(rule, columns) | labels(companion, its)) > 1 or _clash(rule, columns, companion, its):
                continue
            owners, mask = _owners(columns, its, others)
            if bool(mask.any()):
                found.setdefault(key, {})[companion.name] = owners[mask]
                made[key] = (grammar, *_merged(rule, columns, companion, its, owners, mask))
                made[its_key] = (grammar, companion, _chosen(its, (~mask).nonzero()[0]))
    return [entry for entry in made.values() if len(entry[2])], found


class Joining(NamedTuple):
    """Records of other rules about the steps of the one before them: by rule, the row before each, and which are of its step."""

    rows: Mapping[str, tuple[Integers, Mask]]

    def others(self, read: Sequence[Read], grammar: Grammar) -> list[Read]:
        """Return what was read without them."""
        return [
            (g, r, _chosen(c, (~self.rows[r.name][1]).nonzero()[0])) if g is grammar and r.name in self.rows else (g, r, c)
            for g, r, c in read
        ]


def find_joining(
    read: Sequence[Read],
    grammar: Grammar,
    rule: Rule,
    columns: RuleColumns,
    unseen: Container[tuple[str, str]],
    settled: Container[tuple[str, str]],
) -> Joining:
    """Return the step records of other rules that say more about the step of the record before them, as a companion does.

    None where a rule prints more than figures, or where two rules that do print one figure. ``unseen`` as for ``attach``;
    of rules that are ``settled`` the runs are known.
    """
    steps = None if rule.redraw or _may_be_copied(rule, columns) else _steps(rule, columns)
    found: dict[str, tuple[Integers, Mask]] = {}
    if steps is None:
        return Joining(found)
    may = [
        (r, c) for g, r, c in read if g is grammar and (g.id, r.name) not in settled and r is not rule and _may_join(rule, r, c)
    ]
    mine = {id(columns), *(id(its) for _, its in may)}
    others = [c.at.whole() for g, r, c in read if id(c) not in mine and (g.id, r.name) not in unseen]
    shown: set[str] = set()
    for other, its in sorted(may, key=lambda one: one[1].at[0]):
        figures = {other.fields[name].target[1] for name in its.numbers} - {STEP[1]}
        theirs = _steps(other, its)
        one_rank = len(labels(rule, columns) | labels(other, its)) < 2
        if theirs is None or not one_rank or not shown.isdisjoint(figures) or _clash(rule, columns, other, its):
            continue
        owners, mask = _owners(columns, its, others)
        mask &= (steps[owners] == theirs) & _in_time(columns.clock.whole(), owners, its.clock.whole())
        if bool(mask.any()):
            found[other.name] = owners, mask
            shown |= figures
    return Joining(found)


def join(
    made: dict[tuple[str, str], Read], key: tuple[str, str], regular: KeptRows, joining: Joining
) -> tuple[KeptRows, Mapping[str, Integers]]:
    """Attach what joins the records of runs and those before them, in ``made``; return the runs with it, and the rows that have
    the values of each rule.

    At the ends of a stretch each line stays an event of its own.
    """
    grammar, rule, columns = made[key]
    inner = np.ones(len(columns), np.bool_)
    inner[regular.rows] = False
    inner[list(regular.runs)] = True
    attached: dict[str, Integers] = {}
    for name, (owners, mask) in joining.rows.items():
        other, its = made[grammar.id, name][1:]
        mask = mask & inner[owners]
        attached[name] = owners[mask]
        rule, columns = _merged(rule, columns, other, its, owners, mask)
        made[grammar.id, name] = grammar, other, _chosen(its, (~mask).nonzero()[0])
    made[key] = grammar, rule, columns
    frame = Frame(rule, columns, None)
    runs = {row: replace(frame.run(run.rows, run.drawn), passed=run.passed) for row, run in regular.runs.items()}
    return replace(regular, runs=runs), attached


def _may_join(rule: Rule, other: Rule, its: RuleColumns) -> bool:
    """True for another kind of step records whose fields are figures and the step, and nothing else."""
    if not worth_it(other, its) or other.redraw or its.texts or other.phase != rule.phase or other.repeats:
        return False
    targets = [other.fields[name].target for name in its.numbers]
    return targets.count(STEP) == 1 and all(target == STEP or target[0] in ("metric", "other") for target in targets)


def _steps(rule: Rule, columns: RuleColumns) -> Integers | None:
    """Return the step of each record; None where one has none."""
    frame = Frame(rule, columns, None)
    return frame.steps if frame.step and frame.numbered is None else None


def _in_time(clock: Floats, owners: Integers, its: Floats) -> Mask:
    """Return which stamps are none, or between that of the record before and that of the next one, and no finer than these."""
    before, after = clock[owners], clock[np.minimum(owners + 1, len(clock) - 1)]
    fitting: Mask = np.isnan(its) | ((before <= its) & (its <= after) & ((its == np.floor(its)) | (before != np.floor(before))))
    return fitting


def _may_follow(rule: Rule, columns: RuleColumns) -> bool:
    """True for a companion whose fields are metrics, or outside of the registry, and nothing else."""
    if not rule.companion or rule.redraw or rule.event != "step" or columns.texts or not are_many(columns):
        return False
    return all(rule.fields[name].target[0] in ("metric", "other") for name in columns.numbers)


def _may_be_copied(rule: Rule, columns: RuleColumns) -> bool:
    """True where steps come twice on average: the record before a companion's line may be the copy of another one."""
    steps = [column for name, column in columns.numbers.items() if rule.fields[name].target == STEP]
    return any(len(distinct_values(c.values.whole())) <= len(c.values) // 2 + 1 for c in steps)


def _clash(rule: Rule, columns: RuleColumns, companion: Rule, its: RuleColumns) -> bool:
    """True where both print a figure of one name that is outside the registry."""
    ours, theirs = (
        {*c.unregistered, *(r.fields[name].target[1] for name in c.numbers if r.fields[name].target[0] == "other")}
        for r, c in ((rule, columns), (companion, its))
    )
    return not ours.isdisjoint(theirs)


def _owners(main: RuleColumns, its: RuleColumns, others: Sequence[Integers]) -> tuple[Integers, Mask]:
    """Return the row of ``main`` before each row of a companion, and which of these nothing else parts from it."""
    at, mine = its.at.whole(), main.at.whole()
    between = np.sort(np.concatenate([np.empty(0, np.int64), *others]))
    ascending = ascends(mine) and ascends(at)
    owners = np.searchsorted(mine, at) - 1
    mask: Mask = (owners >= 0) & ascending
    mask[1:] &= owners[1:] != owners[:-1]
    mask &= np.searchsorted(between, mine[np.maximum(owners, 0)]) == np.searchsorted(between, at)
    return owners, mask


def _merged(
    rule: Rule, columns: RuleColumns, companion: Rule, its: RuleColumns, owners: Integers, mask: Mask
) -> tuple[Rule, RuleColumns]:
    """Return the rule with the companion's fields, and the columns with its values at the rows that own them."""
    fields = dict(rule.fields)
    numbers: dict[str, Any] = dict(columns.numbers)
    for name, column in its.numbers.items():
        fields[f"{companion.name}\t{name}"] = companion.fields[name]
        numbers[f"{companion.name}\t{name}"] = _moved(column, owners, mask, len(columns), its.line)
    others = {name: _moved(column, owners, mask, len(columns), its.line) for name, column in its.unregistered.items()}
    return replace(rule, fields=fields), replace(columns, numbers=numbers, unregistered={**columns.unregistered, **others})


def _moved(column: NumberColumn, places: Integers, mask: Mask, count: int, line: Cells[int] | None = None) -> NumberColumn:
    """Return the values whose rows are in ``mask``, each at its row's place among ``count`` rows; ``line`` prints them."""
    held, values = column.index, column.values.whole()
    chosen, rows = mask[held], places[held]
    lines = None if column.lines is None else column.lines.whole()
    if line is not None:
        own = line.whole()[held]
        lines = own if lines is None else np.where(lines, lines, own)
    if not chosen.all():
        values = np.compress(chosen, values, out=scratch(np.float64, int(np.count_nonzero(chosen))))
        rows, lines = rows[chosen], None if lines is None else lines[chosen]
    return NumberColumn(
        Cells.of(values), None if len(rows) == count else Cells.of(rows), None if lines is None else Cells.of(lines)
    )


def _chosen(columns: RuleColumns, rows: Integers) -> RuleColumns:
    """Return the columns of some of the rows."""
    mask, places = np.zeros(len(columns), np.bool_), np.zeros(len(columns), np.int64)
    mask[rows], places[rows] = True, np.arange(len(rows))
    at, line, rank, clock = (Cells.of(part.whole()[rows]) for part in (columns.at, columns.line, columns.rank, columns.clock))
    numbers, others = (
        {name: _moved(column, places, mask, len(rows)) for name, column in named.items()}
        for named in (columns.numbers, columns.unregistered)
    )
    return RuleColumns(at, line, rank, clock, numbers, {}, others)
