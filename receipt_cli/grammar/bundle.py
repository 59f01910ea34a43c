"""All grammars that ship, at once: from one file in the user's cache, else each from its text.

Eighty definitions take half a second to read as YAML, and thirty milliseconds one by one as checked JSON. The bundle
holds what was made of them, rule by rule, as plain JSON. Its key is the digest of every definition and of the code
that reads definitions, so it can only be what this code would make of these texts now. The fields of a rule are still
made, and checked, when they are first asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from receipt_cli.definitions.cache import keep, recall
from receipt_cli.definitions.load import load_definition
from receipt_cli.definitions.resources import read_module
from receipt_cli.grammar.field_file import lazy_fields
from receipt_cli.grammar.model import Block, Evidence, Field, Grammar, Mapped, Pairs, Rule, Table

CODE = (
    "definitions.load",
    "definitions.metrics",
    "definitions.strict_yaml",
    "definitions.units",
    "grammar.bundle",
    "grammar.field_file",
    "grammar.model",
    "grammar.parse",
)
"""The modules whose change may change what a definition means."""
_NOUNS: Mapping[str, type] = {noun.__name__: noun for noun in (Rule, Evidence, Pairs, Mapped, Table, Block)}
_Bodies = Mapping[str, Mapping[str, Any]]
"""Rule → field → its definition."""


def load_all(texts: Sequence[tuple[str, bytes]]) -> tuple[Grammar, ...]:
    """Return the grammars of ``texts``: each the name that errors give it, and its bytes. Raises ``DataError``."""
    key = _key(texts)
    kept = recall(_name(key)) if key is not None else None
    if kept is not None and kept.get("key") == key:
        try:
            return tuple(_unpack(values, where, text) for values, (where, text) in zip(kept["grammars"], texts, strict=True))
        except (LookupError, TypeError, ValueError, AttributeError):  # whatever wrote this, it was not ``keep``
            pass
    from receipt_cli.grammar.parse import read_grammar

    definitions = [load_definition(text, where, shipped=True, lasting=key is None) for where, text in texts]
    made = zip(definitions, texts, strict=True)
    grammars = tuple(read_grammar(data, text, where, trusted=True) for data, (where, text) in made)
    if key is not None:
        keep(_name(key), {"key": key, "grammars": [_pack(*pair) for pair in zip(grammars, definitions, strict=True)]})
    return grammars


def _key(texts: Sequence[tuple[str, bytes]]) -> str | None:
    """Return the digest of the definitions, their names and the code that reads them; None where that is not at hand."""
    digest = hashlib.sha256()
    for name in CODE:
        source = read_module(name)
        if source is None:
            return None
        digest.update(f"{name} {hashlib.sha256(source).hexdigest()}\n".encode())
    for where, text in texts:
        digest.update(f"{where} {hashlib.sha256(text).hexdigest()}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _name(key: str) -> str:
    """Return the name that the bundle is kept under: one of sixteen, so that the cache does not grow with every change."""
    return f"grammars-{key[0]}"


def _pack(grammar: Grammar, data: Mapping[str, Any]) -> list[Any]:
    """Return ``grammar`` as plain values; ``data`` is its definition."""
    rules = {str(name): body.get("fields") or {} for name, body in data["rules"].items()}
    bodies = {rule: {str(name): _meant(body) for name, body in found.items()} for rule, found in rules.items()}
    packed: list[Any] = _plain(grammar, bodies)
    return packed


def _meant(body: Any) -> Any:
    """Return the definition of a field without what is only for people to read."""
    return {key: value for key, value in body.items() if key != "description"} if isinstance(body, dict) else body


def _plain(value: Any, bodies: _Bodies) -> Any:
    """Return a value of a grammar as JSON has it: a noun is a list of its parts, in the order of their declaration."""
    if isinstance(value, Grammar | Rule | Evidence | Pairs | Mapped | Table | Block):
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
        if isinstance(value, Rule):
            parts |= {"fields": bodies[value.name] if value.event != "ignored" else {}, "samples": ()}
        return [_plain(part, bodies) for part in parts.values()]
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, frozenset):
        return sorted(value)
    return [_plain(item, bodies) for item in value] if isinstance(value, tuple) else value


def _unpack(values: list[Any], where: str, text: bytes) -> Grammar:
    """Return the grammar whose plain values these are. Uses them up."""
    names = [part.name for part in fields(Grammar)]
    rules = values[names.index("rules")]
    make = lazy_fields([rule[0] for rule in rules], where, text)
    for rule in rules:
        _set_fields(rule, make)
    for rule in values[names.index("ignore")]:
        _set_fields(rule, None)
    made: Grammar = _noun(Grammar, values)
    return made


_FIELDS = [part.name for part in fields(Rule)].index("fields")


def _set_fields(rule: list[Any], make: Callable[[str, Mapping[str, Any]], Mapping[str, Field]] | None) -> None:
    rule[_FIELDS] = make(rule[0], rule[_FIELDS]) if make is not None else {}


def _noun(noun: type, values: list[Any]) -> Any:
    """Return the noun whose parts ``values`` are, in the order of their declaration.

    It was checked and made when it was packed: its parts are set at once, which takes a quarter of a frozen ``__init__``.
    """
    names, makers = _made(noun)
    for index, make in makers:
        if values[index] is not None:
            values[index] = make(values[index])
    made: Any = object.__new__(noun)
    vars(made).update(zip(names, values, strict=True))
    return made


@cache
def _made(noun: type) -> tuple[tuple[str, ...], tuple[tuple[int, Callable[[Any], Any]], ...]]:
    """Return the names of the parts, and what makes those that JSON does not have as they are, by their declared types."""
    found = [(index, _maker(str(part.type))) for index, part in enumerate(fields(noun))]
    return tuple(part.name for part in fields(noun)), tuple((index, make) for index, make in found if make is not None)


def _maker(declared: str) -> Callable[[Any], Any] | None:
    if declared.startswith("frozenset["):
        return frozenset
    name = declared.removeprefix("tuple[").split(",")[0].split(" ")[0]
    noun = _NOUNS.get(name)
    if not declared.startswith("tuple["):
        return None if noun is None else lambda values: _noun(noun, values)
    if name == "bytes":
        return lambda values: tuple([value.encode("utf-8") for value in values])
    return tuple if noun is None else lambda values: tuple([_noun(noun, item) for item in values])
