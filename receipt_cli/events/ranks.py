"""Decide the rank of each record and which ranks only repeat a leading rank; report the figures of each rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from receipt_cli.events.counters import TOTALS
from receipt_cli.events.starts import FEWEST
from receipt_cli.events.table import EventTable, at_rows, distinct, is_memory, not_nan, where
from receipt_cli.grammar.model import COUNTERS
from receipt_cli.numeric.array_types import Integers, Mask
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.spill import ascends, gathered, slices
from receipt_cli.numeric.statistics import exact_median, finite
from receipt_cli.records.envelope import NO_RANK

STRAGGLES = 1.1
"""Factor of the median step time of all ranks beyond which a rank holds them up; timers differ by less."""
MIN_COMPARED = 3
"""Fewest ranks that are compared: of two ranks nobody knows which one is slow."""
STEP_TIME = "step_time_s"
"""The metric by which the pace of ranks is compared."""


class RankFigures(NamedTuple):
    """What one rank itself printed: number of step records, first and last step, largest memory figure, median step time.
    ``straggles``: whether its median is longer than that of all ranks; None without a median, or without those of two others."""

    records: int
    first: int | None
    last: int | None
    peak_memory_bytes: float | None
    median_step_time_s: float | None = None
    straggles: bool | None = None


def rank_figures(table: EventTable, start: int, end: int, twins: Mapping[int, int]) -> dict[int, RankFigures]:
    """Return the figures of each rank between two positions in the log; empty if only one rank printed something.
    ``twins`` maps each rank that printed the same as another one to that rank."""
    table = table.between(start, end)
    ranks = [rank for rank in distinct(table.rank) if rank != NO_RANK]
    if len(ranks) < 2 and not twins:
        return {}
    found = {rank: figures for rank in ranks if (figures := _figures(table.where(table.rank == rank))) is not None}
    found |= {rank: found[other] for rank, other in twins.items() if other in found}
    return _compared(dict(sorted(found.items()))) if len(found) > 1 else {}


def _compared(ranks: dict[int, RankFigures]) -> dict[int, RankFigures]:
    """Return the figures with ``straggles``: whether the steps of a rank take longer than those of the others."""
    known = [figures.median_step_time_s for figures in ranks.values() if figures.median_step_time_s is not None]
    middle = exact_median(known)
    if len(known) < MIN_COMPARED or middle is None:
        return ranks
    return {
        rank: r if r.median_step_time_s is None else r._replace(straggles=r.median_step_time_s > STRAGGLES * middle)
        for rank, r in ranks.items()
    }


def _figures(table: EventTable) -> RankFigures | None:
    """Return the figures of one rank's records, or None. A step printed twice counts once, a record without a step always."""
    steps = table.of_sources(lambda source: source.is_step)
    names = {name for source in table.sources for name in source.metrics if is_memory(name)}
    sizes = [finite(table.metric(name).values) for name in names]
    peak = max((float(each.max()) for each in sizes if len(each)), default=None)
    if not len(steps) and peak is None:
        return None
    known = not_nan(steps.steps)
    numbers = steps.steps[known]
    count = len(numbers) if ascends(numbers) else len(distinct_values(numbers))
    first, last = (int(numbers[0]), int(numbers[-1])) if count else (None, None)
    return RankFigures(
        count + len(steps) - len(numbers), first, last, peak, exact_median(finite(steps.metric(STEP_TIME).values)),
    )  # fmt: skip


def rank_of(table: EventTable) -> Integers:
    """Return the rank of each record (int64 [n]). If only one rank is labelled, records without a label have that rank.

    A launcher labels lines; the redraws of a progress bar in one line have no label of their own. If most records of a rule have
    no label, one with a label is another writer's.
    """
    ranks = [rank for rank in distinct(table.rank) if rank != NO_RANK]
    if len(ranks) != 1:
        return table.rank
    begins = np.concatenate([[True], table.line[1:] != table.line[:-1]])  # only the first record of a line has a label
    counts = _counts(table.where(begins))
    bare = {key for key, found in counts.items() if 2 * found[NO_RANK] > found.total() > found[NO_RANK]}
    if not bare:
        return np.broadcast_to(np.int64(ranks[0]), len(table))
    labelled = {source.key for source in table.where(table.rank == ranks[0]).sources} - bare
    return np.where(table.by_source(lambda source: source.key in labelled), ranks[0], table.rank)


def led_of(table: EventTable) -> Mask:
    """Return the mask of the step records that repeat a position which the leading rank of their rule printed itself.

    The leading rank printed most step records; on a tie it is the lowest. A position is the step, or the counters and the epoch.
    Records without a rank are kept; they lead if they are most and stand beside those of a rank.
    """
    led = np.zeros(len(table), np.bool_)
    if len(distinct(table.rank)) < 2:
        return led
    for source, rows, _ in table.parts:
        if source.rule.event != "step":
            continue
        mine = table.chosen(rows)
        places = _places(mine)
        found = _counts(mine.where(places >= 0)).get(source.key, Counter())
        if len(found) < 2 or (found[NO_RANK] and not _beside(mine)):
            continue
        leader = min(found, key=lambda rank: (-found[rank], rank))
        own = at_rows(places, where((mine.rank == leader) & (places >= 0)))
        others = (mine.rank != NO_RANK) & (mine.rank != leader) & (places >= 0)
        led[rows] = others & np.isin(places, own)
    return led


def _beside(table: EventTable) -> bool:
    """Return whether records with and without a label take turns, or one kind is rare: not one log after another."""
    bare = table.rank == NO_RANK
    turns = int(np.count_nonzero(bare[1:] != bare[:-1]))
    return turns > 1 or min(int(bare.sum()), int((~bare).sum())) < FEWEST


def _counts(table: EventTable) -> dict[tuple[str, str], Counter[int]]:
    """Return by rule how many step records each rank has; those without a label, except redraws, count as ``NO_RANK``."""
    counts: dict[tuple[str, str], Counter[int]] = {}
    for source, rows, _ in table.parts:
        if source.rule.event == "step":
            ranks = table.chosen(rows).rank
            found = {rank: int(np.count_nonzero(ranks == rank)) for rank in distinct(ranks)}
            if source.rule.redraw:
                found.pop(NO_RANK, None)
            counts[source.key] = Counter(found)
    return counts


def _places(table: EventTable) -> Integers:
    """Return for each record the id of its position in training (int64 [n]), -1 if it has none.
    Records of one step, or without a step of equal counters and epoch (if the log has none, equal totals), share an id."""
    if len(table) and not_nan(table.steps).all():
        lowest = float(table.steps.min())
        parts = ((table.steps[part] - lowest).astype(np.int64) for part in slices(len(table)))
        return gathered(np.int64, len(table), parts)
    columns = [table.steps, *(table.column(name) for name in COUNTERS), table.filled("epoch")]
    if all(np.isnan(column).all() for column in columns):
        columns += [table.filled(name) for name in TOTALS]
    named = [np.isnan(table.steps)] * (len(columns) - 1)
    codes = np.zeros(len(table), np.int64)
    known = np.zeros(len(table), np.bool_)
    for column, wanted in zip(columns, [None, *named], strict=True):
        values = column if wanted is None else np.where(wanted, column, np.nan)
        missing = np.isnan(values)
        if missing.all():
            continue
        known |= ~missing
        _, inverse = np.unique(values, return_inverse=True)
        _, codes = np.unique(codes * (int(inverse.max()) + 1) + inverse, return_inverse=True)
    return np.where(known, codes, -1)
