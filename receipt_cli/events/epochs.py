"""Count the steps of the whole run for trainers that count by epoch.

An iteration counter that starts again with every epoch gives a position in the run only together with the epochs before:
step = steps of the epochs before + step inside the epoch. An epoch that the log did not show counts as long as this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from receipt_cli.events.counters import full_at_zero
from receipt_cli.events.model import Event, expand, part_of, rule_of
from receipt_cli.events.rows import LARGE, MAX_EPOCHS
from receipt_cli.grammar.model import Rule
from receipt_cli.numeric.array_types import Integers
from receipt_cli.records.envelope import NO_RANK

EPOCH = "epoch"


def count_epochs(events: list[Event]) -> list[Event]:
    """Set the step and the planned steps of ``events``, in log order, from their epoch counters; return them.

    An epoch on a line of its own applies to the records after it that print none, of the same rank.
    """
    _hand_on(events)
    events = _without_stale_frames(events)
    whole = _whole_runs(events)
    for event in events:
        own = event.counters
        if own and rule_of(event) in whole:
            event.counters = {name: value for name, value in own.items() if name not in ("epoch_step", "epoch_steps")}
            event.run = None if event.run is None else replace(event.run, inside=None)
    events = _without_evaluations(events)
    _fill_wrapped(events)
    events = _count_all(events, {id(e) for e in events if e.step is None})
    _number_single_passes(events)
    return _records(events)


def _fill_wrapped(events: Sequence[Event]) -> None:
    """Give the records that print 0 at the end of an epoch its length: their counter counts modulo that."""
    series: dict[tuple[str, str, int], list[Event]] = {}
    for event in events:
        if (
            event.is_step
            and event.step is None
            and {"epoch_number", "epoch_step", "epoch_steps"} <= (event.counters or {}).keys()
        ):
            series.setdefault((*rule_of(event), event.rank), []).append(event)
    for records in series.values():
        ends = [(event, index) for event in records for index in ((0,) if event.run is None else (0, -1))]
        places = [_place(event, index) for event, index in ends]
        for at in full_at_zero([(epoch or 0, inside or 0) for epoch, inside in places]):
            own = ends[at][0].counters or {}
            ends[at][0].counters = {**own, "epoch_step": own["epoch_steps"]}


def _hand_on(events: list[Event]) -> None:
    """Give the metrics that a line of progress prints to the next step record of its grammar and rank."""
    held: dict[tuple[str, int], Event] = {}
    for event in events:
        if event.rule.event == "progress" and event.metrics:
            held[event.grammar.id, event.rank] = event
        elif held and event.is_step:
            announced = held.pop((event.grammar.id, event.rank), None) or held.pop((event.grammar.id, NO_RANK), None)
            if announced is not None:
                event.fill(announced)


def _without_stale_frames(events: list[Event]) -> list[Event]:
    """Return the events without full frames of an epoch that then begins: a bar has the next epoch's name before it is reset."""
    frames: dict[tuple[str, str, int], list[int]] = {}
    for at, event in enumerate(events):
        if event.is_step and event.rule.redraw and event.step is None and event.counters:
            frames.setdefault((*rule_of(event), event.rank), []).append(at)
    stale: set[int] = set()
    for places in frames.values():
        before: int | None = None  # the epoch of the record before the last one of an event
        for at, following in pairwise(places):
            event, (epoch, inside), begins = events[at], _place(events[at], -1), _place(events[following], 0)
            before = _place(event, -2)[0] if event.run is not None else before
            full = inside is not None and inside == (event.counters or {}).get("epoch_steps")
            reset = full and begins[0] == epoch and begins[1] is not None and begins[1] < (inside or 0)
            if reset and epoch is not None and before == epoch - 1:
                stale.add(at)
            before = epoch
    if not stale:
        return events
    kept = [part_of(e, 0, e.records - 1) if n in stale and e.run is not None else e for n, e in enumerate(events)]
    return [event for n, event in enumerate(kept) if n not in stale or events[n].run is not None]


def _place(event: Event, index: int) -> tuple[int | None, int | None]:
    """Return the epoch, and the step inside of it, that a record of an event prints: the first (0), or one from the end."""
    own, run = event.counters or {}, event.run
    at = len(run) + index if run is not None and index else -1
    if run is None or at < 0:
        return own.get("epoch_number"), own.get("epoch_step")
    epoch = run.epoch_at(at) if run.epochs is not None else own.get("epoch_number")
    return epoch, int(run.counts[at]) if run.counts is not None else own.get("epoch_step")


def _without_evaluations(events: list[Event]) -> list[Event]:
    """Return the events without passes of evaluation that one rule reads as it reads training.

    They have a total of their own, come behind the training of the same epoch, twice or more, and have fewer records.
    """
    running: dict[tuple[str, int], dict[str, int]] = {}
    passes: dict[tuple[str, str, int], list[tuple[int, int, list[Event]]]] = {}
    for event in events:
        own, place = event.counters or {}, (event.grammar.id, event.rank)
        if event.rule.event in ("progress", "header", "phase"):
            running[place] = {**running.get(place, {}), **own}
        elif event.is_step and event.step is None and "epoch_step" in own:
            known = {**(running.get(place) or running.get((event.grammar.id, NO_RANK)) or {}), **own}
            epoch, length = known.get("epoch_number"), known.get("epoch_steps")
            if epoch is None or length is None:
                continue
            mine = passes.setdefault((event.grammar.id, event.rule.name, event.rank), [])
            if not mine or mine[-1][:2] != (epoch, length):
                mine.append((epoch, length, []))
            mine[-1][2].append(event)
            if event.run is not None and (last := event.run.epoch_at(len(event.run) - 1)) not in (None, epoch):
                mine.append((last or 0, length, []))
    left_out = {id(event) for mine in passes.values() for event in _evaluations(mine)}
    return [event for event in events if id(event) not in left_out] if left_out else events


def _evaluations(passes: Sequence[tuple[int, int, list[Event]]]) -> list[Event]:
    """Return the records of the passes of evaluation among those of one rule: epoch, length and records of each."""
    pairs = [(one, other) for one, other in pairwise(passes) if one[0] == other[0]]
    lengths = {(one[1], other[1]) for one, other in pairs}
    if len(pairs) < 2 or len(lengths) != 1 or len({length for _, length, _ in passes}) != 2:
        return []
    [(training, _)] = lengths
    theirs = [event for _, length, events in passes if length != training for event in events]
    count = sum(event.records for _, _, events in passes for event in events)
    return theirs if 2 * sum(event.records for event in theirs) < count else []


def recount_epochs(events: list[Event]) -> None:
    """Count the steps of one launch anew where epochs say them: what another launch printed does not count in it."""
    unprinted = {id(event) for event in events if event.step is None or _is_counted(event)}
    for event in events:
        if event.rule.event == "step" and event.step is not None and id(event) in unprinted:
            event.step = None
    events[:] = _count_all(events, unprinted)


def _is_counted(event: Event) -> bool:
    """True for a record whose step comes from its own epoch counters: its rule prints none, and they give one."""
    rule, own = event.rule, event.counters or {}
    if "epoch_number" not in own or any(field.target == ("structural", "step") for field in rule.fields.values()):
        return False
    return rule.counts == "epoch" or ("epoch_step" in own and EPOCH in event.metrics)


def _count_all(events: list[Event], unprinted: set[int]) -> list[Event]:
    """Count ``events``; ``unprinted`` are the identities of those that print no step. Return them, runs that cannot be counted
    together as the events of their records."""
    counted: list[Event] = []
    running: dict[tuple[str, int], dict[str, int]] = {}
    lengths: dict[tuple[str, int, int], _Stretches] = {}
    from_zero = {e.grammar.id for e in events if e.counters and e.counters.get("epoch_number") == 0}
    for event in events:
        kind = event.rule.event
        own = event.counters
        several = [event]
        if own and kind in ("progress", "header", "phase"):
            running[event.grammar.id, event.rank] = {**running.get((event.grammar.id, event.rank), {}), **own}
        if kind == "step":
            before = running.get((event.grammar.id, event.rank)) or running.get((event.grammar.id, NO_RANK)) or {}
            first = event.rule.epochs_from
            first = int(event.grammar.id not in from_zero) if first is None else first
            known = id(event) not in unprinted
            key = event.grammar.id, event.rank, first
            stretches = lengths.get(key) or lengths.setdefault(key, _Stretches(first))
            _count(event, own or {}, before, stretches)
            if not _count_run(event, known, {**before, **(own or {})}.get("epoch_steps"), stretches):
                event.run = None if event.run is None else replace(event.run, numbers=None, step=None)
                several = list(expand(event))
                for one in several[1:]:
                    _count(one, one.counters or {}, before, stretches)
        elif kind == "eval" and own and "epoch_number" in own:
            event.metrics.setdefault(EPOCH, float(own["epoch_number"]))
        counted += several
    return counted


def _whole_runs(events: list[Event]) -> set[tuple[str, str]]:
    """Return the rules whose bars count the epochs themselves: ``Epoch 3/20: 3/20`` in every record, and not only once."""
    seen: dict[tuple[str, str], set[int | None]] = {}
    for event in events:
        own = event.counters or {}
        if event.rule.event == "step" and "epoch_step" in own and "epochs_planned" in own:
            whole = own["epoch_step"] == own.get("epoch_number") and own["epochs_planned"] == own.get("epoch_steps")
            if whole and event.run is not None:
                whole = bool(np.all(event.run.epoch_numbers == event.run.counts))
            seen.setdefault(rule_of(event), set()).add(own["epoch_step"] if whole else None)
    return {key for key, counts in seen.items() if len(counts) > 1 and None not in counts}


def _number_single_passes(events: list[Event]) -> None:
    """Number the records that print their place in a pass of one length, of which the log shows one pass.

    Where the counter never goes back, the pass is the whole run; where it does, the pass of a record is unknown.
    """
    passes: dict[tuple[str, str, int], list[Event]] = {}
    for event in events:
        if event.rule.event == "step" and event.step is None and event.rule.counts == "step" and event.counters:
            passes.setdefault((event.grammar.id, event.rule.name, event.rank), []).append(event)
    for records in passes.values():
        counted = [(e.counters or {}).get("epoch_step") for e in records]
        length, *others = {(e.counters or {}).get("epoch_steps") for e in records}
        inside = [n for n in counted if n is not None]
        if len(inside) < len(records) or others or length is None or any(b < a for a, b in pairwise(inside)):
            continue
        for event, number in zip(records, inside, strict=True):
            event.step, event.planned = number, length
            if event.run is not None and event.run.inside is not None:
                event.run = replace(event.run, numbers=None, step=event.run.inside)


class _Lengths:
    """How many steps each epoch had, and so how many precede each; and the last record, by epoch and step inside."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.seen: dict[int, int] = {}
        self.before: dict[int, int] = {}
        self.last = (-1, -1)
        self.length = 0
        self.passed, self.counted, self.steps = first, 0, 0
        """An epoch, and how many before it were seen, with how many steps."""

    def steps_before(self, epoch: int, inside: int, length: int) -> int:
        """Return the steps of the epochs before ``epoch``, which has ``length``."""
        if epoch not in self.before:
            if epoch < self.passed:
                self.passed, self.counted, self.steps = self.first, 0, 0
            known = [self.seen[e] for e in range(self.passed, epoch) if e in self.seen]
            self.passed, self.counted = max(self.passed, epoch), self.counted + len(known)
            self.steps += sum(known)
            self.before[epoch] = self.steps + length * (max(0, epoch - self.first) - self.counted)
        if epoch < self.passed and self.seen.get(epoch) != length:
            self.passed, self.counted, self.steps = self.first, 0, 0
        self.seen[epoch] = length
        self.last, self.length = (epoch, inside), length
        return self.before[epoch]


class _Stretches:
    """The epochs of what one trainer printed: where one epoch has two lengths, they are of two launches or stages.

    Two that alternate, such as training and validation, each go on where they were.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self.now = self.other = _Lengths(first)

    def steps_before(self, epoch: int, inside: int, length: int) -> int:
        """Return the steps of the epochs before ``epoch``, which has ``length``, in its launch and stage."""
        now = self.now
        if now.length != length:
            if self.other.length == length and (epoch, inside) > self.other.last:
                self.now, self.other = self.other, now
            elif now.seen.get(epoch, length) != length or (now.length and (epoch, inside) < now.last):
                self.now, self.other = _Lengths(self.first), now
        return self.now.steps_before(epoch, inside, length)


def _count(event: Event, own: dict[str, int], running: dict[str, int], lengths: _Stretches) -> None:
    rule = event.rule
    counted = rule.counts == "epoch" or "epoch_step" in own or "epoch_number" in own
    if event.step is not None or not counted:
        if own and "epoch_number" in own:
            event.metrics.setdefault(EPOCH, float(own["epoch_number"]))
        return
    counters = {**running, **own}
    epoch, inside, length = (counters.get(name) for name in ("epoch_number", "epoch_step", "epoch_steps"))
    if epoch is None:
        return
    event.metrics.setdefault(EPOCH, float(epoch))
    planned = counters.get("epochs_planned")
    if rule.counts == "epoch" or inside is None:
        event.step = epoch
        event.planned = event.planned if planned is None else planned
    elif length and epoch < MAX_EPOCHS:
        before = lengths.steps_before(epoch, inside, length)
        event.step = before + inside
        event.planned = event.planned if planned is None else before + (planned - epoch + lengths.first) * length


def _count_run(event: Event, known: bool, length: int | None, lengths: _Stretches) -> bool:
    """Set the steps and the epochs of the run behind ``event`` from its counters; ``known``: its steps are printed.

    Return False, and set no steps, where they do not rise in epochs of one ``length``, or no array holds them: then each record
    counts alone.
    """
    run, counters = event.run, event.counters
    if run is None or counters is None:
        return True
    epochs = None
    if run.epochs is not None and {run.epoch_at(0), run.epoch_at(len(run) - 1)} != {counters["epoch_number"]}:
        epochs = run.epoch_numbers
    if EPOCH in event.metrics and run.metric(EPOCH) is None:
        column = run.epochs if epochs is not None else None
        epoch = event.metrics[EPOCH]
        run = replace(run, epoch=epoch) if column is None else replace(run, metrics={**run.metrics, EPOCH: (column,)})
    if not known and event.step is not None:
        if event.step >= LARGE:
            return False
        counts = run.counts if "epoch_step" in counters else None
        if counts is None:
            run = replace(run, numbers=None, step=run.epochs)
        elif epochs is None:
            run = replace(run, numbers=None, step=run.inside, beyond=event.step - counters["epoch_step"])
        else:
            first = event.step - counters["epoch_step"] - counters["epoch_number"] * (length or 0)
            steps = _steps_of(epochs, counts, length or 0, first, lengths)
            if steps is None or steps[0] <= event.step or (np.diff(steps) <= 0).any():
                return False
            run = replace(run, numbers=steps, step=None, beyond=0)
    event.run = run
    return True


def _steps_of(epochs: Integers, counts: Integers, length: int, first: int, lengths: _Stretches) -> Integers | None:
    """Return the step of each record (int64 [n]) in ``epochs`` of one ``length``, ``counts`` inside of them.

    None where an epoch does not begin at ``first`` and so many lengths, or beyond what an array holds.
    """
    ends = np.append(np.flatnonzero(np.diff(epochs)), len(epochs) - 1)
    last = zip(epochs[ends].tolist(), counts[ends].tolist(), strict=True)
    before = [(epoch, lengths.steps_before(epoch, inside, length)) for epoch, inside in last]
    if any(steps >= LARGE or steps != first + epoch * length for epoch, steps in before):
        return None
    return np.repeat(np.array([steps for _, steps in before], np.int64), np.diff(ends, prepend=-1)) + counts


def _records(events: list[Event]) -> list[Event]:
    """Leave out what looks like a step record and is none.

    That is: records that a line (``repeats``) announces as repeated; the epoch line of an evaluation, where no epoch runs and
    other records have one; the last bar, drawn once more after the trainer has reported its end. A record that a line of
    progress announces is one of an evaluation.
    """
    numbered = {rule_of(e) for e in events if e.rule.counts == "epoch" and e.step is not None}
    repeats: dict[str, tuple[int, Event]] = {}
    evaluations: dict[str, Rule] = {}
    last: dict[str, Event] = {}
    done: set[str] = set()
    kept: list[Event] = []
    for event in events:
        name, rule = event.grammar.id, event.rule
        if event.is_step:
            left, herald = repeats.pop(name, (0, event))
            if left:
                repeats |= {name: (left - 1, herald)} if left > 1 else {}
                if herald.rule.event == "progress" and event.run is None:
                    evaluation = evaluations.setdefault(rule.name, replace(rule, event="eval"))
                    kept.append(_evaluation(event, evaluation))
                continue
            if rule.counts == "epoch" and event.step is None and rule_of(event) in numbered:
                continue
            if name in done and rule.redraw and event.step is not None and last[name].step == event.step:
                last[name].metrics.update(event.metrics)
                last[name].unregistered = {**last[name].unregistered, **event.unregistered}
                continue
            last[name] = event
            done.discard(name)
        elif rule.event == "end" and name in last:
            done.add(name)
        if rule.repeats:
            repeats[name] = rule.repeats, event
        kept.append(event)
    return kept


def _evaluation(event: Event, rule: Rule) -> Event:
    """Return a record that looks like training as one of ``rule``, an evaluation: its figures are those of the validation."""
    event.rule = rule
    event.metrics = {f"val_{name}" if name == "loss" else name: value for name, value in event.metrics.items()}
    event.unregistered = {f"val_{name}": value for name, value in event.unregistered.items()}
    event.meanings = {f"val_{name}" if name == "loss" else name: meaning for name, meaning in event.meanings.items()}
    return event
