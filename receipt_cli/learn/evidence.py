"""Weigh the explanations of a log: which records are those of its training. The best one is read if its lead is clear.

An explanation is a kind of records with their counter and their loss. Evidence is a table of names, measures and weights; the
weights are the vocabulary's and are fitted (``benchmarks/fit_reading.py``). A measure is 0 where it says nothing.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import NamedTuple

from receipt_cli.learn.between import opens
from receipt_cli.learn.counting import ABSENT, EPOCHS, FEW, GLOBAL, PER_EPOCH, drawn_steps
from receipt_cli.learn.emit import Induced
from receipt_cli.learn.headings import counted_values
from receipt_cli.learn.names import LOSS, METRIC, SCORE, is_mean
from receipt_cli.learn.reading import CONTRARY, DOUBTS, FIGURES, SEVERAL_COUNTS, Reading
from receipt_cli.learn.readings import without
from receipt_cli.learn.series import Group, find_groups
from receipt_cli.learn.shapes import EVERY
from receipt_cli.learn.tokens import FRACTION
from receipt_cli.learn.vocabulary import Vocabulary, normalise

RECORDS, LINES, ROWS, BAR = "records", "records over several lines", "rows of a table", "a bar"
"""Kinds of explanations."""


class Log(NamedTuple):
    """What explanations are weighed by: all records of the log, and the groups that these form."""

    readings: Sequence[Reading]
    groups: Sequence[Group]
    vocabulary: Vocabulary
    barred: bool
    """A progress bar can number records without a step."""
    preceded: frozenset[int] = frozenset()
    """Ids of the readings whose records are those of another group with other words before them."""

    def losses(self, explanation: Explanation) -> int:
        """Return the number of training records with a loss from the first to the last record of an explanation, without bars.

        The means of epochs among steps do not count. Records whose counts nothing explains are of the training.
        """
        (first, last), group = explanation.span, explanation.group
        steps = group is not None and group.main.counter.mode == GLOBAL
        told = (r for r in self.readings if r.loss is not None and not (r.evaluation or r.bar or {*r.doubts} - {SEVERAL_COUNTS}))
        told = (r for r in told if id(r) not in self.preceded)
        beside = (r for r in told if r.shape.first <= last and first <= r.shape.last)
        return sum(r.shape.count for r in beside if not (steps and r.counter.mode == EPOCHS))


@dataclass(frozen=True, eq=False)
class Explanation:
    """A kind of records that may be those of the training: a ``group``, or the ``rules`` of another kind."""

    kind: str
    group: Group | None = None
    rules: tuple[Induced, ...] = ()

    @cached_property
    def count(self) -> int:
        """Records of the training, by this explanation."""
        return self.group.count if self.group is not None else self.records.records

    @property
    def records(self) -> Induced:
        """The rule of the records."""
        return next(rule for rule in self.rules if rule.body["event"] == "step")

    @property
    def sample(self) -> bytes:
        """One of the records."""
        return self.group.main.shape.samples[0].strip() if self.group is not None else self.records.samples[0]

    @property
    def sure(self) -> bool:
        """True if the loss is certain: its record also prints a counter, or a rule names it."""
        return self.group.main.sure if self.group is not None else any("loss" in rule.fields for rule in self.rules)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last record with a word of a training, if the records are of one group; else all of them."""
        return self.group.span if self.group is not None else (0, EVERY)

    @property
    def outcome(self) -> tuple[object, ...]:
        """How many records it reads, and what counts in the first and in the last; of other kinds than a group only itself."""
        if self.group is None:
            return (self,)
        counter, columns = self.group.main.counter, self.group.main.shape.columns
        return (self.count, *((columns[at].first, columns[at].last) for at in counter.places))

    @property
    def mean(self) -> bool:
        """Whether the loss is called a mean: it may be that of all steps so far."""
        main = self.group.main if self.group is not None else None
        return main is not None and main.loss is not None and is_mean(main.names[main.loss], main.vocabulary)

    @property
    def figures(self) -> Sequence[float | None]:
        """The first losses of its records."""
        main = self.group.main if self.group is not None else None
        return () if main is None or main.loss is None else main.shape.columns[main.loss].numbers

    def rivals(self, other: Explanation) -> bool:
        """Return whether at most one of the two can be right: their records mix, and both have a loss or their results differ."""
        (first, last), (begin, end) = self.span, other.span
        losses = all(e.group is None or e.group.main.loss is not None for e in (self, other))
        if self.group is not None and other.group is not None and self.sure and other.sure and not among(self.group, other.group):
            return False
        return first <= end and begin <= last and (losses or self.outcome != other.outcome)

    def repeats(self, other: Explanation) -> bool:
        """Return whether the records are of the same steps and print the same losses, or only one of the two prints a mean.

        ``Step: 2 | Loss: 0.0062`` and ``[step 2] avg_loss=0.0031``.
        """
        return self.outcome == other.outcome and (self.mean != other.mean or self.figures == other.figures)


class Weighed(NamedTuple):
    """An explanation with the evidence that was found, by name: its measure. ``score``: the sum of weights times measures."""

    explanation: Explanation
    measures: Mapping[str, float]
    score: float


class Decision(NamedTuple):
    """What is read, the best first, and all explanations that were weighed, by their scores.

    ``rival``: the explanation that is as good as the best where nothing is read for that.
    """

    chosen: tuple[Explanation, ...]
    weighed: tuple[Weighed, ...]
    rival: Explanation | None = None


def weigh(explanation: Explanation, log: Log) -> Weighed:
    """Return an explanation with its evidence."""
    found = {name: float(measure(explanation, log)) for name, measure in EVIDENCE.items()}
    measures = {name: value for name, value in found.items() if value}
    weights = log.vocabulary.evidence
    return Weighed(explanation, measures, sum(weights[name] * value for name, value in measures.items()))


def decide(explanations: Sequence[Explanation], log: Log) -> Decision:
    """Choose the best explanation of a log, and the other stages of its run; none if its score, or its lead, is too small."""
    weighed = tuple(
        sorted((weigh(each, log) for each in explanations), key=lambda w: (-w.score, w.explanation.mean, -w.explanation.count))
    )
    if not weighed or weighed[0].score <= 0:
        return Decision((), weighed)
    best = weighed[0].explanation
    close = (w for w in weighed[1:] if weighed[0].score - w.score < log.vocabulary.margin)
    rival = next((w for w in close if best.rivals(w.explanation) and not best.repeats(w.explanation)), None)
    if rival is not None:
        return Decision((), weighed, rival.explanation)
    return Decision((best, *stages(best, [w.explanation for w in weighed[1:] if w.score > 0])), weighed)


def stages(best: Explanation, others: Sequence[Explanation]) -> list[Explanation]:
    """Return the other stages of the run that ``best`` is one of: records as sure, before or behind it in the log."""
    if best.group is None or not best.sure:
        return []
    main, found = best.group.main, [best]
    for other in others:
        if other.group is None:
            continue
        alike = other.group.main.loss is not None and other.group.main.family == main.family
        if (other.sure or alike) and not any(each.rivals(other) for each in found):
            found.append(other)
    return found[1:MAX_STAGES]


MAX_STAGES = 16
"""Stages of a run that are learned: ten folds, and then some."""


def reason(weighed: Weighed, decision: Decision, vocabulary: Vocabulary) -> str:
    """Return in words why an explanation is not read: a rival, or the evidence that weighs most against it."""
    first = decision.weighed[0]
    rival = (
        decision.rival
        if weighed is first
        else first.explanation
        if weighed.score > 0 or weighed.explanation is decision.rival
        else None
    )
    if rival is not None:
        return vocabulary.reasons["rival"].format(rival.sample.decode("utf-8", "replace")[:SHOWN])
    worst = min(weighed.measures, key=lambda name: vocabulary.evidence[name] * weighed.measures[name], default="few")
    return vocabulary.reasons[worst if vocabulary.evidence[worst] < 0 else "few"]


SHOWN = 60
"""Characters of a rival that a reason quotes."""


Measure = Callable[[Explanation, Log], float]
STRONG, WEAK = [*FIGURES][:3], [*FIGURES][4:]
"""Figures of steps or a loss; and those that say little."""


def _precedes(group: Group, plain: Group, vocabulary: Vocabulary) -> bool:
    """Return whether the records of a group are those of a plain one with other words before them: another model's."""
    shapes = [g.main.shape for g in (group, plain)]
    behind = len(shapes[1].columns) - _place(plain, max)
    texts = [re.findall(rb"[^\W\d_]+", b" ".join(shape.literals[:-behind]).lower()) for shape in shapes]
    rests = [(shape.literals[-behind:], [column.kind for column in shape.columns[-behind:]]) for shape in shapes]
    more = len(texts[0]) - len(texts[1])
    if more < 1 or rests[0] != rests[1] or 2 * plain.count < group.count:
        return False
    if len(shapes[0].columns) - len(shapes[1].columns) > _place(group, min):
        return False  # it counts before what it prints more
    first, last = group.span
    if (last < plain.span[0] or plain.span[1] < first) and MANY * group.count > plain.count:
        return False  # another stage
    for at in range(len(texts[1]) + 1):
        if texts[0][:at] + texts[0][at + more :] == texts[1]:
            words = {word.decode("ascii", "replace") for word in texts[0][at : at + more]}
            return words.isdisjoint(vocabulary.training)
    return False


def explain(
    readings: Sequence[Reading], rules: Mapping[str, Sequence[Induced]], bars: bool, vocabulary: Vocabulary
) -> tuple[list[Explanation], Log]:
    """Return an explanation for each kind of records, one for the records that ``rules`` read, and the log to weigh them by."""
    groups = find_groups(readings)
    late = {id(r): replace(r, lags=True) for group in groups if _shown_before(group) for r in group.readings}
    groups = [replace(group, readings=[late.get(id(r), r) for r in group.readings]) for group in groups]
    grouped = {id(r.shape): r for group in groups for r in group.readings}
    told = [grouped.get(id(reading.shape), reading) for reading in readings]
    found = [Explanation(ROWS if group.main.shape.header else RECORDS, group) for group in groups]
    found += [Explanation(kind, rules=tuple(made)) for kind, made in rules.items() if made]
    others = (g for g in groups if any(_precedes(g, plain, vocabulary) for plain in groups if _is_other(plain, g)))
    return found, Log(told, groups, vocabulary, bars, frozenset(id(r) for group in others for r in group.readings))


def _is_other(group: Group, than: Group) -> bool:
    return group is not than and group.main.plain and not group.against


def _cut(group: Group, log: Log) -> float:
    """Return whether at least as many lines of the log as ``group`` has records end where their loss should be."""
    return sum(r.shape.count for r in log.readings if _lacks_loss(r, log.vocabulary)) >= group.count


def _lacks_loss(reading: Reading, vocabulary: Vocabulary) -> bool:
    """Return whether a record that counts ends where its loss should stand: the line was cut."""
    words = normalise(vocabulary.english(reading.shape.literals[-1].decode("utf-8", "replace")).rstrip(" :=")).split()
    words = words[:-1] if words[-1:] == ["is"] else words
    told = any(" ".join(words[-size:]) in vocabulary.loss for size in (1, 2, 3))
    return told and reading.counter.mode in (GLOBAL, PER_EPOCH, EPOCHS) and not reading.evaluation and reading.loss is None


def _place(group: Group, choose: Callable[[list[int]], int]) -> int:
    """Return the place of the first or the last counter of a group, as ``choose`` picks; without counters, that of a metric."""
    main = group.main
    return choose(main.counter.places or [*main.roles][:1])


MANY = 4
"""So many times the records of one kind are too many to be what a few scores stand for."""


def among(group: Group, others: Group) -> bool:
    """Return whether records of a group stand among others, in more than one place if these or the group have several."""
    places = [sorted(place for r in each.readings for place in r.shape.places) for each in (others, group)]
    gaps = {bisect_left(places[0], place) for place in places[1]} - {0, len(places[0])}
    return len(gaps) > (min(map(len, places)) > MANY)


def _is_outnumbered(group: Group, readings: Sequence[Reading]) -> bool:
    """Return whether the records of a group have only scores, and many more of another kind count with figures that move."""
    others = without(readings, group.readings) if group.main.figure not in STRONG or group.main.against else []
    return any(
        r.counter.mode == GLOBAL and not (r.counter.tentative or r.evaluation or r.bar)
        and r.shape.count >= MANY * group.count
        and any(c.varies and not c.integer for c in r.shape.columns)
        for r in others
    )  # fmt: skip


def _enough(group: Group, readings: Sequence[Reading], vocabulary: Vocabulary) -> bool:
    """True when enough records were seen to trust a group; more where no loss is printed and no total."""
    main = group.main
    if main.counter.tentative:
        seen = _counted(group)
        rises = sum(1 for (_, a), (_, b) in pairwise(seen) if b > a)
        if any(b < a for (_, a), (_, b) in pairwise(seen)):
            return False
        if rises < 2 or group.count < vocabulary.min_records:
            return _rich(group, readings) or _drawn(group, readings) or _unambiguous(group, readings, rises)
    step = main.counter.step
    total = step is not None and main.shape.columns[step].kind == FRACTION
    epoch = main.counter.epoch
    total = total or (step is None and epoch is not None and main.shape.columns[epoch].kind == FRACTION)
    sure = main.loss is not None or (main.figure in WEAK and main.counter.mode != ABSENT)
    return group.count >= (vocabulary.min_records if sure or total else FEW)


def _lags(group: Group) -> bool:
    """True for a bar that shows a loss before its first step is done."""
    first = min(group.readings, key=lambda r: r.shape.first)
    values = counted_values(first)
    return group.main.bar and first.loss is not None and bool(values) and values[0] == 0


def _shown_before(group: Group) -> bool:
    """True for a bar whose every loss is shown before its step is counted; what it shows at 0 is no mere start value."""
    main, first = group.main, min(group.readings, key=lambda r: r.shape.first)
    if not _lags(group) or first.loss is None or main.counter.mode not in (GLOBAL, PER_EPOCH):
        return False
    step = main.counter.step
    value = first.shape.columns[first.loss].values[0].value
    return step is not None and main.shape.columns[step].kind == FRACTION and bool(value) and math.isfinite(value or 0.0)


def _shows_several(reading: Reading) -> bool:
    """Return whether a bar shows three losses or more before it counts on: which is of which step is unknown."""
    step, loss = reading.counter.step, reading.loss
    if step is None or loss is None:
        return False
    shown = [(a.value, b.value) for a, b in zip(*(reading.shape.columns[at].values for at in (step, loss)), strict=True)]
    return any(len({value for _, value in rows}) > 2 for _, rows in groupby(shown, key=lambda row: row[0]))


RICH = 3
"""Named numbers (a step, a loss, another metric) that are a step record though it is the only one."""
EARLY = 10
"""A step up to which a run may have come that printed one or two records; a final summary says a later one."""


def _rich(group: Group, readings: Sequence[Reading]) -> bool:
    main = group.main
    step = main.counter.step if main.counter.mode == GLOBAL else main.counter.epoch if main.counter.mode == EPOCHS else None
    telling = (METRIC, LOSS) if main.counter.mode == GLOBAL else (METRIC, LOSS, SCORE)
    names = 1 + sum(1 for at, role in main.roles.items() if role.kind in telling and main.names[at].sure)
    if main.loss is None or step is None or not main.names[step].words or names < RICH:
        return False
    values = [value for r in group.readings for value in counted_values(r)]
    if any(r.loss is not None and r.counter.step is not None for r in without(readings, group.readings)):
        return False
    return all(value is not None and value <= EARLY for value in values)


def _unambiguous(group: Group, readings: Sequence[Reading], rises: int) -> bool:
    """Return whether one or two records name a step that counts up, or counts to a total, and a loss that no others print."""
    main, step = group.main, group.main.counter.step
    if main.loss is None or step is None or main.counter.mode != GLOBAL or main.bar or not main.sure:
        return False
    others = [r.counter.step for r in without(readings, group.readings) if r.loss is not None]
    sure = sum(main.names[at].sure for at in main.roles)
    total = not others and main.shape.columns[step].kind == FRACTION and sure >= RICH
    named = bool(main.names[step].words) and main.names[main.loss].sure and set(others) <= {None}
    return named and (total or rises == group.count - 1 > 0)


def _drawn(group: Group, readings: Sequence[Reading]) -> bool:
    """True for the only bars of the log that end with a loss: what counts in a bar is known without seeing it count."""
    main = group.main
    if main.loss is None or main.counter.mode not in (GLOBAL, PER_EPOCH) or main.counter.step not in drawn_steps(main.shape):
        return False
    if main.counter.mode == GLOBAL and any(b <= a for (_, a), (_, b) in pairwise(_counted(group))):
        return False  # drawn again from the start: passes that nothing tells apart
    return not any(r.bar and r.loss is not None for r in without(readings, group.readings))


def _counted(group: Group) -> list[tuple[int, float]]:
    """Return line and counter of the kept records of a group, in log order."""
    pairs = (pair for r in group.readings for pair in zip(r.shape.lines, counted_values(r), strict=False))
    return sorted((line, value) for line, value in pairs if value is not None)


def _of(measure: Callable[[Group, Log], float]) -> Measure:
    return lambda e, log: e.group is not None and measure(e.group, log)


def _told_against(name: str) -> Measure:
    return _of(lambda group, _: name in group.main.against)


def _figure(name: str) -> Measure:
    """Return a function that returns whether the records of an ``Explanation`` print the figure ``name``, such as the loss."""

    def measure(e: Explanation, _: Log) -> float:
        if e.group is not None:
            return e.group.main.figure == name
        return name == ("loss" if e.sure else "scores")

    return measure


def _counted_above(group: Group, log: Log) -> bool:
    """Return whether a line before each record counts, and nothing on it."""
    return (
        group.main.counter.mode == ABSENT
        and group.main.loss is not None
        and any(opens(r, group.main, log.vocabulary) for r in log.readings)
    )


def _metrics(group: Group, _: Log) -> float:
    return min(5, sum(role.kind in (METRIC, LOSS) for role in group.main.roles.values()))


def _unpaired(e: Explanation, _: Log) -> bool:
    """Return whether the number of lines with a counter differs from the number of lines with values that follow them."""
    counts = {rule.count for rule in e.rules if rule is e.records or "loss" in rule.fields}
    return e.kind == LINES and len(counts) > 1


EVIDENCE: Mapping[str, Measure] = {
    **{name: _figure(name) for name in FIGURES},
    "records": lambda e, _: math.log2(1 + min(e.count, FIRST)),
    "losses_elsewhere": lambda e, log: math.log2(max(1, log.losses(e) / max(1, e.count))),
    "metrics": _of(_metrics),
    **{name: _told_against(name) for name in (*CONTRARY, *DOUBTS)},
    "rare_beginning": _of(lambda group, _: "rare_beginning" in group.against),
    "counted_above": _of(_counted_above),
    "few": _of(lambda group, log: not _enough(group, log.readings, log.vocabulary)),
    "start_value": _of(lambda group, _: _lags(group) and not _shown_before(group)),
    "shown_before": _of(lambda group, _: _shown_before(group)),
    "several_before": _of(lambda group, _: _shown_before(group) and any(map(_shows_several, group.readings))),
    "words_before": _of(lambda group, log: id(group.main) in log.preceded),
    "outnumbered": _of(lambda group, log: _is_outnumbered(group, log.readings)),
    "cut": _of(_cut),
    "starts_over": _of(lambda group, log: group.main.starts_over and not log.barred),
    "indented": _of(lambda group, _: group.main.shape.indented),
    "unpaired": _unpaired,
}
FIRST = 15
"""Records that prove more, the more there are."""
