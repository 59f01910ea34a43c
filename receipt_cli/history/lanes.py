"""Group receipts into lanes or groups of equal runs, in order of time, and extract the figures watched over each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from receipt_cli.analysis.checks import contradicted_metrics, healthy, outcome
from receipt_cli.definitions.metrics import Registry
from receipt_cli.documents.canonical import run_id, run_time

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
BY = ("trainer", "model", "hardware", "ranks")
"""Fields by which runs without a lane are grouped."""
LEAST_FINISHED = 8
"""Fewest finished runs of a group without a name in which changes are sought."""
_SIZED = re.compile(r"\d ?[BM]\b")
"""A size in the name of a model."""
_DEGREES = ("data", "tensor", "pipeline", "context")
"""Degrees of parallelism whose product is the number of ranks."""
_UNNAMED = ("generic", "jsonl")
"""Grammars that name no trainer."""


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
    """The dated runs of one lane (or group) and preset, oldest first, and the ``undated`` ones.

    ``group`` are the values that the runs of a group have in common; a lane has none. ``finished`` counts the finished runs.
    """

    lane: str | None
    preset: str | None
    runs: tuple[LaneRun, ...]
    undated: tuple[LaneRun, ...]
    finished: int
    group: tuple[str, ...] = ()

    @property
    def searched(self) -> bool:
        """Whether a change can be told from the difference of runs: they have a name, or enough of them finished."""
        return self.lane is not None or self.finished >= LEAST_FINISHED


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


def make_lanes(receipts: Iterable[Document], by: Sequence[str] = BY) -> tuple[list[Lane], list[LaneRun]]:
    """Return the lanes of ``receipts`` by name, then the groups of two or more runs without a lane, and the runs alone.

    Runs form a group if all fields ``by`` (see ``describe``) are known and equal, largest group first.
    """
    found: dict[tuple[str | None, str | None, tuple[str, ...]], list[LaneRun]] = {}
    alone: list[LaneRun] = []
    for document in receipts:
        lane, preset, when = document["run"]["lane"], document["run"]["preset"], run_time(document)
        run = LaneRun(document, document["derivation"]["log"]["sha256"], when and when.time)
        values = () if lane is not None else tuple(describe(document, field) or "" for field in by)
        if lane is None and not all(values):
            alone.append(run)
        else:
            found.setdefault((lane, preset, values), []).append(run)
    lanes: list[Lane] = []
    for (lane, preset, values), runs in found.items():
        if lane is None and len(runs) < 2:
            alone += runs
            continue
        dated = sorted((run for run in runs if run.time is not None), key=lambda run: (_instant(run.time), run.run_id))
        undated = sorted((run for run in runs if run.time is None), key=lambda run: run.run_id)
        finished = sum(outcome(run.document) == "finished" for run in runs)
        lanes.append(Lane(lane, preset, tuple(dated), tuple(undated), finished, values))
    lanes.sort(key=lambda lane: (lane.lane or "", lane.preset is None, lane.preset or "", lane.group))
    lanes.sort(key=lambda lane: (lane.lane is None, -len(lane.runs) - len(lane.undated) if lane.lane is None else 0))
    return lanes, sorted(alone, key=lambda run: (run.time is None, _instant(run.time), run.run_id))


def describe(document: Document, field: str) -> str | None:
    """Return one of ``BY`` of a receipt, or the value at a JSON pointer such as ``/header/git/branch``; None if unknown.

    A model without the name of its architecture is its number of parameters; hardware is the names of the accelerators.
    """
    header, grammars = document["header"], document["derivation"]["grammars"]
    if field == "trainer":
        named: str | None = next((g["id"] for g in grammars if g["id"] not in _UNNAMED), None) or header["software"]["trainer"]
        return named
    if field == "model":
        model: str | None = header["model"]["architecture"]
        size = (document["summary"] or {}).get("parameter_count") or header["model"]["parameter_count"]
        if size is None or (model and _SIZED.search(model)):
            return model
        shown = f"{size / 1e9:.3g} B" if size >= 1e9 else f"{size / 1e6:.3g} M"
        return f"{model} {shown}" if model else f"{shown} parameters"
    if field == "hardware":
        names = [entry["name"] for entry in header["hardware"]["accelerators"] or ()]
        return " + ".join(names) if names and all(names) else None
    if field == "ranks":
        degrees = header["parallelism"] or {}
        sizes: list[Any] = [degrees.get(kind) for kind in _DEGREES]
        size = degrees.get("world_size") or (None if None in sizes else math.prod(sizes))
        return None if size is None else str(size)
    value: Any = document
    for key in field.split("/")[1:]:
        value = value.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(value, Mapping) else None
    return None if value is None else str(value)


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
