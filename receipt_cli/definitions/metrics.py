"""Canonical metrics: stable ids, names, units, statistics windows and the names that trainers print."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from receipt_cli.definitions.reading import similar
from receipt_cli.definitions.resources import load_shipped, unpack
from receipt_cli.definitions.units import SPECIAL_UNITS, UNITS, known_units
from receipt_cli.errors import DataError

REGISTRY_PATH = "metrics/v2.yaml"

Klass = Literal["curve", "rate", "level", "counter"]
Window = Literal["all", "steady"]
Better = Literal["lower", "higher", "none"]

Unit = Literal[
    "1", "s", "byte", "bit/byte", "token", "token/s", "sample", "sample/s", "step/s", "flop", "flop/s",
    "J", "W",
]  # fmt: skip

_ALIAS_KEYS = frozenset({"spelling", "trainer", "printed_in"})


class Alias(NamedTuple):
    """A metric's name in one trainer's text; ``printed_in`` is the unit, None the base unit."""

    spelling: str
    trainer: str
    printed_in: str | None = None


class Metric(NamedTuple):
    """One canonical metric; ``id`` never changes, ``unit`` is a base unit (``"1"``: dimensionless)."""

    id: int
    name: str
    unit: Unit
    klass: Klass
    window: Window
    better: Better
    description: str
    aliases: tuple[Alias, ...]

    @property
    def headline(self) -> Literal["last", "median"]:
        """The statistic that represents a run: the last value of a curve or counter, else the median."""
        return "last" if self.klass in ("curve", "counter") else "median"


@dataclass(frozen=True)
class Registry:
    """The canonical metrics of one registry version.

    ``metrics`` is in id order. ``by_alias`` maps a lower-case spelling, a metric's own name included, to the only
    metric with it; a spelling that two metrics share is not in it.
    """

    version: int
    sha256: str
    metrics: tuple[Metric, ...]
    by_alias: Mapping[str, str]

    @cached_property
    def by_name(self) -> Mapping[str, Metric]:
        """The metrics by name, in id order."""
        return MappingProxyType({metric.name: metric for metric in self.metrics})

    @cached_property
    def by_id(self) -> Mapping[int, Metric]:
        """The metrics by id, in id order."""
        return MappingProxyType({metric.id: metric for metric in self.metrics})


@cache
def load_registry() -> Registry:
    """Return the shipped registry, read once per process.

    Raises ``DataError`` if the file is missing or breaks a rule of the registry.
    """
    return load_shipped(f"schemas/{REGISTRY_PATH}", lambda packed: unpack(Registry, packed), parse_registry)


def parse_registry(text: bytes, where: str) -> Registry:
    """Return the registry in the YAML ``text``; ``where`` names it in errors.

    Raises ``DataError`` for missing or unknown keys, an invalid alias, or an alias that is another metric's name.
    """
    from receipt_cli.definitions.strict_yaml import read_yaml

    data = read_yaml(text, where, shipped=True)
    try:
        metrics = sorted((_metric(entry, where) for entry in data["metrics"]), key=lambda metric: metric.id)
        version = data["version"]
    except (KeyError, TypeError) as error:
        raise DataError("not a metric registry", where=where, why=str(error)) from error
    by_alias = _aliases(metrics, {metric.name: metric for metric in metrics}, where)
    return Registry(version, hashlib.sha256(text).hexdigest(), tuple(metrics), by_alias)


def with_aliases(registry: Registry, text: bytes, where: str) -> Registry:
    """Return ``registry`` with a site's aliases from a YAML text ``aliases: {METRIC: [SPELLING, …]}``.

    A spelling is a string, or ``{spelling, printed_in}``. The new digest covers both files. Raises ``DataError`` for an
    unknown metric or unit, and for a spelling that means another metric.
    """
    from receipt_cli.definitions.strict_yaml import read_yaml

    data = read_yaml(text, where)
    entries = data.get("aliases")
    if set(data) != {"aliases"} or not isinstance(entries, dict):
        raise DataError("not a file of metric aliases", where=where, why="needs aliases: {METRIC: [SPELLING, …]}")
    added: dict[str, list[Alias]] = {}
    for name, spellings in entries.items():
        if name not in registry.by_name:
            near = similar(str(name), registry.by_name, "receipt schema show metrics")
            raise DataError(f"no metric {name!r}", where=where, try_=near)
        if not isinstance(spellings, list):
            raise DataError(f"the aliases of {name} must be a list", where=where)
        given = [{"spelling": each} if isinstance(each, str) else each for each in spellings]
        given = [{**each, "trainer": SITE} if isinstance(each, dict) else each for each in given]
        added[name] = list(_metric_aliases(given, f"{where}: {name}"))
        for alias in added[name]:
            meant = registry.by_alias.get(alias.spelling.lower(), name)
            if meant != name:
                raise DataError(f"alias {alias.spelling!r} of {name} means {meant} already", where=where)
    metrics = [metric._replace(aliases=(*metric.aliases, *added.get(metric.name, ()))) for metric in registry.metrics]
    digest = hashlib.sha256(registry.sha256.encode() + hashlib.sha256(text).hexdigest().encode()).hexdigest()
    by_alias = _aliases(metrics, {metric.name: metric for metric in metrics}, where)
    return Registry(registry.version, digest, tuple(metrics), by_alias)


SITE = "site"
"""Trainer name of a site's aliases."""


def _metric(entry: dict[str, Any], where: str) -> Metric:
    aliases = tuple(_metric_aliases(entry["aliases"], f"{where}: {entry['name']}"))
    return Metric(klass=entry["class"], **{**{key: entry[key] for key in entry if key != "class"}, "aliases": aliases})


def _metric_aliases(entries: Any, place: str) -> Iterator[Alias]:
    if not isinstance(entries, list):
        raise DataError("aliases is not a list", where=place)
    for position, entry in enumerate(entries):
        here = f"{place}: aliases[{position}]"
        if not isinstance(entry, dict) or not {"spelling", "trainer"} <= set(entry) <= _ALIAS_KEYS:
            raise DataError("an alias must have spelling and trainer, and may have printed_in", where=here)
        if not all(isinstance(value, str) and value.strip() == value != "" for value in entry.values()):
            raise DataError("the values of an alias must be strings without outer blanks", where=here)
        printed_in = entry.get("printed_in")
        if printed_in is not None and printed_in not in UNITS and printed_in not in SPECIAL_UNITS:
            raise DataError(f"printed_in {printed_in!r} is not a unit", where=here, why=f"units are {', '.join(known_units())}")
        yield Alias(entry["spelling"], entry["trainer"], printed_in)


def _aliases(metrics: list[Metric], by_name: Mapping[str, Metric], where: str) -> dict[str, str]:
    """Return lower-case spelling → metric name for the spellings that only one metric has."""
    meanings: dict[str, set[str]] = {name: {name} for name in by_name}
    printed: set[tuple[str, str]] = set()
    for metric in metrics:
        for alias in metric.aliases:
            spelling = alias.spelling.lower()
            if spelling in by_name and spelling != metric.name:
                why = f"it is listed under {metric.name}"
                raise DataError(f"alias {spelling!r} is the name of another metric", where=where, why=why)
            if (spelling, alias.trainer) in printed:
                raise DataError(f"alias {spelling!r} of {alias.trainer} appears twice", where=where)
            printed.add((spelling, alias.trainer))
            meanings.setdefault(spelling, set()).add(metric.name)
    return {spelling: next(iter(names)) for spelling, names in sorted(meanings.items()) if len(names) == 1}
