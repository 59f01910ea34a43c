"""Options of a derivation: the caller's statements about a log, recorded in the receipt for replay, and what follows from them.

Stated facts complete a phase's printed ones, which always win. With all facts an MFU can be completed long after the run: FLOPs
per token × tokens per second ÷ devices ÷ peak FLOP/s of a device (PaLM, https://arxiv.org/abs/2204.02311, appendix B). The inputs
name the FLOPs convention.

``cost/1``: the cost of a run in money and energy: device-hours × price, power × devices × time. Prices are always stated (by the
caller, or by the job's header), since no log prints them. The power of a device is the printed mean, else the stated one. A
figure with an unknown factor is null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from receipt_cli.analysis.flops import Facts, Peak, TokenFlops, own_peak, positive, tokens_per_step, world_size
from receipt_cli.analysis.goodput.model import Goodput, Wall
from receipt_cli.analysis.goodput.timestamps import LogTime
from receipt_cli.definitions.accelerators import load_peaks
from receipt_cli.numeric.statistics import Statistic
from receipt_cli.problems import Problem

STATED = "stated"
"""Source of a fact that the caller states."""


class StatedFact(NamedTuple):
    """A stated fact: its name, its value in base units, and its source.

    The source is ``stated`` or ``header:POINTER``, a value of the job's header.
    """

    name: str
    value: float | str
    source: str = STATED


class JobEnd(NamedTuple):
    """How a job ended by its scheduler: the deciding fields of an ``evidence`` entry of a receipt."""

    source: str
    ended: str
    state: str | None
    exit_code: int | None

    @classmethod
    def of(cls, evidence: Sequence[Mapping[str, Any]]) -> JobEnd | None:
        """Return the first entry with an end; None if every job may still run."""
        ends = [cls(*(entry[key] for key in cls._fields)) for entry in evidence]
        return next((end for end in ends if end.ended not in ("not_ended", "unknown")), None)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a derivation; recorded in the receipt."""

    grammar: str | None = None
    exit_code: int | None = None
    wall: Wall | None = None
    log_complete: bool | None = None
    """False if output is missing at the end of the log."""
    facts: tuple[StatedFact, ...] = ()
    """Stated facts, one per name, in order of their names."""
    running: bool = False
    """Whether the job may still run, so that the end of the log proves nothing."""
    job: JobEnd | None = None
    """The scheduler's record of the job's end."""
    replaced_bytes: int | None = None
    """Bytes of the followed file lost when it was replaced or rewritten."""

    @classmethod
    def recorded(cls, options: Mapping[str, Any]) -> Options:
        """Return the options recorded in a receipt of any version."""
        facts = tuple(StatedFact(**fact) for fact in options.get("facts", ()))
        whole, running = options.get("log_complete"), options.get("running") is True
        job = None if options.get("job") is None else JobEnd(**options["job"])
        wall, replaced = None if options.get("wall") is None else Wall(**options["wall"]), options.get("replaced_bytes")
        return cls(options["grammar"], options["exit_code"], wall, whole, facts, running, job, replaced)

    def of_earlier_run(self) -> Options:
        """Return the options for an earlier run in the log: the job's end does not concern it."""
        return replace(self, exit_code=None, wall=None, log_complete=None, running=False, job=None)

    def document(self) -> dict[str, Any]:
        """Return the options block of a receipt; keys of receipt/1.3 are absent if not stated."""
        return {
            "grammar": self.grammar,
            "exit_code": self.exit_code,
            "wall": None if self.wall is None else self.wall._asdict(),
            **({} if self.log_complete is not False else {"log_complete": False}),
            **({"running": True} if self.running else {}),
            **({} if self.job is None else {"job": self.job._asdict()}),
            **({} if self.replaced_bytes is None else {"replaced_bytes": self.replaced_bytes}),
            **({"facts": [fact._asdict() for fact in self.facts]} if self.facts else {}),
        }


STATED_FLOPS = "stated"
"""The FLOPs convention of a stated figure: the caller's own, unknown here."""
_OF_STEP = ("samples_per_step", "sequence_length")
_PEAK = "peak_flops_per_s_per_device"
"""Its source is in ``peak_source``."""
_ALIKE = 1e-3
"""Relative difference up to which two values are the same, rounded."""


class Completed(NamedTuple):
    """Completed facts of a phase. ``peak`` and ``flops`` are stated; None if the log prints its own.

    ``used`` maps the name of each stated fact in use to its source. ``contradictions`` are problems of stated facts that differ
    from the printed ones, which count.
    """

    facts: Facts
    parameters: int | None
    peak: Peak | None
    flops: TokenFlops | None
    used: Mapping[str, str]
    contradictions: tuple[Problem, ...]

    def named(self, inputs: Mapping[str, float | str]) -> dict[str, float | str]:
        """Return the inputs of a figure, with ``NAME_source`` added for each stated one."""
        sources = {f"{name}_source": source for name, source in self.used.items() if name in inputs and name != _PEAK}
        for name in _OF_STEP:
            if name in self.used and "tokens_per_step" in inputs and "tokens_per_step" not in self.used:
                sources[f"{name}_source"] = self.used[name]
        if "accelerator_name" in self.used and str(inputs.get("peak_source", "")).startswith("peaks/"):
            sources["accelerator_name_source"] = self.used["accelerator_name"]
        return {**inputs, **sources}


def complete(known: Facts, parameters: int | None, stated: Sequence[StatedFact], definition: str | None = None) -> Completed:
    """Return the printed facts (``known``, ``parameters``), completed by ``stated`` ones.

    ``definition`` is that of the printed MFU, which may fix a peak.
    """
    facts, used, against = dict(known), dict[str, str](), list[Problem]()
    peak, flops = None, None
    printed = _printed(known, parameters, definition)
    for name, value, source in stated:
        if name not in printed:
            continue  # a price or a power: completes no rate
        logged = printed[name]
        if logged is not None:
            if not _same(value, logged):
                detail = f"{name} is stated as {_shown(value)}, but the log prints {_shown(logged)}, which counts"
                against.append(Problem("fact_contradicted", None, detail, ""))
            continue
        if name == _PEAK:
            peak = Peak(float(value), "peak_stated", source, False)
        elif name == "flops_per_token":
            inputs = {"flops_per_token": value, "flops_convention": STATED_FLOPS}
            flops = TokenFlops(float(value), STATED_FLOPS, STATED_FLOPS, inputs)
        elif name == "parameter_count":
            parameters = int(float(value))
        elif name == "tokens_per_step" or name not in facts:
            facts[name] = value
        used[name] = source
    return Completed(facts, parameters, peak, flops, used, tuple(against))


def _printed(known: Facts, parameters: int | None, definition: str | None) -> dict[str, float | str | None]:
    """Return the printed value of each fact that can be stated; None if it is not printed.

    A count of accelerators may be that of one node, so it contradicts no statement.
    """
    world, own = world_size(known), own_peak(known, definition)
    name = known.get("accelerator_name")
    return {
        "world_size": None if world is None or world[1] == "accelerator_count" else world[0],
        "accelerator_name": name if isinstance(name, str) else None,
        _PEAK: None if own is None else own.flops_per_s,
        "flops_per_token": positive(known, "flops_per_token"),
        "parameter_count": None if parameters is None else float(parameters),
        "tokens_per_step": tokens_per_step(known),
        "samples_per_step": positive(known, "samples_per_step"),
        "sequence_length": positive(known, "sequence_length"),
    }


def _same(stated: float | str, printed: float | str) -> bool:
    if isinstance(stated, str) or isinstance(printed, str):
        find = load_peaks().find
        one, other = find(str(stated)), find(str(printed))
        return stated == printed or (one is not None and one == other)
    return math.isclose(stated, printed, rel_tol=_ALIKE)


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}" if abs(value) >= 1e9 or value % 1 else f"{value:,.0f}"


COST_RULE = "cost/1"
POWER = "power_w_per_device"
_PRICES = ("price_per_device_hour", "price_per_hour")
_HOUR_S = 3600.0


def find_cost(
    options: Options, known: Facts, metrics: Mapping[str, Statistic], goodput: Goodput | None, when: LogTime | None
) -> dict[str, Any] | None:
    """Return the block ``cost`` of a run; None if neither price nor power is known.

    ``*_source``: ``stated``, ``header:POINTER``, a fact or a metric.

    ``known``: printed facts; ``metrics``: statistics of the primary phase. The time is the wall time of ``goodput``, else the
    stated one, else that between the log's first and last timestamps (``when``).
    """
    by_name = {fact.name: fact for fact in options.facts}
    price = next((by_name[name] for name in _PRICES if name in by_name), None)
    power, power_source = _power(metrics, by_name)
    if price is None and power is None:
        return None
    wall, evidence = _wall(goodput, options.wall, when)
    done = complete(known, None, options.facts)
    world = world_size(done.facts)
    devices = None if world is None else int(world[0])
    hours = None if wall is None else wall / _HOUR_S
    device_hours = None if hours is None or devices is None else devices * hours
    rate = None if price is None else float(price.value)
    of_device = price is not None and price.name == "price_per_device_hour"
    time = device_hours if of_device else hours
    currency = by_name.get("currency")
    return {
        "rule": COST_RULE,
        "wall_time_s": wall,
        "wall_evidence": evidence,
        "device_count": devices,
        "device_count_source": None if world is None else done.used.get("world_size", world[1]),
        "device_hours": device_hours,
        "price_per_hour": None if of_device else rate,
        "price_per_device_hour": rate if of_device else None,
        "price_source": None if price is None else price.source,
        "currency": None if currency is None else str(currency.value),
        "amount": None if rate is None or time is None else rate * time,
        "power_w_per_device": power,
        "power_source": power_source,
        "energy_j": None if power is None or device_hours is None else power * device_hours * _HOUR_S,
    }


def _power(metrics: Mapping[str, Statistic], stated: Mapping[str, StatedFact]) -> tuple[float | None, str | None]:
    printed = metrics.get(POWER)
    if printed is not None and printed.mean is not None and printed.mean >= 0:  # a negative power is a sensor error
        return printed.mean, f"metric:{POWER}"
    fact = stated.get(POWER)
    return (None, None) if fact is None else (float(fact.value), fact.source)


def _wall(goodput: Goodput | None, wall: Wall | None, when: LogTime | None) -> tuple[float | None, str | None]:
    if goodput is not None:
        return goodput.wall_time_s, goodput.evidence
    if wall is not None:
        return wall.seconds, wall.evidence
    if when is None:
        return None, None
    first, last = (datetime.fromisoformat(text.removesuffix("Z")) for text in (when.first, when.last))
    return (last - first).total_seconds(), "log_timestamps"
