"""YAML text of a grammar → checked, immutable ``Grammar``; every refusal names the rule and the field."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import regex

from receipt_cli.definitions.metrics import Registry, load_registry
from receipt_cli.errors import DataError
from receipt_cli.grammar.field_file import FieldReader
from receipt_cli.grammar.model import (
    EVENTS,
    LAYERS,
    UNITS_COUNTED,
    Block,
    Evidence,
    Grammar,
    LazyFields,
    Mapped,
    Pairs,
    Rule,
    Sample,
    Table,
    compile_pattern,
)


def load_grammar(text: bytes, where: str, *, with_samples: bool = False, shipped: bool = False) -> Grammar:
    """Return the grammar that ``text`` defines; ``where`` names it in errors.

    Only what the engine needs is checked here (shape, closed vocabularies, targets); ``lint`` proves the rest.
    ``with_samples`` also keeps samples. Raises ``DataError``.
    """
    from receipt_cli.definitions.strict_yaml import read_yaml

    reader = _Reader(read_yaml(text, where, shipped=shipped), text, where, load_registry(), with_samples)
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
_BLOCKS: dict[str, set[str]] = {
    "pairs": {"start", "cell", "key", "keys", "ignore", "unknown", "stop", "requires", "forbids"},
    "mapping": {"syntax", "start", "requires", "forbids", "where", "keys", "ignore", "unknown"},
    "table": {"header", "row", "skip_cells", "keys", "ignore", "unknown"},
    "block": {"open", "row", "gap", "requires", "keys", "ignore", "unknown"},
}


class _Reader(FieldReader):
    """Walks one definition; every refusal names the rule and the field, and the line."""

    def __init__(self, data: dict[str, Any], text: bytes, where: str, registry: Registry, with_samples: bool) -> None:
        super().__init__(data, lambda: text, where, registry)
        self.with_samples = with_samples

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
        made = LazyFields(bodies, lambda key: self.field(key, bodies[key], name))
        list(made.values())  # each is made, and so checked
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
