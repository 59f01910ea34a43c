"""One field of a rule, checked; and the checks that every part of a definition needs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import regex

from receipt_cli.definitions.metrics import Registry, load_registry
from receipt_cli.definitions.resources import read_shipped
from receipt_cli.definitions.units import SPECIAL_UNITS, UNITS
from receipt_cli.errors import DataError
from receipt_cli.grammar.model import FACTS, SCOPES, STRUCTURAL, TYPES, Field, LazyFields, Target

_FIELD = {"type", "printed_in", "null_if", "at_least", "scope", "value", "definition", "metric", "fact", "description"}
_SLUG = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")


def lazy_fields(rules: Sequence[str], where: str) -> Callable[[str, Mapping[str, Any]], LazyFields]:
    """Return what makes the fields of one of ``rules``, all of the shipped file ``where``, of its name and their definitions."""
    registry = load_registry()

    def make(rule: str, bodies: Mapping[str, Any]) -> LazyFields:
        def field(name: str) -> Field:
            reader = FieldReader({"rules": dict.fromkeys(rules)}, lambda: read_shipped(where), where, registry)
            return reader.field(name, bodies[name], rule)

        return LazyFields(bodies, field)

    return make


class FieldReader:
    """Reads fields of one definition; every refusal names the rule and the field, and the line."""

    def __init__(self, data: dict[str, Any], text: Callable[[], bytes], where: str, registry: Registry) -> None:
        self.data = data
        self.source = text
        self.where = where
        self.registry = registry

    def fail(self, what: str, *path: object, key: str | None = None) -> DataError:
        """Return the refusal of what stands at ``path``, or under ``key`` there; the path of a rule begins with its name."""
        steps = [str(part) for part in (*path, *(() if key is None else (key,)))]
        from receipt_cli.definitions.strict_yaml import locate

        rules = self.data.get("rules")
        root = ["rules"] if path and isinstance(rules, dict) and path[0] in rules else []
        line = locate(self.source(), (*root, *steps))
        return DataError(f"{'.'.join(map(str, path))}: {what}" if path else what, where=f"{self.where}:{line}")

    def closed(self, data: object, allowed: set[str], *path: object) -> dict[str, Any]:
        """Return the mapping that ``data`` is, without keys that are not allowed."""
        if not isinstance(data, dict):
            raise self.fail("is not a mapping", *path)
        unknown = [str(k) for k in data if k not in allowed]
        if unknown:
            raise self.fail(f"unknown key {unknown[0]!r}", *path, key=unknown[0])
        return data

    def text(self, data: Mapping[str, Any], key: str, default: str | None = None, *path: object) -> str:
        """Return the text under ``key``."""
        value = data.get(key, default)
        if not isinstance(value, str):
            raise self.fail(f"{key} must be a text", *path, key=key)
        return value

    def flag(self, data: Mapping[str, Any], key: str, *path: object) -> bool:
        """Return the truth value under ``key``, by default False."""
        value = data.get(key, False)
        if not isinstance(value, bool):
            raise self.fail(f"{key} must be true or false", *path, key=key)
        return value

    def entries(self, value: object, *path: object) -> list[Any]:
        """Return the list that ``value`` is, an empty one for None."""
        if value is not None and not isinstance(value, list):
            raise self.fail("must be a list", *path)
        return value or []

    def choice(self, value: object, choices: Sequence[str], *path: object) -> str:
        """Return ``value`` where it is one of ``choices``."""
        if not isinstance(value, str) or value not in choices:
            raise self.fail(f"{value!r} is not one of {', '.join(choices)}", *path)
        return value

    def texts(self, value: object, *path: object) -> tuple[str, ...]:
        """Return the texts that ``value`` lists; a text alone is one, None is none."""
        items = [value] if isinstance(value, str) else value
        if items is None:
            return ()
        if not isinstance(items, list) or not all(isinstance(i, str) for i in items):
            raise self.fail("must be a text or a list of texts", *path)
        return tuple(items)

    def field(self, name: str, body: object, rule: str) -> Field:
        """Return the field ``name`` of ``rule`` that ``body`` defines."""
        data = self.closed(body if body is not None else {}, _FIELD, rule, "fields", name)
        for key in ("printed_in", "metric", "fact", "value", "definition"):
            if data.get(key) is not None and not isinstance(data[key], str):
                raise self.fail(f"{key} must be a text", rule, "fields", name, key=key)
        definition = data.get("definition")
        if definition is not None and _SLUG.match(definition) is None:
            raise self.fail(f"definition {definition!r} is not a slug", rule, "fields", name)
        unit = data.get("printed_in")
        if unit is not None and unit not in UNITS and unit not in SPECIAL_UNITS:
            raise self.fail(f"unknown unit {unit!r}", rule, "fields", name)
        kind = self.choice(data.get("type", "number"), TYPES, rule, "fields", name)
        scope = data.get("scope")
        if scope is not None:
            self.choice(scope, SCOPES, rule, "fields", name)
        return Field(
            name=name,
            type=kind,
            unit=unit,
            null_if=frozenset(self.texts(data.get("null_if"), rule, "fields", name, "null_if")),
            scope=scope,
            value=self.part(data["value"], rule, "fields", name) if data.get("value") is not None else None,
            definition=definition,
            target=self.target(name, data, kind, rule),
            at_least=self.bound(data["at_least"], kind, rule, "fields", name, "at_least") if "at_least" in data else None,
        )

    def bound(self, value: object, kind: str, *path: object) -> float:
        """Return the least value that a field of this kind may have."""
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise self.fail("must be a finite number", *path)
        if kind not in ("number", "integer"):
            raise self.fail(f"is only for numbers, the type is {kind}", *path)
        return float(value)

    def part(self, value: str, *path: object) -> regex.Pattern[str]:
        """Return the compiled pattern of the part of a text that is the value."""
        try:
            part = regex.compile(value)
        except (regex.error, RecursionError, MemoryError) as error:
            raise self.fail(f"value is not a pattern: {error}", *path) from error
        if part.groups != 1:
            raise self.fail(f"value needs exactly one group, it has {part.groups}", *path)
        return part

    def target(self, name: str, data: Mapping[str, Any], kind: str, rule: str) -> Target:
        """Return what the field is: see ``Target``."""
        if "metric" in data and "fact" in data:
            raise self.fail("has both a metric and a fact", rule, "fields", name)
        if "fact" in data:
            if data["fact"] not in FACTS:
                raise self.fail(f"unknown fact {data['fact']!r}", rule, "fields", name)
            return ("fact", data["fact"])
        metric = data.get("metric")
        if metric == "other":
            return ("other", name)
        if metric is not None:
            if metric not in self.registry.by_name:
                raise self.fail(f"unknown metric {metric!r}", rule, "fields", name)
            return ("metric", metric)
        if name in STRUCTURAL:
            return ("structural", name)
        if name in FACTS:
            return ("fact", name)
        if name in self.registry.by_name:
            return ("metric", name)
        if kind in ("string", "boolean"):
            return ("text", name)
        raise self.fail("is neither a metric, a fact nor structural: say metric or fact", rule, "fields", name)
