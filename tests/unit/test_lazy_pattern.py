"""Patterns that are compiled at their first use: they answer as those that were compiled at once."""

import re

import pytest

from receipt_cli.lazy_pattern import compile_later


def test_a_pattern_answers_as_one_that_was_compiled_at_once() -> None:
    text, known = "lr=1 loss=2.5", re.compile(r"(?P<name>[a-z]+)=", re.IGNORECASE)
    for ask in (
        lambda pattern: pattern.search(text).span(),
        lambda pattern: pattern.match(text)["name"],
        lambda pattern: [found.group() for found in pattern.finditer(text)],
        lambda pattern: (pattern.sub("", text), pattern.split(text), pattern.findall(text), pattern.fullmatch(text)),
        lambda pattern: (pattern.pattern, pattern.flags, dict(pattern.groupindex)),
    ):
        assert ask(compile_later(r"(?P<name>[a-z]+)=", re.IGNORECASE)) == ask(known)


def test_what_is_wrong_with_a_pattern_is_raised_at_its_first_use() -> None:
    wrong = compile_later("(")
    with pytest.raises(re.error):
        wrong.search("")
