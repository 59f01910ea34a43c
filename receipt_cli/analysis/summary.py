"""One phase → its summary: steps, steady state, statistics of each metric, and derived figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from receipt_cli.analysis.bottleneck import CYCLE, LOOKED_AT, Bottleneck, judge
from receipt_cli.analysis.failure import Ending
from receipt_cli.analysis.flags import Flag, find_oddities
from receipt_cli.analysis.flops import own_peak, world_size
from receipt_cli.analysis.goodput.timestamps import Edges, Life, LogTime, find_life
from receipt_cli.analysis.memory import MemoryStory, tell
from receipt_cli.analysis.position import Position, find_position
from receipt_cli.analysis.progress import (
    Checkpoints,
    Evidence,
    Identity,
    Realised,
    StepTimes,
    find_checkpoints,
    find_identities,
    find_reached,
    realise,
    step_times,
)
from receipt_cli.analysis.recompute import Comparison, compare, of_session, recompute
from receipt_cli.analysis.records import Records
from receipt_cli.analysis.slow import SlowSteps, find_slow
from receipt_cli.analysis.spikes import Spikes, find_spikes
from receipt_cli.analysis.stated import StatedFact, complete
from receipt_cli.analysis.steady import SteadyState, plausible, steady_records
from receipt_cli.definitions.metrics import Registry
from receipt_cli.events.phases import Phase
from receipt_cli.events.printed_digits import Digits, PrintedDigits
from receipt_cli.events.ranks import RankFigures
from receipt_cli.events.table import (
    Column,
    EventTable,
    Places,
    Series,
    Source,
    before_in,
    chosen,
    find_places,
    not_nan,
    numbered_steps,
    numbers_in,
)
from receipt_cli.numeric.array_types import Floats, Mask
from receipt_cli.numeric.precision import resolution
from receipt_cli.numeric.spill import slices
from receipt_cli.numeric.statistics import Statistic, describe, finite
from receipt_cli.problems import Problem

TRAINING_ONLY = "training_only"
"""Definition of a printed duration that covers only the steps."""
MAX_OTHERS = 256
"""Most metrics outside the registry in a summary."""


@dataclass(slots=True)
class Summary:
    """The figures of one phase, in base units."""

    phase: str | None
    first: int | None
    last: int | None
    planned: int | None
    record_count: int
    restart_count: int
    superseded_count: int
    steady: SteadyState
    training_time_s: float | None
    parameter_count: int | None
    metrics: dict[str, Statistic] = field(default_factory=dict)
    other_metrics: dict[str, Statistic] = field(default_factory=dict)
    derived: dict[str, tuple[Statistic, dict[str, float | str]]] = field(default_factory=dict)
    consistency: list[Comparison] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)
    spikes: Spikes | None = None
    bottleneck: Bottleneck | None = None
    memory: MemoryStory | None = None
    time: LogTime | None = None
    step_times: StepTimes | None = None
    realised: Realised | None = None
    identities: list[Identity] = field(default_factory=list)
    checkpoints: Checkpoints | None = None
    series: Series = field(default_factory=Series)
    dropped_others: int = 0
    places: dict[str, Places] = field(default_factory=dict)
    """The lines of each metric's figures, by name; also outside the registry."""
    printed_digits: dict[str, Digits] = field(default_factory=dict)
    """The printed digits of these metrics, as far as the rules show them."""
    lines: tuple[int | None, int | None] = (None, None)
    """The lines of the first and last step records."""
    time_to_train_s: float | None = None
    position: Position | None = None
    reached: int | None = None
    """The step above the last record's that a later line shows."""
    slow_steps: SlowSteps | None = None
    contradictions: tuple[Problem, ...] = ()
    """Stated facts that the phase contradicts."""


NOTHING = Summary(None, None, None, None, 0, 0, 0, SteadyState(0, 0, 0), None, None)
"""The summary of a log without a phase: no steps."""


def summarise(
    phase: Phase,
    facts: Mapping[str, float | str],
    registry: Registry,
    stated: Sequence[StatedFact] = (),
    digits: PrintedDigits | None = None,
    grain: float | None = None,
) -> Summary:
    """Return the summary of ``phase``; ``facts`` are the run's that hold for this phase.

    ``stated`` facts fill gaps of the log in recomputed figures; ``digits`` are the printed digits of the rules' values;
    ``grain`` is how many seconds stamps may be off, None if they show it themselves.
    """
    steps = phase.steps
    numbered = numbered_steps(steps)
    standing = Records(phase.steps, phase.starts)
    steady, state = steady_records(standing)
    summary = Summary(
        phase=phase.name,
        first=int(numbered[0]) if len(numbered) else None,
        last=int(numbered[-1]) if len(numbered) else None,
        planned=phase.planned,
        record_count=len(steps),
        restart_count=phase.restarts,
        superseded_count=len(phase.superseded),
        steady=state,
        training_time_s=_number(phase.fact("training_time_s")),
        parameter_count=_parameters(phase),
    )
    if steps:
        summary.lines = steps[0].line, steps[-1].line
    beside = _without_means(steps, phase.evals.with_(phase.standalone_events), registry)
    table = beside.with_(steps)
    _metrics(summary, table, _among(table, steps, steady), registry)
    _others(summary, table)
    summary.position = find_position(table, summary.metrics, list(summary.other_metrics))
    summary.printed_digits = digits.of(table, summary.places) if digits is not None else {}
    for name, shown in summary.printed_digits.items():
        summary.places[name].resolution = shown.unit
    timed, life = (phase.steps, _life(phase.step_events, None)) if grain is None else _arrived(phase, grain)
    _derive(summary, phase, standing, steady, facts, stated, None if life is None else life.grain)
    _progress(summary, phase, standing, facts, timed, life)
    summary.consistency += _session(summary, phase)
    elapsed = summary.metrics.get("elapsed_time_s")
    if summary.training_time_s is None and elapsed is not None and elapsed.definition == TRAINING_ONLY and not phase.restarts:
        summary.training_time_s = _number(elapsed.last or None)  # the last record's; a restart resets it
    summary.spikes = find_spikes(standing, phase.standalone_events)
    summary.slow_steps = find_slow(phase, standing, steady, summary.metrics)
    return summary


def note_reached(summary: Summary, phase: Phase, lines: Iterable[tuple[int, bytes]]) -> None:
    """Set the step that was reached, and the steps since the last checkpoint; ``lines``: see ``find_reached``."""
    saved = summary.checkpoints
    summary.reached = find_reached(phase, saved, lines)
    if summary.reached is not None and saved is not None and saved.last_step is not None and summary.reached > saved.last_step:
        saved.unsaved_step_count, saved.unsaved_time_s = summary.reached - saved.last_step, None


def find_time_to_train(events: EventTable) -> float | None:
    """Return the seconds from start to end that a benchmark states, rounded to milliseconds.

    The first rank with statements counts; None unless it states both, once each.
    """
    stated: dict[str, dict[int, set[float | str]]] = {"run_started": {}, "run_stopped": {}}
    for row in events.of_sources(lambda source: source.speaks):
        for name in stated.keys() & row.facts.keys():
            stated[name].setdefault(row.rank, set()).add(row.facts[name])
    begun, ended = (found[min(found)] if found else set() for found in stated.values())
    if len(begun) != 1 or len(ended) != 1 or min(stated["run_started"]) != min(stated["run_stopped"]):
        return None
    (start,), (stop,) = begun, ended
    return round(stop - start, 3) if isinstance(start, float) and isinstance(stop, float) and start <= stop else None


def _session(summary: Summary, phase: Phase) -> list[Comparison]:
    """Return the run means that the steps of the last attempt contradict."""
    numbered = numbered_steps(phase.last_attempt)
    if not len(numbered):
        return []
    return of_session(int(numbered[0]), int(numbered[-1]), len(numbered), summary.metrics, summary.training_time_s)


def _without_means(steps: EventTable, others: EventTable, registry: Registry) -> EventTable:
    """Return ``others`` without metrics that step records print too and that cover another span here.

    These are means of curves and rates in closing lines, and rates in evaluation and header lines. Counters and levels stay:
    their last value holds for the whole run.
    """
    closing = [s for s in others.sources if s.rule.event in ("end", "eval", "header") and (s.metrics or s.others)]
    if not closing:
        return others
    named = steps.metric_names()
    rates = {name for name in named if registry.by_name[name].klass == "rate"}
    curves = {name for name in named if registry.by_name[name].klass == "curve"}
    repeated: dict[str, set[str]] = {"eval": rates, "header": rates, "end": {*rates, *curves, *steps.other_names()}}

    def kept(source: Source) -> Source:
        names = repeated.get(source.rule.event, set())
        metrics, figures = ({n: c for n, c in held.items() if n not in names} for held in (source.metrics, source.others))
        return replace(source, metrics=metrics, others=figures)

    return others.of(others.log.having([kept(source) for source in others.log.sources]))


def _among(table: EventTable, steps: EventTable, steady: Mask) -> Mask:
    """Return which rows of a table count in the steady window: the ``steady`` ones of ``steps``, and all that are no step."""
    if len(table) == len(steps):
        return steady
    found: Mask = np.array(table.by_source(lambda source: source.rule.event != "step"))
    for part in slices(len(steps)):
        found[before_in(table.rows, numbers_in(chosen(steps.rows, part)))] = steady[part]
    return found


def _metrics(summary: Summary, table: EventTable, steady: Mask, registry: Registry) -> None:
    every = [(source, table.chosen(rows)) for source, rows, _ in table.parts]
    shown: list[str] = []
    for name in sorted(table.metric_names(), key=lambda n: registry.by_name[n].id):
        likely = [(source, part) for source, part in every if name in source.metrics or name == "epoch"]
        printed, printing = table.metric(name), [(source, part) for source, part in likely if part.prints(name)]
        kinds = {source.rule.event for source, _ in printing}
        if name == "epoch" and kinds - {"eval"}:
            printed = printed.within(table.by_source(lambda source: source.rule.event != "eval"))  # they are not counted
        if not len(printed.values):
            continue
        shown.append(name)
        window = registry.by_name[name].window
        if "step" not in kinds:
            window = "all"  # printed between steps, not per step
        scope, definition = _meaning(printing, name)
        windowed = printed if window == "all" else table.metric(name).within(steady)
        summary.metrics[name] = _describe(printed, windowed.values, window, scope, definition, name)
        summary.places[name] = find_places(table, printed, windowed, name, summary.metrics[name])
        summary.places[name].resolution = _resolution(windowed.values)
    summary.series = Series(shown, table, steady)


def _meaning(printing: Sequence[tuple[Source, EventTable]], name: str) -> tuple[str | None, str | None]:
    """Return the scope and definition of a metric, from the source of its last record."""
    found: tuple[str | None, str | None] = (None, None)
    last = {part[(column := part.metric(name)).row(len(column.values) - 1)].number: source for source, part in printing}
    for row in sorted(last, reverse=True):
        scope, definition = last[row].meanings.get(name, (None, None))
        found = (found[0] or scope, found[1] or definition)
    return found


def _describe(
    printed: Column, windowed: Floats, window: str, scope: str | None, definition: str | None, name: str = ""
) -> Statistic:
    first, last = float(printed.values[0]), float(printed.values[-1])
    return describe((first, last), plausible(name, windowed), window, scope=scope, definition=definition)


def _resolution(values: Floats) -> float | None:
    """Return the unit of the last digit in the values."""
    return resolution(finite(values[:LOOKED_AT])) or None


def _others(summary: Summary, table: EventTable) -> None:
    names = table.other_names()  # in printed order
    summary.dropped_others = max(0, len(names) - MAX_OTHERS)
    for name in sorted(names[:MAX_OTHERS]):
        printed = table.other(name)
        if not len(printed.values):
            continue
        summary.other_metrics[name] = _describe(printed, printed.values, "all", None, None)
        if name not in summary.places:
            summary.places[name] = find_places(table, printed, printed, name, summary.other_metrics[name])
            summary.places[name].resolution = _resolution(printed.values)


def _derive(
    summary: Summary,
    phase: Phase,
    steps: Records,
    steady: Mask,
    facts: Mapping[str, float | str],
    stated: Sequence[StatedFact],
    grain: float | None,
) -> None:
    """Recompute printed figures, compare both, and flag oddities."""

    def described(figure: Column, scope: str | None, definition: str | None) -> Statistic:
        return _describe(figure, figure.within(steady).values, "steady", scope, definition)

    mfu = summary.metrics.get("mfu_ratio")
    known = complete(facts, summary.parameter_count, stated, None if mfu is None else mfu.definition)
    summary.contradictions = known.contradictions
    made = recompute(steps, known, summary.metrics, phase.grammar.id, described, grain)
    for name, one in made.found.items():
        summary.derived[name] = (one.statistic, one.inputs)
        digits = summary.printed_digits.get(name)
        found = compare(name, summary.metrics.get(name), one.statistic, digits) if one.comparable else None
        if found is not None:
            summary.consistency.append(found)
    summary.flags = find_oddities(phase.standalone_events, made, summary.consistency)


def _progress(
    summary: Summary, phase: Phase, standing: Records, facts: Mapping[str, float | str], timed: EventTable, life: Life | None
) -> None:
    """Set the progress figures of the phase (step times, throughput, identities, checkpoints).

    Only the log's ``facts`` count: a statement is no evidence of what happened.
    """
    grain = None if life is None else life.grain
    summary.step_times = step_times(phase, standing, summary.series, summary.metrics.get("step_time_s"), grain)
    summary.realised = realise(timed, facts, summary.metrics, life)
    world, mfu = world_size(facts), summary.metrics.get("mfu_ratio")
    whole = not summary.restart_count and not summary.steady.excluded_implausible and None not in (summary.first, summary.last)
    known = Evidence(
        phase.steps, facts, summary.metrics, summary.series, summary.realised, grain or 0.0,
        None if world is None else world[0], own_peak(facts, None if mfu is None else mfu.definition), summary.parameter_count,
        whole and (summary.last or 0) - (summary.first or 0) + 1 == summary.record_count,
    )  # fmt: skip
    summary.identities = find_identities(known)
    median = None if summary.step_times is None else summary.step_times.p50_s
    summary.checkpoints = find_checkpoints(phase, median, grain)


def _arrived(phase: Phase, grain: float) -> tuple[EventTable, Life | None]:
    """Return the step records that somebody saw coming, and their time span: the first of a log may be older than that."""
    steps, every = (table.where(not_nan(table.clock)) for table in (phase.steps, phase.step_events))
    return steps, _life(every, grain)


def _life(steps: EventTable, grain: float | None) -> Life | None:
    """Return the time span of step records by their timestamps; None if these do not show it."""
    if not steps:
        return None
    found = find_life(steps, 0, Edges(grain=grain), (steps[0].line, steps[-1].line), local=grain is None)
    return found if isinstance(found, Life) else None


def _parameters(phase: Phase) -> int | None:
    """Return the printed parameter count; without one, that of a rank that holds the whole model.

    Shards of a model-parallel run do not add up to the model: several ranks hold tied embeddings and norms.
    """
    total = _number(phase.fact("parameter_count"))
    if total is not None:
        return int(total)
    sizes = [phase.fact(f"{name}_parallel") for name in ("tensor", "pipeline", "expert")]
    shard = _number(phase.fact("parameter_count_per_rank"))
    whole = sizes[0] == sizes[1] == 1 and sizes[2] in (None, 1)
    return int(shard) if whole and shard is not None else None


def _number(value: float | str | None) -> float | None:
    return value if isinstance(value, float) and math.isfinite(value) else None


def diagnose(summaries: Sequence[Summary], ranks: Sequence[Mapping[int, RankFigures]], ending: Ending) -> None:
    """Set ``bottleneck`` and ``memory`` of each summary; ``ranks`` are the figures of each rank, by phase.

    The cycle is the median time from one step to the next as bars print it. An out-of-memory message belongs to the last phase.
    """
    for number, (summary, printed) in enumerate(zip(summaries, ranks, strict=True)):
        restarted = summary.restart_count > 0
        bar = summary.other_metrics.get(CYCLE)
        cycle = None if bar is None else bar.median
        summary.bottleneck = judge(
            summary.metrics, summary.series, cycle=cycle, restarted=restarted, digits=summary.printed_digits
        )
        message = ending.message if ending.reason == "cuda_oom" and number == len(summaries) - 1 else None
        summary.memory = tell(summary.series, printed, message, restarted=restarted)
