"""Derive a receipt's values from a log: source → records → match → columns → fold → values.

The result depends only on the bytes of the log, of grammars, catalogue and registry, the options and the rules version.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import accumulate
from typing import Any, NamedTuple

from receipt_cli.analysis import omissions
from receipt_cli.analysis.checks import Checks, deciding_lines, draws_plan, evaluate, no_step_recognised, proves_no_step
from receipt_cli.analysis.completed import (
    PROGRAMS,
    RAISED,
    begins_program,
    closes,
    fails_at_start,
    shows_beginning,
    spends_patience,
)
from receipt_cli.analysis.explanation import Explanation, explain
from receipt_cli.analysis.failure import Ending, complete_ending, judge
from receipt_cli.analysis.flops import phase_facts
from receipt_cli.analysis.goodput.account import Account, account
from receipt_cli.analysis.goodput.arrivals import Came, by_arrival, by_bursts, edges_of, held_back, how_they_came, note_starts
from receipt_cli.analysis.goodput.model import GPU_IDLE, OF_COMMAND, Goodput
from receipt_cli.analysis.goodput.timestamps import (
    Edges,
    LogTime,
    Outside,
    find_log_time,
    find_time,
    find_work,
    is_zoned,
    log_edges,
)
from receipt_cli.analysis.identity import with_identity
from receipt_cli.analysis.progress import checkpoint_begun
from receipt_cli.analysis.slow import with_ranks
from receipt_cli.analysis.stated import Options as Options
from receipt_cli.analysis.stated import find_cost
from receipt_cli.analysis.summary import Summary, diagnose, find_time_to_train, note_reached, summarise
from receipt_cli.definitions.failure_markers import Catalogue
from receipt_cli.definitions.metrics import Registry, load_registry
from receipt_cli.detect.choose import Choice, Detection, count_explained, detect, is_shared
from receipt_cli.detect.generic import (
    GENERIC,
    Fallback,
    is_generic,
    load_generic,
    may_be_another,
    read_generically,
    shows_no_figure,
    training_unread,
)
from receipt_cli.detect.parts import gaps_of_launches, gaps_of_trainers, read_parts
from receipt_cli.errors import InputError
from receipt_cli.events.copies import alone
from receipt_cli.events.doubts import carry_doubts, doubtful_launches, steps_missing, withhold_models
from receipt_cli.events.launches import Launch, window
from receipt_cli.events.naming import Ledger
from receipt_cli.events.phases import first_facts, split_phases
from receipt_cli.events.printed_digits import PrintedDigits
from receipt_cli.events.ranks import RankFigures, rank_figures
from receipt_cli.events.runs import ReadEvents, find_runs, read_events
from receipt_cli.events.streams import Gathered, LogFacts, gather, last_bytes_before
from receipt_cli.events.table import EventTable
from receipt_cli.grammar.catalog import shipped
from receipt_cli.grammar.model import Grammar
from receipt_cli.grammar.site import NO_SITE, Site
from receipt_cli.io.source import Source, Stream
from receipt_cli.patterns import compile_later
from receipt_cli.problems import MAX_FIRST, Lack, NearMiss, Problem, first_of_each
from receipt_cli.records.heuristics import MAX_SEEN
from receipt_cli.redaction.text import log_tail, safe_text
from receipt_cli.scan.arrivals import Samples
from receipt_cli.scan.columns import POSITION_BITS
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import SegmentBody
from receipt_cli.scan.workers import kept_engine

DOUBTS = frozenset({"non_finite_unread", "number_ambiguous", "figure_unread", "placeholder", "loss_missing"})
"""Problem kinds of an unread or misread value."""
_OF_LOSS = compile_later(r"/metrics/(?:val_)?loss/|/checks/finite_losses\Z")


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """The chosen run of a log: number ``used`` (from 1) of ``count``, from ``first_line``."""

    count: int
    used: int
    first_line: int


class TimesFacts(NamedTuple):
    """A file of times: its digest and size in bytes, and the milliseconds within which lines may have one time."""

    sha256: str
    size_bytes: int
    resolution_ms: int


class LineCounts(NamedTuple):
    """Number of records by treatment; the sum is the log's ``record_count``."""

    matched: int
    ignored: int
    unmatched: int
    undecodable: int


@dataclass(frozen=True)
class Derivation:
    """The derived part of a receipt. ``facts`` maps a name to (value, first line that printed it)."""

    log: LogFacts
    options: Options
    detection: Detection
    summaries: tuple[Summary, ...]
    phase_grammars: tuple[str, ...]
    primary: int | None
    checks: Checks
    ending: Ending
    explanation: Explanation
    tail: tuple[str, ...]
    lines: LineCounts
    near_misses: tuple[int, tuple[NearMiss, ...]]
    problems: tuple[Counter[str], tuple[Problem, ...]]
    facts: Mapping[str, tuple[float | str, int]]
    catalogue: Catalogue
    registry: Registry
    metric_lines: tuple[str, ...]
    lacks: tuple[Lack, ...]
    """For a log that nothing reads: the most similar records, the number of each kind, and why they are unread."""
    stepless: bool
    """Whether the log has no step, and no line that looks like an unread step."""
    rule_records: Mapping[tuple[str, str], int]
    changed: bool
    launch: LaunchFacts
    ranks: tuple[Mapping[int, RankFigures], ...]
    """For each phase, rank → its values; empty if only one rank printed records."""
    goodput: Goodput | None
    cost: Mapping[str, Any] | None
    ledger: Ledger
    check_lines: Mapping[str, int | None]
    """Check → the line that decided it."""
    log_time: LogTime | None = None
    times: TimesFacts | None = None
    """The file of times, if that is where the times of the records are from."""
    samples: Samples | None = None
    """The samples of GPUs, if goodput has a class from them."""


def derive(
    source: Source, options: Options | None = None, *, workers: int | None = None, using: Grammar | None = None,
    site: Site = NO_SITE,
) -> Derivation:  # fmt: skip
    """Return the derivation of the last run in a log. Reads ``source`` once, an unrecognised log twice.

    ``using`` is the only grammar to read it with, instead of ``Options.grammar``; ``site`` has additional definitions.

    Raises ``InputError`` for a log that is empty or cannot be read, ``DataError`` for a broken or unknown grammar and
    ``UsageError`` for a malformed grammar name. An unrecognised log is not an error.
    """
    return read_log([Stream((source,))], options, workers=workers, using=using, site=site).derivation()


def read_log(
    streams: Sequence[Stream], options: Options | None = None, *, workers: int | None = None, using: Grammar | None = None,
    choice: Choice | None = None, site: Site = NO_SITE, one_of_many: bool = False,
) -> Reading:  # fmt: skip
    """Read the streams of one log, each once. Raises as ``derive`` does, and ``UsageError`` if they are not of one run.

    With a ``choice``, its grammars read the log; ``options`` must not name one then. ``one_of_many`` as for ``plan_reading``.
    """
    plan = plan_reading(options, using=using, choice=choice, site=site, one_of_many=one_of_many)
    return plan.read(gather(plan.engine, streams, workers), workers)


def plan_reading(
    options: Options | None = None, *, using: Grammar | None = None, choice: Choice | None = None,
    site: Site = NO_SITE, one_of_many: bool = False,
) -> Plan:  # fmt: skip
    """Return the plan to read a log, with the options of ``read_log``. Raises ``DataError`` and ``UsageError``.

    ``one_of_many``: keep the engine of all grammars, because the process reads more logs, one at a time.
    """
    options = options or Options()
    generic = using is None and is_generic(options.grammar)
    forced = site.find(options.grammar) if options.grammar is not None and using is None and not generic else using
    if forced is not None or generic:
        options = replace(options, grammar=GENERIC if forced is None else forced.ref)  # never the path of a file
    known: Sequence[Grammar] = choice.catalogue if choice is not None else [forced] if forced is not None else ()
    if choice is None and forced is None and not generic:
        known = (*shipped(), *site.grammars)
    return Plan((kept_engine if one_of_many else Engine)(known, site.catalogue), options, forced, choice, site, one_of_many)


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan to read a log: the engine that scans it, and the choice of grammars."""

    engine: Engine
    options: Options
    forced: Grammar | None
    choice: Choice | None
    site: Site = NO_SITE
    one_of_many: bool = False

    def read(self, gathered: Gathered, workers: int | None = None) -> Reading:
        """Return the reading of a log that the engine ``gathered``, and consume it. Raises as ``read_log`` does."""
        if not gathered.log.size_bytes:
            raise InputError("the log is empty", where=gathered.streams[0].parts[0].name)
        return self._read(gathered, self.choice, workers)

    def _read(
        self, gathered: Gathered, choice: Choice | None, workers: int | None, *, part: bool = False, known: Fallback | None = None
    ) -> Reading:
        """Return the reading of a log, or of a ``part`` of one, whose grammars may differ from the ``choice``.

        ``known``: the generic reading of the log that this is a part of.
        """
        detection = detect(self.engine, gathered.body, forced=self.forced, choice=choice)
        if choice is not None and part and not detection.chosen:
            choice, detection = None, detect(self.engine, gathered.body)
        gaps = gaps_of_trainers(self.engine, gathered.body, detection)
        whole = None if gaps else self._read_whole(gathered, detection, choice, workers, known)
        parts = read_parts(self.engine, gathered, gaps if whole is None else gaps_of_launches(whole.launches), workers)
        if not parts:
            return whole or self._read_whole(gathered, detection, choice, workers, known)
        known = whole.fallback if whole is not None else None
        every = (self._read(one, choice, workers, part=True, known=known) for one in parts)
        read = [inner for one in every for inner in one.parts or (one,)]
        carry_doubts(whole.launches if whole is not None else (), [one.launches for one in read])
        launches = [launch for one in read for launch in one.launches]
        return replace(read[-1], gathered=gathered, launches=launches, parts=tuple(read))

    def _read_whole(
        self, gathered: Gathered, detection: Detection, choice: Choice | None, workers: int | None, known: Fallback | None
    ) -> Reading:
        engine, forced, streams = self.engine, self.forced, gathered.streams
        grammars = [chosen.grammar for chosen in detection.chosen]
        unread = forced is None and may_be_another(engine, gathered.body, detection)  # ``lacks`` are reported with any choice
        lacking: list[Lack] = []
        fallback: Fallback | None = None
        if unread or (choice is not None and choice.generic):
            many = self.one_of_many
            second = read_generically(streams, gathered, detection, workers, lacking, self.site, engine, many=many, known=known)
            if second is not None and (choice is None or choice.generic):
                engine, gathered, detection, grammars = second.engine, second.gathered, second.detection, [second.grammar]
                fallback = second
        told = read_events(engine, gathered.body, grammars)
        events, body = gathered.in_order(told.table)
        events, launches = find_runs(events, body, engine.catalogue, streams)
        launches[0] = launches[0]._replace(line=gathered.lines[0] + 1)
        read = (engine, gathered, body, self.options, detection, grammars, events, launches, told, tuple(lacking))
        return Reading(*read, registry=self.site.registry, fallback=fallback)


@dataclass(frozen=True)
class Reading:
    """A log after reading, and its runs."""

    engine: Engine
    gathered: Gathered
    body: SegmentBody
    options: Options
    detection: Detection
    grammars: Sequence[Grammar]
    events: EventTable
    """The records of all ranks with their steps; of a log in parts those of the last."""
    launches: list[Launch]
    told: ReadEvents
    lacks: tuple[Lack, ...] = ()
    parts: tuple[Reading, ...] = ()
    """The readings of parts of a log that are separate logs: launches that share nothing."""
    before: int = 0
    after: float = math.inf
    """Of a part: the last line before it, and the first line of the next part."""
    registry: Registry | None = None
    fallback: Fallback | None = None
    """The generic reading, if the log was read so."""

    @cached_property
    def edges(self) -> Edges:
        """The timestamps at both ends of the log."""
        return log_edges(self.gathered)

    @cached_property
    def log_time(self) -> LogTime | None:
        """The time of the log, for logs whose runs have no time."""
        return find_log_time(self.gathered)

    @cached_property
    def line_counts(self) -> LineCounts:
        """The records of the log by their treatment."""
        if self.parts:
            counts = LineCounts(*map(sum, zip(*(part.line_counts for part in self.parts), strict=True)))
            return counts._replace(ignored=counts.ignored + self.gathered.log.record_count - sum(counts))
        body = self.gathered.body
        matched, ignored, undecodable = count_explained(self.engine, body, self.grammars)
        return LineCounts(matched, ignored, body.records - matched - ignored - undecodable, undecodable)

    def derivation(self, number: int | None = None) -> Derivation:
        """Return the derivation of run ``number`` of the log, counted from 0; None is the last run.

        Exit code and wall time from the caller belong to the last run. A log of one file is read again for the last lines
        of an earlier run. Raises ``InputError`` if that fails.
        """
        number = len(self.launches) - 1 if number is None else number
        options = self.options if number == len(self.launches) - 1 else self.options.of_earlier_run()
        starts = 1 if self.gathered.arrivals is None else len(self.gathered.arrivals.entries.launches)
        shared = options.wall is not None and options.wall.evidence == OF_COMMAND and max(len(self.launches), starts) > 1
        own = replace(options, wall=None) if shared else options  # the wall time of a command is not one run's
        return replace(self._of_part(number, own) if self.parts else _figures(self, number, own), options=options)

    def _of_part(self, number: int, options: Options) -> Derivation:
        """Return the derivation of a run in one part, with the facts of the whole log."""
        before = [0, *accumulate(len(part.launches) for part in self.parts)]
        index = bisect_right(before, number) - 1
        after = self.parts[index + 1].launches[0].line if index + 1 < len(self.parts) else math.inf
        part = replace(self.parts[index], before=self.parts[index].launches[0].line - 1 if index else 0, after=after)
        found = _figures(part, number - before[index], options)
        launch = LaunchFacts(len(self.launches), number + 1, found.launch.first_line)
        return replace(found, log=self.gathered.log, lines=self.line_counts, launch=launch)


def _figures(reading: Reading, number: int, options: Options) -> Derivation:
    engine, grammars, log = reading.engine, reading.grammars, reading.gathered.log
    events, beside = alone(reading.launches[number].events)
    launch, body = reading.launches[number]._replace(events=events), reading.gathered.body
    registry = reading.registry or load_registry()
    every = split_phases(events, body.copied, launch.banners)
    one_of_many = len(reading.launches) > 1 or reading.before > 0 or reading.after < math.inf
    of_others = withhold_models(events, every) if one_of_many else []
    arrivals = reading.gathered.arrivals
    if arrivals is not None:
        note_starts(every, arrivals)
    shown = omissions.largest(every)
    phases = [every[index] for index in shown]
    came = how_they_came(events, arrivals) if arrivals is not None else None
    summaries: list[Summary] = []
    known, among, digits = dict[str, float | str](), set(shown), PrintedDigits(partial(engine.columns, body))
    for index, phase in enumerate(every):
        known = phase_facts(phase, known)
        if index in among:
            summaries.append(summarise(phase, known, registry, options.facts, digits, came and came.grain))
    own_body = window(reading.body, launch)
    unread = body.step_like >= MAX_SEEN or any(lack.counted for lack in reading.lacks)
    last = max((phase.steps.line_span[1] for phase in every if phase.steps), default=0)
    first_and_last = cache(partial(_edges_of, reading, number))
    whole_end = number == len(reading.launches) - 1 and len(reading.gathered.streams) == 1
    begun = max([launch.line, *(phase.steps.line_span[1] for phase in every[:-1] if phase.steps)])
    at_end = [each for each in _last_lines(reading, number) if each[0] >= begun] if whole_end else []
    final = max((phase.steps[-1] for phase in every if phase.steps), key=lambda row: row.at, default=None)
    behind = None if final is None else body.records - 1 - (final.at >> POSITION_BITS)

    def started(line: int) -> bool:
        return begins_program(first_and_last(), last, line)

    for phase, summary in zip(phases, summaries, strict=True):
        note_reached(summary, phase, at_end if phase is every[-1] else ())
    going_on = training_unread(engine, grammars, at_end, behind, final, started)
    ending = judge(
        own_body, engine.catalogue, every, options.exit_code, whole=options.log_complete is not False, running=options.running,
        closing=lambda: any(phase.steps for phase in every) and closes(first_and_last(), last),
        spent=lambda: spends_patience(first_and_last(), last),
        started=started,
        ran=lambda: not shows_no_figure(reading.gathered.streams, log.size_bytes),
        above=lambda line: first_and_last().get(line - 1, b""),
        unread_after=bool(going_on) or (unread and final is None),
    )  # fmt: skip
    if options.job is not None:
        ending = complete_ending(ending, options.job)
    edges = _stamps_of(reading, number, came)
    explanation = Explanation()
    if ending.reason is not None:
        explanation = explain(ending, own_body, engine.catalogue, every, edges.tail, at_end)
        ending = explanation.improved(ending)
    starts = [max(launch.start, phase.first_at) for phase in every]
    spans = list(zip(starts, [*starts[1:], launch.end], strict=False))
    ranks = [rank_figures(reading.events, *spans[index], reading.gathered.twins) for index in shown]
    diagnose(summaries, ranks, ending)
    for summary, index in zip(summaries, shown, strict=True):
        if summary.slow_steps is not None:
            summary.slow_steps = with_ranks(summary.slow_steps, reading.events.between(*spans[index]))
    spent = Account(None)
    samples = None if arrivals is None or came is None or came.held else arrivals.samples
    if len(every) == len(phases) and not beside:  # the wall time of several processes is not one run's

        def work() -> Outside:
            steps = sorted(line for phase in every if phase.steps for line in phase.steps.line[:2].tolist())[:2]
            words, read = load_generic(), launch.events.line
            return find_work(first_and_last(), steps, last, read, words.epoch, words.training | words.evaluation, words.closing)

        spent = account(phases, summaries, launch, edges, options.wall, samples, work)
    when = find_time(launch.events, launch.start, edges, is_zoned(reading.edges) if arrivals is None else True)
    held: Sequence[Problem] = ()
    if came is not None:
        spent = by_arrival(spent)
        for summary, phase in zip(summaries, phases, strict=True) if came.held else ():
            summary.realised = by_bursts(summary.realised, phase)
        held = held_back(came, spent, summaries, launch)
    took = find_time_to_train(launch.events)
    for summary in summaries:
        summary.time, summary.time_to_train_s = when, took
    primary = max(range(len(summaries)), key=lambda i: (summaries[i].record_count, -i), default=None)
    own = [*reading.told.problems, *steps_missing(phases), *omissions.loss_missing(phases, summaries)]
    own += [
        *omissions.printed_twice(phases, summaries),
        *omissions.several_figures(phases, summaries),
        *omissions.attempts_alike(phases, summaries),
        *omissions.steps_jump(phases, summaries, at_end),
    ]
    read_by = {engine.shared[g.ref, r.name]: r for g in reversed(grammars) for r in g.rules if r.event in ("step", "eval")}
    own += [omissions.doubt_named(d, read_by[d.key], phases, summaries, primary) for d in body.doubts if d.key in read_by]
    left_over = [(r, c.dropped) for key, r in read_by.items() if r.event == "step" and (c := body.rules.get(key)) is not None]
    own += omissions.losses_left_over(left_over, phases, summaries)
    own += omissions.loss_doubts(phases, summaries, primary)
    if summaries and (saved := summaries[-1].checkpoints) is not None and saved.unsaved_step_count:
        own += checkpoint_begun(len(summaries) - 1, first_and_last(), last)
    own += [*beside, *of_others, *doubtful_launches(launch, phases)]
    own += dict.fromkeys(problem for summary in summaries for problem in summary.contradictions)
    own += omissions.rates_contradicted(summaries)
    own += omissions.rounded_rates(summaries)
    own += [*omissions.left_out(summaries, len(every) - len(phases), ranks), *spent.problems, *held, *ending.problems]
    if (start := ending.failed_start) is not None:
        detail = "a later launch failed before its first step; not this run's failure"
        own.append(Problem("failed_start", start.line, detail, start.message))
    if options.replaced_bytes is not None:
        detail = "the file was replaced while it was followed; its earlier content was not read"
        own.append(Problem("launch_doubtful", 1, detail, ""))
    stepless = not unread and proves_no_step(every, ending, own_body.markers)
    stepless = stepless and _failed_at_start(reading, number, ending, first_and_last())
    stepless = stepless and not draws_plan(every, first_and_last().values())
    lost = any(problem.kind in DOUBTS and _OF_LOSS.search(field) for problem in own for field in problem.fields)
    lost = lost or omissions.unread_losses(body.doubts, read_by)
    cut = at_end[-1][0] if at_end and not reading.gathered.tail(None)[0].endswith(b"\n") else None
    checks = evaluate(phases, summaries, ending, stepless=stepless, unread_losses=lost, cut=cut, shown=first_and_last)
    metric_lines = tuple(safe_text(text, 120) for _, text in body.metric_like.first)
    own += going_on
    own += no_step_recognised(checks, reading.lacks, metric_lines, len(summaries))
    problems = _problems(body, [*reading.gathered.problems, *own], reading.told.more)
    facts = first_facts(every) if number else with_identity(first_facts(every), reading.gathered, launch.events)
    if "trainer_name" not in facts and every and is_shared(engine, body, every[0].grammar):
        facts = {name: fact for name, fact in facts.items() if name != "trainer"}
    read = {(g.ref, r.name): engine.columns(body, g, r) for g in grammars for r in g.rules}
    return Derivation(
        log=log,
        log_time=None if when is not None and primary is not None else reading.log_time,
        times=None if arrivals is None else TimesFacts(arrivals.sha256, arrivals.size_bytes, arrivals.entries.pause_ms),
        samples=samples if spent.goodput is not None and GPU_IDLE in spent.goodput.parts else None,
        options=options,
        detection=reading.detection,
        summaries=tuple(summaries),
        phase_grammars=tuple(phase.grammar.id for phase in phases),
        primary=primary,
        checks=checks,
        ending=ending,
        explanation=explanation,
        tail=tuple(_tail(reading, number, ending)),
        lines=reading.line_counts,
        near_misses=_near(body, grammars),
        problems=problems,
        facts=facts,
        catalogue=engine.catalogue,
        registry=registry,
        metric_lines=metric_lines,
        lacks=tuple(lack._replace(line=safe_text(lack.line, 120)) for lack in reading.lacks),
        stepless=stepless,
        rule_records={key: len(columns) for key, columns in read.items() if columns is not None},
        changed=reading.gathered.changed,
        launch=LaunchFacts(len(reading.launches), number + 1, launch.line),
        ranks=tuple(map(omissions.lowest, ranks)),
        goodput=spent.goodput,
        cost=find_cost(options, known, {} if primary is None else summaries[primary].metrics, spent.goodput, when),
        ledger=reading.told.ledger,
        check_lines=deciding_lines(checks, summaries, phases, ending),
    )


def _stamps_of(reading: Reading, number: int, came: Came | None) -> Edges:
    """Return the stamps at both ends of run ``number``."""
    arrivals, launches = reading.gathered.arrivals, reading.launches
    if arrivals is None or came is None:
        return reading.edges.of_run(number, len(launches) - 1)
    after = launches[number + 1].line if number < len(launches) - 1 else reading.after
    until = reading.gathered.log.line_count if after == math.inf else int(after) - 1
    before = launches[number - 1].events[-1].line if number and launches[number - 1].events else reading.before
    return edges_of(arrivals, (launches[number].line, until), before, after, came.grain)


def _last_lines(reading: Reading, number: int) -> list[tuple[int, bytes]]:
    """Return (line number, line) for the last lines of run ``number``."""
    gathered, final = reading.gathered, reading.gathered.final
    if number == len(reading.launches) - 1:
        until, (data, cut) = [*gathered.lines, gathered.log.line_count][final + 1], gathered.tail(None)
    else:
        until, cut = reading.launches[number + 1].line - 1, number > 0
        data = last_bytes_before(gathered.streams[final], until + 1)
    lines = data.removesuffix(b"\n").split(b"\n")
    return [*enumerate(lines, until - len(lines) + 1)][1 if cut else 0 :]


def _edges_of(reading: Reading, number: int) -> dict[int, bytes]:
    """Return line number → line for the first lines of the log and the last lines of run ``number``, in order."""
    gathered, final, last = reading.gathered, reading.gathered.final, _last_lines(reading, number)
    first = enumerate(gathered.heads[final].split(b"\n")[:-1], gathered.lines[final] + 1)
    return {**{at: line for at, line in first if not last or at < last[0][0]}, **dict(last)}


def _failed_at_start(reading: Reading, number: int, ending: Ending, lines: Mapping[int, bytes]) -> bool:
    """Return whether the run failed before its first step: a known trainer after its introduction, or any program."""
    failure = ending.line_number or reading.body.lines + 1
    streams, size, forced = reading.gathered.streams, reading.gathered.log.size_bytes, reading.options.grammar is not None
    known = any(grammar.layer in PROGRAMS for grammar in reading.grammars)
    if known and shows_beginning(reading.launches[number].events, lines, failure):
        return not forced or shows_no_figure(streams, size)  # with a forced grammar, no other was tried
    if not ending.died or ending.reason not in RAISED or number < len(reading.launches) - 1 or len(streams) > 1:
        return False
    return fails_at_start(lines, failure) and shows_no_figure(streams, size)


def _tail(reading: Reading, number: int, ending: Ending) -> list[str]:
    """Return the last lines of a failed run, if they can still be read."""
    if ending.reason is None:
        return []
    if number == len(reading.launches) - 1:
        end, cut = reading.gathered.tail(ending.line_number)
        return log_tail(end, cut=cut)
    if len(reading.gathered.streams) > 1:
        return []
    return log_tail(last_bytes_before(reading.gathered.streams[0], reading.launches[number + 1].line), cut=number > 0)


def _problems(body: SegmentBody, more: Sequence[Problem], orphans: int) -> tuple[Counter[str], tuple[Problem, ...]]:
    if body.nul_count:
        more = [*more, Problem("nul_bytes", body.nul_line, f"{body.nul_count} NUL bytes were removed", "")]
    kinds = body.problems.kinds + Counter(problem.kind for problem in more) + Counter(block_row_without_opening=orphans)
    return kinds, first_of_each([*(problem for _, problem in body.problems.first), *more], MAX_FIRST)


def _near(body: SegmentBody, grammars: Sequence[Grammar]) -> tuple[int, tuple[NearMiss, ...]]:
    near = [body.near[g.id] for g in grammars if g.id in body.near]
    first = sorted((entry for n in near for entry in n.first), key=lambda entry: entry[0])
    return sum(n.count for n in near), tuple(miss for _, miss in first[:MAX_FIRST])
