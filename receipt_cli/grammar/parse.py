"""Read the YAML text of a grammar into a checked, immutable ``Grammar``; errors name the rule, the field and the line."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import regex

from receipt_cli.definitions.metrics import Registry, load_registry
from receipt_cli.definitions.reading import Fail, below, failing, listed, similar
from receipt_cli.definitions.resources import read_shipped
from receipt_cli.definitions.units import SPECIAL_UNITS, UNITS, known_units
from receipt_cli.errors import DataError
from receipt_cli.grammar.model import (
    FACTS,
    STRUCTURAL,
    Block,
    Evidence,
    Field,
    Grammar,
    LazyFields,
    Mapped,
    Pairs,
    Rule,
    Sample,
    Table,
    Target,
    compile_pattern,
)
from receipt_cli.patterns import compile_later

_REST = r"(?:\.\d*+)?+(?:[eE][-+]?\d++)?+|\.\d++(?:[eE][-+]?\d++)?+|(?i:nan|inf))"
PARTS: Final[Mapping[str, str]] = {
    "number": rf"[-+]?(?:\d++{_REST}",
    "grouped": rf"[-+]?(?:(?:\d{{1,3}}(?:,\d{{3}})++(?!\d)|\d++){_REST}",
    "integer": r"\d++",
    "time": r"(?:\d{1,6} days?, *+)?+\d{1,4}:\d\d(?::\d\d)?+(?:[.,]\d++)?+",
    "text": r"[^\s,;|\]]{1,80}+",
    "bar": r"(?:\|[^|,\n]{0,400}+\|?+|\[[^\]\n]{0,400}\]|[^ \t\n]{0,400})",
    "blanks": r"[ \t]*+",
    "gap": r"[^\n]{0,2000}?",
    "end": r"(?![\w%]|,\d{3})",
}
"""Name → pattern. ``grouped`` is a number that may have commas between thousands; ``gap`` is as little text of the line as
possible; ``end`` matches at the end of a number without a unit right after it."""
_CALL = compile_later(r"\(\?&([A-Za-z_]\w*)\)")


def expand(pattern: str) -> str:
    """Return ``pattern`` with its named parts expanded, and without its line breaks, which are only layout.

    A group of the pattern with the same name takes precedence over a part.
    """
    joined = re.sub(r"\n[ \t]*", "", pattern) if "\n" in pattern else pattern
    if "(?&" not in joined:
        return joined

    def part(call: re.Match[str]) -> str:
        name = call[1]
        return PARTS[name] if name in PARTS and f"<{name}>" not in joined else call[0]

    return _CALL.sub(part, joined)


def abbreviate(pattern: str) -> str:
    """Return ``pattern`` with parts replaced by their names; ``expand`` reverses it."""
    for name in ("grouped", "number", "bar", "gap", "end"):
        pattern = pattern.replace(PARTS[name], f"(?&{name})")
    return pattern


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


BLOCK_GAP = 8
"""Most records of other kinds between two rows of a block if its grammar has no ``gap``."""
Keyed = TypeVar("Keyed", Pairs, Mapped, Table, Block)


def load_grammar(text: bytes, where: str, *, with_samples: bool = False, shipped: bool = False) -> Grammar:
    """Return the grammar in ``text``; ``where`` names it in errors.

    Checks only the properties that the engine needs (shape, closed vocabularies, targets); ``lint`` checks the rest.
    ``with_samples`` also keeps samples. Raises ``DataError``.
    """
    from receipt_cli.definitions.strict_yaml import read_yaml

    data = read_yaml(text, where, shipped=shipped)
    fail = failing(lambda: text, where, hidden="rules")
    _check_shape(data, with_samples, fail)
    return _grammar(data, where, hashlib.sha256(text).hexdigest(), with_samples, fail)


def build_grammar(data: dict[str, Any], where: str, sha256: str) -> Grammar:
    """Return the grammar of the generated definition ``data``, whose digest is ``sha256``. Raises ``DataError``."""
    return check_patterns(_grammar(data, where, sha256, False, failing(lambda: b"", where, hidden="rules")))


def check_patterns(grammar: Grammar) -> Grammar:
    """Return ``grammar``. Raises ``DataError`` if a pattern does not compile or captures an undeclared field."""
    for rule in (*grammar.rules, *grammar.ignore):
        for source in (*rule.sources, *([rule.pairs.stop] if rule.pairs and rule.pairs.stop else ())):
            groups = set(_groups(source, rule, grammar))
            if rule.block and source == rule.block.row:
                if groups != {"key", "value"}:
                    raise DataError(f"{rule.name}: a row must have exactly the groups key and value", where=grammar.where)
            elif rule.event != "ignored" and groups - set(rule.fields):
                missing = sorted(groups - set(rule.fields))[0]
                raise DataError(f"{rule.name}: captures the undeclared field {missing!r}", where=grammar.where)
    return grammar


def _groups(source: str, rule: Rule, grammar: Grammar) -> Mapping[str, int]:
    try:
        return compile_pattern(source).groupindex
    except (regex.error, UnicodeEncodeError, RecursionError, MemoryError) as error:
        raise DataError(f"{rule.name}: pattern does not compile", where=grammar.where, why=str(error)) from error


_LEFT_TO_LINT = ("minItems", "minLength", "not", "pattern", "propertyNames")
"""Schema keywords that the engine does not need, or that are checked separately."""
_OPTIONAL = ("eras", "evidence", "excludes", "fields", "forbids", "ignore", "keys", "no_match", "proves", "requires", "where")
"""Keys whose value may be null."""
PATTERNS = ("start", "stop", "header", "row", "open")
"""Keys with patterns in ``pairs``, ``mapping``, ``table`` and ``block``."""
KINDS = ("pattern", "pairs", "mapping", "table", "block")


def _check_shape(data: dict[str, Any], with_samples: bool, fail: Fail) -> None:
    """Raise the error that ``fail`` makes if ``data`` breaks ``schemas/grammar`` so that the engine cannot use it."""
    from receipt_cli.definitions.reading import check_definition

    def counts(path: tuple[str | int, ...], keyword: str, instance: object) -> bool:
        if keyword in _LEFT_TO_LINT or (keyword == "oneOf" and path[0] == "rules"):
            return False
        if keyword == "required" and path[-1] in ("samples", "upstream"):
            return False
        if keyword == "enum" and path[-1] in ("printed_in", "fact") and isinstance(instance, str):
            return False
        return (with_samples or "samples" not in path) and not (instance is None and path[-1] in _OPTIONAL)

    check_definition("grammar", data, fail, counts)
    for name, body in data["rules"].items():
        here = below(fail, "rules", str(name))
        _check_literals(body, here)
        if sum(kind in body for kind in KINDS) != 1:
            raise here(f"a rule must have exactly one of {', '.join(KINDS)}")
        cell, key = (body["pairs"][part] for part in ("cell", "key")) if "pairs" in body else (",", ":")
        if not cell or not key:
            raise here("cell and key must not be empty", "pairs")
        if not cell.strip() and not (key.strip() and key.isascii()):
            raise here("if blanks separate the cells, key must be visible ASCII", "pairs")
    for name, body in (data.get("ignore") or {}).items():
        _check_literals(body, below(fail, "ignore", str(name)))


def _check_literals(body: Mapping[str, Any], fail: Fail) -> None:
    literals = listed(body["literal"])
    if not literals or any(not text or "\n" in text or "\r" in text for text in literals):
        raise fail("needs a literal without line ends", "literal")


def _grammar(data: Mapping[str, Any], where: str, sha256: str, with_samples: bool, fail: Fail) -> Grammar:
    """Return the grammar of a definition whose shape is valid. Raises the error that ``fail`` makes."""
    registry, evidence = load_registry(), data.get("evidence") or {}
    return Grammar(
        id=data["grammar"],
        version=data["version"],
        title=data["title"],
        upstream=data.get("upstream", ""),
        trainer=data["trainer"],
        layer=data.get("layer", "trainer"),
        eras=tuple(listed(data.get("eras"))),
        completion=data.get("completion", "none"),
        rules=tuple(_rule(str(name), body, registry, with_samples, fail) for name, body in data["rules"].items()),
        ignore=tuple(_ignored(str(name), body, with_samples) for name, body in (data.get("ignore") or {}).items()),
        no_match=tuple(listed(data.get("no_match"))),
        proves=tuple(map(_evidence, evidence.get("proves") or ())),
        excludes=tuple(map(_evidence, evidence.get("excludes") or ())),
        sha256=sha256,
        where=where,
    )


def _evidence(body: Mapping[str, Any]) -> Evidence:
    if "seen" in body:
        return Evidence(seen=body["seen"])
    return Evidence(metric=body["reported_over_derived"], equals=str(body["equals"]))


def _ignored(name: str, body: Mapping[str, Any], with_samples: bool) -> Rule:
    samples = tuple(Sample(line, {}, {}) for line in listed(body.get("samples"))) if with_samples else ()
    return Rule(name=name, event="ignored", literals=_literals(body), pattern=expand(body["pattern"]), samples=samples)


def _literals(body: Mapping[str, Any]) -> tuple[bytes, ...]:
    return tuple(text.encode("utf-8") for text in listed(body["literal"]))


def _rule(name: str, body: Mapping[str, Any], registry: Registry, with_samples: bool, fail: Fail) -> Rule:
    here = below(fail, "rules", name)
    bodies = {str(key): value for key, value in (body.get("fields") or {}).items()}
    fields = LazyFields(bodies, lambda key: make_field(key, bodies[key], registry, below(here, "fields", key)))
    list(fields.values())  # making each field checks it
    block, samples = body.get("block"), (body.get("samples") or ()) if with_samples else ()
    rule = Rule(
        name=name,
        event=body["event"],
        literals=_literals(body),
        pattern=expand(body["pattern"]) if "pattern" in body else None,
        pairs=_keyed(Pairs, body.get("pairs")),
        mapping=_keyed(Mapped, body.get("mapping")),
        table=_keyed(Table, body.get("table")),
        block=_keyed(Block, block and {"gap": BLOCK_GAP, **block}),
        fields=fields,
        phase=body.get("phase"),
        redraw=body.get("redraw", False),
        companion=body.get("companion", False),
        counts=body.get("counts", "step"),
        epochs_from=None if body.get("epochs_from") == "log" else body.get("epochs_from", 1),
        repeats=body.get("repeats", 0),
        samples=tuple(Sample(s["line"], s.get("fields") or {}, s.get("others") or {}) for s in samples),
    )
    for key, target in rule.keyed.keys.items() if rule.keyed else ():
        if target not in fields:
            raise here(f"key {key!r} names the undeclared field {target!r}")
    for missing in sorted(rule.block.requires - set(fields)) if rule.block else ():
        raise here(f"requires the undeclared field {missing!r}", "block")
    return rule


def _keyed(noun: type[Keyed], body: Mapping[str, Any] | None) -> Keyed | None:
    """Return the keyed part of a rule as ``noun``, or None if ``body`` is None."""
    if body is None:
        return None
    values = {key: value for key, value in body.items() if key not in ("syntax", "unknown")}
    values.update((key, expand(values[key])) for key in PATTERNS if isinstance(values.get(key), str))
    values["keys"] = {str(key): target for key, target in (body.get("keys") or {}).items()}
    values["other"] = body.get("unknown", "other") == "other"
    values["ignore"] = frozenset(listed(body.get("ignore")))
    for key in values.keys() & {"requires", "forbids"}:
        values[key] = frozenset(listed(values[key]))
    return noun(**values)
