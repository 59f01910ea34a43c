"""Count the steps of the whole run for trainers that count by epoch.

If an iteration counter starts again with every epoch, step = steps of the epochs before + step inside the epoch. An epoch that
the log does not show counts as long as the present one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from receipt_cli.events.counters import full_at_zero
from receipt_cli.events.table import EventTable, Rows, Source, at_rows, chosen, distinct, not_nan, numbers_in, of_grammar, size_of
from receipt_cli.grammar.model import COUNTERS
from receipt_cli.numeric.array_types import Array, Floats, Integers, Mask
from receipt_cli.numeric.spill import rises, scratch, slices
from receipt_cli.records.envelope import NO_RANK

MAX_EPOCHS = 1_000_000
"""Epochs from here on have no step number: no training is so long, and the lengths of all epochs would have to be summed."""
_COUNTED = ("step", "planned", "epoch")
"""The columns that follow from the counters of epochs."""
_ANNOUNCE = ("progress", "header", "phase")
"""The events whose counters hold for the step records after them."""


def count_epochs(table: EventTable) -> EventTable:
    """Return the table with steps, planned steps and epochs from its epoch counters, without records that are no step records.
    An epoch on a line of its own holds for the records of the same rank after it that print none."""
    table = _handed_on(table)
    printed = (source.rule.fields[name].target for source in table.sources for name in source.columns.numbers)
    if any(kind == "structural" and name in COUNTERS for kind, name in printed):
        table = table.where(~_stale(table))
        table = _without_whole_runs(table)
        table = table.having(epoch_steps=_true_lengths(table))
        running = _Running(table)
        table = table.where(~_evaluated(table, running))
        table = table.having(epoch_step=_unwrapped(table))
        table = table.having(**_counted(table, running))
        table = table.having(**_single_passes(table))
    return _records(table)


def _handed_on(table: EventTable) -> EventTable:
    """Return the table with the metrics of each progress line added to the next step record of its grammar and rank."""
    lines = table.of_sources(lambda source: source.rule.event == "progress" and bool(source.metrics))
    if not len(lines):
        return table
    owners: list[int] = []
    members: list[int] = []
    held: dict[tuple[str, int], int] = {}
    asked = lines.with_(table.of_sources(lambda source: source.is_step))
    for row in asked:
        if not row.is_step:
            if row.metrics:
                held[row.grammar.id, row.rank] = row.number
        elif held:
            announced = held.pop((row.grammar.id, row.rank), None)
            announced = held.pop((row.grammar.id, NO_RANK), None) if announced is None else announced
            if announced is not None:
                owners.append(row.number)
                members.append(announced)
    return table.joining(np.array(owners, np.int64), np.array(members, np.int64)) if owners else table


def _unnumbered(table: EventTable) -> Mask:
    """Return the mask of the step records that print no step."""
    return table.by_source(lambda source: source.is_step) & ~not_nan(table.steps)


def _stale(table: EventTable) -> Mask:
    """Return the mask of the full progress bars that show the number of the next epoch already.
    The trainer changes the number first and resets the bar in the redraw after it."""
    stale = np.zeros(len(table), np.bool_)
    if not any(source.rule.redraw and source.is_step for source in table.sources):
        return stale
    printed = ~np.logical_and.reduce([np.isnan(table.column(name)) for name in COUNTERS])
    asked = _unnumbered(table) & printed & table.by_source(lambda source: source.rule.redraw)
    epochs, insides, lengths = (table.column(name) for name in COUNTERS[:3])
    for _, every in table.series(asked):
        for part in slices(size_of(every) - 2):  # each record between its neighbours
            rows = numbers_in(chosen(every, slice(part.start, part.stop + 2)))
            epoch, inside = epochs[rows], insides[rows]
            full = inside == lengths[rows]
            reset = full[1:-1] & (epoch[2:] == epoch[1:-1]) & (inside[2:] < inside[1:-1]) & (epoch[:-2] == epoch[1:-1] - 1)
            stale[rows[1:-1][reset]] = True
    return stale


def _without_whole_runs(table: EventTable) -> EventTable:
    """Return the table without position and length inside the epoch for rules whose progress bar counts the epochs.
    All records of such a rule, of several epochs, print the epoch as the position: ``Epoch 3/20: 3/20``."""
    epochs, insides, lengths, planned = (table.column(name) for name in COUNTERS)
    if planned.strides == (0,):
        return table
    left = np.zeros(len(table), np.bool_)
    for source, rows, _ in table.parts:
        if source.rule.event != "step":
            continue
        asked = ~np.isnan(insides[rows]) & ~np.isnan(planned[rows])
        whole = (insides[rows] == epochs[rows]) & (planned[rows] == lengths[rows])
        if asked.any() and whole[asked].all() and len(distinct(insides[rows][asked])) > 1:
            left[rows] = True
    if not left.any():
        return table
    return table.having(epoch_step=np.where(left, np.nan, insides), epoch_steps=np.where(left, np.nan, lengths))


def _true_lengths(table: EventTable) -> Floats:
    """Return the printed length of the epoch of each record; NaN for a rule if its counter exceeds the length in two records."""
    insides, lengths = (table.column(name) for name in ("epoch_step", "epoch_steps"))
    false = [rows for _, rows, _ in table.parts if np.count_nonzero(insides[rows] > lengths[rows]) > 1]
    if false:
        lengths = np.array(lengths)
        for rows in false:
            lengths[rows] = np.nan
    return lengths


def _evaluated(table: EventTable, running: _Running) -> Mask:
    """Return the mask of the records that the step rule reads but that belong to an evaluation pass.
    In at least two epochs such a pass follows the training; its length is another, and it has fewer records."""
    found = np.zeros(len(table), np.bool_)
    epochs, lengths = (running.of(table, name) for name in ("epoch_number", "epoch_steps"))
    if np.fmin.reduce(lengths, initial=np.inf) >= np.fmax.reduce(lengths, initial=-np.inf):
        return found
    asked = _unnumbered(table) & ~np.isnan(table.column("epoch_step")) & ~np.isnan(epochs) & ~np.isnan(lengths)
    for _, rows_ in table.series(asked):
        rows = numbers_in(rows_)
        epoch, length = epochs[rows], lengths[rows]
        if len(distinct(length)) != 2:
            continue
        begins = np.flatnonzero(np.append(True, (np.diff(epoch) != 0) | (np.diff(length) != 0)))
        passes = list(zip(epoch[begins].tolist(), length[begins].tolist(), strict=True))
        pairs = {(one[1], other[1]): 0 for one, other in pairwise(passes) if one[0] == other[0]}
        count = sum(one[0] == other[0] for one, other in pairwise(passes))
        if count < 2 or len(pairs) != 1:
            continue
        theirs = length != next(iter(pairs))[0]
        if 2 * int(np.count_nonzero(theirs)) < len(rows):
            found[rows[theirs]] = True
    return found


def _unwrapped(table: EventTable) -> Floats:
    """Return the position of each record inside its epoch; a 0 that ends an epoch becomes the length of the epoch."""
    epochs, insides, lengths = (table.column(name) for name in COUNTERS[:3])
    if not (insides == 0).any():
        return insides
    asked, insides = _unnumbered(table) & ~np.isnan(epochs) & ~np.isnan(insides) & ~np.isnan(lengths), np.array(insides)
    for _, own in table.series(asked):
        rows = numbers_in(own)
        full = rows[full_at_zero(epochs[rows], insides[rows])]
        insides[full] = lengths[full]
    return insides


def _counted(table: EventTable, running: _Running) -> dict[str, Floats]:
    """Return the columns (float64 [n]) that follow from the epoch counters, by name."""
    found = {name: scratch(np.float64, len(table)) for name in _COUNTED}
    every = dict[tuple[str, int, int], _Lengths]()
    zero = {source.grammar.id for source, rows, _ in table.parts if (table.column("epoch_number")[rows] == 0).any()}

    def first_epoch(source: Source) -> int:
        first = source.rule.epochs_from
        return int(source.grammar.id not in zero) if first is None else first

    for part in slices(len(table)):
        block = table[part]
        kinds = block.by_source(lambda source: source.rule.event == "step")
        asked = kinds & np.isnan(block.steps)
        steps, planned, epochs = (np.array(block.column(name)) for name in _COUNTED)
        printed = block.column("epoch_number")
        epoch, inside, length, plan = (running.of(block, name) for name in COUNTERS)
        whole = block.by_source(lambda source: source.rule.counts == "epoch")
        asked &= ~np.isnan(epoch)
        asked &= whole | ~(np.isnan(block.column("epoch_step")) & np.isnan(printed))
        spoken = kinds | block.by_source(lambda source: source.rule.event == "eval")
        new = np.isnan(epochs)
        np.copyto(epochs, printed, where=new & spoken)
        np.copyto(epochs, epoch, where=new & asked)
        alone = asked & (whole | np.isnan(inside))
        np.copyto(steps, epoch, where=alone)
        np.copyto(planned, plan, where=alone & ~np.isnan(plan))
        counts = asked & ~alone & (np.abs(length) > 0) & (epoch < MAX_EPOCHS)
        for (grammar, first, rank), rows in _groups(block, counts, first_epoch):
            before = every.setdefault((grammar, first, rank), _Lengths(first)).steps_before(epoch[rows], length[rows])
            steps[rows] = before + inside[rows]
            total = before + (plan[rows] - epoch[rows] + first) * length[rows]
            planned[rows] = np.where(np.isnan(total), planned[rows], total)
        for column, values in zip(found.values(), (steps, planned, epochs), strict=True):
            column[part] = values
    return found


def _groups(table: EventTable, mask: Mask, first: Callable[[Source], int]) -> Iterator[tuple[tuple[str, int, int], Integers]]:
    """Yield for each grammar, number of its first epoch (``first``) and rank the rows of the records in ``mask``."""
    keys = [(source.grammar.id, first(source)) for source in table.log.sources]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    rows = np.flatnonzero(mask)
    owner, ranks = np.array([numbers[key] for key in keys])[table.column("source")[rows]], table.rank[rows]
    known = np.array(distinct(ranks), np.int64)
    code = (owner * len(known) + np.searchsorted(known, ranks)).astype(np.int16)  # which sorts fastest
    order = np.argsort(code, kind="stable")
    for mine in np.split(order, np.flatnonzero(np.diff(code[order])) + 1) if len(rows) else ():
        yield (*keys[int(table.column("source")[rows[mine[0]]])], int(ranks[mine[0]])), rows[mine]


def _first_of(source: Source) -> int:
    """Return the number of the first epoch for a source; 1 if the log tells it."""
    return 1 if source.rule.epochs_from is None else source.rule.epochs_from


class _Running:
    """Holds the counters of lines that announce an epoch, each until the next such line of the same grammar and rank.
    Counters of lines without a rank hold for all ranks that have no such lines."""

    def __init__(self, table: EventTable) -> None:
        lines = table.of_sources(lambda source: source.rule.event in _ANNOUNCE)
        columns = {name: lines.column(name) for name in COUNTERS}
        printed = ~np.logical_and.reduce([np.isnan(column) for column in columns.values()])
        grammars = lines.by_source(lambda source: source.grammar.id)
        self.lines: dict[tuple[str, int], tuple[Integers, dict[str, Floats]]] = {}
        for name in dict.fromkeys(grammars[printed].tolist()):
            for rank in distinct(lines.rank[printed & (grammars == name)]):
                mine = printed & (grammars == name) & (lines.rank == rank)
                held = {counter: _filled(column[mine]) for counter, column in columns.items()}
                self.lines[name, rank] = numbers_in(lines.where(mine).rows), held
        self.begun = self._begun_anew(table) if self.lines else np.empty(0, np.int64)

    @staticmethod
    def _begun_anew(table: EventTable) -> Integers:
        """Return the numbers of the records from which on those inside an epoch have another length and count anew."""
        inside, length = table.column("epoch_step"), table.column("epoch_steps")
        rows = np.flatnonzero(~np.isnan(inside) & ~np.isnan(length) & np.isnan(table.column("epoch_number")))
        anew = (np.diff(inside[rows]) < 0) & (np.diff(length[rows]) != 0)
        begun: Integers = numbers_in(table.rows)[rows[1:][anew]]
        return begun

    def of(self, table: EventTable, name: str) -> Floats:
        """Return a counter for each record ([n]): its own, else the running one."""
        own = table.column(name)
        if not self.lines:
            return own
        found, numbers = np.full(len(table), np.nan), numbers_in(table.rows)
        for (grammar, rank), (places, held) in self.lines.items():  # lines without a rank come first
            mine = table.by_source(of_grammar(grammar))
            rows = np.flatnonzero(mine if rank == NO_RANK else mine & (table.rank == rank))
            latest = np.searchsorted(places, numbers[rows]) - 1
            found[rows[latest >= 0]] = held[name][latest[latest >= 0]]
            if name == "epoch_number":  # records before the first such line, of a later launch too, are of the epoch before
                opened = np.searchsorted(self.begun, numbers[rows], "right") > np.searchsorted(self.begun, places[latest])
                before = rows[(latest < 0) | (opened & (latest + 1 < len(places)))]
                earlier = held[name][np.searchsorted(places, numbers[before])] - 1
                found[before] = np.where(table.chosen(before).by_source(_first_of) <= earlier, earlier, found[before])
            elif name == "epochs_planned":
                found[rows[latest < 0]] = held[name][0]
        return np.where(np.isnan(own), found, own)


def _filled(values: Floats) -> Floats:
    """Return the values, with each missing one replaced by the last before it."""
    latest = np.maximum.accumulate(np.where(np.isnan(values), -1, np.arange(len(values))))
    return np.where(latest < 0, np.nan, values[latest])


def _single_passes(table: EventTable) -> dict[str, Array]:
    """Return the columns ``step`` and ``planned``, set to the counter inside a pass and its length, for each rule and rank
    with a single pass: the counter never goes back, the length never changes. If it goes back, the pass is unknown."""
    kinds = table.by_source(lambda source: source.rule.event == "step" and source.rule.counts == "step")
    printed = ~np.logical_and.reduce([np.isnan(table.column(name)) for name in COUNTERS])
    asked = kinds & printed & ~not_nan(table.steps)
    if not asked.any():
        return {}
    insides, lengths = table.column("epoch_step"), table.column("epoch_steps")
    single: list[Rows] = []
    for _, rows in table.series(asked):
        inside, length = at_rows(insides, rows), at_rows(lengths, rows)
        if len(distinct(length)) == 1 and length[0] == length[0] and all((rise >= 0).all() for _, rise in rises(inside)):
            single += [rows] if len(inside) > 1 or not np.isnan(inside).any() else []
    if not single:
        return {}
    steps, planned = (np.array(table.column(name)) for name in ("step", "planned"))
    for rows in single:
        steps[rows], planned[rows] = at_rows(insides, rows), at_rows(lengths, rows)
    return {"step": steps, "planned": planned}


class _Lengths:
    """Counts the steps before each epoch of one trainer, from the lengths of the epochs seen so far.
    If an epoch comes again, so do those after it, with their own lengths. If its length is another one, another launch or stage
    began: its epochs are counted from the first one."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.seen: dict[int, int] = {}
        self.before: dict[int, int] = {}
        self.latest = first
        self._count_anew()

    def _count_anew(self) -> None:
        """``counted`` epochs before the epoch ``passed`` were seen; they have ``steps`` steps together."""
        self.passed, self.counted, self.steps = self.first, 0, 0

    def steps_before(self, epochs: Floats, lengths: Floats) -> Floats:
        """Return the steps of all epochs before that of each record, in order; ``lengths`` are those of the epochs."""
        begins = np.flatnonzero(np.concatenate([[True], (np.diff(epochs) != 0) | (np.diff(lengths) != 0)]))
        places = zip(epochs[begins].tolist(), lengths[begins].tolist(), strict=True)
        found = [self._steps_before(int(epoch), int(length)) for epoch, length in places]
        return np.repeat(np.array(found, np.float64), np.diff(begins, append=len(epochs)))

    def _steps_before(self, epoch: int, length: int) -> int:
        if epoch < self.latest:
            for later in [each for each in self.seen if each > epoch]:
                del self.seen[later]
                self.before.pop(later, None)
        self.latest = epoch
        if self.seen.setdefault(epoch, length) != length:
            self.seen, self.before = {epoch: length}, {}
            self._count_anew()
        if epoch not in self.before:
            if epoch < self.passed:
                self._count_anew()
            known = [self.seen[e] for e in range(self.passed, epoch) if e in self.seen]
            self.passed, self.counted = epoch, self.counted + len(known)
            self.steps += sum(known)
            self.before[epoch] = self.steps + length * (max(0, epoch - self.first) - self.counted)
        return self.before[epoch]


def _records(table: EventTable) -> EventTable:
    """Return the table without records that only look like step records.

    These are records that a line announces as repeated (``repeats``); the epoch line of an evaluation outside of epochs, if other
    records of its rule have a step; the last progress bar, if it is drawn again after the end. Records that a progress line
    announces are evaluations.
    """
    unnumbered = _unnumbered(table)
    left = table.by_source(lambda source: source.rule.counts == "epoch") & unnumbered
    for _, rows, _ in table.parts if left.any() else ():
        left[rows] &= not np.isnan(table.steps[rows]).all()
    if any(source.rule.repeats for source in table.sources):
        table, repeated = _announced(table, left)
        left |= repeated
    table = table.where(~left)
    ends = table.of_sources(lambda source: source.rule.event == "end")
    if len(ends) and any(source.rule.redraw for source in table.sources):
        return _without_last_frames(table, ends)
    return table


def _announced(table: EventTable, left: Mask) -> tuple[EventTable, Mask]:
    """Return the table with announced evaluations read as evaluations, and the mask of the announced repetitions.
    A line of a rule with ``repeats`` announces that many step records of its grammar: evaluations if it is a progress line, else
    repetitions of earlier records. Records in the mask ``left`` announce nothing."""
    repeats: dict[str, tuple[int, bool]] = {}
    repeated = np.zeros(len(table), np.bool_)
    evaluations: list[int] = []
    for index, row in enumerate(table):
        name, rule = row.grammar.id, row.rule
        if row.is_step:
            count, progress = repeats.pop(name, (0, False))
            if count:
                repeats |= {name: (count - 1, progress)} if count > 1 else {}
                if progress:
                    evaluations.append(index)
                else:
                    repeated[index] = True
                continue
            if left[index]:
                continue
        if rule.repeats:
            repeats[name] = rule.repeats, rule.event == "progress"
    return table.read_as(np.array(evaluations, np.int64), _as_evaluation) if evaluations else table, repeated


def _as_evaluation(source: Source) -> Source:
    """Return the source with its records read as evaluations: loss becomes val_loss."""
    return replace(
        source,
        rule=replace(source.rule, event="eval"),
        metrics={f"val_{name}" if name == "loss" else name: held for name, held in source.metrics.items()},
        others={f"val_{name}": held for name, held in source.others.items()},
        meanings={f"val_{name}" if name == "loss" else name: meaning for name, meaning in source.meanings.items()},
    )


def _without_last_frames(table: EventTable, ends: EventTable) -> EventTable:
    """Return the table without bars that repeat the last step after the end of an epoch; that step gets their figures."""
    left: list[int] = []
    owners: list[int] = []
    for grammar in {source.grammar.id for source in ends.sources}:
        steps = table.of_sources(of_grammar(grammar)).of_sources(lambda source: source.is_step)
        numbers = numbers_in(steps.rows)
        mine = numbers_in(ends.of_sources(of_grammar(grammar)).rows)
        done = 0
        for at in np.searchsorted(numbers, mine).tolist():
            place = max(at, done)
            while 0 < at <= place < len(steps) and (row := steps[place]).rule.redraw and row.step is not None:
                if row.step != steps[at - 1].step:
                    break
                left.append(row.number)
                owners.append(steps[at - 1].number)
                place += 1
            done = place
    if not left:
        return table
    kept = ~np.isin(numbers_in(table.rows), left)
    return table.joining(np.array(owners, np.int64), np.array(left, np.int64), last=True).where(kept)
