"""Split the step records of a phase into attempts, and find the records that stand.

Launches were cut before (``launches``), and displaced records are set aside (``counters.set_aside``). A restart begins another
attempt: its record has a lower step than the last one kept, and is no late line about one of the records before; or an equal
step, if the trainer introduced itself again (a header or compile line, or a long banner), or has another plan, or only the first
step of the attempt is printed again. ``BySteps._place`` decides, for equal steps ``_same_step``; without steps,
``attempts_by_epoch``. If one rule reads all records, ``BySteps.found`` takes all lower steps at once.

A record is superseded if its step is at or beyond the lowest step of a later attempt, which trains it again; else it stands.
Lines about one step are one record: the first line, or of a progress bar the last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from receipt_cli.events.counters import Contest, Figures, comes_again, contradict, is_skipped, places_of
from receipt_cli.events.table import EventTable, Row, at_rows, before_in, falls, mask_of, not_nan, numbers_in, where
from receipt_cli.grammar.model import COUNTERS
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.spill import ascends, rises
from receipt_cli.scan.segment import count_between

_OF_FIRST = ("clock", "planned")
"""Columns of the first redraw of a progress bar at a step that the last one gets."""
NEARBY = 2
"""Greatest distance in lines of two lines that print figures of one record."""
LATE_RECORDS = 4
"""Number of records before a line whose step goes back among which one may have that step: the line describes it late."""


class Attempts(NamedTuple):
    """The attempts of a phase: its records ``steps`` (n), the index of the first of each attempt (``begins``, int64 [k]), a mask
    ``stands`` of those that no later attempt superseded, and ``contests``: two records of one step with different values.
    A line that only adds to the record before it is no record of ``steps``; that record has its figures."""

    steps: EventTable
    begins: Integers
    stands: Mask
    contests: list[Contest]


class Additions:
    """Collects what lines add to the step records before them, until ``to`` makes a table with it."""

    def __init__(self) -> None:
        self._members: defaultdict[int, list[tuple[int, bool]]] = defaultdict(list)
        """By row of a record: the rows of the lines that add to it, each with whether its rule is noted."""
        self._known: dict[int, tuple[dict[str, float], dict[str, float], tuple[str, ...]]] = {}
        """By row of a record to which something was added: all its metrics, its figures outside the registry, and the rules."""

    def _seen(self, row: Row) -> tuple[dict[str, float], dict[str, float], tuple[str, ...]]:
        return self._known.get(row.number) or (row.metrics, row.unregistered, row.rules)

    def rules(self, row: Row) -> tuple[str, ...]:
        """Return the rules of the lines about a record, that of the record itself first."""
        return self._seen(row)[2]

    def figures(self, row: Row) -> Figures:
        """Return all figures of a record, those that lines added included."""
        metrics, others, _ = self._seen(row)
        return {**others, **metrics}

    def joined(self, row: Row) -> set[str]:
        """Return the names of the figures that lines of other rules print about a record."""
        rules = self.rules(row)[1:]
        named = [rule for rule in row.grammar.rules if rule.name in rules] if rules else []
        return {field.target[1] for rule in named for field in rule.fields.values()}

    def same(self, one: Row, other: Row) -> bool:
        """Return whether two records print the same figures and facts (NaN equals NaN)."""
        ours, theirs = self._seen(one), self._seen(other)
        return _equal(ours[0], theirs[0]) and _equal(ours[1], theirs[1]) and one.facts == other.facts

    def add(self, row: Row, other: Row, *, noted: bool = False) -> None:
        """Add the figures of the line ``other`` to a record, and if ``noted`` its rule; figures of the record count first."""
        ours, theirs = self._seen(row), self._seen(other)
        rules = (*ours[2], other.rule.name) if noted else ours[2]
        self._known[row.number] = {**theirs[0], **ours[0]}, {**theirs[1], **ours[1]}, rules
        self._members[row.number].append((other.number, noted))

    def draw_again(self, row: Row, drawn: Row) -> None:
        """Replace a record of a progress bar by the redraw ``drawn``; if both print a figure, the redraw counts."""
        ours, theirs = self._seen(row), self._seen(drawn)
        self._known[drawn.number] = {**ours[0], **theirs[0]}, {**ours[1], **theirs[1]}, ours[2]
        self._members[drawn.number] = [(row.number, False), *self._members.pop(row.number, [])]

    def to(self, table: EventTable) -> EventTable:
        """Return the table with all additions."""
        for noted in (True, False):
            pairs = [(own, other) for own, held in self._members.items() for other, one in held if one is noted]
            if pairs:
                owners, members = np.array(pairs, np.int64).T
                table = table.joining(owners, members, noted=noted)
        return table


def _agree(one: Figures, other: Figures) -> bool:
    """Return whether two records print equal values of each figure that both have."""
    return all(one[name] == other[name] for name in one.keys() & other.keys())


def _equal(left: Mapping[str, float], right: Mapping[str, float]) -> bool:
    if left.keys() != right.keys():
        return False
    return all(value == right[name] or (value != value and right[name] != right[name]) for name, value in left.items())


# --- by step -----------------------------------------------------------------------------------------------------------


class BySteps:
    """Finds the attempts of records with steps, in one pass over those whose step is not above that of the record before.
    If one rule reads all records, no line is a late one: all steps that go back are then handled at once."""

    def __init__(self, steps: EventTable, introductions: Integers, copied: Sequence[int]) -> None:
        """Take the step records of which some have a step.

        ``introductions``: positions in the log (ascending) of header and compile lines and banners: there a trainer introduces
        itself. ``copied``: the numbers (ascending) of lines that are left out when the lines between two records are counted.
        """
        self.every, self.introductions, self.copied = steps, introductions, copied
        """``every``: all records as given, each redraw of a progress bar included."""
        self.steps = _drawn_once(steps)
        """The records with one for all redraws in a row at a step. All indexes of this class count these."""
        self.kept = np.ones(len(self.steps), np.bool_)
        """Mask of the ``steps`` that stay records of their own; each other one adds to one of these, repeats or contests it."""
        self.begins = [0]
        """The index of the first record of each attempt so far."""
        self.additions = Additions()
        self.contests: list[Contest] = []
        self.drawn: dict[int, int] = {}
        """By index of a redraw of a progress bar that stays: the index of the first one at its step."""
        self.seen = 0
        self.latest: int | None = None
        """The last kept record with a step before the index ``seen``, up to which ``_numbered`` has looked; of any attempt."""

    def found(self) -> Attempts:
        """Return the attempts."""
        table, places = self.steps, self.steps.steps
        back = falls(places)[1:]
        onward = np.concatenate([np.empty(0, np.bool_), *(rise > 0 for _, rise in rises(places))])
        single = len({source.rule.name for source in table.sources}) < 2
        asked = (np.flatnonzero(~onward & ~back if single else ~onward) + 1).tolist()
        anew = (np.flatnonzero(back) + 1) if single else np.empty(0, np.int64)
        done = 0
        for index in asked:
            if index < done:
                continue
            self.begins += anew[np.searchsorted(anew, self.begins[-1], "right") : np.searchsorted(anew, index)].tolist()
            done = index
            while done < len(table) and not self._place(done):  # the next record is compared with the last that stays
                done += 1
            done += 1
        begins = distinct_values(np.concatenate([np.array(self.begins), anew]))
        begins = before_in(where(self.kept), begins)
        drawn, first = (np.array([*each], np.int64) for each in (self.drawn.keys(), self.drawn.values()))
        table = self.additions.to(_having(table, _OF_FIRST, drawn, first) if self.drawn else table).where(self.kept)
        return Attempts(table, begins, _standing(table.steps, begins), self.contests)

    def _place(self, index: int) -> bool:
        """Find whether the record at ``index`` goes on, begins another attempt, or belongs to an earlier record.

        Return whether it is kept. The index of an attempt's first record is appended to ``begins``. If a record is not kept, an
        earlier one gets its figures.
        """
        row = self.steps[index]
        step = self.steps.steps[index]
        numbered = self._numbered(index)
        if step != step or numbered is None or step > self.steps.steps[numbered]:
            kept = True
        elif step == self.steps.steps[numbered]:
            kept = self._same_step(index, numbered)
        else:
            # the step goes back: a late line if one of the records just before has this step, and no line of this rule yet
            before = (self.steps[place] for place in range(index - 1, self.begins[-1] - 1, -1) if self.kept[place])
            near = [*islice(before, LATE_RECORDS)][::-1]
            late = [one for one in near if one.step == row.step and row.rule.name not in self.additions.rules(one)]
            if late:
                self.additions.add(late[0], row, noted=True)
            else:
                self.begins.append(index)
            kept = not late
        self.kept[index] = kept
        return kept

    def _numbered(self, index: int) -> int | None:
        """Return the index of the last record with a step before ``index`` in the running attempt, or None."""
        for place in range(index - 1, max(self.begins[-1], self.seen) - 1, -1):
            if self.kept[place] and self.steps.steps[place] == self.steps.steps[place]:
                self.latest = place
                break
        self.seen = index
        return self.latest if self.latest is not None and self.latest >= self.begins[-1] else None

    def _same_step(self, index: int, before: int) -> bool:
        """Return whether a record with the step of the record ``before`` stays one of its own.
        The order of the branches matters: each is for what those before it leave."""
        additions = self.additions
        last, row = self.steps[before], self.steps[index]
        # 1. a line of another rule says more about this step: only a rule that has printed it can print it again
        if row.rule.name not in additions.rules(last):
            additions.add(last, row, noted=True)
        # 2. a progress bar is drawn again: the last redraw is the record
        elif row.rule.redraw and not _end_twice(self.steps[before : before + 1], self.steps[index : index + 1])[0]:
            additions.draw_again(last, row)
            self.drawn[index] = self.drawn.pop(before, before)
            self.kept[before] = False
            return True
        # 3. no restart: identical figures, even after an introduction (whichever line counts, its figures are the same); another
        # rank; or a second line with none of the figures of the first, unless the trainer introduced itself between them
        elif (
            additions.same(last, row) or row.rank != last.rank or (self._complete(last, row) and not self._began_anew(last, row))
        ):
            additions.add(last, row)  # a companion line follows the last copy
        # 4. a restart. If several rules printed this step, one of their lines may come twice without a restart; if the loss scale
        # falls, the trainer skipped the update and makes the step again; a bar that is full once more is one of many
        elif (
            len(additions.rules(last)) == 1
            and not row.rule.redraw
            and not is_skipped(additions.figures(last), additions.figures(row))
            and (self._began_anew(last, row) or _replanned(last, row) or self._starts_again(before, last, row))
        ):
            self.begins.append(index)
            return True
        # 5. no restart, but other values: the first record stands, and a contest names the other
        elif row.rule.redraw or self._contradicts(last, row):
            self.contests.append(Contest(last, row))
        # 6. other times or other differences that prove nothing: the first line counts, with what only the other one prints
        else:
            additions.add(last, row)
        return False

    def _contradicts(self, last: Row, row: Row) -> bool:
        figures = self.additions.figures
        return contradict(last, row, figures(last), figures(row), self.additions.joined(last))

    def _complete(self, last: Row, row: Row) -> bool:
        """Return whether two records of one step share no figure but the epoch: the second line continues the first."""
        printed = [self.additions.figures(one).keys() - {"epoch"} for one in (last, row)]
        return all(printed) and printed[0].isdisjoint(printed[1])

    def _began_anew(self, last: Row, row: Row) -> bool:
        """Return whether the trainer introduced itself between two records of one step: a restart, not another rank."""
        places = self.introductions
        return bool(np.searchsorted(places, last.at, "right") < np.searchsorted(places, row.at))

    def _starts_again(self, before: int, last: Row, row: Row) -> bool:
        """Return whether only the first step of an attempt comes again, with other values and after other lines: a restart.
        If other steps, too, are printed several times in a row, several processes print them."""
        stands = self.contests[-1].stands if self.contests else None
        line = self.contests[-1].other.line if stands is not None and stands.number == last.number else last.line
        between = row.line - line - count_between(self.copied, line, row.line)
        if before != self.begins[-1] or between < 2:
            return False
        places = self.every.steps
        other = places[:-1] != self.steps.steps[before]
        again = (places[1:] == places[:-1]) | (np.isnan(places[1:]) & np.isnan(places[:-1]))
        return not other.any() or 2 * int(np.count_nonzero(again & other)) < int(np.count_nonzero(other))


def _replanned(last: Row, row: Row) -> bool:
    """Return whether two records print different plans."""
    return None not in (last.planned, row.planned) and row.planned != last.planned


def _drawn_once(steps: EventTable) -> EventTable:
    """Return the table with one record for all redraws of a progress bar at a step: the last, with the time of the first."""
    if not any(source.rule.redraw for source in steps.sources):
        return steps
    codes, places = steps.column("source"), steps.steps
    redraw = steps.by_source(lambda source: source.rule.redraw)
    over = redraw[1:] & (codes[1:] == codes[:-1]) & (places[1:] == places[:-1])
    over &= ~mask_of(len(over), lambda part: _end_twice(steps[part], steps[part.start + 1 : part.stop + 1]))
    if not over.any():
        return steps
    first = np.flatnonzero(np.append(True, ~over))
    last = np.append(first[1:], len(steps)) - 1
    if (counted := _as_counted(steps, first, last)) is not steps:
        return _drawn_once(counted)
    many = last > first
    drawn = _having(steps, _OF_FIRST, last[many], first[many])
    owner_of = np.repeat(last, np.diff(first, append=len(steps)))
    frames = np.flatnonzero(np.append(over, False))
    pairs = (numbers_in(steps.rows)[each[::-1]] for each in (owner_of[frames], frames))  # of the redraws the latest first
    return drawn.joining(*pairs).where(~np.append(over, False))


def _as_counted(steps: EventTable, first: Integers, last: Integers) -> EventTable:
    """Return the table with one record for each step whose figures a progress bar shows before it counts it: the last redraw at
    the step before. The redraws of each step are the rows ``first`` to ``last``. If no bar does that, the table is returned.

    It is proven if the redraws of each step begin with the figures of the step before, those of the first step change, although
    nothing was shown before, or are shown at 0, and those of the last step of a bar show nothing new. A bar that counts first
    shows the figures of its first step alone. Of the first step of a bar the record is the first redraw, if a later one has other
    figures; else its figures are unknown.
    """
    bars, begins, ends = steps.chosen(first), *(steps.filled("loss")[rows] for rows in (first, last))
    codes, step, inside = bars.column("source"), bars.steps, bars.column("epoch_step")
    goes_on = np.append(False, (codes[1:] == codes[:-1]) & (step[1:] > step[:-1]) & ~(inside[1:] <= inside[:-1]))
    full = np.where(np.isnan(inside), step == bars.column("planned"), inside == bars.column("epoch_steps"))
    changes = (begins != ends) & ~np.isnan(begins)
    as_before = np.append(False, begins[1:] == ends[:-1])
    early = np.zeros(len(first), np.bool_)
    for code in distinct_values(codes[changes]).tolist():
        mine = codes == code
        inner, closing = mine & goes_on & changes, mine & goes_on & full & np.append(False, changes[:-1])
        begin = int(mine.argmax())
        proven = changes[begin] or (step[begin] == 0 and not np.isnan(begins[begin]))
        proven = proven and len(as_before[closing]) and not changes[closing].any()
        if proven and np.count_nonzero(inner) >= FEWEST_EARLY and as_before[inner | closing].all():
            early |= mine
    if not early.any():
        return steps
    begun = np.flatnonzero(early & ~goes_on & (begins != ends) & (step > 0))
    inner = np.flatnonzero(early & goes_on)
    rows, of = np.append(first[begun], last[inner - 1]), np.append(begun, inner)
    kept = ~np.repeat(early, np.diff(first, append=len(steps)))
    kept[rows] = True
    return _having(steps, ("step", "planned", "epoch_step", "clock"), rows, first[of]).where(kept)


FEWEST_EARLY = 3
"""Steps whose figures are shown early, from which on it is no chance."""


def _having(steps: EventTable, names: Sequence[str], rows: Integers, of: Integers) -> EventTable:
    """Return the table with the values of the rows ``of`` in the named columns at ``rows``, pair by pair."""
    columns = {name: np.array(steps.column(name)) for name in names}
    for values in columns.values():
        values[rows] = values[of]
    return steps.having(**columns)


def _end_twice(one: EventTable, other: EventTable) -> Mask:
    """Return the mask of the pairs that are two full progress bars of one epoch, on two lines, with different losses."""
    counters = [(one.column(name), other.column(name)) for name in COUNTERS]
    full: Mask = (one.line != other.line) & (counters[1][0] == counters[2][0])
    if not full.any():
        return full
    for ours, theirs in counters:
        full &= (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    ours, theirs = one.filled("loss"), other.filled("loss")
    full &= (ours != theirs) & ~(np.isnan(ours) & np.isnan(theirs))
    return full


def _standing(places: Floats, begins: Integers) -> Mask:
    """Return the mask of the records that stand: their step is below the lowest of any later attempt, or they have none."""
    if len(begins) < 2:
        return np.ones(len(places), np.bool_)
    later = np.append(np.fmin.accumulate(np.fmin.reduceat(places, begins)[::-1])[::-1][1:], np.inf)

    def stands(part: slice) -> Mask:
        attempt = np.searchsorted(begins, np.arange(part.start, part.stop), "right") - 1
        return ~(places[part] >= later[attempt])

    return mask_of(len(places), stands)


# --- by epoch ----------------------------------------------------------------------------------------------------------


def attempts_by_epoch(steps: EventTable) -> Attempts:
    """Return the attempts of records without a step: another begins if the epoch, or the samples or tokens so far, goes back.

    Lines that print other figures at one position are one record.
    """
    places = places_of(steps)
    known = not_nan(places)
    count = len(steps)
    back = np.zeros(count, np.bool_)
    series = [rows for _, rows in steps.series(known)]
    for rows in series:
        back[rows] = falls(at_rows(places, rows))
    before = np.full(count if back.any() else 0, -1)
    """The index of the record before, of the same rule and rank, that prints a position; -1 if none."""
    for rows in map(numbers_in, series if len(before) else ()):
        before[rows[1:]] = rows[:-1]
    again, coarse = np.zeros(count, np.bool_), False
    if known.all() and len(series) == 1 and not ascends(places):
        counted = places is not steps.positions
        same = np.flatnonzero(places[1:] == places[:-1]) + 1
        coarse = counted and 2 * len(same) > count
        again[same if coarse else comes_again(places, counted=counted)] = True
    begins, kept, additions, contests = [0], np.ones(count, np.bool_), Additions(), list[Contest]()
    for index in np.flatnonzero(back | again).tolist():
        if back[index] and before[index] >= begins[-1]:
            begins.append(index)
            continue
        row, last = steps[index], steps[next(place for place in range(index - 1, -1, -1) if kept[place])]
        if again[index] and not row.rule.redraw and row.counters == last.counters:
            ours, its = additions.figures(last), additions.figures(row)
            if coarse and not (its.keys() - ours.keys() and _agree(ours, its)):
                first = last.number == steps[begins[-1]].number and its.keys() < ours.keys()  # of a record of several lines
                begins += [index] if first and steps.line[index] - steps.line[index - 1] > NEARBY else []
                continue
            kept[index] = False
            if contradict(last, row, ours, its, additions.joined(last)):
                contests.append(Contest(last, row))
            else:
                additions.add(last, row)
    left = where(kept)
    starts = before_in(left, np.array(begins))
    return Attempts(additions.to(steps).chosen(left), starts, _standing(at_rows(places, left), starts), contests)
