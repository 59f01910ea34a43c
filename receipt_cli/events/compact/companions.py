"""Attach companion lines that follow their step records one by one: their values become those of the records.

Otherwise a trainer that prints timers behind every step line leaves no two records without something between them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from receipt_cli.events.compact.frame import LONGEST, STEP, is_drawn_over, labels
from receipt_cli.events.compact.regular import worth_it
from receipt_cli.events.rows import Read, Rows, are_many, values_at
from receipt_cli.grammar.model import Rule
from receipt_cli.numeric.array_types import Array, Integers, Mask
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.spill import ascends, gathered, picked, slices
from receipt_cli.scan.columns import NumberColumn, RuleColumns

Attached = Mapping[tuple[str, str], Mapping[str, "Integers"]]
"""By grammar and rule of step records: by companion, the rows (ascending) that have its values."""


def attach(read: Sequence[Read], unseen: Container[tuple[str, str]]) -> tuple[list[Read], Attached]:
    """Return what was read, companions attached to the step records that they follow, and which of these have which.

    A companion's lines that something parts from the record before them stay what they are. ``unseen`` are the rules that
    have no events, or that part nothing.
    """
    made = {(g.id, r.name): (g, r, columns) for g, r, columns in read}
    found: dict[tuple[str, str], dict[str, Integers]] = {}
    for key, (grammar, rule, columns) in list(made.items()):
        if key in unseen or is_drawn_over(rule, columns) or not worth_it(rule, columns) or _may_be_copied(rule, columns):
            continue
        companions = {k: (r, c) for k, (g, r, c) in made.items() if g is grammar and _may_follow(r, c)}
        others = [c.at.whole() for k, (_, _, c) in made.items() if k not in companions and k != key and k not in unseen]
        for its_key, (companion, its) in companions.items():
            rule, columns = made[key][1:]
            if len(labels(rule, columns) | labels(companion, its)) > 1 or _clash(rule, columns, companion, its):
                continue
            owners, mask = _owners(columns, its, others)
            if bool(mask.any()):
                rows: Rows = slice(0, len(mask)) if mask.all() else mask.nonzero()[0]
                found.setdefault(key, {})[companion.name] = owners[rows]
                made[key] = (grammar, *_merged(rule, columns, companion, its, rows, owners[rows]))
                made[its_key] = (grammar, companion, _chosen(its, (~mask).nonzero()[0]))
    return [entry for entry in made.values() if len(entry[2])], found


def _may_follow(rule: Rule, columns: RuleColumns) -> bool:
    """True for a companion whose fields are metrics, or outside of the registry, and nothing else."""
    if not rule.companion or rule.redraw or rule.event != "step" or columns.texts or not are_many(columns):
        return False
    return all(rule.fields[name].target[0] in ("metric", "other") for name in columns.numbers)


def _may_be_copied(rule: Rule, columns: RuleColumns) -> bool:
    """True where places in training come twice on average: the record before a companion's line may be another one's copy."""
    shown: dict[tuple[str, str], Array] = {rule.fields[name].target: c.values.whole() for name, c in columns.numbers.items()}
    steps = [c.values.whole() for name, c in columns.numbers.items() if rule.fields[name].target == STEP]
    epochs, inside = (shown.get(("structural", name)) for name in ("epoch_number", "epoch_step"))
    if not steps and epochs is not None and inside is not None and len(epochs) == len(inside):
        steps = [epochs * LONGEST + inside]
    elif not steps and ("metric", "epoch") in shown:
        steps = [shown["metric", "epoch"]]
    return any(len(distinct_values(s)) <= len(s) // 2 + 1 for s in steps if len(s) < 4 or not ascends(s))


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
    owners = _rows_before(mine, at)
    mask: Mask = (owners >= 0) & ascending
    mask[1:] &= owners[1:] != owners[:-1]
    if len(between):
        mask &= np.searchsorted(between, mine[np.maximum(owners, 0)]) == np.searchsorted(between, at)
    times, own = its.clock.whole(), main.clock.whole()
    for part in slices(len(at)):  # a stamp out of turn counts, or one that no record's encloses, and is that of an event
        owner, stamps = np.maximum(owners[part], 0), times[part]
        mask[part] &= np.isnan(stamps) | ((stamps >= own[owner]) & (stamps <= own[np.minimum(owner + 1, len(own) - 1)]))
    return owners, mask


def _rows_before(mine: Integers, at: Integers) -> Integers:
    """Return the number of the last of ``mine`` before each of ``at``, -1 where none is; both ascend."""
    count = len(at)
    mostly = count <= len(mine) and all((mine[part] < at[part]).all() for part in slices(count))
    if mostly and all((at[p] <= mine[p.start + 1 : p.stop + 1]).all() for p in slices(min(count, len(mine) - 1))):
        return np.arange(count)  # each has one of its own
    return np.searchsorted(mine, at) - 1


def _merged(
    rule: Rule, columns: RuleColumns, companion: Rule, its: RuleColumns, rows: Rows, owners: Integers
) -> tuple[Rule, RuleColumns]:
    """Return the rule with the companion's fields, and the columns with its values of ``rows`` at the rows that own them."""
    fields = dict(rule.fields)
    numbers: dict[str, Any] = dict(columns.numbers)
    for name, column in its.numbers.items():
        fields[f"{companion.name}\t{name}"] = companion.fields[name]
        numbers[f"{companion.name}\t{name}"] = _moved(column, rows, owners, len(columns), its.line)
    others = {name: _moved(column, rows, owners, len(columns), its.line) for name, column in its.unregistered.items()}
    return replace(rule, fields=fields), replace(columns, numbers=numbers, unregistered={**columns.unregistered, **others})


def _moved(column: NumberColumn, rows: Rows, places: Integers, count: int, line: Cells[int] | None = None) -> NumberColumn:
    """Return the values at some ``rows``, each at its one of ``places`` among ``count``; ``line`` prints them, or else the column
    says what does."""
    index, values = values_at(column, rows)
    at = places if index is None else places[index]
    lines = None if column.printed is None else values_at(column.printed, rows)[1]
    if line is not None:
        own = line.whole()[rows] if isinstance(rows, slice) else picked(line.whole(), rows)
        own = own if index is None else picked(own, index)
        lines = own if lines is None else _first_of(lines, own)
    return NumberColumn(Cells.of(values), None if len(at) == count else Cells.of(at), None if lines is None else Cells.of(lines))


def _first_of(lines: Array, others: Array) -> Array:
    """Return the ``lines``, where one is 0 that of the ``others``."""
    parts = (np.where(lines[part], lines[part], others[part]) for part in slices(len(lines)))
    return gathered(np.int64, len(lines), parts)


def _chosen(columns: RuleColumns, rows: Integers) -> RuleColumns:
    """Return the columns of some of the rows."""
    places = np.arange(len(rows))
    at, line, rank, clock = (Cells.of(part.whole()[rows]) for part in (columns.at, columns.line, columns.rank, columns.clock))
    numbers, others = (
        {name: _moved(column, rows, places, len(rows)) for name, column in named.items()}
        for named in (columns.numbers, columns.unregistered)
    )
    return RuleColumns(at, line, rank, clock, numbers, {}, others)
