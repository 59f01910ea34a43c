"""Find where the step records of a log begin anew, and compare them and their configuration with the start before.

Records are compared by kind: one rule of a grammar, in one stage, of one rank. A position is the step, or the epoch if no step is
printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from receipt_cli.events.counters import FAR
from receipt_cli.events.table import (
    EventTable,
    Row,
    Rows,
    at_rows,
    chosen,
    distinct,
    falls,
    mask_of,
    not_nan,
    put,
    where,
)
from receipt_cli.grammar.model import Rule
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.patterns import compile_later

FOLDS = 3
"""Number of starts from the beginning, without a sign of trouble, from which on they are a loop over runs and not restarts."""
FEWEST = 3
"""Fewest records that can show another launch: fewer may be a summary, or differ by a seed."""
MOSTLY = 0.75
"""Share of the common steps at which another launch prints other losses: the first losses may be equal by chance."""
COMPARED = 20
"""Most records of two starts that are compared to see whether the same trajectory is printed again."""
BACK = 1
"""Seconds by which a time must be earlier to count: no process prints its records so far back in time."""
SAVING = 3000, 3600
"""Seconds (least, most) that local time goes back in autumn between two records: an hour, less the time between them."""
MODEL = frozenset({"parameter_count", "model_name"})
STRONG = MODEL | {"sequence_length", "samples_per_step", "tokens_per_step", "planned_steps"}
CONFIGURATION = STRONG | {
    "seed", "world_size", "micro_batch_size", "gradient_accumulation_steps", "data_parallel", "tensor_parallel",
    "pipeline_parallel", "context_parallel", "expert_parallel", "accelerator_name", "accelerator_count", "precision", "optimizer",
}  # fmt: skip
"""Facts of a run as it was started: two launches with different values are two runs."""
_RUNS = r"(?:fold|seed|trial)"
_RUN = compile_later(rf"(?<![^\W_]){_RUNS}[ _#:=-]{{0,3}}\d+", re.IGNORECASE)
_RUN_NAME = compile_later(rf"{_RUNS}(?:_?(?:id|idx|index|number|no))?$", re.IGNORECASE)
Key = tuple[str, str | None, str, int]
"""A kind of step records: grammar, stage (None: without a name), rule, rank."""


class Known(dict[str, set[float | str]]):
    """The configuration that a run printed: for each fact the set of its values."""

    def learn(self, row: Row) -> None:
        """Add the values that a line prints."""
        for name in CONFIGURATION & row.facts.keys():
            self.setdefault(name, set()).add(row.facts[name])
        if row.planned is not None:
            self.setdefault("planned_steps", set()).add(float(row.planned))

    def join(self, other: Known) -> None:
        """Add the values of another configuration to this one, fact by fact."""
        for name, values in other.items():
            self.setdefault(name, set()).update(values)

    def differs(self, other: Known, names: frozenset[str]) -> bool:
        """Return whether both configurations have one of the facts ``names`` with no value in common."""
        return any(self[name].isdisjoint(other[name]) for name in names & self.keys() & other.keys())


@dataclass(frozen=True, eq=False)
class Alike:
    """Step records of one kind (n, numbered from 0) that print a position: ``rows`` of the table, ``places`` (float64 [n]) in
    training."""

    table: EventTable
    rows: Rows
    places: Floats

    def __len__(self) -> int:
        return len(self.places)

    def before(self, index: int) -> int:
        """Return how many of these records are before the row ``index``."""
        rows = self.rows
        return min(max(index - rows.start, 0), len(self)) if isinstance(rows, slice) else int(rows.searchsorted(index))

    def row(self, number: int) -> int:
        """Return the row in the table of the record with this number (from 0) among these."""
        return self.rows.start + number if isinstance(self.rows, slice) else int(self.rows[number])

    def between(self, begin: int, end: int) -> Alike:
        """Return the records number ``begin`` to ``end`` (exclusive), such as those of one launch."""
        return Alike(self.table, chosen(self.rows, slice(begin, end)), self.places[begin:end])

    @cached_property
    def fresh(self) -> Mask:
        """Mask of the records that may be the first of a run from the beginning: the position is not beyond one stride."""

        def fresh(part: slice) -> Mask:
            now, after = self.places[part], self.places[part.start + 1 : part.stop + 1]
            stride = (after if len(after) == len(now) else np.append(after, now[-1:])) - now
            return np.where(stride <= 0, now <= 1, (now <= stride * 1.5) | ((now <= 1) & (stride >= 1)))

        return mask_of(len(self.places), fresh)

    @cached_property
    def back(self) -> Mask:
        """Mask of the records with a position below that of the record before."""
        return falls(self.places)

    @cached_property
    def ends(self) -> Integers:
        """Numbers of the records after which no record comes, or none with a higher position (int64, ascending)."""
        return np.flatnonzero(np.append(self.places[1:] <= self.places[:-1], True))

    @property
    def last_row(self) -> Row:
        """The row of the last of these records."""
        return self.table[self.row(len(self) - 1)]

    @property
    def reached_plan(self) -> bool:
        """Whether the records have reached their last planned step."""
        planned = self.last_row.planned
        return planned is not None and len(self) > 1 and self.places[-1] >= planned - 1

    @property
    def nearly_done(self) -> bool:
        """Whether the next record would be beyond the last planned step; True without a plan."""
        planned = self.last_row.planned
        stride = self.places[-1] - self.places[-2] if len(self) > 1 else 0
        return planned is None or bool(self.places[-1] + max(stride, 1) >= planned)

    def leaps_to(self, row: Row, position: float) -> bool:
        """Return whether a record is far ahead of these and has another plan: a run began elsewhere."""
        plans = row.planned, self.last_row.planned
        replanned = None not in plans and plans[0] != plans[1] and len(self) > FEWEST
        return replanned and bool(position - self.places[-1] > FAR * np.diff(self.places).max())

    @property
    def left_epoch(self) -> bool:
        """Whether the records end inside an epoch, where another one would come: no stage ends so."""
        counters = self.last_row.counters
        inside, length = counters.get("epoch_step", 0), counters.get("epoch_steps", 0)
        return len(self) > 1 and bool(inside + self.places[-1] - self.places[-2] < length)


class Starts:
    """Groups the step records of a log by kind (rule, stage, rank) and answers whether, and how, they begin anew."""

    def __init__(self, table: EventTable) -> None:
        self.table = table
        self.ahead: dict[Key, Alike] = {}
        self.known_folds: dict[Key, tuple[float, bool]] = {}
        self.looked: dict[Key, tuple[int, int, dict[float, Row]]] = {}
        stages, stage = self._stages()
        counts = table.by_source(lambda source: source.is_step) & not_nan(table.positions)
        self.codes = np.full(len(table), -1, np.int16)
        self.kinds: list[Key] = []
        for source, rows in table.series(counts):
            for number in distinct(at_rows(stage, rows)):
                mine = rows if len(stages) == 1 else chosen(rows, where(at_rows(stage, rows) == number))
                rank = int(at_rows(table.rank, chosen(mine, slice(0, 1)))[0])
                key = (source.grammar.id, source.rule.phase or stages[number], source.rule.name, rank)
                if key in self.kinds:  # another source of one rule
                    put(self.codes, mine, self.kinds.index(key))
                    mine = where(self.codes == self.kinds.index(key))
                else:
                    self.kinds.append(key)
                put(self.codes, mine, self.kinds.index(key))
                self.ahead[key] = Alike(table, mine, at_rows(table.positions, mine))

    def _stages(self) -> tuple[list[str | None], Integers]:
        """Return the stages that lines announce, None first, and the index of the running stage for each record."""
        stages: list[str | None] = [None]
        begins = self.table.of_sources(lambda source: source.rule.event == "phase")
        found = np.broadcast_to(np.int64(0), len(self.table))
        if not len(begins):
            return stages, found
        stages += [row.rule.phase or row.texts.get("phase") for row in begins]
        return stages, np.searchsorted(begins.at, self.table.at, "right")

    def key(self, index: int) -> Key:
        """Return the kind of the step record at the row ``index``."""
        return self.kinds[int(self.codes[index])]

    def are_fresh(self, index: int) -> bool:
        """Return whether a record may be the first of a run from the beginning: its position is not beyond one stride."""
        coming = self.ahead[self.key(index)]
        return bool(coming.fresh[coming.before(index)])

    def are_repeated(self, index: int, track: Alike) -> bool:
        """Return whether the start at ``index`` and the one before (``track``) print the same losses: the same run again."""
        losses = [(one.metrics.get("loss"), other.metrics.get("loss")) for one, other in self._both(index, track)]
        return bool(losses) and all(mine is not None and mine == theirs for mine, theirs in losses)

    def are_others(self, index: int, track: Alike) -> bool:
        """Return whether three or more records begin anew with another stride, other columns, or other values than ``track``.
        Values are other if they differ at all but a few of the common steps."""
        begun = _first_records(self._start(index))
        mine = [*begun]
        known = self._first_of(track) if len(mine) >= FEWEST else {}
        theirs = sorted(known)
        if len(theirs) < FEWEST:
            return False
        if mine[0] != track.places[0]:
            return _stride(mine) not in (None, _stride(theirs))
        if _columns([*begun.values()][:FEWEST]) != _columns(known[position] for position in theirs[:FEWEST]):
            return _stride(mine) is not None
        both = ((_score(one), _score(other)) for one, other in self._both(index, track))
        compared = [one != another for one, another in both if one]
        common = min(len(compared), len(theirs))
        return mine[:common] == theirs[:common] and sum(compared) >= max(FEWEST, MOSTLY * len(compared))

    def are_earlier(self, index: int, track: Alike, *, introduced: bool) -> bool:
        """Return whether all records of the start at ``index`` have earlier times than the start before (``track``).
        After a banner it is enough if the first time is earlier; a change to winter time does not count."""
        back = track.last_row.clock - self.table[index].clock
        earlier = back > BACK and not SAVING[0] <= back <= SAVING[1]
        return earlier and (introduced or self._start(index).last_row.clock < track.table[track.row(0)].clock)

    def are_beside(self, index: int, track: Alike) -> bool:
        """Return whether the start at ``index`` was printed at the same time as the start before (``track``), by another process.
        False if it begins nearer to the end of that start: the clocks of two hosts may differ."""
        begin, now, end = track.table[track.row(0)].clock, self.table[index].clock, track.last_row.clock
        return now < end - BACK and now - begin < end - now and self._start(index).last_row.clock >= begin

    def _start(self, index: int) -> Alike:
        """Return the records of the start at ``index``, up to the next one of their kind with no higher position."""
        alike = self.ahead[self.key(index)]
        begin = alike.before(index)
        return alike.between(begin, 1 + int(alike.ends[np.searchsorted(alike.ends, begin)]))

    def _first_of(self, track: Alike) -> Mapping[float, Row]:
        """Return ``_first_records`` of the records of a launch so far; those that were looked at before are not read again."""
        kind, begin = self.key(track.row(0)), track.row(0)
        if self.looked.get(kind, (-1,))[0] != begin:
            self.looked[kind] = begin, 0, {}
        _, number, found = self.looked[kind]
        self.looked[kind] = begin, len(track), _first_records(track, number, found)
        return found

    def _both(self, index: int, track: Alike) -> Iterator[tuple[Row, Row]]:
        """Yield, in order, the pairs of records at the first positions of the start at ``index`` that ``track`` has, too."""
        known = self._first_of(track)
        for position, record in _first_records(self._start(index)).items():
            if position not in known:
                break
            yield record, known[position]

    def is_first_evaluation(self, begin: int, index: int) -> bool:
        """Return whether an evaluation is the first event of another launch: after an end it has values that the launch before,
        from row ``begin`` on, did not print."""
        event, end_seen = self.table[index], False
        scores = {name: value for name, value in event.metrics.items() if name.startswith("val_")}
        for place in range(index - 1, begin - 1, -1):
            other = self.table[place]
            kind = other.rule.event
            if kind == "step":
                return False
            if kind == "eval" and end_seen:
                return bool(scores) and all(
                    scores.items().isdisjoint(earlier.metrics.items()) and scores.keys() <= earlier.metrics.keys()
                    for earlier in self.table[begin:index]
                    if earlier.rule is event.rule
                )
            end_seen = end_seen or kind == "end"
        return False

    def folds(self, key: Key) -> tuple[float, bool]:
        """Return the first step (or epoch) of the records of a kind, and whether they come back to it often enough to be folds.

        ``FOLDS`` starts are needed, with ``FOLDS`` records each on average.
        """
        if key not in self.known_folds:
            places, back = self.ahead[key].places, self.ahead[key].back
            begun = back & (places == places[0])  # a record printed twice is no start
            long = len(places) >= FOLDS * (1 + np.count_nonzero(begun))
            beside = begun[1:-1] & (places[2:] >= places[:-2])  # the record after it goes on from the one before it
            if np.count_nonzero(beside) >= FOLDS:  # two processes take turns
                begun[1:-1] &= ~beside
            self.known_folds[key] = float(places[0]), bool(long and 1 + np.count_nonzero(begun) >= FOLDS)
        return self.known_folds[key]


def _first_records(alike: Alike, number: int = 0, found: dict[float, Row] | None = None) -> dict[float, Row]:
    """Return the first record at each of the first ``COMPARED`` positions, by position, in the order in which they come.

    ``found`` holds those before the record ``number``, and gets the others.
    """
    found = {} if found is None else found
    for at in range(number, len(alike)):
        if len(found) == COMPARED:
            break
        place = float(alike.places[at])
        if place not in found:
            found[place] = alike.table[alike.row(at)]
    return found


def runs_named(table: EventTable) -> set[int]:
    """Return the rows of the step records at which another fold, seed or trial is named, in their rule or as a figure.
    None if a name comes again after another: then several runs go on side by side."""
    rules = {s.key: run_in(s.rule.literals) for s in table.sources}
    figures = {s.key: next((name for name in s.others if _RUN_NAME.match(name)), None) for s in table.sources}
    steps = table.by_source(lambda s: s.is_step and (rules.get(s.key) or figures.get(s.key)) is not None)
    if not steps.any():
        return set()
    named = [(index, name) for index in np.flatnonzero(steps).tolist() if (name := _run_of(table[index])) is not None]
    changes = [(after[0], after[1]) for before, after in pairwise(named) if before[1] != after[1]]
    return {index for index, _ in changes} if len({name for _, name in named}) == len(changes) + 1 else set()


def _run_of(row: Row) -> str | None:
    if (named := run_in(row.rule.literals)) is not None:
        return named
    return next((f"{name} {value}" for name, value in row.unregistered.items() if _RUN_NAME.match(name)), None)


@lru_cache(maxsize=256)
def run_in(literals: tuple[bytes, ...]) -> str | None:
    """Return the fold, seed or trial that one of some texts names, None if none does."""
    found = (_RUN.search(literal.decode("utf-8", "replace")) for literal in literals)
    return next((one[0].lower() for one in found if one is not None), None)


def introduces(row: Row) -> bool:
    """Return whether a line prints a part of the configuration."""
    return row.planned is not None or not CONFIGURATION.isdisjoint(row.facts)


def configures(rule: Rule) -> bool:
    """Return whether a rule of headers reads a part of the configuration, and no metric."""
    targets = [field.target for field in rule.fields.values()] if rule.event == "header" else []
    return any(name in CONFIGURATION for _, name in targets) and all(kind in ("fact", "structural") for kind, _ in targets)


def _score(row: Row) -> str:
    """Return the loss of a record as text; without a loss its figures outside the registry, "" if it has none."""
    if "loss" in row.metrics:
        return repr(row.metrics["loss"])
    return ", ".join(repr(item) for item in sorted(row.unregistered.items()))


def _columns(rows: Iterable[Row]) -> set[str]:
    return {name for row in rows for name in (*row.metrics, *row.unregistered)}


def _stride(positions: Sequence[float]) -> float | None:
    """Return the gap of the first two steps (``positions``) if the next few gaps differ by at most 10 % from it, else None."""
    first, *others = [round(other - one, 6) for one, other in pairwise(positions[: FEWEST + 1])] or [0.0]
    return first if others and all(abs(other - first) <= first / 10 for other in others) else None
