"""Group receipts into lanes, in order of time, and extract the figures watched over a lane."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from receipt_cli.analysis.checks import contradicted_metrics, healthy
from receipt_cli.definitions.metrics import Registry
from receipt_cli.documents.identity import run_id, run_time

Document: TypeAlias = Mapping[str, Any]
Better = Literal["lower", "higher", "none"]

METRICS = (
    "tokens_per_s",
    "tokens_per_s_per_device",
    "samples_per_s",
    "step_time_s",
    "mfu_ratio",
    "peak_memory_allocated_bytes",
    "peak_memory_reserved_bytes",
    "peak_memory_bytes",
    "memory_allocated_bytes",
    "memory_reserved_bytes",
)
"""Watched metrics: the median of the steady state; for memory the maximum."""


@dataclass(frozen=True, slots=True)
class LaneRun:
    """One receipt of a lane; ``time`` (RFC 3339, UTC) is the start of the run, or the best known time of it."""

    document: Document
    log_sha256: str
    time: str | None

    @property
    def name(self) -> str:
        """The run's own name, else the first digits of the log's digest."""
        name: str | None = self.document["run"]["name"]
        return name or self.log_sha256[:12]

    @property
    def run_id(self) -> str:
        """The identity of the run."""
        return run_id(self.document)


@dataclass(frozen=True, slots=True)
class Lane:
    """The dated runs of one lane and preset, oldest first; ``undated`` counts the others."""

    lane: str | None
    preset: str | None
    runs: tuple[LaneRun, ...]
    undated: int


@dataclass(frozen=True, slots=True)
class Watched:
    """A figure over the runs of a lane: its values, and the index of each value's run in the lane.

    ``relative``: a change is relative to the level before; else absolute (shares from 0 to 1).
    """

    name: str
    unit: str
    better: Better
    places: tuple[int, ...]
    values: tuple[float, ...]
    relative: bool = True


def make_lanes(receipts: Iterable[Document]) -> list[Lane]:
    """Return the lanes of ``receipts``, ordered by name; runs without a lane form the lane ``None``."""
    groups: dict[tuple[str | None, str | None], list[LaneRun]] = {}
    for document in receipts:
        key = document["run"]["lane"], document["run"]["preset"]
        when = run_time(document)
        groups.setdefault(key, []).append(LaneRun(document, document["derivation"]["log"]["sha256"], when and when.time))
    lanes: list[Lane] = []
    for (lane, preset), runs in sorted(groups.items(), key=lambda group: tuple((name is None, name or "") for name in group[0])):
        dated = sorted((run for run in runs if run.time is not None), key=lambda run: (_instant(run.time), run.run_id))
        lanes.append(Lane(lane, preset, tuple(dated), len(runs) - len(dated)))
    return lanes


def _instant(time: str | None) -> tuple[str, str]:
    """Return a sort key for times in UTC: a fraction of a second makes the text longer, not greater."""
    whole, _, part = (time or "").rstrip("Z").partition(".")
    return whole, part


def watch(lane: Lane, registry: Registry) -> Iterator[Watched]:
    """Yield every figure that the lane's runs have: metrics, goodput, and whether the run was healthy."""
    for name in METRICS:
        metric = registry.by_name[name]
        figure = "max" if metric.unit == "byte" else "median"
        values = [_statistic(run.document, name, figure) for run in lane.runs]
        yield from _watched(name, metric.unit, metric.better, values)
    goodput = [(run.document["goodput"] or {}).get("goodput_ratio") for run in lane.runs]
    yield from _watched("goodput_ratio", "1", "higher", goodput, relative=False)
    states = [healthy(run.document["checks"], run.document.get("failure")) for run in lane.runs]
    passed = [None if state is None else float(state) for state in states]
    yield from _watched("healthy", "1", "higher", passed, relative=False)


def _statistic(document: Document, name: str, figure: str) -> float | None:
    summary = document["summary"] or {}
    value = (summary.get("metrics", {}).get(name) or {}).get(figure) if name not in contradicted_metrics(summary) else None
    return float(value) if value is not None and math.isfinite(value) else None


def _watched(name: str, unit: str, better: Better, figures: Sequence[float | None], relative: bool = True) -> Iterator[Watched]:
    places = [i for i, value in enumerate(figures) if value is not None]
    if places:
        yield Watched(name, unit, better, tuple(places), tuple(v for v in figures if v is not None), relative)
