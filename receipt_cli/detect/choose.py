"""Choose the grammars of a log by the evidence of all its records."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from receipt_cli.grammar.model import Evidence, Grammar, Rule
from receipt_cli.numeric.ordinals import OrdinalSet, count_switches, ordinals_at
from receipt_cli.numeric.precision import TOLERANCE
from receipt_cli.numeric.statistics import exact_median
from receipt_cli.patterns import compile_later
from receipt_cli.scan.columns import POSITION_BITS, NumberColumn, RuleColumns
from receipt_cli.scan.engine import Engine, Read
from receipt_cli.scan.segment import SegmentBody

MIN_SECONDARY = 3
"""Step records that only the second trainer explains, from which on it is chosen too."""
MIN_RECORDS = 3
"""Records of a single rule that identify a trainer without steps; with two rules fewer suffice."""
WITH_STEPS = {"trainer": 4, "library": 3, "benchmark": 3, "format": 2}
_OTHERS = compile_later(r"[^a-z0-9]")
IDENTIFYING = ("step", "eval", "phase", "header", "end")
"""Events that identify a trainer; progress bars and checkpoint lines look alike everywhere."""


class Candidate(NamedTuple):
    """How well one grammar (all its versions) explains a log."""

    id: str
    layer: str
    records: int
    alone: int
    step_records: int
    alone_steps: int
    rules: int
    named: bool = True
    """Whether the text of a matched rule contains the trainer's name."""
    quoted: bool = False
    """Whether its few records stand among those of another grammar, as pasted text does."""

    @property
    def lone(self) -> bool:
        """Return whether its rules read one kind of record only, or very few records."""
        return self.rules < 2 or self.records < MIN_SECONDARY

    @property
    def score(self) -> tuple[int, int, int]:
        """Sort key: trainers with steps first, then libraries, then formats with steps, then by records explained alone."""
        if self.alone_steps:
            return (WITH_STEPS.get(self.layer, 3), self.alone_steps, self.alone)
        return (0 if self.layer in ("library", "format") else 1, 0, self.alone)

    @property
    def identified(self) -> bool:
        """Return whether the records are neither chance matches of another program's lines nor quoted."""
        if self.quoted:
            return False
        return bool(self.alone_steps) or (self.alone > 0 and (self.rules > 1 or (self.named and self.records >= MIN_RECORDS)))


class Chosen(NamedTuple):
    """A grammar that reads (part of) the log, and the reason for its version."""

    grammar: Grammar
    chosen_by: str


class Detection(NamedTuple):
    """The chosen grammars (none if nothing or a tie explains the log), and all candidates, best first."""

    chosen: tuple[Chosen, ...]
    candidates: tuple[Candidate, ...]
    tie: tuple[str, ...] = ()


class Choice(NamedTuple):
    """An earlier choice: the grammars ``chosen`` for a log, and the ``catalogue`` of candidates.

    If ``generic``, rules learned from the log read the rest.
    """

    chosen: tuple[Chosen, ...]
    catalogue: tuple[Grammar, ...]
    generic: bool = False


def detect(engine: Engine, body: SegmentBody, *, forced: Grammar | None = None, choice: Choice | None = None) -> Detection:
    """Choose the grammars of a scanned log.

    ``forced`` or an earlier ``choice`` takes precedence if it explains at least one record.
    """
    read, told = engine.readers(body), explained(engine, body)
    reading = {i: engine.by_id[i] for i in told}
    rules = {i: [[r for r, c in read.get(g.ref, ()) if _identifies(r, c)] for g in versions] for i, versions in reading.items()}
    candidates = sorted(
        (_candidate(i, reading[i][-1].layer, told[i], rules[i]) for i in reading if told[i].records),
        key=lambda c: (*(-part for part in c.score), -told[c.id].steps.max() if c.alone_steps else 0, c.id),
    )
    exits = [at for m in engine.catalogue.markers if m.role == "exit_code" and (hits := body.markers.get(m.id)) for at in hits.at]
    ends = sorted(at >> POSITION_BITS for at in exits)
    candidates = [c._replace(quoted=_is_quoted(c, candidates, told, ends)) for c in candidates]
    if forced is not None:
        found = forced.id in told and told[forced.id].records
        return Detection((Chosen(forced, "option"),) if found else (), tuple(candidates))
    if choice is not None:
        return Detection(tuple(_again(engine, body, reading, candidates, choice)), tuple(candidates))
    known = [c for c in candidates if c.identified and (c.alone_steps or not _is_ruled_out(engine, body, reading[c.id]))]
    if not known:
        shared = [c.id for c in candidates if c.records >= MIN_RECORDS and not c.alone]
        return Detection((), tuple(candidates), tuple(shared) if len(shared) > 1 else ())
    best = known[0]
    chosen = [best]
    for other in known[1:]:
        if other.layer == "trainer" and other.alone_steps >= MIN_SECONDARY and best.score[0] == WITH_STEPS["trainer"]:
            mine = told[other.id].steps - OrdinalSet.union(*(told[c.id].records for c in chosen))
            apart = not any(_interleaved(mine, told[c.id].steps) or _goes_on(engine, body, reading[c.id], mine) for c in chosen)
            if len(mine) >= MIN_SECONDARY and apart:
                chosen.append(other)
        elif other.layer == "benchmark" and best.layer == "trainer" and other.rules > 1:
            chosen.append(other)
    rivals = [c.id for c in known[1:] if c.score == best.score and c not in chosen]
    rivals = [i for i in rivals if not (told[i].steps and _goes_on(engine, body, reading[best.id], told[i].steps))]
    if rivals:
        return Detection((), tuple(candidates), (best.id, *rivals))
    return Detection(tuple(_version(engine, body, reading[c.id]) for c in chosen), tuple(candidates))


def _records(read: Iterable[Read], *, steps: bool = False, identifying: bool = True) -> OrdinalSet:
    """Return the ordinals of the records that a grammar's rules explain.

    ``steps``: only of step rules. ``identifying``: only of rules that identify a trainer.
    """
    found: list[OrdinalSet] = []
    for rule, columns in read:
        if (steps and (rule.event != "step" or rule.companion)) or (identifying and not _identifies(rule, columns)):
            continue
        opened = rule.block is not None and rule.block.open is not None
        other = columns.pairs if opened and columns.pairs else columns.headers  # the opening line counts as the block's record
        found.append(ordinals_at(columns.at, POSITION_BITS, other.rows if steps else ()))
    return OrdinalSet.union(OrdinalSet(), *found)


def read_records(engine: Engine, body: SegmentBody, grammars: Iterable[Grammar], names: Collection[str] = ()) -> OrdinalSet:
    """Return the ordinals of the records that the grammars read; with ``names``, only by rules with these names."""
    pairs = ((r, engine.columns(body, g, r)) for g in grammars for r in g.rules if not names or r.name in names)
    return _records(((rule, columns) for rule, columns in pairs if columns is not None), identifying=False)


def _identifies(rule: Rule, columns: RuleColumns) -> bool:
    return rule.event in IDENTIFYING and _whole(columns, rule)


@lru_cache(maxsize=4096)
def _names_trainer(name: str, literals: Sequence[bytes], sources: Sequence[str]) -> bool:
    """Return whether a rule's text contains its trainer's name; many trainers print ``Validation loss:`` or ``seed:``."""
    text = b" ".join(literals).decode("utf-8", "replace") + "".join(sources)
    return name.replace("-", "") in _OTHERS.sub("", text.lower())


def _whole(columns: RuleColumns, rule: Rule) -> bool:
    """Return whether the rows of a table or block are complete records: with a header, an opening line, and the required keys."""
    if rule.table is not None:
        return len(columns.headers) > 0
    if rule.block is None:
        return True
    rows, keys = len(columns.pairs), rule.block.keys
    if rule.block.open is None:
        printed = {form.partition("\t")[0] for form in columns.pairs.forms} if rule.block.requires else set()
        return rule.block.requires <= {keys.get(key, key) for key in printed}
    return rows < len(columns) and (rows > 0 or not rule.block.requires)


def _candidate(name: str, layer: str, told: Explained, reading: Sequence[list[Rule]]) -> Candidate:
    return Candidate(
        id=name,
        layer=layer,
        records=len(told.records),
        alone=len(told.alone),
        step_records=len(told.steps),
        alone_steps=len(told.alone_steps),
        rules=max(len(rules) for rules in reading),
        named=layer != "trainer" or any(_names_trainer(name, rule.literals, rule.sources) for rules in reading for rule in rules),
    )


def _without_rivals(name: str, mine: OrdinalSet, layers: Mapping[str, str], records: Mapping[str, OrdinalSet]) -> OrdinalSet:
    """Return the records of ``mine`` that no rival grammar reads; a format rivals only formats, a library no trainer."""
    for rival, theirs in records.items():
        kinds = layers[name], layers[rival]
        if rival != name and kinds != ("trainer", "library") and (kinds[0] == "format" or kinds[1] != "format"):
            mine = mine - theirs
    return mine


class Explained(NamedTuple):
    """The ordinals of the records that a grammar explains, of its step records, and of those of both that only it explains."""

    records: OrdinalSet
    steps: OrdinalSet
    alone: OrdinalSet
    alone_steps: OrdinalSet


def explained(engine: Engine, body: SegmentBody) -> dict[str, Explained]:
    """Return what each grammar (all its versions) explains of a log, by id; none for a grammar that reads no record."""
    read = engine.readers(body)
    every = {i: [pair for version in versions for pair in read.get(version.ref, ())] for i, versions in engine.by_id.items()}
    layers = {i: versions[-1].layer for i, versions in engine.by_id.items()}
    records = {i: _records(pairs) for i, pairs in every.items() if pairs}
    both = {i: (mine, _records(every[i], steps=True)) for i, mine in records.items()}
    return {i: Explained(*some, *(_without_rivals(i, mine, layers, records) for mine in some)) for i, some in both.items()}


def is_shared(engine: Engine, body: SegmentBody, grammar: Grammar) -> bool:
    """Return whether a grammar reads no steps, and only records that another trainer's grammar ignores by name."""
    read = [pair for version in engine.by_id.get(grammar.id, ()) for pair in engine.readers(body).get(version.ref, ())]
    others = [theirs for name, theirs in body.ignored.items() if name != grammar.id]
    return not _records(read, steps=True) and not _records(read, identifying=False) - OrdinalSet.union(OrdinalSet(), *others)


def _interleaved(left: OrdinalSet, right: OrdinalSet) -> bool:
    """Return whether the step records of two trainers alternate: one is the other's companion output."""
    few = 2 + min(len(left), len(right)) // 10
    return count_switches(left, right, few + 1) > few


def _is_quoted(candidate: Candidate, candidates: Sequence[Candidate], told: Mapping[str, Explained], ends: Sequence[int]) -> bool:
    """Return whether a grammar's only kind of record is rare, or lies between two steps of another grammar.

    The other grammar reads more steps and owns the log. False if one of ``ends``, the exits of processes, separates the two.
    """
    mine = told[candidate.id].steps
    if not mine or not candidate.lone:
        return False
    for other in candidates:
        if other.id == candidate.id or other.alone_steps <= max(candidate.alone_steps, MIN_SECONDARY - 1):
            continue
        theirs = told[other.id].steps
        if any(mine.max() <= end < theirs.min() or theirs.max() <= end < mine.min() for end in ends):
            continue
        around = theirs.min() < mine.min() and mine.max() < theirs.max()
        if candidate.alone_steps < MIN_SECONDARY or (around and not theirs.range_cardinality(mine.min(), mine.max() + 1)):
            return True
    return False


def _goes_on(engine: Engine, body: SegmentBody, versions: Sequence[Grammar], mine: OrdinalSet) -> bool:
    """Return whether a grammar's steps pause around ``mine`` and count on after it, as one phase."""
    before, behind = (0, -1), (1 << 62, -1)
    for at, step in _numbered(engine, body, versions):
        if mine.min() <= at <= mine.max():
            return False
        before = max(before, (at + 1, step)) if at < mine.min() else before
        behind = min(behind, (at, step)) if at > mine.max() else behind
    return 0 <= before[1] < behind[1]


def _numbered(engine: Engine, body: SegmentBody, versions: Sequence[Grammar]) -> Iterator[tuple[int, int]]:
    """Yield the ordinal and the printed step of each step record, rule by rule."""
    for grammar in versions:
        for rule in grammar.rules:
            columns = engine.columns(body, grammar, rule) if rule.event == "step" else None
            numbers = columns.numbers.get("step") if columns is not None else None
            if columns is not None and numbers is not None:
                for row, step in zip(numbers.rows, numbers.values, strict=True):
                    yield columns.at[row] >> POSITION_BITS, int(step)


def _version(engine: Engine, body: SegmentBody, versions: Sequence[Grammar]) -> Chosen:
    """Choose among versions that match: the newest that the log proves, else the newest it does not exclude.

    Of the latter, one that only evidence proves is chosen only without another.
    """
    ordered = sorted(versions, key=lambda g: g.version)
    if len(ordered) == 1:
        return Chosen(ordered[0], "only_version")
    proven = [g for g in ordered if any(_holds(engine, body, g, e) for e in g.proves)]
    allowed = [g for g in ordered if not any(_holds(engine, body, g, e) for e in g.excludes)]
    sure = [g for g in proven if g in allowed]
    if sure:
        return Chosen(sure[-1], "evidence")
    if len(allowed) == 1:
        return Chosen(allowed[0], "evidence")
    read = engine.readers(body)
    reading = [g for g in allowed or ordered if _records(read.get(g.ref, ()))]
    return Chosen(([g for g in reading if not g.proves] or reading or ordered)[-1], "default")


def _is_ruled_out(engine: Engine, body: SegmentBody, versions: Sequence[Grammar]) -> bool:
    """Return whether the log excludes every version of a grammar: another program prints its headings too."""
    return all(any(_holds(engine, body, grammar, evidence) for evidence in grammar.excludes) for grammar in versions)


def _again(
    engine: Engine, body: SegmentBody, by_id: dict[str, list[Grammar]], candidates: Sequence[Candidate], choice: Choice
) -> Iterator[Chosen]:
    """Yield the earlier choice, best first; a version has this log's reason if the log gives the same version."""
    before = {chosen.grammar.id: chosen for chosen in choice.chosen}
    for candidate in (c for c in candidates if c.id in before):
        chosen = _version(engine, body, by_id[candidate.id])
        yield chosen if chosen.grammar is before[candidate.id].grammar else before[candidate.id]


def _holds(engine: Engine, body: SegmentBody, grammar: Grammar, evidence: Evidence) -> bool:
    if evidence.seen is not None:
        name, _, field = evidence.seen.partition(".")
        rules = [rule for rule in grammar.rules if rule.name == name]
        columns = engine.columns(body, grammar, rules[0]) if rules else None
        return columns is not None and (not field or field in columns.numbers or field in columns.texts)
    return version_ratio(engine, body, grammar, evidence.metric or "") == evidence.equals


def count_explained(engine: Engine, body: SegmentBody, grammars: Iterable[Grammar]) -> tuple[int, int, int]:
    """Return how many records the grammars matched, ignored by rule (blank ones too), and could not decode.

    A record counts once, in the first group that applies.
    """
    chosen = list(grammars)
    matched = read_records(engine, body, chosen)
    ignored = OrdinalSet.union(OrdinalSet(), *(body.ignored[g.id] for g in chosen if g.id in body.ignored)) - matched
    unread = body.undecodable_matched - matched - ignored
    return len(matched), len(ignored) + body.blank, body.undecodable + len(unread)


def version_ratio(engine: Engine, body: SegmentBody, grammar: Grammar, metric: str) -> str | None:
    """Return the ratio of the printed ``metric`` to the derived one: ``1``, ``inverse_gradient_accumulation``, or None.

    None also without gradient accumulation, because both ratios are then equal.
    """
    accumulation = _first_fact(engine, body, grammar, "gradient_accumulation_steps")
    tokens = _first_fact(engine, body, grammar, "tokens_per_step")
    if metric != "tokens_per_s" or not tokens or not accumulation or accumulation <= 1:
        return None
    ratios = array("d")
    for rule in grammar.rules:
        columns = engine.columns(body, grammar, rule)
        if columns is None or rule.event != "step":
            continue
        values = {f.target[1]: columns.numbers.get(f.name) for f in rule.fields.values() if f.target[0] == "metric"}
        rate, time = values.get("tokens_per_s"), values.get("step_time_s")
        if rate is not None and time is not None:
            ratios += _ratios(rate, time, tokens)
    middle = exact_median(ratios)
    if middle is None:
        return None
    if abs(middle - 1) <= TOLERANCE:
        return "1"
    return "inverse_gradient_accumulation" if abs(middle * accumulation - 1) <= TOLERANCE else None


def _ratios(rate: NumberColumn, time: NumberColumn, tokens: float) -> array[float]:
    """Return rate * time / ``tokens`` of each row with a rate and a nonzero time, finite values only."""
    _, one, other = np.intersect1d(np.asarray(rate.rows), np.asarray(time.rows), assume_unique=True, return_indices=True)
    seconds = np.asarray(time.values, np.float64)[other]
    with np.errstate(over="ignore", invalid="ignore"):
        ratios = np.asarray(rate.values, np.float64)[one] * seconds / tokens
    return array("d", ratios[np.isfinite(ratios) & (seconds != 0)].tobytes())


def _first_fact(engine: Engine, body: SegmentBody, grammar: Grammar, name: str) -> float | None:
    found: list[tuple[int, float]] = []
    for rule in grammar.rules:
        columns = engine.columns(body, grammar, rule)
        for spec in rule.fields.values() if columns is not None else ():
            numbers = columns.numbers.get(spec.name) if columns is not None and spec.target == ("fact", name) else None
            if columns is not None and numbers is not None and numbers.rows:
                found.append((columns.at[numbers.rows[0]], numbers.values[0]))
    return min(found)[1] if found else None
