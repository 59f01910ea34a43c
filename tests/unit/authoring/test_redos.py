"""Hostile records are made from the pattern itself, and the power with which its time grows is measured."""

from __future__ import annotations

import contextlib

import pytest
import regex

from receipt_cli.authoring.lint import lint_grammar
from receipt_cli.authoring.redos import Attack, pattern_attacks, sample_attacks, worst_growth

SIZE = 16_384
ENOUGH = 0.05
BOUND = 0.15


def expected(source: str) -> float:
    """Return the CPU seconds that the worst record of 64 KiB is expected to take."""
    pattern = regex.compile(source.encode("ascii"))

    def run(attack: Attack, size: int) -> None:
        with contextlib.suppress(TimeoutError):
            pattern.search(attack.record(size), timeout=0.2)

    found = worst_growth(run, pattern_attacks(source), SIZE, ENOUGH, full=True)
    assert found is not None
    return found.at(1 << 16)


SLOW = {
    "nested": r"(?:\w+ ?)+:",
    "a choice of the same": r"(?:a|a)+\d",
    "of nested lengths": r"(?:a|aa)+b?\d",
    "two side by side": r"loss: *(?:\d+)*[\d.]*x",
    "each beginning runs to the end": r"\d+ steps",
    "a beginning, again and again": r"epoch[^|]*\|",
    "behind an optional head": r"(?:\w[\w.]* - )?loss",
    "in an alternative": r"a(?:b[^;]*;|c)",
    "a lazy gap": r"loss.*?acc.*?end",
    "of a named group": r"(?P<key>[^=]+)=(?P<value>\d+);",
    "where the match begins late": r"\K\d+ \d+y",
}
QUICK = {
    "possessive and anchored": r"(?<!\d)\d++ steps",
    "bounded gap": r"epoch[^|]{0,60}\|",
    "fields of a record": r"step +(?P<step>\d++)/(?P<planned>\d++) \| loss (?P<loss>-?(?:\d[\d.]*+|nan|inf))",
    "one name in two alternatives": r"it (?:(?P<step>\d++) of|(?P<epoch>\d++) in|(?P<step>\d++) at) \d",
    "anchored at the beginning": r"^\w++ [^|]*+\|",
}


@pytest.mark.parametrize("source", SLOW.values(), ids=SLOW)
def test_a_slow_pattern_is_seen(source: str) -> None:
    assert expected(source) > BOUND


@pytest.mark.parametrize("source", QUICK.values(), ids=QUICK)
def test_a_quick_pattern_is_left_alone(source: str) -> None:
    assert expected(source) < BOUND


def test_what_the_parser_does_not_know_gives_no_attack() -> None:
    assert pattern_attacks(r"(?&head)loss") == pattern_attacks("(") == []


def test_a_record_has_the_length_that_is_asked_for() -> None:
    attack = Attack("step ", "0", " loss")
    assert attack.record(20) == b"step 0000000000 loss"
    assert len(attack.record(8)) == 8 and attack.describe() == "'step ' + '0' × n + ' loss'"


def test_an_attack_holds_what_the_rule_needs() -> None:
    assert all("loss: " in attack.text(100) for attack in pattern_attacks(r"\d+x", needed="loss: "))
    assert any("loss: " in attack.text(100) for attack in sample_attacks(["step 1 loss: 2"], ["loss: "]))


def test_lint_tells_how_the_record_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("receipt_cli.authoring.lint._MEASURED", 1)
    text = r"""
grammar: small
version: 1
title: small
trainer: small
rules:
  train:
    event: step
    literal: 'loss '
    pattern: '(?:\w+ )?iter (?P<step>\d++): loss (?P<loss>\d[\d.]*+)'
    fields: {step: {type: integer}, loss: {type: number}}
    samples: [{line: 'iter 1: loss 2.5', fields: {step: 1, loss: 2.5}}]
"""
    (found,) = lint_grammar(text.encode(), "small/v1.yaml")
    assert "to the power of 2" in found.reason or "to the power of 1.9" in found.reason
    assert "× n" in (found.snippet or "") and "possessive" in (found.help or "")
