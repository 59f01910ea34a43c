"""YAML text of a grammar → checked, immutable ``Grammar``; every refusal names the rule and the field."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import regex

from receipt_cli.definitions import load_definition, locate
from receipt_cli.errors import DataError
from receipt_cli.grammar import (
    EVENTS,
    FACTS,
    LAYERS,
    SCOPES,
    STRUCTURAL,
    TYPES,
    UNITS_COUNTED,
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
from receipt_cli.registry import Registry, load_registry
from receipt_cli.units import SPECIAL_UNITS, UNITS


def load_grammar(text: bytes, where: str, *, with_samples: bool = False, shipped: bool = False) -> Grammar:
    """Return the grammar that ``text`` defines; ``where`` names it in errors.

    Only what the engine needs is checked here (shape, closed vocabularies, targets); ``lint`` proves the rest.
    ``with_samples`` also keeps samples. Raises ``DataError``.
    """
    data = load_definition(text, where, shipped=shipped)
    reader = _Reader(data, text, where, load_registry(), with_samples, trusted=shipped and not with_samples)
    return reader.grammar(hashlib.sha256(text).hexdigest())


def build_grammar(data: dict[str, Any], where: str, sha256: str, *, with_samples: bool = False) -> Grammar:
    """Return the grammar that the plain ``data`` of a definition means, with ``sha256`` for its digest. Raises ``DataError``."""
    return check_patterns(_Reader(data, b"", where, load_registry(), with_samples).grammar(sha256))


def check_patterns(grammar: Grammar) -> Grammar:
    """Return ``grammar`` when every pattern of it compiles and captures declared fields. Raises ``DataError``."""
    for rule in (*grammar.rules, *grammar.ignore):
        sources = [rule.pattern, *([rule.pairs.start, rule.pairs.stop] if rule.pairs else ())]
        sources += [rule.table.header, rule.table.row] if rule.table else []
        sources += [rule.block.open] if rule.block else []
        sources += [rule.mapping.start] if rule.mapping else []
        if rule.block and set(_groups(rule.block.row, rule, grammar)) != {"key", "value"}:
            raise DataError(f"{rule.name}: a row has exactly the groups key and value", where=grammar.where)
        for source in sources:
            groups = set(_groups(source or "", rule, grammar))
            if rule.event != "ignored" and groups - set(rule.fields):
                missing = sorted(groups - set(rule.fields))[0]
                raise DataError(f"{rule.name}: captures the undeclared field {missing!r}", where=grammar.where)
    return grammar


def _groups(source: str, rule: Rule, grammar: Grammar) -> Mapping[str, int]:
    try:
        return compile_pattern(source).groupindex
    except (regex.error, UnicodeEncodeError, RecursionError, MemoryError) as error:
        raise DataError(f"{rule.name}: not a pattern that can be used", where=grammar.where, why=str(error)) from error


KINDS = ("pattern", "pairs", "mapping", "table", "block")
BLOCK_GAP = 8
"""Records of other kinds that may stand between two rows of a block, where its grammar does not say."""
_SLUG = regex.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")
_IDENTITY = {"grammar", "version", "title", "upstream", "trainer", "layer", "eras"}
_TOP = {*_IDENTITY, "evidence", "completion", "rules", "ignore", "no_match"}
_RULE = {
    "event",
    "phase",
    "redraw",
    "companion",
    "counts",
    "epochs_from",
    "repeats",
    "literal",
    "pattern",
    "pairs",
    "mapping",
    "table",
    "block",
    "fields",
    "samples",
    "description",
}
_FIELD = {"type", "printed_in", "null_if", "scope", "value", "definition", "metric", "fact", "description"}
_BLOCKS: dict[str, set[str]] = {
    "pairs": {"start", "cell", "key", "keys", "ignore", "unknown", "stop", "requires", "forbids"},
    "mapping": {"syntax", "start", "requires", "forbids", "where", "keys", "ignore", "unknown"},
    "table": {"header", "row", "skip_cells", "keys", "ignore", "unknown"},
    "block": {"open", "row", "gap", "requires", "keys", "ignore", "unknown"},
}


class _Reader:
    """Walks one definition; every refusal names the rule and the field, and the line."""

    def __init__(
        self, data: dict[str, Any], text: bytes, where: str, registry: Registry, with_samples: bool, *, trusted: bool = False
    ) -> None:
        self.data = data
        self.trusted = trusted
        self.source = text
        self.where = where
        self.registry = registry
        self.with_samples = with_samples

    def fail(self, what: str, *path: object, key: str | None = None) -> DataError:
        """Return the refusal of what stands at ``path``, or under ``key`` there; the path of a rule begins with its name."""
        steps = [str(part) for part in (*path, *(() if key is None else (key,)))]
        rules = self.data.get("rules")
        root = ["rules"] if path and isinstance(rules, dict) and path[0] in rules else []
        line = locate(self.source, (*root, *steps))
        return DataError(f"{'.'.join(map(str, path))}: {what}" if path else what, where=f"{self.where}:{line}")

    def closed(self, data: object, allowed: set[str], *path: object) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise self.fail("is not a mapping", *path)
        unknown = [str(k) for k in data if k not in allowed]
        if unknown:
            raise self.fail(f"unknown key {unknown[0]!r}", *path, key=unknown[0])
        return data

    def text(self, data: Mapping[str, Any], key: str, default: str | None = None, *path: object) -> str:
        value = data.get(key, default)
        if not isinstance(value, str):
            raise self.fail(f"{key} must be a text", *path, key=key)
        return value

    def flag(self, data: Mapping[str, Any], key: str, *path: object) -> bool:
        value = data.get(key, False)
        if not isinstance(value, bool):
            raise self.fail(f"{key} must be true or false", *path, key=key)
        return value

    def entries(self, value: object, *path: object) -> list[Any]:
        if value is not None and not isinstance(value, list):
            raise self.fail("must be a list", *path)
        return value or []

    def choice(self, value: object, choices: Sequence[str], *path: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise self.fail(f"{value!r} is not one of {', '.join(choices)}", *path)
        return value

    def texts(self, value: object, *path: object) -> tuple[str, ...]:
        items = [value] if isinstance(value, str) else value
        if items is None:
            return ()
        if not isinstance(items, list) or not all(isinstance(i, str) for i in items):
            raise self.fail("must be a text or a list of texts", *path)
        return tuple(items)

    def grammar(self, sha256: str) -> Grammar:
        data = self.closed(self.data, _TOP)
        version = data.get("version")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise self.fail("version must be an integer from 1", "version")
        rules = data.get("rules")
        if not isinstance(rules, dict) or not rules:
            raise self.fail("a grammar needs rules", "rules")
        ignore = data.get("ignore") or {}
        if not isinstance(ignore, dict):
            raise self.fail("is not a mapping", "ignore")
        evidence = self.closed(data.get("evidence") or {}, {"proves", "excludes"}, "evidence")
        return Grammar(
            id=self.text(data, "grammar"),
            version=version,
            title=self.text(data, "title"),
            upstream=self.text(data, "upstream", ""),
            trainer=self.text(data, "trainer"),
            layer=self.choice(data.get("layer", "trainer"), LAYERS, "layer"),
            eras=self.texts(data.get("eras"), "eras"),
            completion=self.choice(data.get("completion", "none"), ("reliable", "none"), "completion"),
            rules=tuple(self.rule(str(name), body) for name, body in rules.items()),
            ignore=tuple(self.ignored(str(name), body) for name, body in ignore.items()),
            no_match=self.texts(data.get("no_match"), "no_match"),
            proves=self.evidence(evidence.get("proves"), "proves"),
            excludes=self.evidence(evidence.get("excludes"), "excludes"),
            sha256=sha256,
            where=self.where,
        )

    def evidence(self, value: object, side: str) -> tuple[Evidence, ...]:
        items = []
        for entry in self.entries(value, "evidence", side):
            body = self.closed(entry, {"seen", "reported_over_derived", "equals"}, "evidence", side)
            if "seen" in body:
                items.append(Evidence(seen=self.text(body, "seen", None, "evidence", side)))
            else:
                equals = str(body.get("equals"))
                self.choice(equals, ("1", "inverse_gradient_accumulation"), "evidence", side)
                items.append(Evidence(metric=self.text(body, "reported_over_derived", None, "evidence"), equals=equals))
        return tuple(items)

    def ignored(self, name: str, body: object) -> Rule:
        data = self.closed(body, {"literal", "pattern", "samples"}, "ignore", name)
        samples = self.texts(data.get("samples"), "ignore", name, "samples")
        return Rule(
            name=name,
            event="ignored",
            literals=self.literals(data, "ignore", name),
            pattern=self.text(data, "pattern", None, "ignore", name),
            samples=tuple(Sample(s, {}, {}) for s in samples) if self.with_samples else (),
        )

    def literals(self, data: Mapping[str, Any], *path: object) -> tuple[bytes, ...]:
        found = tuple(t.encode("utf-8") for t in self.texts(data.get("literal"), *path, "literal"))
        if not found or not all(found) or any(b"\n" in t or b"\r" in t for t in found):
            raise self.fail("needs a literal without line ends", *path)
        return found

    def rule(self, name: str, body: object) -> Rule:
        data = self.closed(body, _RULE, name)
        kinds = [k for k in KINDS if k in data]
        if len(kinds) != 1:
            raise self.fail(f"a rule is exactly one of {', '.join(KINDS)}", name)
        phase = data.get("phase")
        if phase is not None and not isinstance(phase, str):
            raise self.fail("must be a text", name, "phase")
        fields = data.get("fields") or {}
        if not isinstance(fields, dict):
            raise self.fail("is not a mapping", name, "fields")
        bodies = {str(k): v for k, v in fields.items()}
        made: Mapping[str, Field] = LazyFields(bodies, lambda key: self.field(key, bodies[key], name))
        if not self.trusted:
            made = dict(made)
        rule = Rule(
            name=name,
            event=self.choice(data.get("event"), EVENTS, name, "event"),
            literals=self.literals(data, name),
            pattern=self.text(data, "pattern", None, name) if kinds == ["pattern"] else None,
            pairs=self.pairs(data["pairs"], name) if kinds == ["pairs"] else None,
            mapping=self.mapping(data["mapping"], name) if kinds == ["mapping"] else None,
            table=self.table(data["table"], name) if kinds == ["table"] else None,
            block=self.block(data["block"], name) if kinds == ["block"] else None,
            fields=made,
            phase=phase,
            redraw=self.flag(data, "redraw", name),
            companion=self.flag(data, "companion", name),
            counts=self.choice(data.get("counts", "step"), UNITS_COUNTED, name, "counts"),
            epochs_from=None if data.get("epochs_from") == "log" else self.whole(data, "epochs_from", 1, name),
            repeats=self.whole(data, "repeats", 0, name),
            samples=self.samples(data.get("samples"), name) if self.with_samples else (),
        )
        for key, target in rule.keyed.keys.items() if rule.keyed else ():
            if target not in made:
                raise self.fail(f"key {key!r} names the undeclared field {target!r}", name)
        if rule.block is not None and rule.block.requires - set(made):
            missing = sorted(rule.block.requires - set(made))[0]
            raise self.fail(f"requires the undeclared field {missing!r}", name, "block")
        return rule

    def whole(self, data: Mapping[str, Any], key: str, default: int, *path: object) -> int:
        value = data.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.fail(f"{key} must be an integer from 0", *path)
        return value

    def samples(self, value: object, name: str) -> tuple[Sample, ...]:
        made = []
        for entry in self.entries(value, name, "samples"):
            body = self.closed(entry, {"line", "fields", "others"}, name, "samples")
            fields, others = body.get("fields") or {}, body.get("others") or {}
            if not isinstance(fields, dict) or not isinstance(others, dict):
                raise self.fail("fields must be a mapping", name, "samples")
            made.append(Sample(self.text(body, "line", None, name, "samples"), fields, others))
        return tuple(made)

    def keys(self, data: Mapping[str, Any], name: str) -> dict[str, str]:
        keys = data.get("keys") or {}
        if not isinstance(keys, dict) or not all(isinstance(v, str) for v in keys.values()):
            raise self.fail("keys must map printed keys to fields", name)
        return {str(k): v for k, v in keys.items()}

    def unknown(self, data: Mapping[str, Any], name: str) -> bool:
        return self.choice(data.get("unknown", "other"), ("other", "ignore"), name, "unknown") == "other"

    def pairs(self, body: object, name: str) -> Pairs:
        data = self.closed(body, _BLOCKS["pairs"], name, "pairs")
        cell, key = self.text(data, "cell", None, name), self.text(data, "key", None, name)
        if not cell or not key:
            raise self.fail("cell and key must not be empty", name, "pairs")
        if not cell.strip() and not (key.strip() and key.isascii()):
            raise self.fail("between cells parted by blanks, key must be visible ASCII", name, "pairs")
        return Pairs(
            start=self.text(data, "start", None, name),
            cell=cell,
            key=key,
            keys=self.keys(data, name),
            ignore=frozenset(self.texts(data.get("ignore"), name, "ignore")),
            other=self.unknown(data, name),
            stop=self.text(data, "stop", None, name) if "stop" in data else None,
            requires=frozenset(self.texts(data.get("requires"), name, "requires")),
            forbids=frozenset(self.texts(data.get("forbids"), name, "forbids")),
        )

    def mapping(self, body: object, name: str) -> Mapped:
        data = self.closed(body, _BLOCKS["mapping"], name, "mapping")
        where = data.get("where") or {}
        if not isinstance(where, dict):
            raise self.fail("where must be a mapping", name)
        return Mapped(
            syntax=self.choice(data.get("syntax"), ("python", "json"), name, "syntax"),
            start=self.text(data, "start", None, name) if "start" in data else None,
            requires=self.texts(data.get("requires"), name, "requires"),
            forbids=self.texts(data.get("forbids"), name, "forbids"),
            where=where,
            keys=self.keys(data, name),
            ignore=frozenset(self.texts(data.get("ignore"), name, "ignore")),
            other=self.unknown(data, name),
        )

    def table(self, body: object, name: str) -> Table:
        data = self.closed(body, _BLOCKS["table"], name, "table")
        return Table(
            header=self.text(data, "header", None, name),
            row=self.text(data, "row", None, name),
            skip_cells=self.whole(data, "skip_cells", 0, name),
            keys=self.keys(data, name),
            ignore=frozenset(self.texts(data.get("ignore"), name, "ignore")),
            other=self.unknown(data, name),
        )

    def block(self, body: object, name: str) -> Block:
        data = self.closed(body, _BLOCKS["block"], name, "block")
        return Block(
            open=self.text(data, "open", None, name) if "open" in data else None,
            row=self.text(data, "row", None, name),
            gap=self.whole(data, "gap", BLOCK_GAP, name),
            requires=frozenset(self.texts(data.get("requires"), name, "requires")),
            keys=self.keys(data, name),
            ignore=frozenset(self.texts(data.get("ignore"), name, "ignore")),
            other=self.unknown(data, name),
        )

    def field(self, name: str, body: object, rule: str) -> Field:
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
        )

    def part(self, value: str, *path: object) -> regex.Pattern[str]:
        try:
            part = regex.compile(value)
        except (regex.error, RecursionError, MemoryError) as error:
            raise self.fail(f"value is not a pattern: {error}", *path) from error
        if part.groups != 1:
            raise self.fail(f"value needs exactly one group, it has {part.groups}", *path)
        return part

    def target(self, name: str, data: Mapping[str, Any], kind: str, rule: str) -> Target:
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
