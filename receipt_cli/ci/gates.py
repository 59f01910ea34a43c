"""Gates of a CI job: required checks, bounds of figures, limits of changes; parsed from the YAML of a gates file."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from receipt_cli.definitions.metrics import Metric, Registry
from receipt_cli.definitions.strict_yaml import locate, read_yaml
from receipt_cli.definitions.units import UNITS, read_number, split_suffix
from receipt_cli.errors import DataError
from receipt_cli.problems import pointer, split_pointer

OnUnknown = Literal["fail", "skip"]
"""The ruling on a question that the receipt cannot answer."""
Interval = Literal["used", "required"]
STATISTICS = ("first", "last", "min", "max", "mean", "median")
COMPOSITE = ("healthy", "proven")
"""Requirements that combine the four core checks."""


class Limited:
    """Mixin of a gate with a least and a largest allowed value; None: no limit."""

    __slots__ = ()
    at_least: float | None
    at_most: float | None

    @property
    def limits(self) -> list[tuple[str, float]]:
        """The sign and the value of each limit."""
        return [(sign, limit) for sign, limit in (("≥", self.at_least), ("≤", self.at_most)) if limit is not None]

    def wanted(self, shown: Callable[[float], str]) -> str:
        """Return the limits in words; ``shown`` gives the words of a value."""
        return " and ".join(f"{sign} {shown(limit)}" for sign, limit in self.limits)

    def allows(self, low: float, high: float | None = None) -> bool:
        """Return whether a value, or all values from ``low`` to ``high``, are within the limits."""
        high = low if high is None else high
        return (self.at_least is None or low >= self.at_least) and (self.at_most is None or high <= self.at_most)


@dataclass(frozen=True, slots=True)
class Bound(Limited):
    """A figure of the receipt with its least and largest allowed value, in base units; None: no limit.

    ``pointer`` is the figure's JSON pointer; ``name`` is the gate's name; the end of ``measure`` determines the displayed unit.
    """

    name: str
    pointer: str
    measure: str
    at_least: float | None
    at_most: float | None


@dataclass(frozen=True, slots=True)
class Change:
    """Largest ratio by which a metric may differ from the baseline, in the bad direction only or in both.

    With ``interval`` required, the figures alone do not decide. With ``lane_last`` the baseline is the median of so many last
    runs of the lane in a store.
    """

    metric: str
    direction: Literal["worse", "differs"]
    at_most: float
    interval: Interval
    lane_last: int | None = None

    @property
    def name(self) -> str:
        """The gate's name."""
        where = "change" if self.lane_last is None else f"last_{self.lane_last}_of_lane"
        return f"{self.metric}.{where}.{self.direction}_by_at_most"


@dataclass(frozen=True, slots=True)
class Quantity(Limited):
    """A figure of the steps of a log with its limits in base units: a percentile (``p05``), or the ``spread``.

    The spread is the distance of the 5th and the 95th percentile, relative to the median.
    """

    metric: str
    statistic: str
    at_least: float | None
    at_most: float | None

    @property
    def name(self) -> str:
        """The gate's name."""
        return f"{self.metric}.{self.statistic}"


@dataclass(frozen=True, slots=True)
class Slope(Limited):
    """The change of a metric per step over the last ``over`` records (None: the last half), with its limits."""

    metric: str
    over: int | None
    at_least: float | None
    at_most: float | None

    @property
    def name(self) -> str:
        """The gate's name."""
        return f"{self.metric}.slope"


@dataclass(frozen=True, slots=True)
class LineCount(Limited):
    """How many lines of the log have a text, or match a regular expression; None: no limit."""

    name: str
    contains: str | None
    matches: re.Pattern[str] | None
    at_least: int | None
    at_most: int | None

    def is_in(self, line: str) -> bool:
        """Return whether a line has the text or matches the regular expression."""
        return (
            self.contains in line if self.contains is not None else self.matches is not None and bool(self.matches.search(line))
        )


Gate: TypeAlias = Bound | Quantity | Slope | LineCount | Change
Kind = TypeVar("Kind", Bound, Quantity, Slope, LineCount, Change)


@dataclass(frozen=True, slots=True)
class OfSystem:
    """Gates for the runs on one system; a part that is None fits every run."""

    lane: str | None
    device: str | None
    world_size: int | None
    gates: tuple[Gate, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """The rulings on unanswered questions, by their kind."""

    checks: OnUnknown = "fail"
    bounds: OnUnknown = "fail"
    changes: OnUnknown = "skip"


@dataclass(frozen=True, slots=True)
class Gates:
    """All gates of a job; ``require`` contains names of checks, ``healthy`` and ``proven``."""

    require: tuple[str, ...] = ("healthy",)
    gates: tuple[Gate, ...] = ()
    unknown: Unknown = Unknown()
    allow_truncated: bool = False
    """Whether a log that stops before its run ends may pass."""
    allow_unknown: bool = False
    """Whether a log in which no step was recognised may pass, if nothing says that the run failed."""
    systems: tuple[OfSystem, ...] = ()

    def of_kind(self, kind: type[Kind]) -> list[Kind]:
        """Return the gates of a class."""
        return [gate for gate in self.gates if isinstance(gate, kind)]

    @property
    def every_change(self) -> list[Change]:
        """The changes of all systems, too."""
        return [*self.of_kind(Change), *(gate for one in self.systems for gate in one.gates if isinstance(gate, Change))]

    def of_system(self, lane: str | None, device: str | None, world_size: int | None) -> Gates | None:
        """Return the gates with those of the run's system, the first that fits; None if there are systems and none fits."""
        if not self.systems:
            return self
        for one in self.systems:
            device_fits = one.device is None or (device is not None and fnmatchcase(device.lower(), one.device.lower()))
            if one.lane in (None, lane) and device_fits and one.world_size in (None, world_size):
                return replace(self, gates=(*self.gates, *one.gates), systems=())
        return None


DEFAULT = Gates()
"""Without a file, a run only has to be healthy."""


MAX_GATES = 200
_LONGEST_NAME = 60
_KEYS = ("require", "metrics", "fields", "lines", "systems", "unknown", "allow_truncated")
_BOUND_KEYS = ("at_least", "at_most")
_CHANGE_KEYS = ("worse_by_at_most", "differs_by_at_most", "interval", "lane_last")
_LINE_KEYS = ("name", "contains", "matches", *_BOUND_KEYS)
_SYSTEM_KEYS = ("lane", "device", "world_size", "metrics", "fields")
_PERCENTILE = re.compile(r"p(?:0[1-9]|[1-9]\d)")
_LEAST_OVER = 16
"""Fewest records over which a slope is taken."""
_DIMENSIONS = {"s": "time", "byte": "bytes", "flop/s": "flops"}
"""Unit in the registry → dimension; other units are counts, or ratios if the name says so."""

Path = tuple[str, ...]


def read_gates(text: bytes, where: str, *, checks: Collection[str], registry: Registry) -> Gates:
    """Return the gates in ``text``; ``where`` names it in errors; ``checks`` are the names of a receipt's checks.

    Raises ``DataError`` with ``where:line`` for an unknown key, check, metric or statistic, an invalid number, and a unit of
    another dimension.
    """
    return _Reader(text, where, checks, registry).read()


class _Reader:
    """Reads one gates file; its errors name the line."""

    def __init__(self, text: bytes, where: str, checks: Collection[str], registry: Registry) -> None:
        self._text, self._where = text, where
        self._checks, self._registry = checks, registry

    def read(self) -> Gates:
        data = read_yaml(self._text, self._where)
        self._known((), data, _KEYS, "a gates file")
        gates, systems = (*self._gates(data), *self._lines(data)), tuple(self._systems(data))
        if len(gates) + sum(len(one.gates) for one in systems) > MAX_GATES:
            raise DataError(f"a gates file has at most {MAX_GATES} gates", where=self._where)
        truncated = data.get("allow_truncated", DEFAULT.allow_truncated)
        if not isinstance(truncated, bool):
            raise self._error(("allow_truncated",), f"allow_truncated is {truncated!r}, not true or false")
        return Gates(self._require(data), gates, self._unknown(data), truncated, systems=systems)

    def _systems(self, data: Mapping[str, Any]) -> Iterator[OfSystem]:
        example = 'device: "*H100*"'
        for path, found in self._list(data, "systems", _SYSTEM_KEYS, example, f"systems: [{{{example}, metrics: {{...}}}}]"):
            lane, device, ranks = (found.get(key) for key in ("lane", "device", "world_size"))
            if not all(part is None or isinstance(part, str) for part in (lane, device)):
                raise self._error(path, "lane and device are texts")
            if ranks is not None and not _is_count(ranks):
                raise self._error((*path, "world_size"), f"world_size is {ranks!r}, not a number of ranks")
            inner = {key: found[key] for key in ("metrics", "fields") if key in found}
            yield OfSystem(lane, device, ranks, tuple(self._gates(inner)))

    def _list(
        self, data: Mapping[str, Any], key: str, known: Collection[str], example: str, try_: str
    ) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Yield the place and the entries of each mapping in a list; ``example`` is of one, ``try_`` of a list."""
        stated = data.get(key, [])
        if not isinstance(stated, list):
            raise self._error((key,), f"{key} is not a list", try_=try_)
        for number, entry in enumerate(stated):
            path = (key, str(number))
            found = self._mapping(path, entry, example)
            self._known(path, found, known, f"a {key.removesuffix('s')}")
            yield path, found

    def _lines(self, data: Mapping[str, Any]) -> Iterator[LineCount]:
        example = "lines: [{contains: saved checkpoint, at_least: 1}]"
        for path, found in self._list(data, "lines", _LINE_KEYS, example, example):
            texts = [found.get(key) for key in ("contains", "matches")]
            if sum(text is not None for text in texts) != 1 or not all(
                text is None or (isinstance(text, str) and text) for text in texts
            ):
                raise self._error(path, "a line is named by one text, contains or matches", try_=example)
            try:
                pattern = None if texts[1] is None else re.compile(texts[1])
            except re.error as error:
                raise self._error((*path, "matches"), f"{texts[1]!r} is no regular expression", why=str(error)) from error
            limits = [found.get(key) for key in _BOUND_KEYS]
            if not all(limit is None or _is_count(limit) for limit in limits):
                raise self._error(path, "at_least and at_most are numbers of lines", try_=example)
            least, most = limits if any(limit is not None for limit in limits) else (1, None)
            if least is not None and most is not None and least > most:
                raise self._error(path, "at_least is larger than at_most")
            name = found.get("name", texts[0] if texts[0] is not None else texts[1])
            yield LineCount(f"line {name}"[:_LONGEST_NAME], texts[0], pattern, least, most)

    def _gates(self, data: Mapping[str, Any]) -> Iterator[Gate]:
        for path, metric, entry in self._metrics(data):
            for key, stated in entry.items():
                place = (*path, str(key))
                if key == "change":
                    yield from self._changes(place, metric, stated)
                elif key == "slope":
                    yield self._slope(place, metric, stated)
                elif key == "spread":
                    limits = self._mapping(place, stated, "spread: {at_most: 5%}")
                    self._known(place, limits, _BOUND_KEYS, key)
                    low, high = (self._share((*place, name), limits) if name in limits else None for name in _BOUND_KEYS)
                    yield Quantity(metric.name, key, low, high)
                elif key in STATISTICS:
                    field = pointer("summary", "metrics", metric.name, key)
                    yield Bound(f"{metric.name}.{key}", field, metric.name, *self._limits(place, stated, metric))
                else:
                    yield Quantity(metric.name, key, *self._limits(place, stated, metric))
        example = "fields: {/summary/steps/restart_count: {at_most: 0}}"
        for key, entry in (self._mapping(("fields",), data["fields"], example) if "fields" in data else {}).items():
            field = str(key)
            if not field.startswith("/"):
                raise self._error(("fields", field), "a field is named by its JSON pointer", try_=example)
            yield Bound(field, field, split_pointer(field)[-1], *self._limits(("fields", field), entry, None))

    def _slope(self, path: Path, metric: Metric, entry: object) -> Slope:
        stated = self._mapping(path, entry, "slope: {over: 200, at_most: 0}")
        self._known(path, stated, ("over", *_BOUND_KEYS), "slope")
        over = stated.get("over")
        if over is not None and not _is_count(over, _LEAST_OVER):
            raise self._error((*path, "over"), f"over is {over!r}, not a number of records of {_LEAST_OVER} or more")
        limits = {key: stated[key] for key in _BOUND_KEYS if key in stated}
        if not limits:
            raise self._error(path, "slope has no limit", try_="slope: {over: 200, at_most: 0}")
        return Slope(metric.name, over, *self._limits(path, limits, None))

    def _error(self, path: Path, message: str, *, why: str = "", try_: str = "") -> DataError:
        return DataError(message, where=f"{self._where}:{locate(self._text, path)}", why=why, try_=try_)

    def _known(self, path: Path, data: Mapping[str, Any], known: Collection[str], owner: str) -> None:
        for key in data:
            if key not in known:
                why = f"known: {', '.join(known)}"
                raise self._error((*path, str(key)), f"{owner} has no {key!r}", why=why, try_=_near(key, known))

    def _mapping(self, path: Path, value: object, example: str) -> Mapping[str, Any]:
        if not isinstance(value, dict) or not value:
            raise self._error(path, f"{path[-1]} is not a mapping with an entry", try_=example)
        return value

    def _require(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        stated = data.get("require", list(DEFAULT.require))
        if not isinstance(stated, list) or not all(isinstance(name, str) for name in stated):
            raise self._error(("require",), "require is not a list of checks", try_="require: [healthy, completed]")
        known = (*COMPOSITE, *self._checks)
        for name in stated:
            if name not in known:
                why = f"known: {', '.join(known)}"
                raise self._error(("require",), f"there is no check {name!r}", why=why, try_=_near(name, known))
        return tuple(dict.fromkeys(stated))

    def _metrics(self, data: Mapping[str, Any]) -> Iterator[tuple[Path, Metric, Mapping[str, Any]]]:
        example = "metrics: {loss: {last: {at_most: 3.0}}}"
        for name, entry in (self._mapping(("metrics",), data["metrics"], example) if "metrics" in data else {}).items():
            path = ("metrics", str(name))
            metric = self._registry.by_name.get(name)
            if metric is None:
                near = self._registry.by_alias.get(str(name).lower()) or _near(name, self._registry.by_name)
                raise self._error(path, f"there is no metric {name!r}", try_=near)
            found = self._mapping(path, entry, f"{name}: {{median: {{at_least: 1}}}}")
            named = [key for key in found if not _PERCENTILE.fullmatch(str(key))]
            self._known(path, {key: found[key] for key in named}, (*STATISTICS, "spread", "slope", "change"), name)
            yield path, metric, found

    def _limits(self, path: Path, entry: object, metric: Metric | None) -> tuple[float | None, float | None]:
        stated = self._mapping(path, entry, f"{path[-1]}: {{at_least: 1}}")
        self._known(path, stated, _BOUND_KEYS, path[-1])
        low, high = (self._number((*path, key), stated[key], metric) if key in stated else None for key in _BOUND_KEYS)
        if low is not None and high is not None and low > high:
            raise self._error(path, "at_least is larger than at_most")
        return low, high

    def _number(self, path: Path, stated: object, metric: Metric | None) -> float:
        """Return a limit in base units: a number, or a text such as ``70 GiB``, ``450 ms``, ``40 %`` or ``1.1 M``."""
        value = _read_limit(stated, metric)
        if value is None or not math.isfinite(value):
            names = _unit_names(metric)
            units = f"in one of {', '.join(names)}, or in base units" if names else "in base units"
            raise self._error(path, f"{stated!r} is not a limit", why=f"a limit is a number {units}")
        return value

    def _changes(self, path: Path, metric: Metric, entry: object) -> Iterator[Change]:
        stated = self._mapping(path, entry, "change: {worse_by_at_most: 5%}")
        self._known(path, stated, _CHANGE_KEYS, "change")
        interval = next((i for i in get_args(Interval) if i == stated.get("interval", "used")), None)
        if interval is None:
            raise self._error((*path, "interval"), f"interval is one of {', '.join(get_args(Interval))}")
        last = stated.get("lane_last")
        if last is not None and not _is_count(last, 1):
            raise self._error((*path, "lane_last"), f"lane_last is {last!r}, not a number of runs")
        if "worse_by_at_most" in stated:
            if metric.better == "none":
                raise self._error(path, f"neither more nor less {metric.name} is worse", try_="differs_by_at_most")
            yield Change(metric.name, "worse", self._share((*path, "worse_by_at_most"), stated), interval, last)
        if "differs_by_at_most" in stated:
            yield Change(metric.name, "differs", self._share((*path, "differs_by_at_most"), stated), interval, last)
        if set(stated) <= {"interval", "lane_last"}:
            raise self._error(path, "change has no limit", try_="change: {worse_by_at_most: 5%}")

    def _share(self, path: Path, stated: Mapping[str, Any]) -> float:
        """Return a percentage as a ratio; a bare number is refused, because 5 and 0.05 may both mean five percent."""
        text = stated[path[-1]]
        value = read_number(text, "percent") if isinstance(text, str) and text.rstrip().endswith("%") else None
        if value is None or not 0 <= value < math.inf:
            raise self._error(path, f"{text!r} is not a percentage", try_=f"{path[-1]}: 5%")
        return value

    def _unknown(self, data: Mapping[str, Any]) -> Unknown:
        stated = data.get("unknown", {})
        kinds = [f.name for f in fields(Unknown)]
        if isinstance(stated, str):
            stated = dict.fromkeys(kinds, stated)
        if not isinstance(stated, dict):
            raise self._error(("unknown",), "unknown is fail, skip or a mapping of both", try_="unknown: {changes: fail}")
        self._known(("unknown",), stated, kinds, "unknown")
        for kind, word in stated.items():
            if word not in get_args(OnUnknown):
                raise self._error(("unknown", kind), f"unknown is one of {', '.join(get_args(OnUnknown))}, not {word!r}")
        return Unknown(**stated)


def _is_count(value: object, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _near(name: object, known: Collection[str]) -> str:
    found = get_close_matches(str(name), list(known), n=1)
    return f"{found[0]}?" if found else ""


def _dimension(metric: Metric) -> str | None:
    if metric.unit == "1":
        return "ratio" if metric.name.endswith("_ratio") else "count" if metric.name.endswith("_count") else None
    return _DIMENSIONS.get(metric.unit, "count")


def _unit_names(metric: Metric | None) -> list[str]:
    """Return the units in which a limit of ``metric`` may be written."""
    dimension = _dimension(metric) if metric is not None else None
    names = [name for name, unit in UNITS.items() if unit.dimension == dimension]
    return ["%"] if dimension == "ratio" else [name for name in names if name != "one"]


def _read_limit(stated: object, metric: Metric | None) -> float | None:
    if isinstance(stated, int | float) and not isinstance(stated, bool):
        try:
            return float(stated)
        except OverflowError:
            return None
    parts = split_suffix(stated.strip()) if isinstance(stated, str) else None
    if parts is None:
        return None
    number, suffix = parts
    if suffix and suffix not in _unit_names(metric):
        return None
    plain = read_number(number)
    factor = UNITS["percent" if suffix == "%" else suffix].factor if suffix else Decimal(1)
    return None if plain is None else float(Decimal(number.replace(",", "")) * factor)
