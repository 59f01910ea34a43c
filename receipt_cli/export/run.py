"""The run that every format exports: a receipt, and the curves of its log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import numpy as np

from receipt_cli.definitions.metrics import Metric, load_registry
from receipt_cli.documents.canonical import run_time
from receipt_cli.errors import UsageError
from receipt_cli.events.table import curve_of
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.arrays import last_of_each
from receipt_cli.receipts.production import Product
from receipt_cli.redaction.mask import mask_secrets
from receipt_cli.redaction.text import mask_texts

MAX_CURVES = 400
"""Most metrics exported step by step."""
_EXACT = 2.0**53


class Phase(NamedTuple):
    """A phase of the receipt: index in ``/phases``, name, and prefix of its keys ("" for the primary phase)."""

    number: int
    name: str | None
    prefix: str


@dataclass(frozen=True, slots=True)
class Curve:
    """The values of one metric (base units; NaN and infinities too) at strictly ascending ``steps``.

    ``key`` is the phase's prefix followed by the registry's name, or by ``other/`` and the printed name.
    """

    key: str
    phase: Phase
    metric: Metric | None
    steps: Sequence[int]
    values: Sequence[float]


def read_curves(product: Product, phases: Sequence[Phase], most: int) -> tuple[list[Curve], list[str]]:
    """Return the curves of all phases in registry order, each of at most ``most`` values, and notes on omissions."""
    curves: list[Curve] = []
    lost, thinned, beyond, placeless = 0, 0, 0, 0
    for phase, key, metric, (places, values) in _printed(product, phases):
        exact = abs(places) < _EXACT
        steps, kept = last_of_each(places[exact], values[exact])
        lost += len(places) - len(steps)
        if not len(steps):
            placeless += 1
            continue
        if len(curves) == MAX_CURVES:
            beyond += 1
            continue
        chosen = _thin(kept, most)
        thinned += len(chosen) < len(steps)
        taken = [int(step) for step in steps[chosen].tolist()]
        curves.append(Curve(f"{phase.prefix}{key}", phase, metric, taken, kept[chosen].tolist()))
    notes = [
        (thinned, f"{thinned} of {len(curves)} curves have more than {most} steps and are sampled evenly"),
        (beyond, f"{beyond} metrics beyond the first {MAX_CURVES} are left out"),
        (placeless, f"{placeless} metrics are printed without a step and have no curves"),
        (lost, f"{lost} earlier values of repeated steps are left out"),
    ]
    return curves, [text for count, text in notes if count]


def _printed(product: Product, phases: Sequence[Phase]) -> Iterator[tuple[Phase, str, Metric | None, tuple[Floats, Floats]]]:
    by_name = product.derivation.registry.by_name
    for phase in phases:
        summary = product.derivation.summaries[phase.number]
        for name in sorted(summary.metrics, key=lambda name: by_name[name].id):
            yield phase, name, by_name[name], summary.series.curve(name)
        for name in sorted(summary.other_metrics):
            yield phase, f"other/{mask_secrets(name)}", None, curve_of(summary.series.table, summary.series.table.other(name))


def _thin(values: Floats, most: int) -> Sequence[int]:
    """Return the indices to keep: evenly spread, with both ends and the first non-finite value."""
    count = len(values)
    if count <= most:
        return range(count)
    spread = {place * (count - 1) // (most - 1) for place in range(most)}
    return sorted(spread.union(np.flatnonzero(~np.isfinite(values))[:1].tolist()))


STATISTICS = ("first", "last", "min", "max", "mean", "median")
MAX_PHASES = 50
"""Most phases exported: the first, and the primary one."""
MAX_FACTS = 500
MAX_TEXT = 500
Origin = Literal["reported", "derived"]
_BLOCKS: tuple[tuple[str, Origin], ...] = (("metrics", "reported"), ("derived", "derived"))


@dataclass(frozen=True, slots=True)
class Figure:
    """The statistics of one metric of a phase, in base units; ``metric`` is None outside the registry.

    ``source``: printed by the trainer (``reported``) or recomputed (``derived``); ``statistic``: the receipt's entry.
    """

    name: str
    metric: Metric | None
    source: Origin
    phase: Phase
    statistic: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Key of the figure, including phase and source."""
        source = "derived/" if self.source == "derived" else "" if self.metric else "other/"
        return f"{self.phase.prefix}{source}{self.name}"

    @property
    def known(self) -> dict[str, float]:
        """Known statistics by name."""
        return {name: float(self.statistic[name]) for name in STATISTICS if self.statistic[name] is not None}

    @property
    def headline(self) -> float | None:
        """The statistic that represents the run (see ``definitions.metrics.Metric``); outside the registry, the last value."""
        return self.known.get("last" if self.metric is None else self.metric.headline)


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """One run to export. ``product`` is its log; None, and no ``curves``, if only a receipt was given.

    ``at_ns`` is its time since 1970, or None.
    """

    document: Mapping[str, Any]
    figures: Sequence[Figure]
    curves: Sequence[Curve]
    at_ns: int | None
    notes: Sequence[str] = field(default=())
    product: Product | None = None

    @property
    def dated_ns(self) -> int:
        """The date of the run [ns], for formats that need one: ``at_ns``, else the first timestamp in the log, else 0.

        A timestamp without a zone is taken as UTC.
        """
        found = run_time(self.document) if self.at_ns is None else None
        stamp = None if found is None else instant(found.time) or instant(f"{found.time}Z")
        return self.at_ns if self.at_ns is not None else max(stamp or 0, 0)

    @property
    def digest(self) -> str:
        """SHA-256 of the log."""
        digest: str = self.document["derivation"]["log"]["sha256"]
        return digest

    @property
    def identity(self) -> str:
        """A stable identifier of the run: 20 hexadecimal digits, and its number in a log of several runs."""
        launch = self.document["derivation"].get("launches")
        return self.digest[:20] + (f"-{launch['used']}" if launch else "")

    @property
    def title(self) -> str:
        """The run's name, else its preset, lane or digest."""
        run = self.document["run"]
        return run["name"] or run["preset"] or run["lane"] or f"log {self.digest[:12]}"

    @property
    def lane(self) -> str:
        """The run's lane, else its preset, else ``training``."""
        run = self.document["run"]
        return run["lane"] or run["preset"] or "training"

    @property
    def exit_code(self) -> int:
        """The exit code; if unknown, 1 for a run that failed, else 0."""
        code: int | None = self.document["run"]["exit_code"]
        failed = self.document["failure"] is not None or self.document["checks"]["zero_exit_code"] is False
        return int(failed) if code is None else code

    def last_step(self, phase: Phase) -> int:
        """Return the last step of a phase, 0 without one."""
        last: int | None = self.document["phases"][phase.number]["summary"]["steps"]["last"]
        return last or 0

    def facts(self) -> dict[str, str | int | float | bool]:
        """Return known facts of the run and its header by their path: at most ``MAX_FACTS``, texts cut to ``MAX_TEXT``."""
        header = {key: value for key, value in self.document["header"].items() if key != "sources"}
        derivation = self.document["derivation"]
        sources = {"run": self.document["run"], **header, "grammars": derivation["grammars"], "log_sha256": self.digest}
        facts: dict[str, str | int | float | bool] = {}
        for path, value in _leaves("", sources):
            if len(facts) == MAX_FACTS:
                break
            facts[path] = value[:MAX_TEXT] if isinstance(value, str) else value
        return facts


def gather(document: Mapping[str, Any], product: Product | None, *, most: int, at: str | None = None) -> ExportedRun:
    """Return the run of a receipt, with curves of at most ``most`` steps (0: none) if ``product`` has its records.

    ``at`` (RFC 3339) replaces the receipt's time. Raises ``UsageError``.
    """
    masked = mask_texts(document)
    notes = ["text that looks like a secret, or cannot be shown, is masked"] if masked != document else []
    phases = _phases(masked)
    chosen = [phase for phase in phases if phase.number < MAX_PHASES or not phase.prefix]
    if len(chosen) < len(phases):
        notes.append(f"{len(phases) - len(chosen)} phases beyond the first {MAX_PHASES} are left out")
    curves, told = read_curves(product, chosen, most) if product is not None and most else ([], [])
    figures = list(_figures(masked, chosen))
    return ExportedRun(masked, figures, curves, _time(masked, at), (*notes, *told), product)


def instant(text: str | None) -> int | None:
    """Return an RFC 3339 time in nanoseconds since 1970, or None if it is invalid or has no zone."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    if moment is None or moment.tzinfo is None:
        return None
    since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000


def _time(document: Mapping[str, Any], at: str | None) -> int | None:
    if at is not None:
        moment = instant(at)
        if moment is None or moment < 0:
            raise UsageError(f"--at {at!r} is not a time", why="needs RFC 3339 with a zone", try_="--at 2026-03-01T12:00:00Z")
        return moment
    run, header = document["run"], document["header"]
    moments = (instant(text) for text in (run["finished_at"], run["started_at"], header["collected_at"]))
    return next((moment for moment in moments if moment is not None and moment >= 0), None)


def _phases(document: Mapping[str, Any]) -> list[Phase]:
    """Return the phases; the primary one has no prefix, each other a unique one."""
    phases: list[Phase] = []
    primary = next((n for n, phase in enumerate(document["phases"]) if phase["summary"] == document["summary"]), None)
    taken: set[str] = set()
    for number, phase in enumerate(document["phases"]):
        name = phase["name"]
        label = (name or f"phase{number}").replace("/", "_")
        if label in taken:
            label = f"{label}.{number}"
        taken.add(label)
        phases.append(Phase(number, name, "" if number == primary else f"{label}/"))
    return phases


def _figures(document: Mapping[str, Any], phases: Sequence[Phase]) -> Iterator[Figure]:
    registry = load_registry()
    by_id = {metric.id: metric for metric in registry.metrics}
    for phase in phases:
        summary = document["phases"][phase.number]["summary"]
        for block, source in _BLOCKS:
            for name, statistic in summary[block].items():
                metric = by_id.get(statistic["id"])
                yield Figure(metric.name if metric else name, metric, source, phase, statistic)
        for name, statistic in summary["other_metrics"].items():
            yield Figure(name, None, "reported", phase, statistic)


def _leaves(path: str, value: object) -> Iterator[tuple[str, str | int | float | bool]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(f"{path}.{key}" if path else str(key), item)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(f"{path}.{number}", item)
    elif isinstance(value, str | int | float):
        yield path, value
