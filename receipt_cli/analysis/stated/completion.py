"""Complete a phase's printed facts with stated ones; printed facts always win.

With all facts an MFU can be completed long after the run: FLOPs per token × tokens per second ÷ devices ÷ peak FLOP/s of a
device (PaLM, https://arxiv.org/abs/2204.02311, appendix B). The inputs name the FLOPs convention.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from receipt_cli.analysis.consistency import tokens_per_step
from receipt_cli.analysis.flops import Facts, Peak, TokenFlops, own_peak, positive, world_size
from receipt_cli.analysis.stated.options import StatedFact
from receipt_cli.definitions.accelerators import load_peaks
from receipt_cli.problems import Problem

STATED_FLOPS = "stated"
"""The FLOPs convention of a stated figure: the caller's own, unknown here."""
_OF_STEP = ("samples_per_step", "sequence_length")
_PEAK = "peak_flops_per_s_per_device"
"""Its source is in ``peak_source``."""
_ALIKE = 1e-3
"""Relative difference up to which two values are the same, rounded."""


class Contradiction(NamedTuple):
    """A stated fact that differs from the printed one."""

    name: str
    stated: float | str
    printed: float | str

    @property
    def problem(self) -> Problem:
        """The problem with both values; the printed one counts."""
        detail = f"{self.name} is stated as {_shown(self.stated)}, but the log prints {_shown(self.printed)}, which counts"
        return Problem("fact_contradicted", None, detail, "")


class Completed(NamedTuple):
    """Completed facts of a phase. ``peak`` and ``flops`` are stated; None if the log prints its own.

    ``used`` maps the name of each stated fact in use to its source.
    """

    facts: Facts
    parameters: int | None
    peak: Peak | None
    flops: TokenFlops | None
    used: Mapping[str, str]
    contradictions: tuple[Contradiction, ...]

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
    facts, used, against = dict(known), dict[str, str](), list[Contradiction]()
    peak, flops = None, None
    printed = _printed(known, parameters, definition)
    for name, value, source in stated:
        if name not in printed:
            continue  # a price or a power: completes no rate
        logged = printed[name]
        if logged is not None:
            if not _same(name, value, logged):
                against.append(Contradiction(name, value, logged))
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


def _same(name: str, stated: float | str, printed: float | str) -> bool:
    if isinstance(stated, str) or isinstance(printed, str):
        find = load_peaks().find
        one, other = find(str(stated)), find(str(printed))
        return stated == printed or (one is not None and one == other)
    return math.isclose(stated, printed, rel_tol=_ALIKE)


def contradicted(phases: Iterable[Iterable[Contradiction]]) -> list[Problem]:
    """Return a problem for each stated fact that a phase contradicts, once for each printed value."""
    return [one.problem for one in dict.fromkeys(one for phase in phases for one in phase)]


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}" if abs(value) >= 1e9 or value % 1 else f"{value:,.0f}"
