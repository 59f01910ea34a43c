"""A log → everything that a receipt derives from it: source → records → match → columns → fold → figures.

A pure function of the log's bytes, the bytes of grammars, catalogue and registry, the options and the rules version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from receipt_cli.catalog import get_grammar, shipped
from receipt_cli.checks import Checks, evaluate
from receipt_cli.consistency import phase_facts
from receipt_cli.detect import Detection, count_explained, detect
from receipt_cli.epochs import count_epochs
from receipt_cli.errors import InputError
from receipt_cli.failure import Ending, judge
from receipt_cli.grammar import Grammar
from receipt_cli.looks import MAX_SEEN
from receipt_cli.markers import Catalogue, load_catalogue
from receipt_cli.model import MAX_FIRST, NearMiss, Problem
from receipt_cli.numbering import number_steps
from receipt_cli.parallel import scan_source
from receipt_cli.phases import Phase, split_phases
from receipt_cli.ranks import leading_rank
from receipt_cli.redact import log_tail, safe_text
from receipt_cli.registry import Registry, load_registry
from receipt_cli.scan import Engine
from receipt_cli.source import Source
from receipt_cli.stretch import Body
from receipt_cli.summary import Summary, summarise
from receipt_cli.timeline import read_events


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may decide about a derivation; recorded in the receipt."""

    grammar: str | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The log as such. ``line_count`` as ``wc -l`` plus an open last line; ``record_count`` with redraws apart."""

    sha256: str
    size_bytes: int
    line_count: int
    record_count: int


@dataclass(frozen=True, slots=True)
class LineCounts:
    """Records by what became of them; they add up to the log's ``record_count``."""

    matched: int
    ignored: int
    unmatched: int
    undecodable: int


@dataclass(frozen=True)
class Derivation:
    """What a log gives. ``facts`` maps a fact's name to its value and the line that printed it first."""

    log: LogFacts
    options: Options
    detection: Detection
    summaries: tuple[Summary, ...]
    phase_grammars: tuple[str, ...]
    primary: int | None
    checks: Checks
    ending: Ending
    tail: tuple[str, ...]
    lines: LineCounts
    near_misses: tuple[int, tuple[NearMiss, ...]]
    problems: tuple[int, tuple[Problem, ...]]
    facts: Mapping[str, tuple[float | str, int]]
    catalogue: Catalogue
    registry: Registry
    metric_lines: tuple[str, ...]
    stepless: bool
    """No step was found, and no line of the log looks like one that we cannot read."""
    rule_records: Mapping[tuple[str, str], int]
    changed: bool


def derive(source: Source, options: Options | None = None, *, workers: int | None = None) -> Derivation:
    """Derive everything from one log. Reads ``source`` once.

    Raises ``InputError`` for a log that is empty or cannot be read, ``DataError`` for a broken or unknown grammar and
    ``UsageError`` for a malformed grammar name. A log that nobody recognises is a result, not an error.
    """
    options = options or Options()
    forced = get_grammar(options.grammar) if options.grammar is not None else None
    if forced is not None:
        options = Options(forced.ref, options.exit_code)  # never the path of a file
    engine = Engine([forced] if forced is not None else shipped(), load_catalogue())
    stretch = scan_source(engine, source, workers)
    if not source.size_bytes:
        raise InputError("the log is empty", where=source.name)
    body, line_count = engine.finish(stretch)
    log = LogFacts(source.sha256, source.size_bytes, line_count, body.records)
    detection = detect(engine, body, forced=forced)
    grammars = [chosen.grammar for chosen in detection.chosen]
    return _figures(engine, body, log, options, detection, grammars, source, stretch.last_bytes)


def _figures(
    engine: Engine,
    body: Body,
    log: LogFacts,
    options: Options,
    detection: Detection,
    grammars: Sequence[Grammar],
    source: Source,
    last_bytes: bytes,
) -> Derivation:
    registry = load_registry()
    events, more_problems = read_events(engine, body, grammars)
    phases = split_phases(number_steps(leading_rank(count_epochs(events))))
    summaries: list[Summary] = []
    known: dict[str, float | str] = {}
    for phase in phases:
        known = phase_facts(phase, known)
        summaries.append(summarise(phase, known, registry))
    found = any(summary.record_count for summary in summaries)
    ending = judge(body, engine.catalogue, phases, options.exit_code)
    matched, ignored, undecodable = count_explained(engine, body, grammars)
    unmatched = body.records - matched - ignored - undecodable
    problems = _problems(body, [*source.problems, *more_problems, *_dropped(summaries)])
    doubtful = body.step_like >= MAX_SEEN if grammars else bool(body.metric_like.count)
    return Derivation(
        log=log,
        options=options,
        detection=detection,
        summaries=tuple(summaries),
        phase_grammars=tuple(phase.grammar.id for phase in phases),
        primary=max(range(len(summaries)), key=lambda i: (summaries[i].record_count, -i), default=None),
        checks=evaluate(phases, summaries, ending),
        ending=ending,
        tail=tuple(log_tail(last_bytes, cut=len(last_bytes) < log.size_bytes)),
        lines=LineCounts(matched, ignored, unmatched, undecodable),
        near_misses=_near(body, grammars),
        problems=problems,
        facts=_first_facts(phases),
        catalogue=engine.catalogue,
        registry=registry,
        metric_lines=tuple(safe_text(text, 120) for _, text in body.metric_like.first),
        stepless=not found and not doubtful,
        rule_records=_rule_records(engine, body, grammars),
        changed=source.changed,
    )


def _problems(body: Body, more: Sequence[Problem]) -> tuple[int, tuple[Problem, ...]]:
    found = [problem for _, problem in body.problems.first]
    if body.nul_count:
        found.append(Problem("nul_bytes", body.nul_line, f"{body.nul_count} NUL bytes were removed", ""))
    found += more
    count = body.problems.count + (1 if body.nul_count else 0) + len(more)
    return count, tuple(sorted(found, key=lambda p: (p.line_number or 0, p.kind, p.detail))[:MAX_FIRST])


def _dropped(summaries: Sequence[Summary]) -> list[Problem]:
    return [
        Problem("other_metrics_dropped", None, f"{s.dropped_others} metrics outside the registry were left out", "")
        for s in summaries
        if s.dropped_others
    ]


def _near(body: Body, grammars: Sequence[Grammar]) -> tuple[int, tuple[NearMiss, ...]]:
    near = [body.near[g.id] for g in grammars if g.id in body.near]
    first = sorted((entry for n in near for entry in n.first), key=lambda entry: entry[0])
    return sum(n.count for n in near), tuple(miss for _, miss in first[:MAX_FIRST])


def _first_facts(phases: Sequence[Phase]) -> dict[str, tuple[float | str, int]]:
    facts: dict[str, tuple[float | str, int]] = {}
    if phases:
        lines = [e.line for e in (*phases[0].raw, *phases[0].evals, *phases[0].singles)]
        facts["trainer"] = (phases[0].grammar.trainer, min(lines))
    events = sorted((e for p in phases for e in p.singles), key=lambda e: e.at)
    for event in events:
        for name, value in event.facts.items():
            facts.setdefault(name, (value, event.line))
    if "trainer_name" in facts:
        facts["trainer"] = facts["trainer_name"]
    return facts


def _rule_records(engine: Engine, body: Body, grammars: Sequence[Grammar]) -> dict[tuple[str, str], int]:
    """Return how many events each rule of the chosen grammars read."""
    read = {(g.ref, r.name): engine.columns(body, g, r) for g in grammars for r in g.rules}
    return {key: len(columns) for key, columns in read.items() if columns is not None}
