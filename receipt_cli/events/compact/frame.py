"""The columns of one rule's step records as arrays, a value or a mask for every row that counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from receipt_cli.events.rows import MAX_EPOCHS, RowRun, Rows, is_memory
from receipt_cli.grammar.model import COUNTERS, Rule
from receipt_cli.numeric.array_types import Array, Floats, Integers, Mask
from receipt_cli.numeric.spill import ascends, gathered, picked, pieces, slices
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import NumberColumn, RuleColumns

EXACT = 1 << 53
"""Steps from here on are not exact in float64."""
LONGEST = 1 << 40
"""Steps of an epoch: so many in each of ``MAX_EPOCHS`` are still exact."""
STEP, PLAN, RANK = (("structural", name) for name in ("step", "planned_steps", "rank"))


def labels(rule: Rule, columns: RuleColumns) -> set[int]:
    """Return ranks that the records are labelled with, at least the lowest and the highest."""
    shown: list[Array] = [columns.rank.whole()]
    shown += [c.values.whole() for name, c in columns.numbers.items() if rule.fields[name].target == RANK]
    found: set[int] = set()
    for values in (piece for column in shown for piece in ([column[:1]] if column.strides == (0,) else pieces(column))):
        known = values[np.isfinite(values) & (values != NO_RANK)]
        found |= {int(known.min()), int(known.max())} if known.size else set()
    return found


def is_drawn_over(rule: Rule, columns: RuleColumns) -> bool:
    """True for bars, unless each of their rows shows a later step than the one before it."""
    steps = [column for name, column in columns.numbers.items() if rule.fields[name].target == STEP]
    return rule.redraw and not (len(steps) == 1 and is_full(steps[0], columns) and ascends(steps[0].values.whole()))


def is_full(column: NumberColumn, columns: RuleColumns) -> bool:
    """True for a column with a value in every row."""
    return column.dense and len(column.values) == len(columns)


class Frame:
    """The rows of one rule that count, seen as arrays; ``chosen`` as in ``find_runs``. A mask that is None is all true."""

    def __init__(self, rule: Rule, columns: RuleColumns, chosen: Integers | None) -> None:
        self.columns, self.chosen = columns, chosen
        metrics: dict[str, list[NumberColumn]] = {}
        others: dict[str, list[NumberColumn]] = {}
        structural: dict[str, list[NumberColumn]] = {}
        self.odd = [self._among(np.asarray(texts.rows)) for texts in columns.texts.values()]
        for name, column in columns.numbers.items():
            kind, target = rule.fields[name].target
            if kind == "metric":
                metrics.setdefault(target, []).append(column)  # of two fields of one metric the first counts
            elif kind == "other":
                others.setdefault(target, []).insert(0, column)  # and of two others the last
            elif kind == "fact":
                self.odd.append(self._among(column.index))
            else:
                structural.setdefault(target, []).append(column)
        for name, column in columns.unregistered.items():
            others.setdefault(name, []).insert(0, column)
        self.step, self.inside = (structural.get(name, []) for name in ("step", "epoch_step"))
        rows, inside = slice(0, len(columns)) if chosen is None else chosen, self.inside[0] if self.inside else None
        n = len(columns) if chosen is None else len(chosen)
        self.whole = RowRun(columns, rows, n, metrics, others, inside=inside)
        self.epoch_known = [
            None if is_full(column, self.columns) else self._among(column.index) for column in metrics.get("epoch", ())
        ]
        self.steps, self.numbered = self._integers(self.step)
        self.plan, self.planned = self._integers(structural.get("planned_steps", []))
        self.ranks = self._ranks(structural.get("rank", []))
        self.counters = {name: self._integers(structural[name]) for name in COUNTERS if name in structural}
        self.whole = replace(self.whole, epochs=self._epochs(structural.get("epoch_number", [])))
        self.epochs = self.whole.filled("epoch") if self.numbered is not None else None
        frames = self._frames() if rule.redraw else None
        self.frames = None if frames is None or ascends(frames) else frames  # each is drawn once

    def _epochs(self, columns: Sequence[NumberColumn]) -> NumberColumn | None:
        """Return the column of the epoch, where one gives that of every row, and none is too large to be counted."""
        epochs, known = self.counters.get("epoch_number", (None, None))
        if epochs is None or known is not None or len(columns) > 1:
            return None
        return columns[0] if all(((piece >= 0) & (piece < MAX_EPOCHS)).all() for piece in pieces(epochs)) else None

    def _frames(self) -> Integers | None:
        """Return what rows that draw one record over have in common: the step, or the count inside the epoch.

        None where every row is a record: where nothing numbers all of them, or a later frame may print less than another.
        """
        numbers = chain(*self.whole.metrics.values(), *self.whole.unregistered.values())
        if not all(is_full(column, self.columns) for column in numbers) or any(map(is_memory, self.whole.metrics)):
            return None
        if self.numbered is None:
            return self.steps
        epochs, lengths, inside = self.places()
        if self.step or epochs is None or lengths is None or inside is None or self.whole.epochs is None:
            return None
        if not all(piece.all() for piece in pieces(lengths)):
            return None
        longest = max((int(np.abs(piece).max()) for piece in pieces(inside) if len(piece)), default=0) + 1
        keys = (epochs[part] * longest + inside[part] for part in slices(len(epochs)))
        return gathered(np.int64, len(epochs), keys) if longest < LONGEST else None

    def places(self) -> Iterator[Integers | None]:
        """Yield the epoch of each row, the length of it and the count inside of it; None of what not every row prints."""
        for name in ("epoch_number", "epoch_steps", "epoch_step"):
            counts, mask = self.counters.get(name, (None, None))
            yield counts if mask is None else None

    def breaks(self, one_rank: bool) -> Mask | None:
        """Return where a record is parted from the one before by more than its step (bool [rows]).

        None where numbers are too large.
        """
        if self.steps is None or self.plan is None or self.ranks is None or len(self.inside) > 1:
            return None
        if self.counters and not self.inside and self.numbered is not None:
            return None  # a number of the epoch alone is one step
        if any(counts is None or mask is not None for counts, mask in self.counters.values()):
            return None
        same: list[Array] = [self.plan, *([] if one_rank else [self.ranks])]
        same += [mask for mask in (self.numbered, self.planned, *self.epoch_known) if mask is not None]
        ascending = ("epoch_step",) if self.whole.epochs is None else ("epoch_step", "epoch_number")
        same += [counts for name, (counts, _) in self.counters.items() if name not in ascending and counts is not None]
        found = np.zeros(len(self.steps), np.bool_)
        for part in slices(len(found), 1):
            later = found[part][1:]
            for values in same:
                later |= values[part][1:] != values[part][:-1]
            later |= self._back_in_epochs(part)
            for mask in self.odd:
                found[part] |= mask[part]
                later |= mask[part][:-1]
        return found

    def _back_in_epochs(self, part: slice) -> Mask:
        """Return which records of a part, after its first, have not a later place in epochs than the one before."""
        epochs, lengths, inside = (None if counts is None else counts[part] for counts in self.places())
        back: Mask = np.zeros(part.stop - part.start - 1, np.bool_) if inside is None else self._descends(inside)
        if self.whole.epochs is None or epochs is None:
            return back
        risen = np.diff(epochs)
        back &= risen == 0
        back |= risen < 0
        if inside is not None and lengths is not None:  # a bar may end where that of the next epoch begins
            short: Mask = risen * np.minimum(lengths[1:], LONGEST) <= inside[:-1] - inside[1:]
            back |= short & (risen > 0) & (lengths[1:] > 0)
        return back

    def back(self) -> Mask:
        """Return which records (bool [rows]) are not further in training than the one before, as far as they print it."""
        assert self.steps is not None
        found = np.zeros(len(self.steps), np.bool_)
        for part in slices(len(found), 1):
            later = found[part][1:]
            later[...] = self._descends(self.steps[part])
            if self.numbered is not None:
                known = np.zeros(len(later), np.bool_)
                for mask in self.epoch_known:
                    known |= True if mask is None else mask[part][1:]
                if self.epochs is not None:
                    known &= ~(self.epochs[part][1:] >= self.epochs[part][:-1])
                later[...] = np.where(self.numbered[part][1:], later, known)
        return found

    def _descends(self, counts: Integers) -> Mask:
        """Return which counts after the first are below the one before, or are the same and no frame of one record."""
        return counts[1:] <= counts[:-1] if self.frames is None else counts[1:] < counts[:-1]

    @property
    def prints_steps(self) -> bool:
        """True where every row is a record that prints its step, and nothing else says where in training it is."""
        return self.frames is None and self.numbered is None and len(self.step) == 1 and not self.counters

    def ends(self, start: int, stop: int) -> Integers | None:
        """Return the last frame of each record of a stretch; None where every row is a record."""
        if self.frames is None:
            return None
        ends = start + np.flatnonzero(self.frames[start + 1 : stop] != self.frames[start : stop - 1])
        return None if len(ends) == stop - start - 1 else np.append(ends, stop - 1)

    def run(self, chosen: Rows, drawn: int) -> RowRun:
        """Return the run of the ``chosen`` ones of the rows that count, of which ``drawn`` were printed."""
        assert self.steps is not None
        first, n = (chosen.start, chosen.stop - chosen.start) if isinstance(chosen, slice) else (chosen[0], len(chosen))
        run = replace(self.whole, rows=chosen if self.chosen is None else self.chosen[chosen], n=n, drawn=drawn)
        if self.numbered is not None and not self.numbered[first]:
            return run
        return replace(run, step=self.step[0]) if len(self.step) == 1 else replace(run, numbers=self.steps[chosen].copy())

    def _among(self, rows: Rows) -> Mask:
        """Return which of the rows that count are among ``rows``."""
        mask = np.zeros(len(self.columns), np.bool_)
        mask[rows] = True
        return mask if self.chosen is None else mask[self.chosen]

    def _ranks(self, columns: Sequence[NumberColumn]) -> Integers | None:
        """Return the rank of each row: as a field prints it, else the label of its line."""
        labels: Integers = self.columns.rank.whole()
        labels = labels if self.chosen is None else picked(labels, self.chosen)
        if not columns:
            return labels
        shown, known = self._integers(columns)
        return shown if shown is None or known is None else np.where(known, shown, labels)

    def _integers(self, columns: Sequence[NumberColumn]) -> tuple[Integers | None, Mask | None]:
        """Return the whole numbers that the columns give each row (the last that does counts), and which rows have one.

        The numbers are None where they are not exact in float64, or where one of several columns has one that is not finite.
        """
        found = self.whole.read(columns[::-1])
        if found is None:
            none = np.broadcast_to(np.int64(0), self.whole.n)
            return none, none != 0 if len(none) else None
        values, known = found
        if known is not None or not all(np.isfinite(piece).all() for piece in pieces(values)):
            finite = np.isfinite(values)
            if len(columns) > 1 and bool((finite != (True if known is None else known)).any()):
                return None, None
            values, known = np.where(finite, values, 0.0), None if finite.all() else finite
        large = any((np.abs(piece) >= EXACT).any() for piece in pieces(values))
        return (None, None) if large else (_whole(values), known)


def _whole(values: Floats) -> Integers:
    """Return finite ``values`` (float64 [n]) as whole numbers."""
    if values.strides == (0,):  # all are one
        return np.broadcast_to(values[:1].astype(np.int64), len(values))
    return gathered(np.int64, len(values), (piece.astype(np.int64) for piece in pieces(values)))
