"""Decide which rows become events and which stay rows."""

from __future__ import annotations

from collections.abc import Sequence

from receipt_cli.events.compact.companions import attach
from receipt_cli.events.compact.progress_bars import find_bars
from receipt_cli.events.compact.rank_copies import set_aside
from receipt_cli.events.compact.regular import find_passing, find_runs, passed_by, surroundings, worth_it
from receipt_cli.events.rows import CompactRows, KeptRows, Read, RowRun
from receipt_cli.lazy_dataclass import replace


def compact(read: Sequence[Read]) -> CompactRows:
    """Return the rows of ``read`` that become events, and the others."""
    bars = {(g.id, r.name): found for g, r, c in read if (found := find_bars(read, g, r, c)) is not None}
    read, attached = attach(read, bars.keys())
    passing = find_passing(read)
    kept: dict[tuple[str, str], KeptRows] = {}
    others: dict[int, list[RowRun]] = {}
    for grammar, rule, columns in read:
        if not worth_it(rule, columns) or any(g is grammar and r.repeats for g, r, _ in read):
            continue
        aside = set_aside(read, grammar, rule, columns)
        rows = None if aside is None else aside[0]
        regular = find_runs(rule, columns, surroundings(read, grammar, rule, bars.keys(), passing), rows)
        if aside is not None:
            regular = regular or KeptRows(aside[0], {}, None)
            for rank, run in aside[1].items():
                others.setdefault(rank, []).append(run)
        if regular is not None:
            followed = attached.get((grammar.id, rule.name), {})
            runs = {row: replace(run, attached=followed) for row, run in regular.runs.items()} if followed else regular.runs
            kept[grammar.id, rule.name] = replace(regular, runs=runs)
    if passing is not None:
        reached = passed_by(passing, [(columns, kept[g.id, r.name]) for g, r, columns in read if (g.id, r.name) in kept])
        kept |= {(passing[0].id, passing[1].name): reached} if reached is not None else {}
    shown = [(g, r, columns) for g, r, columns in read if (g.id, r.name) not in bars]
    return CompactRows(shown, kept, attached, list(bars.values()), others)
