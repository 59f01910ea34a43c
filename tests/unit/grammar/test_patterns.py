"""Named parts of patterns, patterns on several lines, and those that match at the start alone."""

import pytest
import regex

from receipt_cli.grammar.catalog import shipped
from receipt_cli.grammar.parse import PARTS, abbreviate, expand


@pytest.mark.parametrize("name", PARTS)
def test_every_part_is_a_pattern_without_a_group_of_its_own(name: str) -> None:
    assert not regex.compile(expand(f"(?&{name})").encode("ascii")).groups


def test_a_number_is_read_whole() -> None:
    pattern = regex.compile(expand("loss (?P<loss>(?&number))(?&end)"))
    for text, wanted in (("loss 2.5", "2.5"), ("loss -1e-3,", "-1e-3"), ("loss nan", "nan"), ("loss .5", ".5")):
        found = pattern.search(text)
        assert found is not None and found["loss"] == wanted
    assert pattern.search("loss 2.5ms") is None and pattern.search("loss 1,234") is None


def test_a_group_of_the_patterns_own_comes_before_a_part() -> None:
    own = "(?(DEFINE)(?P<number>[01]))(?&number)"
    assert expand(own) == own
    assert expand("(?&unheard)") == "(?&unheard)"


def test_line_breaks_and_what_indents_the_next_line_are_layout() -> None:
    assert expand("step\n  (?P<step>\\d++)\n") == "step(?P<step>\\d++)"


@pytest.mark.parametrize("pattern", [rf"a {PARTS['number']} b {PARTS['grouped']}{PARTS['end']}", PARTS["gap"] + "x"])
def test_an_abbreviated_pattern_expands_to_itself(pattern: str) -> None:
    short = abbreviate(pattern)
    assert "(?&" in short and expand(short) == pattern


def test_no_rule_at_the_start_matches_elsewhere() -> None:
    rules = [(g, rule) for g in shipped(with_samples=True) for rule in (*g.rules, *g.ignore)]
    lines = [line.encode() for _, rule in rules for sample in rule.samples for line in sample.line.split("\n")]
    found = 0
    for rule in (rule for _, rule in rules if rule.pattern and rule.at_start):
        for line in (line for line in lines if any(literal in line for literal in rule.literals)):
            for text in (line, b"x" + line, b"\n" + line):
                match = rule.start.search(text)
                assert (match is None) == (rule.start.match(text) is None)
                found += match is not None
    assert found > 100
