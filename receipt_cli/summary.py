"""One phase → its summary: steps, steady state, statistics of every metric, derived figures beside the printed ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from receipt_cli.consistency import Comparison, compare, tokens_per_step
from receipt_cli.phases import Phase
from receipt_cli.registry import Registry
from receipt_cli.statistics import Statistic, describe, exact_median
from receipt_cli.timeline import Event

MAX_OTHERS = 256
"""Metrics outside the registry that a summary holds."""


@dataclass(frozen=True, slots=True)
class SteadyState:
    """Which step records the rates are over. ``records`` counts them."""

    records: int
    excluded_warmup: int
    excluded_implausible: int


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
    derived: dict[str, tuple[Statistic, dict[str, float]]] = field(default_factory=dict)
    consistency: list[Comparison] = field(default_factory=list)
    series: dict[str, list[float]] = field(default_factory=dict)
    dropped_others: int = 0


NOTHING = Summary(None, None, None, None, 0, 0, 0, SteadyState(0, 0, 0), None, None)
"""The summary of a log without a phase: no steps, which is a finding and not an absence."""


def summarise(phase: Phase, facts: Mapping[str, float | str], registry: Registry) -> Summary:
    """Return the summary of ``phase``; ``facts`` are the run's, as far as they hold for this phase."""
    steps = phase.steps
    numbers = [e.step for e in steps if e.step is not None]
    steady, state = _steady(phase)
    planned = phase.planned
    summary = Summary(
        phase=phase.name,
        first=numbers[0] if numbers else None,
        last=numbers[-1] if numbers else None,
        planned=planned,
        record_count=len(steps),
        restart_count=phase.restarts,
        superseded_count=len(phase.superseded),
        steady=state,
        training_time_s=_number(phase.fact("training_time_s")),
        parameter_count=_parameters(phase),
    )
    events = sorted([*steps, *phase.evals, *phase.singles], key=lambda e: e.at)
    _metrics(summary, events, steady, registry)
    _others(summary, events)
    _derive(summary, steps, steady, facts)
    return summary


def _steady(phase: Phase) -> tuple[set[int], SteadyState]:
    """Apply ``steady/1``; return the positions of the steady records and the counts."""
    times = [e.metrics["step_time_s"] for e in phase.steps if math.isfinite(e.metrics.get("step_time_s", math.nan))]
    median = exact_median(times)
    steady: set[int] = set()
    warmup = implausible = 0
    for attempt in phase.attempts:
        n = len(attempt)
        skip = max(1, min(10, n // 10)) if n >= 3 else 0
        warmup += skip
        for event in attempt[skip:]:
            if event.metrics.get("mfu_ratio", 0.0) > 1 or (
                median is not None and event.metrics.get("step_time_s", median) < median / 100
            ):
                implausible += 1
            else:
                steady.add(id(event))
    return steady, SteadyState(len(steady), warmup, implausible)


def _metrics(summary: Summary, events: list[Event], steady: set[int], registry: Registry) -> None:
    names = sorted({n for e in events for n in e.metrics}, key=lambda n: registry.by_name[n].id)
    for name in names:
        window = registry.by_name[name].window
        if not any(name in e.metrics and e.rule.event == "step" for e in events):
            window = "all"  # printed beside the steps, not for each of them
        scope, definition = _meaning(events, name)
        summary.metrics[name] = _describe(events, steady, window, _reader("metrics", name), scope, definition)
        summary.series[name] = [e.metrics[name] for e in events if name in e.metrics]


def _meaning(events: Iterable[Event], name: str) -> tuple[str | None, str | None]:
    """Return scope and definition that the grammar declares for a metric where it was printed last."""
    found: tuple[str | None, str | None] = (None, None)
    for event in events:
        if name in event.metrics:
            scope, definition = event.meanings.get(name, (None, None))
            found = (scope or found[0], definition or found[1])
    return found


def _reader(kind: str, name: str) -> Callable[[Event], float | None]:
    """Return what reads one metric (``metrics``) or one of the others (``others``) from an event."""
    if kind == "metrics":
        return lambda event: event.metrics.get(name)
    return lambda event: event.others.get(name)


def _describe(
    events: list[Event],
    steady: set[int],
    window: str,
    value: Callable[[Event], float | None],
    scope: str | None,
    definition: str | None,
) -> Statistic:
    printed: list[float] = []
    windowed: list[float] = []
    for event in events:
        number = value(event)
        if number is None:
            continue
        printed.append(number)
        if window == "all" or event.rule.event != "step" or id(event) in steady:
            windowed.append(number)
    return describe(printed, windowed, window, scope=scope, definition=definition)


def _others(summary: Summary, events: list[Event]) -> None:
    names = list(dict.fromkeys(n for e in events for n in e.others))
    summary.dropped_others = max(0, len(names) - MAX_OTHERS)
    for name in sorted(names[:MAX_OTHERS]):
        summary.other_metrics[name] = _describe(events, set(), "all", _reader("others", name), None, None)


def _derive(summary: Summary, steps: list[Event], steady: set[int], facts: Mapping[str, float | str]) -> None:
    """Recompute tokens per second from the batch and the step time, and set it beside the printed figure."""
    length = facts.get("sequence_length")
    constant = tokens_per_step(facts)

    def tokens(event: Event) -> float | None:
        samples = event.metrics.get("global_batch_size")  # of this very step: batches ramp up
        if samples is not None and isinstance(length, float) and 0 < samples * length < math.inf:
            return samples * length
        return constant

    def rate(event: Event) -> float | None:
        seconds, amount = event.metrics.get("step_time_s"), tokens(event)
        return amount / seconds if amount is not None and seconds is not None and seconds > 0 else None

    timed = [e for e in steps if rate(e) is not None]
    if not timed:
        return
    statistic = _describe(timed, steady, "steady", rate, "global", "tokens_per_step_over_step_time")
    amounts = {tokens(event) for event in timed}
    inputs = {"tokens_per_step": amounts.pop()} if len(amounts) == 1 else {"sequence_length": length}
    known = {name: value for name, value in inputs.items() if isinstance(value, float)}
    summary.derived["tokens_per_s"] = (statistic, known)
    found = compare("tokens_per_s", summary.metrics.get("tokens_per_s"), statistic)
    if found is not None:
        summary.consistency.append(found)


def _parameters(phase: Phase) -> int | None:
    """Return the printed total, or what the only rank that holds the model printed.

    Shards of a model-parallel run do not add up to the model: tied embeddings and norms stand on several ranks.
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
