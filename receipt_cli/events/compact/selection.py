"""Decide which rows become events and which stay rows.

Companion lines that follow their step records one by one are attached first: their values become those of the records.
Otherwise a trainer that prints timers behind every step line leaves no two records without something between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from receipt_cli.events.compact.frame import LONGEST, PLAN, STEP, Frame, is_drawn_over, labels
from receipt_cli.events.compact.regular import find_passing, find_runs, passed_by, surroundings, worth_it
from receipt_cli.events.rows import MAX_EPOCHS, CompactRows, KeptRows, ProgressBars, Read, RowRun, Rows, are_many, values_at
from receipt_cli.grammar.model import COUNTERS, Grammar, Rule
from receipt_cli.numeric.array_types import Array, Integers, Mask
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.spill import ascends, gathered, picked, pieces, scratch, slices
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import NumberColumn, RuleColumns


def compact(read: Sequence[Read]) -> CompactRows:
    """Return the rows of ``read`` that become events, and the others."""
    bars = {(g.id, r.name): found for g, r, c in read if (found := find_bars(read, g, r, c)) is not None}
    ranks = set[int]().union(*(labels(r, c) for _, r, c in read))
    among = set[int]().union(*(labels(r, c) for _, r, c in read if r.event not in ("header", "progress")))
    passing = find_passing(read) if len(among) < 2 else {}
    read, attached = attach(read, bars.keys() | passing.keys())
    kept: dict[tuple[str, str], KeptRows] = {}
    others: dict[int, list[RowRun]] = {}
    for grammar, rule, columns in read:
        if not worth_it(rule, columns) or any(g is grammar and r.repeats for g, r, _ in read):
            continue
        rows, aside = set_aside(read, grammar, rule, columns) or (None, {})
        around = surroundings(read, (grammar, rule, columns), bars.keys(), passing)
        regular = find_runs(rule, columns, around, rows, one_rank=len(ranks) == 1)
        for rank, run in aside.items():
            others.setdefault(rank, []).append(run)
        if regular is None and rows is not None:
            regular = KeptRows(rows, {})
        if regular is not None:
            followed = attached.get((grammar.id, rule.name), {})
            runs = {row: replace(run, attached=followed) for row, run in regular.runs.items()} if followed else regular.runs
            kept[grammar.id, rule.name] = replace(regular, runs=runs)
    regular_steps = [(g, columns, kept[g.id, r.name]) for g, r, columns in read if (g.id, r.name) in kept]
    for key, one in passing.items():
        reached = passed_by(one, [(columns, runs) for g, columns, runs in regular_steps if g is one[0]])
        kept |= {key: reached} if reached is not None else {}
    shown = [(g, r, columns) for g, r, columns in read if (g.id, r.name) not in bars]
    return CompactRows(shown, kept, attached, list(bars.values()), others, ranks)


def find_bars(read: Sequence[Read], grammar: Grammar, rule: Rule, columns: RuleColumns) -> ProgressBars | None:
    """Return the bars of a rule, or None where its records print more than a step and a total, or are few.

    What prints nothing and is read in the place of step records shows no bar.
    """
    printed = {rule.fields[name].target for name in columns.numbers}
    if rule.event != "progress" or columns.texts or columns.unregistered or not are_many(columns):
        return None
    at = columns.at.whole()
    if printed not in (set(), {STEP, PLAN}) or not ascends(at) or any(g is grammar and r.repeats for g, r, _ in read):
        return None
    if not printed:
        none = np.empty(0, np.int64)
        steps = (c for g, r, c in read if g is grammar and r.event == "step")
        return ProgressBars(grammar.id, none, none, none) if any(_met(at, c.at) == len(at) for c in steps) else None
    frame = Frame(rule, columns, None)
    if frame.steps is None or frame.plan is None or frame.numbered is not None or frame.planned is not None:
        return None
    if any(_met(at, c.at) for _, _, c in read if c is not columns):
        return None
    return ProgressBars(grammar.id, at, frame.steps, frame.plan)


def _met(at: Integers, others: Sequence[int]) -> int:
    """Return how many of ``others`` are in the place of a bar: their order is then that of their rules."""
    asked = pieces(np.asarray(others, np.int64))
    return sum(int(np.count_nonzero(np.searchsorted(at, p, "left") != np.searchsorted(at, p, "right"))) for p in asked)


def set_aside(
    read: Sequence[Read], grammar: Grammar, rule: Rule, columns: RuleColumns
) -> tuple[Integers, dict[int, RowRun]] | None:
    """Return the rows that stay (int64, ascending) and the others, by rank; None where all stay.

    The leader is the rank with most step records, the lowest on a tie, as ``ranks.leading_rank`` has it.
    """
    counted = [r for g, r, c in read if g is grammar and any(r.fields[name].target[1] in COUNTERS for name in c.numbers)]
    redrawn = any(r.redraw for g, r, _ in read if g is grammar)  # a bar is compared with the record before it
    if redrawn or (rule in counted and len(counted) > 1) or len(labels(rule, columns)) < 2:
        return None
    at = columns.at.whole()
    if not ascends(at):
        return None
    frame = Frame(rule, columns, None)
    steps, ranks = _counted(rule, frame) if rule in counted else frame.steps, frame.ranks
    if steps is None or ranks is None:
        return None
    labelled = np.concatenate([ranks[piece] != NO_RANK for piece in slices(len(ranks))])
    if frame.numbered is not None and rule not in counted:
        labelled &= frame.numbered
    counts: Counter[int] = Counter()
    for piece in slices(len(ranks)):
        names, times_seen = np.unique(ranks[piece][labelled[piece]], return_counts=True)
        counts.update(dict(zip(names.tolist(), times_seen.tolist(), strict=True)))
    if len(counts) < 2:
        return None
    leader = min(counts, key=lambda rank: (-counts[rank], rank))
    own = [steps[piece][labelled[piece] & (ranks[piece] == leader)] for piece in slices(len(ranks))]
    led = distinct_values(np.concatenate(own))
    theirs = labelled
    for piece in slices(len(ranks)):
        mine = steps[piece]
        theirs[piece] &= (ranks[piece] != leader) & (led[np.minimum(np.searchsorted(led, mine), len(led) - 1)] == mine)
    rows = scratch(np.int64, int(np.count_nonzero(theirs)))
    copies: dict[int, RowRun] = {}
    done = 0
    for rank in sorted(counts.keys() - {leader}):
        begin = done
        for piece in slices(len(ranks)):
            found = piece.start + np.flatnonzero(theirs[piece] & (ranks[piece] == rank))
            rows[done : done + len(found)] = found
            done += len(found)
        if begin < done:
            run = frame.run(rows[begin:done], done - begin)
            copies[rank] = replace(run, numbers=picked(steps, rows[begin:done])) if rule in counted else run
    return np.flatnonzero(~theirs), copies


def _counted(rule: Rule, frame: Frame) -> Integers | None:
    """Return the steps that counts inside of epochs of one length give, as ``epochs`` counts them; else None."""
    epochs, lengths, inside = frame.places()
    if frame.step or "epochs_planned" in frame.counters or epochs is None or inside is None or lengths is None:
        return None
    if not len(lengths) or not 0 < lengths[0] < LONGEST or bool((lengths != lengths[0]).any()):
        return None
    if any((epochs[part] >= MAX_EPOCHS).any() for part in slices(len(epochs))):
        return None
    first = rule.epochs_from if rule.epochs_from is not None else int(all(epochs[part].all() for part in slices(len(epochs))))
    counted = (np.maximum(epochs[part] - first, 0) * lengths[0] + inside[part] for part in slices(len(epochs)))
    return gathered(np.int64, len(epochs), counted)


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
