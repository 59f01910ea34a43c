"""Candidates: the rules and markers that a record's literals select, and which digits their patterns compare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from receipt_cli.definitions.failure_markers import Marker
from receipt_cli.grammar.digit_sensitivity import Compared, digits_compared
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import DIGITS, MASK
from receipt_cli.scan.extraction.model import Span

RUN = compile_later(rb"0+")
"""A run of digits of a masked record."""
Tried = tuple[Grammar, Rule, bool]
"""(grammar, rule, whether the rule ignores records)."""


class Asked(NamedTuple):
    """Searches for digits that patterns compare (see ``Compared``), in lower case.

    ``kept``: masked texts after which digits count; ``own``: texts with digits, masked and as printed; ``echoes``: patterns of
    two compared runs of digits; ``far``: patterns of the second run only.
    """

    kept: tuple[bytes, ...]
    own: tuple[tuple[bytes, bytes], ...]
    echoes: tuple[re.Pattern[bytes], ...]
    far: tuple[re.Pattern[bytes], ...]

    @classmethod
    def of(cls, compared: Compared) -> Asked:
        """Return the searches for ``compared``."""
        kept, own, echoes, far = ([text.encode("latin-1") for text in sorted(texts)] for texts in compared)
        return cls(
            tuple(kept),
            tuple((text.translate(MASK), text) for text in own),
            tuple(re.compile(rb"(0+)%b(?=(0+))" % text, re.IGNORECASE) for text in echoes),
            tuple(re.compile(rb"%b(0+)" % text, re.IGNORECASE) for text in far),
        )

    def possible_in(self, masked: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield each offset at which a text of ``own`` may be in a masked record, and that text."""
        lowered = masked.lower() if self.own else b""
        return ((at, text) for form, text in self.own for at in places_of(lowered, form))

    def pairs(self, masked: bytes) -> list[tuple[Span, Span]]:
        """Return the pairs of runs of digits that a pattern compares."""
        found = {(each.span(1), each.span(2)) for echo in self.echoes for each in echo.finditer(masked)}
        for second in (each for far in self.far for each in far.finditer(masked)):
            found |= {(first.span(), second.span(1)) for first in RUN.finditer(masked, 0, second.start())}
        return sorted(found)


class Candidates:
    """The rules and markers whose literals a record contains; shared by all records with these literals."""

    def __init__(self, rules: Sequence[Tried], markers: Sequence[Marker]) -> None:
        self.rules = rules
        self.markers = markers
        self.learned = 0
        """Records from which a layout was learned, or for which that failed."""

    @cached_property
    def plain(self) -> bool:
        """Return whether there is no marker (it reads the text before it) and no mapping (its spans count characters)."""
        return not self.markers and all(rule.mapping is None for _, rule, _ in self.rules)

    @cached_property
    def bounded(self) -> list[Rule]:
        """The rules with a least value."""
        return [rule for _, rule, _ in self.rules if rule.bounds]

    @cached_property
    def asked(self) -> Asked | None:
        """The searches for digits that the rules and markers compare; None if one may compare digits anywhere."""
        found = [*(rule.compared for _, rule, _ in self.rules), *(digits_compared(one.source) for one in self.markers)]
        together = Compared.union([*found, Compared(own=frozenset(DIGITS))])
        return None if together is None else Asked.of(together)


def places_of(text: bytes, part: bytes) -> Iterator[int]:
    """Yield the offsets of ``part`` in ``text``."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)
