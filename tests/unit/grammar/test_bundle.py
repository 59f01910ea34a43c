"""The bundle of all grammars: what it gives is what their texts give, and whatever is wrong with it is passed over."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import regex

from receipt_cli.errors import DataError
from receipt_cli.grammar import bundle as grammar_bundle
from receipt_cli.grammar.bundle import load_all
from receipt_cli.grammar.catalog import INDUCED, list_grammars, read_entry
from receipt_cli.grammar.model import Field, Grammar
from receipt_cli.grammar.parse import load_grammar

TEXTS = [(f"grammars/{e.path}", read_entry(e)) for e in list_grammars() if e.status != "deprecated" and e.id != INDUCED]
SMALL = b"""grammar: small
version: 1
title: small
trainer: small
rules:
  a:
    event: step
    literal: bye
    pattern: 'bye (?P<step>[0-9]+) (?P<loss>[0-9.]+) (?P<odd>.)'
    fields: {step: , loss: {description: what it says}, odd: {metric: other, null_if: [x], description: odd}}
"""
FEW = [("small.yaml", SMALL), ("other.yaml", SMALL.replace(b"small", b"other"))]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "receipt-cli"


def bundle(cache: Path) -> Path:
    return next(cache.glob("grammars-*.json"))


def plain(value: Any) -> Any:
    """Return everything that a grammar is made of, with its types."""
    if isinstance(value, Grammar | Field) or is_dataclass(value):
        return type(value).__name__, {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, regex.Pattern):
        return "Pattern", value.pattern, value.flags  # two of one text are equal only as long as they are one
    if hasattr(value, "items"):
        return {key: plain(item) for key, item in value.items()}
    return type(value).__name__, value


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    def unused(*_: object, **__: object) -> None:
        raise AssertionError("the bundle was not used")

    monkeypatch.setattr(grammar_bundle, "load_definition", unused)


def test_it_gives_what_the_texts_give(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    want = [load_grammar(text, where, shipped=True) for where, text in TEXTS]
    first = load_all(TEXTS)
    forbid(monkeypatch)
    again = load_all(TEXTS)
    assert len(again) == len(first) == len(want) > 40
    for one, other, expected in zip(first, again, want, strict=True):
        assert plain(one) == plain(other) == plain(expected)


def broken(values: Any) -> bytes:
    body = json.dumps(values).encode()
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: data[:-9],
        lambda data: data.replace(b"bye", b"bay"),
        lambda data: broken({}),
        lambda data: broken({**json.loads(data.partition(b"\n")[2]), "key": "another"}),
        lambda data: broken({**json.loads(data.partition(b"\n")[2]), "grammars": []}),
        lambda data: broken({**json.loads(data.partition(b"\n")[2]), "grammars": [1, 2]}),
        lambda data: broken({**json.loads(data.partition(b"\n")[2]), "grammars": [["a"], ["b"]]}),
        lambda data: broken({**json.loads(data.partition(b"\n")[2]), "grammars": None}),
    ],
)
def test_a_bad_bundle_is_passed_over_and_made_anew(
    cache: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[bytes], bytes]
) -> None:
    want = plain(load_all(FEW))
    path = bundle(cache)
    path.write_bytes(spoil(path.read_bytes()))
    assert plain(load_all(FEW)) == want
    forbid(monkeypatch)
    assert plain(load_all(FEW)) == want


def test_it_is_of_these_texts_in_this_order(cache: Path) -> None:
    load_all(FEW)
    assert [g.id for g in load_all(FEW[::-1])] == ["other", "small"]
    assert [g.id for g in load_all(FEW[:1])] == ["small"]
    changed = [(FEW[0][0], SMALL.replace(b"bye", b"bay")), FEW[1]]
    assert load_all(changed)[0].rules[0].literals == (b"bay",)
    assert load_all([("renamed.yaml", SMALL), FEW[1]])[0].where == "renamed.yaml"


def test_it_is_of_this_code(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_all(FEW)
    before = bundle(cache).read_bytes()
    bundle(cache).unlink()
    monkeypatch.setattr(grammar_bundle, "read_module", lambda name: b"changed")
    load_all(FEW)
    assert bundle(cache).read_bytes() != before


def test_with_bytecode_only_each_definition_is_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar_bundle, "read_module", lambda name: None)
    assert plain(load_all(FEW)) == plain(load_all(FEW))
    assert len([path for path in cache.iterdir() if not path.name.startswith("grammars-")]) >= len(FEW)


def test_where_nothing_can_be_kept(cache: Path) -> None:
    cache.write_text("a file stands where the folder would be")
    assert [g.id for g in load_all(FEW)] == [g.id for g in load_all(FEW)] == ["small", "other"]


def test_a_broken_field_is_refused_alike(cache: Path) -> None:
    text = SMALL.replace(b"null_if: [x]", b"scope: nowhere")
    told = []
    for _ in range(2):
        grammar = load_all([("small.yaml", text)])[0]
        with pytest.raises(DataError) as caught:
            dict(grammar.rules[0].fields)
        told.append(caught.value.render())
    assert told[0] == told[1]
    assert "small.yaml:10" in told[0]
