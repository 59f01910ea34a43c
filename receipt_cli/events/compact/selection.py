"""Decide which rows become events and which stay rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from receipt_cli.events.compact.companions import attach
from receipt_cli.events.compact.frame import PLAN, STEP, Frame, labels
from receipt_cli.events.compact.rank_copies import set_aside
from receipt_cli.events.compact.regular import find_passing, find_runs, passed_by, surroundings, worth_it
from receipt_cli.events.rows import CompactRows, KeptRows, ProgressBars, Read, RowRun, are_many
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.spill import ascends, pieces
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
