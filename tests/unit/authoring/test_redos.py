"""Hostile records are made from the pattern itself, and the power with which its time grows is measured."""

import contextlib
import math
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from receipt_cli.authoring import lint, redos
from receipt_cli.authoring.lint import lint_grammar
from receipt_cli.authoring.redos import Attack, expected_parts, pattern_attacks, sample_attacks, worst_growth

SIZE = 384
ENOUGH = 40_000
"""Steps, at which a search is given up."""
BOUND = 40
"""Steps for each byte of the worst record of ``SIZE`` bytes; a slow pattern takes more than there are bytes behind each byte."""


class Steps:
    """Searches as a backtracking engine does, and counts the nodes that it tries: work that no machine does faster."""

    def __init__(self, source: str, text: str) -> None:
        self.text, self.count = text, 0
        with contextlib.suppress(TimeoutError):
            any(True for start in range(len(text)) for _ in self.ends(list(redos._parse(source, 0)), start))

    def ends(self, nodes: list[Any], at: int) -> Iterator[int]:
        """Yield where ``nodes`` may end that begin at ``at``, as the engine tries it."""
        self.count += 1
        if self.count > ENOUGH:
            raise TimeoutError
        if not nodes:
            yield at
            return
        (kind, value), rest = nodes[0], nodes[1:]
        name, members = str(kind), redos._members(str(kind), value)
        if members:
            if at < len(self.text) and ord(self.text[at]) in members:
                yield from self.ends(rest, at + 1)
        elif name.endswith("_REPEAT"):
            tried = list(self.repeated(value, at)) if name != "MAX_REPEAT" else self.repeated(value, at)
            if name == "MIN_REPEAT":
                tried.reverse()
            for end in tried[:1] if name == "POSSESSIVE_REPEAT" else tried:
                yield from self.ends(rest, end)
        elif name in ("AT", "ASSERT", "ASSERT_NOT"):
            before = self.text[at - 1 : at]
            if at == 0 if name == "AT" else not before.isdigit():  # of ours: ^, and (?<!\d)
                yield from self.ends(rest, at)
        else:
            for part in redos._inside(name, value):
                yield from self.ends([*part, *rest], at)

    def repeated(self, value: Any, at: int) -> Iterator[int]:
        """Yield where a repetition may end, the longest first."""
        least, most, body = value
        members = redos._members(str(body[0][0]), body[0][1]) if len(body) == 1 else None
        if members:
            end = at
            while end < len(self.text) and end - at < most and ord(self.text[end]) in members:
                end += 1
            self.count += end - at
            yield from range(end, at + least - 1, -1)
            return
        if most > 0:
            for end in self.ends(list(body), at):
                if end > at:
                    yield from self.repeated((max(least - 1, 0), most - 1, body), end)
        if least == 0:
            yield at


def worst(source: str) -> int:
    """Return the steps for the worst record of ``SIZE`` bytes."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20 * SIZE)
    try:
        return max(Steps(source, attack.text(SIZE)).count for attack in pattern_attacks(source))
    finally:
        sys.setrecursionlimit(limit)


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
    assert worst(source) > BOUND * SIZE


@pytest.mark.parametrize("source", QUICK.values(), ids=QUICK)
def test_a_quick_pattern_is_left_alone(source: str) -> None:
    assert worst(source) < BOUND * SIZE


def test_what_the_parser_does_not_know_gives_no_attack() -> None:
    assert pattern_attacks(r"(?&head)loss") == pattern_attacks("(") == []


def test_a_record_has_the_length_that_is_asked_for() -> None:
    attack = Attack("step ", "0", " loss")
    assert attack.record(20) == b"step 0000000000 loss"
    assert len(attack.record(8)) == 8 and attack.describe() == "'step ' + '0' × n + ' loss'"


def test_an_attack_holds_what_the_rule_needs() -> None:
    assert all("loss: " in attack.text(100) for attack in pattern_attacks(r"\d+x", needed="loss: "))
    assert any("loss: " in attack.text(100) for attack in sample_attacks(["step 1 loss: 2"], ["loss: "]))


LINEAR, SQUARE, CUBIC = Attack("step ", "0", ""), Attack("", "a ", "!"), Attack("", "a b", "!")
POWERS = {LINEAR: 1, SQUARE: 2, CUBIC: 3}


class Clock:
    """Takes, in place of the processor's clock, 1 ms for a record of 1000 bytes, and for others by the power of the attack."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, run: object, attack: Attack, size: int) -> float:
        self.sizes.append(size)
        return float(1e-3 * (size / 1000) ** POWERS.get(attack, 2 if attack.pump.isalnum() else 1))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(redos, "_time", made)
    monkeypatch.setattr(redos, "SCREEN_BYTES", 2048)
    monkeypatch.setattr(lint, "pace", lambda: 1.0)
    return made


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("full", [False, True])
def test_the_worst_attack_is_the_one_whose_time_grows_fastest(full: bool) -> None:
    for attacks in ([LINEAR, SQUARE, CUBIC], [CUBIC, SQUARE, LINEAR]):
        found = worst_growth(print, attacks, 1 << 16, 0.25, full=full)
        assert found is not None and found.attack is CUBIC
        assert found.exponent == pytest.approx(3) and found.at(1 << 16) == pytest.approx(65.536**3 / 1000)
    assert worst_growth(print, [], 1 << 16, 0.25) is None


def test_records_grow_until_one_takes_enough(clock: Clock) -> None:
    found = worst_growth(print, [SQUARE], 1 << 16, 0.25)
    assert found is not None and found.exponent == pytest.approx(2)
    assert found.size == max(clock.sizes) == 16_384  # 0.27 s; one of 8192 bytes takes 0.07 s


def test_what_grows_with_the_length_alone_is_not_measured_to_the_end(clock: Clock) -> None:
    found = worst_growth(print, [LINEAR], 1 << 16, 0.25)
    assert found is not None and found.exponent == pytest.approx(1)
    assert found.at(1 << 16) == pytest.approx(0.065_536) and max(clock.sizes) == found.size == redos.SCREEN_BYTES
    found = worst_growth(print, [LINEAR], 1 << 16, 0.25, full=True)
    assert found is not None and max(clock.sizes) == found.size == 1 << 16


def test_one_measurement_that_is_held_up_changes_nothing(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr(redos, "_time", lambda *of: clock(*of) * (1 if len(clock.sizes) % 3 else 50))
    found = worst_growth(print, [LINEAR], 1 << 16, 0.25)
    assert found is not None and found.exponent == pytest.approx(1)


@pytest.mark.parametrize(("plain", "square"), [(3, 0), (0, 2), (3, 2)])
def test_a_time_is_told_apart_into_what_grows_with_the_length_and_with_its_square(plain: int, square: int) -> None:
    of = [(size, float(plain * size + square * size * size)) for size in (512, 2048)]
    assert expected_parts(of[0], of[1], 65_536) == pytest.approx((plain * 65_536, square * 65_536**2))


def test_what_grows_faster_than_the_square_keeps_its_power() -> None:
    assert expected_parts((10, 1.0), (20, 8.0), 40) == pytest.approx((0, 64))
    assert expected_parts((10, 1.0), (20, math.inf), 40) == (0, math.inf)
    assert expected_parts((10, 5.0), (20, 1.0), 40) == pytest.approx((2, 0))  # held up


@pytest.mark.usefixtures("clock")
def test_lint_tells_how_the_record_is_made() -> None:
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
    assert found.reason == (
        "train: takes 4.3 s for a hostile line of 65536 bytes, over 0.25 s; the time grows with the length to the power of 2.0"
    )
    assert "× n" in (found.snippet or "") and "possessive" in (found.help or "")
