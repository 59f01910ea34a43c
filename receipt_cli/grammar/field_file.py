"""Make the fields of a rule from their definitions, and check their units and targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import regex

from receipt_cli.definitions.metrics import Registry, load_registry
from receipt_cli.definitions.reading import Fail, below, failing, listed, similar
from receipt_cli.definitions.resources import read_shipped
from receipt_cli.definitions.units import SPECIAL_UNITS, UNITS, known_units
from receipt_cli.grammar.model import FACTS, STRUCTURAL, Field, LazyFields, Target
from receipt_cli.patterns import compile_later

_SLUG = compile_later(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")


def lazy_fields(where: str) -> Callable[[str, Mapping[str, Any]], LazyFields]:
    """Return a function that makes the ``LazyFields`` of a rule in the shipped file ``where``: (rule name, definitions)."""
    registry, fail = load_registry(), failing(lambda: read_shipped(where), where, hidden="rules")

    def make(rule: str, bodies: Mapping[str, Any]) -> LazyFields:
        here = below(fail, "rules", rule, "fields")
        return LazyFields(bodies, lambda name: make_field(name, bodies[name], registry, below(here, name)))

    return make


def make_field(name: str, body: Mapping[str, Any] | None, registry: Registry, fail: Fail) -> Field:
    """Return the field ``name`` of the definition ``body``, whose shape is valid. Raises the error that ``fail`` makes."""
    data = body or {}
    unit, kind, least = data.get("printed_in"), data.get("type", "number"), data.get("at_least")
    if data.get("definition") is not None and _SLUG.match(data["definition"]) is None:
        raise fail(f"definition {data['definition']!r} is not a slug")
    if unit is not None and unit not in UNITS and unit not in SPECIAL_UNITS:
        raise fail(f"unknown unit {unit!r}: units are {', '.join(known_units())}")
    if least is not None and not math.isfinite(least):
        raise fail("must be a finite number", "at_least")
    if least is not None and kind not in ("number", "integer"):
        raise fail(f"is only for numbers, the type is {kind}", "at_least")
    return Field(
        name=name,
        type=kind,
        unit=unit,
        null_if=frozenset(listed(data.get("null_if"))),
        scope=data.get("scope"),
        value=_value_pattern(data["value"], fail) if data.get("value") is not None else None,
        definition=data.get("definition"),
        target=_target(name, data, kind, registry, fail),
        at_least=None if least is None else float(least),
    )


def _value_pattern(value: str, fail: Fail) -> regex.Pattern[str]:
    """Return the compiled pattern whose only group is the value in a printed text."""
    try:
        part = regex.compile(value)
    except (regex.error, RecursionError, MemoryError) as error:
        raise fail(f"value is not a pattern: {error}") from error
    if part.groups != 1:
        raise fail(f"value needs exactly one group, it has {part.groups}")
    return part


def _target(name: str, data: Mapping[str, Any], kind: str, registry: Registry, fail: Fail) -> Target:
    """Return the ``Target`` of the field ``name``."""
    metric, fact = data.get("metric"), data.get("fact")
    if metric is not None and fact is not None:
        raise fail("has both a metric and a fact")
    if fact is not None:
        if fact not in FACTS:
            raise fail(_unknown("fact", fact, FACTS))
        return ("fact", fact)
    if metric == "other":
        return ("other", name)
    if metric is not None:
        if metric not in registry.by_name:
            raise fail(_unknown("metric", metric, registry.by_name))
        return ("metric", metric)
    if name in STRUCTURAL:
        return ("structural", name)
    if name in FACTS:
        return ("fact", name)
    if name in registry.by_name:
        return ("metric", name)
    if kind in ("string", "boolean"):
        return ("text", name)
    near = similar(name, [*registry.by_name, *STRUCTURAL, *FACTS], "name its metric or fact, or metric: other")
    raise fail(f"is neither a metric, a fact nor structural: {near}")


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    near = similar(name, known)
    return f"unknown {what} {name!r}: {near}" if near else f"unknown {what} {name!r}"
