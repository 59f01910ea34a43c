"""Decide whether a counter that goes back, comes again or jumps was reset.

If a counter goes on exactly where it was, it was not reset: the records between are of another writer, or their counter is wrong.
Such displaced records are set aside: they begin no attempt and no launch, and figures that depend on them are left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from receipt_cli.events.copies import PASTED as PASTED
from receipt_cli.events.copies import TIMED
from receipt_cli.events.table import EventTable, Row, Source, chosen, not_nan, numbers_in, where
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.numeric.precision import resolution
from receipt_cli.numeric.spill import PIECE, gathered, pieces, rises, slices
from receipt_cli.patterns import compile_later

Figures = Mapping[str, float]
JUMP = "jump"
"""The event of records whose counter is far ahead. The event ``PASTED`` is for a counter that goes back for a while."""
FEWEST = 3
"""Fewest records whose distances show a stride."""
FAR = 10
"""Most strides by which a counter rises without a jump."""
NEAR = 64
"""Records on each side of a fall or a jump that are looked at."""
MOST_JUMPS = 3
"""Most records in a row with too high a counter; if there are more, the counter before them was wrong."""
_COUNTER = compile_later(
    r"(?i)(?:^|[_/ ])(?:iter|batch|epoch|step|update|sample|token|example)(?:ation|e)?s?(?:_total|_number)?$"
)
"""Names of figures that count records between two steps."""
_TIME = compile_later(r"(?i)(?:^|[_/ ])(?:time|secs?|seconds|elapsed|duration)$")
"""Names of times, which may differ between two lines about one step."""
_SCALE = compile_later(r"(?i)(?:loss|grad)_?scaler?$")
OF_POSITIONS = 0.9
"""Share of the printed epochs that must be those of one record each, or of two records each."""
TOTALS = ("samples_total", "tokens_total")
"""Metrics that show how far training is."""
TURNS = 8
"""Groups of displaced records in one log from which on they are of several processes that take turns."""


class Contest(NamedTuple):
    """Two records of one position with different values: the one that stands (None if it is not there) and the ``other``."""

    stands: Row | None
    other: Row


def contradict(one: Row, other: Row, mine: Figures, its: Figures, joined: Collection[str] = ()) -> bool:
    """Return whether two records of one rule, step and plan have different losses, or if they print none different figures.

    Times do not count, nor do redraws of progress bars and records that another counter tells apart. ``mine`` and ``its`` are the
    figures of the two records, ``joined`` the names of those that lines of other rules print.
    """
    if one.rule.name != other.rule.name or (one.counters, one.planned) != (other.counters, other.planned):
        return False
    if one.rule.redraw or any(r"%\|" in source for source in one.rule.sources):
        return False
    names = {name for name in mine.keys() & its.keys() if not _TIME.search(name)} - {*joined}
    if any(mine[name] < its[name] and _COUNTER.search(name) and float(its[name]).is_integer() for name in names):
        return False
    deciding = ["loss"] if "loss" in names else [name for name in names if not name.endswith(TIMED)]
    return any(mine[name] != its[name] and (mine[name] == mine[name] or its[name] == its[name]) for name in deciding)


def is_skipped(before: Figures, after: Figures) -> bool:
    """Return whether the loss scale falls between two records of one step: the update was skipped, and the step comes again."""
    return any(after[name] < before[name] for name in before.keys() & after.keys() if _SCALE.search(name))


def contests_of(steps: EventTable, contests: Iterable[Contest], aside: Iterable[Row]) -> list[Contest]:
    """Return the ``contests`` whose standing record is among ``steps``, and a new one for each record in ``aside``.
    Contests of a rule whose lines add to at least half of the steps are left out: it prints several lines between two steps."""
    beside: Counter[str] = Counter()
    for source, _, own in steps.parts:
        for name, joined in source.joined.items():
            beside[name] += int(np.count_nonzero(np.isin(numbers_in(own), joined)))
    asked = [contest for contest in contests if 2 * beside[contest.other.rule.name] < len(steps)]
    standing = (
        np.isin([-1 if one.stands is None else one.stands.number for one in asked], numbers_in(steps.rows)) if asked else ()
    )
    found = [contest for contest, stands in zip(asked, standing, strict=True) if stands]
    return [*found, *(Contest(_record_at(steps, row), row) for row in aside)]


def _record_at(steps: EventTable, other: Row) -> Row | None:
    """Return the first record with the step and the rule of ``other``, or None."""
    same = steps.steps == (math.nan if other.step is None else other.step)
    same &= steps.by_source(lambda source: source.rule.name == other.rule.name)
    return steps[int(same.argmax())] if same.any() else None


def count_displaced(before: Sequence[float], after: Sequence[float]) -> int:
    """Return how many of the next positions (``after``) do not fit, until one goes on from those ``before`` (ascending).

    0 if none goes on: the counter was reset, or nothing happened. A record that continues the stride of those that do not fit is
    one of them: it is displaced, too.
    """
    widest = max((other - one for one, other in pairwise(before)), default=0)
    last = before[-1]
    ahead = after[0] > last
    if len(before) < FEWEST or not widest or 0 <= after[0] - last <= FAR * widest:
        return 0
    for count, (one, other) in enumerate(pairwise(after), 1):
        place = last + (count * widest if ahead else 0)  # a wrong counter takes the place of the right one
        own = count > 1 and other - one == after[1] - after[0] > 0
        if last <= other <= place + widest and not 0 <= other - one <= widest and not own:
            return count
        if other < one or (other > last and not ahead) or (ahead and count == MOST_JUMPS):
            return 0
    return 0


def full_at_zero(epochs: Floats, insides: Floats) -> Integers:
    """Return the records with counter 0 (indexes) if each 0 ends an epoch: the counter counts modulo the length. Else none.
    ``epochs`` and ``insides`` are the epoch of each record and its counter inside the epoch."""
    zeros = np.flatnonzero(insides == 0)
    followed = zeros[zeros + 1 < len(epochs)]
    begins = (zeros[:1] == 0).any() or (epochs[zeros - 1] != epochs[zeros]).any() or (insides[zeros - 1] == 0).any()
    return zeros[:0] if begins or (epochs[followed + 1] <= epochs[followed]).any() else zeros


def jumps_at_end(positions: Sequence[int], planned: int | None = None) -> bool:
    """Return whether the last of ascending ``positions`` is far beyond the strides before it, and not the ``planned`` step."""
    if len(positions) <= FEWEST or positions[-1] in (planned, (planned or 0) - 1):
        return False
    widest = max(other - one for one, other in pairwise(positions[:-1]))
    return positions[-1] - positions[-2] > FAR * widest


def set_aside(table: EventTable) -> EventTable:
    """Return the table with the displaced records as events ``PASTED`` or ``JUMP``: they are no step records then.
    Nothing changes if the trainer introduces itself before them, or if the records that go on have another plan, or if displaced
    records come so often that processes take turns."""
    counts = table.by_source(lambda source: source.is_step and not source.rule.redraw) & not_nan(table.positions)
    opening = numbers_in(where(table.by_source(lambda source: source.rule.event in ("header", "compile"))))
    found: dict[str, list[Integers]] = {PASTED: [], JUMP: []}
    groups = 0
    for _, rows in table.series(counts):
        own = table.chosen(rows)
        displaced = list(islice(_displaced(own.positions), TURNS))
        if not displaced and (places := places_of(own)) is not own.positions:
            displaced = list(islice((group for group in _displaced(places) if group[0] == PASTED), TURNS))
        groups += len(displaced)
        if groups >= TURNS:
            return table
        planned = np.append(own.column("planned"), math.nan)
        for kind, at, count in displaced:
            mine = numbers_in(chosen(rows, slice(at - 1, at + count)))
            replanned = abs(planned[at - 1] - planned[at + count]) > 0
            if not replanned and not np.diff(np.searchsorted(opening, mine[:2])).any():
                found[kind].append(mine[1:])
    for kind, every in found.items():
        if every:
            table = table.read_as(np.concatenate(every), partial(_of_kind, kind))
    return table


def _of_kind(kind: str, source: Source) -> Source:
    return replace(source, rule=replace(source.rule, event=kind))


def _displaced(places: Floats) -> Iterator[tuple[str, int, int]]:
    """Yield each group of displaced records: ``PASTED`` or ``JUMP``, the index of the first one, and their number."""
    at, widest = 1, 0.0
    while at < len(places):
        rises = np.diff(places[at - 1 : at + PIECE])
        before = np.maximum.accumulate(np.append(widest, rises))
        odd = np.flatnonzero((rises < 0) | (rises > FAR * before[:-1]))
        end, widest = at + len(rises), float(before[-1])
        for one in odd[_may_go_on(places, at + odd)].tolist():
            count = count_displaced(
                _ascending(places[max(0, at + one - NEAR) : at + one]), places[at + one : at + one + NEAR].tolist()
            )
            if count:
                yield JUMP if rises[one] > 0 else PASTED, at + one, count
                end = min(at + one + count, len(places))
                widest = float(np.append(np.diff(places[at + one : end]), before[one]).max())
                break
        at = end


def _may_go_on(places: Floats, at: Integers) -> Mask:
    """Return the mask of the falls and rises ``at`` after which one of the next records may go on from the record before."""
    found = places[at] > places[at - 1]
    active = np.flatnonzero(~found & (at > 1))
    for near in range(1, NEAR):
        active = active[at[active] + near < len(places)]
        mine = at[active]
        one, other = places[mine + near - 1], places[mine + near]
        wide = (other >= places[mine - 1]) & (other - one > places[mine - 1] - places[mine - 2])
        found[active[wide]] = True
        active = active[~wide & (other >= one) & (other <= places[mine - 1])]
        if not len(active):
            break
    return found


def _ascending(places: Floats) -> list[float]:
    """Return the last of ``places`` that ascend."""
    falls = np.flatnonzero(np.diff(places) < 0)
    return list(places[falls[-1] + 1 if len(falls) else 0 :].tolist())


def places_of(steps: EventTable) -> Floats:
    """Return a number for each record (float64 [n]) that rises with training: its position, if any record has a step.
    Else epoch and count inside the epoch combined; without epochs the samples or tokens so far, NaN if a record lacks them."""
    if not_nan(steps.steps).any():
        return steps.positions
    if not not_nan(steps.positions).any():
        every = (steps.filled(name) for name in TOTALS)
        return next((counted for counted in every if not np.isnan(counted).any()), steps.positions)
    inside = steps.inside
    if not any(np.nan_to_num(inside[part]).any() for part in slices(len(steps))):
        return steps.positions
    inside = _last_batches_after(steps, np.nan_to_num(inside))
    whole, part = (np.unique(each, return_inverse=True)[1] for each in (steps.positions, inside))
    return (whole * (int(part.max()) + 1) + part).astype(np.float64)


def _last_batches_after(steps: EventTable, inside: Floats) -> Floats:
    """Return the counts inside the epoch (float64 [n]), with that of a smaller last batch above that of the record before.

    A script that prints the number of the batch times its size prints a lower count for it. A record is of such a batch if its
    count alone goes back in its epoch, but not to 0, and the next record of its series is of a later epoch; or if it is the last
    of its series, and no multiple of the stride of those before it, or as an epoch before ended. A restart would print the rest
    of the epoch.
    """
    inside, epochs = np.array(inside), steps.positions
    for _, own in steps.series(~np.isnan(epochs)):
        rows = numbers_in(own)
        counts, epoch = inside[rows], epochs[rows]
        falls = np.flatnonzero((epoch[1:] == epoch[:-1]) & (counts[1:] < counts[:-1]) & (counts[1:] > 0)) + 1
        falls = falls[falls > 1]
        stride = counts[falls - 1] - counts[falls - 2]
        rising = (epoch[falls - 2] == epoch[falls]) & (stride > 0)
        falls, stride = falls[rising], stride[rising]
        following = np.append(epoch, np.nan)[falls + 1]
        inner = following > epoch[falls]
        odd = (counts[falls] % stride != 0) | np.isin(counts[falls], counts[falls[inner]])
        last = falls[inner | (np.isnan(following) & (counts[falls - 1] % stride == 0) & odd)]
        inside[rows[last]] = counts[last - 1] + 1
    return inside


def comes_again(positions: Floats, *, counted: bool = False) -> Integers:
    """Return the records (indexes) at the position of the record before; none if positions are too coarse to tell records apart.

    A position is an epoch, or if ``counted`` a number from ``places_of``. Fractions of an epoch tell records apart if they are
    printed so finely that they rise with each record. Whole epochs do if at most a tenth of the records share one, or if each
    comes twice: two processes print them. If ``counted``, half of the records may share a position.
    """
    same = rising = 0
    for _, rise in rises(positions):
        same, rising = same + int(np.count_nonzero(rise == 0)), rising + int(np.count_nonzero(rise > 0))
    none = np.empty(0, np.int64)
    if not same or rising < FEWEST:
        return none
    unit = resolution(value for piece in pieces(positions) for value in piece.tolist()) or 1.0
    if unit < 1.0:  # else it is rounded to the same digits
        fine = sum(int(np.count_nonzero((rise > 0) & (rise < 1.5 * unit))) for _, rise in rises(positions))
        told = fine <= rising // 2
    else:
        times = Counter(np.unique(positions, return_counts=True)[1].tolist())
        alone = 2 * same <= len(positions) if counted else same <= (1 - OF_POSITIONS) * len(positions)
        told = times[2] >= OF_POSITIONS * times.total() or alone
    return gathered(np.int64, same, (first + 1 + np.flatnonzero(rise == 0) for first, rise in rises(positions))) if told else none
