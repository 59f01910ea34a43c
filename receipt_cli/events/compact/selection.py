"""Decide which rows become events and which stay rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from receipt_cli.events.compact.companions import attach
from receipt_cli.events.compact.frame import LONGEST, PLAN, STEP, Frame, labels
from receipt_cli.events.compact.regular import find_passing, find_runs, passed_by, surroundings, worth_it
from receipt_cli.events.rows import MAX_EPOCHS, CompactRows, KeptRows, ProgressBars, Read, RowRun, are_many
from receipt_cli.grammar.model import COUNTERS, Grammar, Rule
from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.spill import ascends, gathered, picked, pieces, scratch, slices
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import RuleColumns


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
