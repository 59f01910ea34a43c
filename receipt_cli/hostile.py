"""A rule of a grammar → the record that it takes longest for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from receipt_cli.attack import Attack, Growth, pattern_attacks, sample_attacks, worst_growth
from receipt_cli.grammar import Rule
from receipt_cli.match import PatternTimeout, extract
from receipt_cli.records import RECORD_CAP

HOSTILE_BYTES = RECORD_CAP
"""Length of a hostile record: the longest that is read."""
HOSTILE_BOUND_S = 0.25
"""CPU seconds that one rule may spend on it where its time grows faster than the length; else it has its time box."""
_SAMPLES = 2


def rule_attacks(rule: Rule) -> list[Attack]:
    """Return records, of any length, that ``rule`` may take long for."""
    return list(dict.fromkeys(_attacks(rule)))


def _attacks(rule: Rule) -> Iterator[Attack]:
    literals = [literal.decode("latin-1") for literal in rule.literals]
    for source in rule.sources:
        yield from pattern_attacks(source, needed=literals[0])
    lines = [sample.line.encode().split(b"\n")[-1].decode("latin-1") for sample in rule.samples]
    if rule.pairs is not None:
        key, cell = rule.pairs.key, rule.pairs.cell
        known = next(iter(rule.pairs.keys), "a")
        for head in lines[:1]:
            for pump in (key, cell, f"a{key}1{cell}", f"{known}{key}1{cell}", f"a{cell}", f"a{key}", "a ", "a"):
                yield Attack(head + cell, pump, "")
            if rule.pairs.stop is not None:
                yield from pattern_attacks(rule.pairs.stop, head=head)
    if rule.mapping is not None:
        for head in (literals[0], *(line[: line.find("{")] for line in lines[:1])):
            for pump in ("{", "{'a':", "{'a':[", "'a': 1, ", "\\", "a(", '"', "{'a': 1}", f"{head}{{'a': "):
                yield Attack(head + "{", pump, literals[0])
    yield from sample_attacks(lines[:_SAMPLES], literals[:_SAMPLES])


def rule_growth(rule: Rule, size: int = HOSTILE_BYTES, enough_s: float = HOSTILE_BOUND_S) -> Growth | None:
    """Return how the time of ``rule`` grows for the worst record found of up to ``size`` bytes; see ``worst_growth``."""

    def run(attack: Attack, length: int) -> None:
        with contextlib.suppress(PatternTimeout):
            extract(rule, attack.record(length))

    return worst_growth(run, rule_attacks(rule), size, enough_s)
