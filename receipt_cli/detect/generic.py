"""Read an unrecognised log again with rules learned from its own lines: the ``generic`` grammar.

Also find unread records of a training: those that begin as training records do, with a counter that none of these has, and those
after the last step that count and vary like training records.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from receipt_cli.definitions.failure_markers import Catalogue
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.definitions.resources import load_shipped
from receipt_cli.detect.choose import Candidate, Chosen, Detection, count_explained, read_records
from receipt_cli.errors import InputError
from receipt_cli.events.banners import MOST_DIGITS
from receipt_cli.events.epochs import count_epochs
from receipt_cli.events.runs import read_events
from receipt_cli.events.step_numbers import number_steps
from receipt_cli.events.streams import Gathered, gather
from receipt_cli.events.table import EventTable, Row
from receipt_cli.grammar.catalog import INDUCED, INDUCED_PATH
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.grammar.parse import build_grammar
from receipt_cli.grammar.site import Site
from receipt_cli.io.source import Source, Stream
from receipt_cli.patterns import compile_later
from receipt_cli.problems import MAX_FIELDS, MAX_NAMED, Lack, Problem, pointer
from receipt_cli.records.envelope import behind_heads, plain
from receipt_cli.records.heuristics import STEP_LINE, TRAINING_LINE, TRAINING_WORDS
from receipt_cli.records.split import normalise
from receipt_cli.scan.columns import RuleColumns
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.forms import MARK
from receipt_cli.scan.last_record import shape_of
from receipt_cli.scan.segment import SegmentBody

if TYPE_CHECKING:
    from receipt_cli.learn.learned import Learned
    from receipt_cli.learn.vocabulary import Vocabulary

T = TypeVar("T")
WHERE = f"grammars/{INDUCED_PATH}"
GENERIC = "generic@v2"
BESIDE = "."
"""Separates the grammar from the rule in names of rules that come from another grammar."""
MOST_ENGINES = 64
"""Engines of induced grammars kept by a process with many logs: each takes 0.7 MB and serves one record form."""


_Engines = dict[tuple[str, ...], tuple[Grammar, Engine]]
_engines: _Engines = {}


def is_generic(name: str | None) -> bool:
    """Return whether ``name`` requests generic reading."""
    return name in (INDUCED, GENERIC)


@dataclass(frozen=True)
class Fallback:
    """The result of generic reading; ``grammar`` has the induced rules and those of the grammar that reads the rest."""

    engine: Engine
    gathered: Gathered
    detection: Detection
    grammar: Grammar
    learned: Learned


@cache
def load_generic() -> Vocabulary:
    """Load the shipped vocabulary. Raises ``DataError``."""
    from receipt_cli.learn.vocabulary import build_vocabulary, read_vocabulary

    return build_vocabulary(load_shipped(WHERE, dict, read_vocabulary), WHERE, load_registry())


def vocabulary_of(site: Site) -> Vocabulary:
    """Return the vocabulary for unknown trainers, extended by a site's metric aliases; its digest covers both."""
    from receipt_cli.learn.vocabulary import build_vocabulary, read_vocabulary

    if site.own_registry is None:
        return load_generic()
    data: dict[str, Any] = load_shipped(WHERE, dict, read_vocabulary)
    digest = hashlib.sha256(f"{data['sha256']}{site.registry.sha256}".encode()).hexdigest()
    return build_vocabulary({**data, "sha256": digest}, WHERE, site.registry)


def learn_streams(
    streams: Sequence[Stream], vocabulary: Vocabulary, lacking: list[Lack], quoted: Set[int] = frozenset(), least: int = 0
) -> Learned | None:
    """Return the rules learned from ``streams``, which were read before; None if nothing is learned.

    The ``quoted`` lines are skipped. ``least``: see ``learn``. If nothing is learned, ``lacking`` receives what the nearest
    records lacked. Raises ``InputError``, also if the streams cannot be read again or have changed.
    """
    from receipt_cli.learn.learned import learn  # needed for unknown logs only

    best: Learned | None = None
    for stream in streams:  # one by one: counters restart in each
        learned = _reread([stream], lambda again: learn(_blocks(again[0], quoted), vocabulary, lacking, least))
        best = learned if best is None else best
        if learned is not None and learned.sure:
            return learned
    return best


MOST_BYTES = 16 << 20
"""Largest log without a step that is read again to prove that it has none."""


def shows_no_figure(streams: Sequence[Stream], size: int) -> bool:
    """Return whether no kind of record in a log of ``size`` bytes may be a step or show training values.

    False if the log cannot be read again, or is larger than ``MOST_BYTES``.
    """
    from receipt_cli.learn.overview import may_be_figures, survey

    def shown(again: Sequence[Stream]) -> bool:
        blocks, words = (block for stream in again for block in _blocks(stream, frozenset())), load_generic()
        return any(may_be_figures(reading, words) for reading in survey(blocks, words))

    try:
        return size <= MOST_BYTES and not _reread(streams, shown)
    except InputError:
        return False


def wanted(detection: Detection) -> bool:
    """Return whether no known trainer printed a step; a library's steps do not count."""
    if detection.tie:
        return False
    known = {c.id: c for c in detection.candidates}
    return not any(c.grammar.layer in ("trainer", "format") and known[c.grammar.id].step_records for c in detection.chosen)


def may_be_another(engine: Engine, body: SegmentBody, detection: Detection) -> bool:
    """Return whether generic reading of the unread lines may own the log instead of the chosen grammars.

    They must leave records: a benchmark that explains all, or all but one or two torn ones besides its own steps, covers all of
    its lines. If known trainers printed steps, more records must be unread than those.
    """
    if detection.tie or not detection.chosen:
        return not detection.tie
    grammars, steps = [chosen.grammar for chosen in detection.chosen], _steps_of(detection)
    matched, ignored, undecodable = count_explained(engine, body, grammars)
    if all(grammar.layer == "benchmark" for grammar in grammars):
        torn = load_generic().min_records - 1 if steps else 0
        if matched + ignored + torn >= body.records:
            return False
    return wanted(detection) or body.records - matched - ignored - undecodable >= least_of_rival(steps)


def least_of_rival(steps: int) -> int:
    """Return how many records a reading must explain to own a log with ``steps`` steps of another reading."""
    return steps + max(2, steps // 10)


def _steps_of(detection: Detection) -> int:
    known = {c.id: c.step_records for c in detection.candidates}
    return max((known[chosen.grammar.id] for chosen in detection.chosen), default=0)


MOST_BORROWED = 7
"""Most records of a part of a log that the rules of the whole log may read. More records teach rules of their own."""


def read_generically(
    streams: Sequence[Stream],
    gathered: Gathered,
    detection: Detection,
    workers: int | None,
    lacking: list[Lack],
    site: Site,
    first: Engine,
    *,
    many: bool = False,
    known: Fallback | None = None,
) -> Fallback | None:
    """Return the second reading of a log, or None if it shows no certain training.

    ``streams`` were read before; None too if the log cannot be read again, or has changed. ``lacking``: see ``learn_streams``.
    ``many``: the process reads further logs one at a time and reuses its engines. ``first``: the engine that scanned the log.
    ``known``: the reading of the log that this is a part of; what it learned counts if the records of the part teach nothing.
    """
    vocabulary = vocabulary_of(site)
    rival, least, others = not wanted(detection), least_of_rival(_steps_of(detection)), detection.chosen
    detection = _without_quoted(detection)
    kept_ids = {chosen.grammar.id for chosen in detection.chosen}
    quoted = [chosen.grammar for chosen in others if chosen.grammar.id not in kept_ids]
    base = [chosen.grammar for chosen in detection.chosen]
    ambiguous = any(grammar.layer != "benchmark" for grammar in base)
    try:
        quoted_lines = _aside(first, gathered, quoted)
        learned = learn_streams(streams, vocabulary, lacking, quoted_lines, least if rival else 0)
        borrowed = known if learned is None else None
        if borrowed is not None:
            learned = replace(borrowed.learned, foreign=(), evaluated=(), siblings=(), behind=())
        if learned is None:
            return None
        if (ambiguous and not learned.sure) or (rival and learned.steps < least):
            _refuse(learned, lacking)
            return None
        grammar, engine = _engine(learned, base, vocabulary, site.catalogue, _engines if many else {})
        once_more = _reread(streams, lambda again: gather(engine, again, workers))
    except InputError:  # removed or changed since it was read
        return None
    both = (first, gathered.body), (engine, once_more.body)
    steps = [chosen for chosen in others if rival or (chosen.grammar.layer == "benchmark" and _steps_of(detection))]
    if steps and _count_own(*both, steps, learned, grammar) < (least if rival else 1):
        return None
    kept = _with_steps_of(engine, once_more.body, grammar, learned, base)
    if kept is None:
        _refuse(learned, lacking)
        return None
    grammar = kept
    doubts = (doubt(engine, once_more.body, grammar, learned) for doubt in (_left_out, begun, _siblings))
    once_more.problems = [*gathered.problems, *_problems(learned), *chain(*doubts)]
    once_more.body.near.clear()  # other near misses of rules learned from this log mean nothing
    once_more.changed = gathered.changed
    chosen = (Chosen(grammar, "only_version"), *detection.chosen)
    read = [engine.columns(once_more.body, grammar, rule) for rule in grammar.rules if rule.event == "step"]
    count = sum(len(columns) for columns in read if columns is not None)
    if borrowed is not None and count > MOST_BORROWED:
        return None  # the part has enough records to learn from: they were refused
    candidate = Candidate(INDUCED, INDUCED, count, count, count, count, len(learned.rules))
    found = Detection(chosen, (candidate, *detection.candidates))
    return Fallback(engine, once_more, found, grammar, learned)


def _aside(engine: Engine, gathered: Gathered, quoted: Sequence[Grammar]) -> frozenset[int]:
    """Return the lines of a log with one stream that are no steps: those that ``quoted`` grammars read, or that close a training
    by any grammar."""
    if len(gathered.streams) > 1:
        return frozenset()
    refs, readers = {grammar.ref for grammar in quoted}, engine.readers(gathered.body).items()
    reads = ((ref in refs or rule.event == "end", columns) for ref, found in readers for rule, columns in found)
    return frozenset(line for aside, columns in reads if aside for line in columns.line)


def _refuse(learned: Learned, lacking: list[Lack]) -> None:
    """Add learned but rejected step records to ``lacking``: they count, so the log may have steps."""
    rules = [rule for rule in learned.rules if rule.body["event"] == "step" and rule.samples]
    why = "not certain enough next to records that a grammar reads"
    lacking += [Lack(rule.samples[0].decode("utf-8", "replace"), rule.records, why, counted=True) for rule in rules]


def _without_quoted(detection: Detection) -> Detection:
    """Return the detection without trainers that printed few records of one kind: these are quoted."""
    known = {c.id: c for c in detection.candidates}
    kept = (c for c in detection.chosen if not (known[c.grammar.id].step_records and known[c.grammar.id].lone))
    return detection._replace(chosen=tuple(kept))


def _count_own(
    first: tuple[Engine, SegmentBody], again: tuple[Engine, SegmentBody], others: Sequence[Chosen], learned: Learned, own: Grammar
) -> int:
    """Return how many records the learned step rules read in ``again`` that ``others`` did not read in ``first``."""
    names = {rule.name for rule in learned.rules if rule.body["event"] == "step"}
    return len(read_records(*again, [own], names) - read_records(*first, [chosen.grammar for chosen in others]))


def _with_steps_of(
    engine: Engine, body: SegmentBody, grammar: Grammar, learned: Learned, base: Sequence[Grammar]
) -> Grammar | None:
    """Return ``grammar`` with the fitting step rules of ``base``; None if the steps of ``base`` suffice.

    A library's steps are joined if their numbers equal the learned ones, and left out if they differ; they suffice if the
    learned steps add no loss. A benchmark's steps are left out; they suffice if only they have a loss.
    """
    beside = {f"{g.id}{BESIDE}{r.name}": g.layer for g in base for r in g.rules if r.event == "step"}
    library = replace(grammar, rules=tuple(r for r in grammar.rules if beside.get(r.name) == "library"))
    benchmark = replace(grammar, rules=tuple(r for r in grammar.rules if beside.get(r.name) == "benchmark"))
    grammar = replace(grammar, rules=tuple(r for r in grammar.rules if r not in benchmark.rules))
    own = replace(grammar, rules=tuple(r for r in grammar.rules if r not in library.rules))
    steps, losses = _steps(engine, body, own)
    if not steps or (learned.needs_steps and np.isnan(steps.steps).any()):
        return None
    if not losses and _steps(engine, body, benchmark)[1]:
        return None
    printed, theirs = _steps(engine, body, library)
    if not printed:
        return own
    if not losses or theirs:
        return None
    return grammar if np.isin(printed.steps, steps.steps).all() else own


def _steps(engine: Engine, body: SegmentBody, grammar: Grammar) -> tuple[EventTable, bool]:
    """Return the step records, and whether any has a loss."""
    rules = grammar.rules if any(rule.event == "step" for rule in grammar.rules) else ()
    table = read_events(engine, body, [replace(grammar, rules=rules)]).table
    steps = number_steps(count_epochs(table)).of_sources(lambda source: source.is_step)
    return steps, steps.prints("loss")


def _engine(
    learned: Learned, base: Sequence[Grammar], vocabulary: Vocabulary, catalogue: Catalogue, kept: _Engines
) -> tuple[Grammar, Engine]:
    """Return the induced grammar and its engine; an engine in ``kept`` has layouts learned from other logs."""
    definition = learned.definition(INDUCED, vocabulary.version, vocabulary.title)
    key = (json.dumps(definition), vocabulary.sha256, catalogue.sha256, *(f"{grammar.ref} {grammar.sha256}" for grammar in base))
    found = kept.pop(key, None)
    if found is None:
        grammar = _grammar(definition, base, vocabulary)
        found = grammar, Engine([grammar], catalogue)
    kept[key] = found
    if len(kept) > MOST_ENGINES:
        kept.pop(next(iter(kept)))  # the least recently used
    return found


def _grammar(definition: dict[str, Any], base: Sequence[Grammar], vocabulary: Vocabulary) -> Grammar:
    """Return the induced grammar plus the rules of the grammars ``base`` but for those that read the step lines of a trainer."""
    induced = build_grammar(definition, WHERE, vocabulary.sha256)
    taken = ((g, r) for g in base for r in g.rules if r.event != "step" or g.layer in ("library", "benchmark"))
    kept = [replace(r, name=f"{g.id}{BESIDE}{r.name}") for g, r in taken]
    return replace(
        induced,
        trainer=base[0].trainer if base else "",
        completion=base[0].completion if base else "none",
        rules=(*induced.rules, *kept),
        ignore=tuple(r for g in base for r in g.ignore),
    )


def _problems(learned: Learned) -> Iterator[Problem]:
    """Yield the problem of generic reading, and that of records with two labels either of which may be the loss's."""
    read = sorted({name for rule in learned.rules for name in rule.fields})
    detail = f"no grammar knows this trainer: read by the words beside its numbers ({', '.join(read)})"
    yield Problem("generic_reading", None, detail, "")
    for main in [rule.group.main for rule in learned.rules if rule.group is not None and rule.group.main.rivals][:1]:
        fields = tuple(f"/summary/metrics/loss/{key}" for key in ("first", "last", *BETWEEN))
        detail = f"either of two labels may be the loss's: {' and '.join(main.rivals)}"
        excerpt = main.shape.samples[0].decode("utf-8", "replace")
        yield Problem("loss_ambiguous", None, detail, excerpt, (), main.rivals, fields)
    for metric in dict.fromkeys(found.metric for found in learned.evaluated):
        told = [found for found in learned.evaluated if found.metric == metric]
        fields = (f"/summary/metrics/{metric}", *(() if all(found.finite for found in told) else ("/checks/finite_losses",)))
        detail = f"not read, since too few or not the only ones: {sum(found.records for found in told)} records of an evaluation"
        yield Problem("figure_unread", None, detail, told[0].sample.decode("utf-8", "replace"), (), (), fields)


def _reread(streams: Sequence[Stream], read: Callable[[list[Stream]], T]) -> T:
    """Return what ``read`` makes of streams that are read again. Raises ``InputError`` if they cannot be, or have changed."""
    again = [replace(stream, parts=tuple(map(reopened, stream.parts))) for stream in streams]
    made = read(again)
    one, other = ([part.sha256 for stream in some for part in stream.parts] for some in (streams, again))
    if one != other:
        raise InputError("the log changed while it was read", where=streams[0].parts[0].name)
    return made


def reopened(source: Source) -> Source:
    """Return a source that reads the bytes of ``source`` again. Raises ``InputError`` if that is impossible."""
    again = source.reopen()
    if again is None:
        raise InputError("the log cannot be read a second time", where=source.name)
    return again


def _blocks(stream: Stream, quoted: Set[int]) -> Iterator[bytes]:
    """Yield the text without ``quoted`` lines and copies; learning uses which lines follow each other."""
    for part in stream.parts:
        copied = {*quoted, *part.copies.lines}
        number = part.lines_before + 1
        for block in part.blocks():
            if not copied:
                yield block
                continue
            *lines, rest = block.split(b"\n")
            whole = [line + b"\n" for at, line in enumerate(lines, number) if at not in copied]
            number += len(lines)
            yield b"".join(whole) + (b"" if number in copied else rest)


BETWEEN = ("min", "max", "mean", "median")


def _left_out(engine: Engine, body: SegmentBody, grammar: Grammar, learned: Learned) -> Iterator[Problem]:
    """Yield the problem of records whose leading words differ from those of the learned rules.

    If several of them are at steps of their own, none of which a rule reads, they may be the rule's: it names the figures that
    they would change.
    """
    if not learned.foreign:
        return
    fields: dict[str, None] = {}
    for rule, columns, read in _read_steps(engine, body, grammar):
        for left in learned.foreign:
            if left.rule == rule.name and len({*left.places}) > 1 and read.isdisjoint(left.places):
                fields |= dict.fromkeys(_fields(rule, columns, read, left.places))
    detail = f"{sum(left.records for left in learned.foreign)} records with other leading words were left out"
    excerpt = learned.foreign[0].sample.decode("utf-8", "replace")
    yield Problem("foreign_record", None, detail, excerpt, fields=tuple(fields)[:MAX_FIELDS])


Places = set[tuple[float, ...]]
"""The counters of records."""


def _read_steps(engine: Engine, body: SegmentBody, grammar: Grammar) -> Iterator[tuple[Rule, RuleColumns, Places]]:
    """Yield the step rules that read records, with their columns and the places of these records."""
    from receipt_cli.learn.emit import COUNTERS  # needed for unknown logs only

    for rule in grammar.rules:
        columns = engine.columns(body, grammar, rule) if rule.event == "step" and not rule.companion else None
        if columns is not None:
            counted = [columns.numbers[name].values for name in COUNTERS if name in columns.numbers]
            if read := set(zip(*(map(int, values) for values in counted), strict=False)):
                yield rule, columns, read


def begun(engine: Engine, body: SegmentBody, grammar: Grammar, learned: Learned) -> Iterator[Problem]:
    """Yield a problem for each learned rule whose records begin as unread ones do that are at another step.

    How many steps there are is unknown then, and what the unread one printed. A rule of one of several stages names no field.
    """
    unread = {rule.name: rule.unread for rule in learned.rules if rule.unread}
    stages = sum(rule.event == "step" and not rule.companion for rule in grammar.rules)
    for rule, columns, read in _read_steps(engine, body, grammar) if unread else ():
        found = [(place, sample) for sample, places in unread.get(rule.name, ()) for place in places if place not in read]
        if found:
            fields = tuple(_fields(rule, columns, read, [place for place, _ in found])) if stages == 1 else ()
            detail = f"{len(found)} records begin like those of steps, but were not read"
            excerpt = found[0][1].decode("utf-8", "replace")
            near = (miss for _, miss in body.near[grammar.id].first if excerpt in miss.excerpt)
            lines = tuple(miss.line_number for miss in near)[:MAX_NAMED]
            yield Problem("training_unread", lines[0] if lines else None, detail, excerpt, lines, (), fields[:MAX_FIELDS])


def _siblings(engine: Engine, body: SegmentBody, grammar: Grammar, learned: Learned) -> Iterator[Problem]:
    """Yield a problem for unread records that look like those that a rule reads, but for a name, or follow the last of these.

    The former name all figures of a log with one step rule; of one with several stages, each has its own.
    """
    left = dict(learned.siblings or learned.behind)
    steps = [*_read_steps(engine, body, grammar)] if left else []
    of_rules = [_changed(rule, columns, ["first", "last"]) for rule, columns, _ in steps]
    fields = ["/checks/completed", *(of_rules[0] if len(steps) == 1 and learned.siblings else ())]
    how = "differ in a name alone from those of steps" if learned.siblings else "behind those of steps look like training records"
    detail = f"{sum(left.values())} records {how}, but were not read"
    for at in range(0, len(fields), MAX_FIELDS) if steps else ():
        excerpt = next(iter(left)).decode("utf-8", "replace")
        yield Problem("training_unread", None, detail, excerpt, fields=tuple(fields[at : at + MAX_FIELDS]))


def _fields(rule: Rule, columns: RuleColumns, read: Places, unread: Sequence[tuple[float, ...]]) -> Iterator[str]:
    """Yield the figures that records at ``unread`` places change, inside the training or at its ends."""
    ends = [*(["last"] if max(unread) > max(read) else []), *(["first"] if min(unread) < min(read) else [])]
    yield from _changed(rule, columns, ends)


def _changed(rule: Rule, columns: RuleColumns, ends: Sequence[str]) -> Iterator[str]:
    """Yield JSON pointers to the figures that unread records of a rule would change; ``ends`` are ``first``, ``last`` or both."""
    yield from (pointer("summary", "steps", name) for name in ("record_count", *ends))
    for name in (*columns.numbers, *columns.unregistered):
        block, metric = rule.fields[name].target if name in rule.fields else ("other", name)
        block, metric = ("metric", "epoch") if metric == "epoch_number" else (block, metric)
        if block in ("metric", "other"):
            part = "metrics" if block == "metric" else "other_metrics"
            yield from (pointer("summary", part, metric, key) for key in (*ends, *BETWEEN))
            if metric in ("loss", "val_loss"):
                yield "/checks/finite_losses"


FEWEST = 3
"""Fewest records of one form that count as training; fewer may be a summary."""
_NUMBER = compile_later(rb"\d+(?:\.\d+)?")
_WORDS = compile_later(rb"[a-z]+")
_DRAWN = compile_later(rb"(?i)\d/\d+ \[[^\]\r\n]{0,200}?loss[ :=]{1,3}[-+]?[\d(n]")
"""A progress bar that shows a loss."""
_LOSS = compile_later(rb"(?i)\d[^\r\n]{0,200}?(?<![A-Za-z])loss[ :=]{1,3}[-+]?[\d(n]")
"""A loss behind a number."""


def training_unread(
    engine: Engine, grammars: Sequence[Grammar], lines: Sequence[tuple[int, bytes]], behind: int | None, last: Row | None,
    started: Callable[[int], bool] = lambda _: False,
) -> list[Problem]:  # fmt: skip
    """Return a problem if the log ends with training records that no rule reads: they follow the last step record.

    Then it is unknown whether the run completed and, after a bar or in a stage that prints no loss, which step was the last. If
    their counter goes on from ``last``, the last step record, so are its figures; all of them if a program was ``started`` before
    the line of the first unread record: they are of an earlier run. ``lines`` are the last lines with their numbers, ``behind``
    the number of records after ``last``.
    """
    records = [(n, record) for n, line in lines[-behind:] for record in line.removesuffix(b"\r").split(b"\r")] if behind else []
    forms: dict[bytes, list[tuple[int, bytes]]] = {}
    for number, record in records[-(behind or 0) :]:
        said = normalise(record).lower()
        if not any(word in said for word in TRAINING_WORDS):
            continue
        text = plain(record + b"\n")[:-1]
        if any(form.search(text) is not None for form in (STEP_LINE, _DRAWN, _LOSS, TRAINING_LINE)) and not _evaluates(text):
            forms.setdefault(shape_of(behind_heads(text)), []).append((number, text))
    for found in forms.values():
        counter = _counter([text for _, text in found]) if len(found) >= FEWEST else []
        told = bool(counter) or _LOSS.search(found[0][1]) is not None
        another = told and last is not None and started(found[0][0])
        if (counter or another) and not _reads(engine, grammars, found[0][1]):
            detail = f"{len(found)} records after the last step look like training records, but no rule reads them"
            excerpt = found[0][1].decode("utf-8", "replace")
            first = tuple(dict.fromkeys(number for number, _ in found))
            drawn = _DRAWN.search(found[0][1]) is not None
            fields = ["/checks/completed", *([pointer("summary", "steps", "last")] if drawn else [])]
            step = last.step if last is not None else None
            goes_on = bool(counter) and step is not None and 0 < counter[0] - step <= 2 * (counter[1] - counter[0])
            if counter and _LOSS.search(found[0][1]) is None and TRAINING_LINE.search(found[0][1]) is not None:
                fields += [pointer("summary", "steps", name) for name in ("record_count", "last")]
            if last is not None and (another or goes_on):
                ends = ("first", "last") if another else ("last",)
                fields += [pointer("summary", "steps", name) for name in ("record_count", *ends)]
                fields += [pointer("summary", "metrics", name, key) for name in last.metrics for key in (*ends, *BETWEEN)]
                fields += [
                    pointer("summary", "other_metrics", name, key) for name in last.unregistered for key in (*ends, *BETWEEN)
                ]
            fields = list(dict.fromkeys(fields))
            return [Problem("training_unread", first[0], detail, excerpt, first[:2], fields=tuple(fields)[:MAX_FIELDS])]
    return []


def _evaluates(record: bytes) -> bool:
    """Return whether a record speaks of an evaluation before its loss, and of no training."""
    words = [word.decode() for word in _WORDS.findall(record.lower())]
    vocabulary = load_generic()
    before = words[: words.index("loss")] if "loss" in words else words
    return vocabulary.training.isdisjoint(words) and not vocabulary.evaluation.isdisjoint(before)


def _counter(records: Sequence[bytes]) -> list[int]:
    """Return the whole number that rises from record to record if another number varies; else nothing.

    A bar may show a step twice.
    """
    again = _DRAWN.search(records[0]) is not None
    columns = list(zip(*(_NUMBER.findall(record) for record in records), strict=False))
    rising = [
        n
        for n, column in enumerate(columns)
        if all(t.isdigit() and len(t) < MOST_DIGITS for t in column) and _rises([*map(int, column)], again)
    ]
    varied = any(len(set(column)) > 1 for n, column in enumerate(columns) if n not in rising[:1])
    return sorted({*map(int, columns[rising[0]])}) if varied and rising else []


def _rises(values: Sequence[int], again: bool) -> bool:
    distinct = sorted(set(values))
    return (sorted(values) == list(values) and len(distinct) > 1) if again else distinct == list(values)


def _reads(engine: Engine, grammars: Sequence[Grammar], line: bytes) -> bool:
    body = engine.read_alone(line)
    names = {grammar.id for grammar in grammars}
    read = {engine.shared.get((g.ref, r.name)) for g in grammars for r in g.rules}
    rules = {(ref, name.partition(MARK)[0]) for ref, name in body.rules}
    return not names.isdisjoint(body.ignored) or not read.isdisjoint(rules)
