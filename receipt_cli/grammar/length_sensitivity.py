r"""Find the runs of digits whose length a pattern compares. The length of any other run does not change its matches.

A pattern is read as the automaton of its positions, which each consume a byte. A position that takes digits is *blind* to
their number if one unbounded loop takes the whole run (``\d++``, ``\S+``, ``[^,]*``, ``\d[\d.]*+``): no other position can
take a part of it, and no match, group or assertion can begin or end inside the run. A path through the pattern then
continues after the run as after a run of one digit, and the order of two paths is the same. Any other position
(``\d{4}``, ``\d\d``, ``.{0,60}``) matters for runs between the bytes that may come before and after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import NamedTuple

from receipt_cli.grammar.pattern_automaton import (
    BOUNDED,
    CROSSED,
    DIGITS,
    DOUBT,
    FREE,
    GREEDY,
    GUARD,
    LAZY,
    LETTERS,
    LOOK,
    SKIP,
    Automaton,
    Unknown,
    cross,
)  # fmt: skip

ANYTHING = (1 << 257) - 1
"""Every byte, and the ends of the text."""


class Between(NamedTuple):
    """Runs whose length matters: after a byte of ``before``, before a byte of ``after``, in texts with all of ``needed``.

    ``before`` and ``after`` are sums of ``1 << byte``; 256 is the text's end. ``needed`` is lower case, matching both cases.
    """

    before: int
    after: int
    needed: tuple[str, ...]


@cache
def lengths_compared(pattern: str, longest: int, word: int) -> tuple[Between, ...] | None:
    """Return the bytes between which the length of a run of digits may matter to ``pattern``; None if anywhere.

    Valid for texts of at most ``longest`` bytes whose blank-separated words have at most ``word`` bytes: no repetition
    reaches a higher bound. A run has at least one digit before and after its length changes.
    """
    try:
        automaton = Automaton(pattern, longest, word)
    except Unknown:
        return None
    return _Judge(automaton).judge()


class _Judge:
    """Finds the positions of an automaton that compare the length of a run."""

    def __init__(self, automaton: Automaton) -> None:
        self.known, self.sets, self.edges = automaton, automaton.sets, automaton.edges
        self.behind: list[list[int]] = [[] for _ in self.sets]
        for at, edges in enumerate(self.edges):
            for to in edges:
                self.behind[to].append(at)

    def judge(self) -> tuple[Between, ...]:
        """Return the bytes between which the length of a run matters."""
        matter = [at for at in range(len(self.sets)) if self.known.takes(at) and not self._is_blind(at)]
        if not matter:
            return ()
        before = self._passed(self.behind, self.known.begins, range(len(self.sets)))
        after = self._passed(self.edges, self.known.leaving.keys(), reversed(range(len(self.sets))))
        found = set()
        for at in matter:
            passed = before[at] | (0 if at in self.known.inner else after[at])
            found.add(self._around(at, self._texts(passed & ~(1 << at))))
        return tuple(sorted(found))

    def _passed(self, nexts: Sequence[Collection[int]], last: Collection[int], order: Iterable[int]) -> list[int]:
        """Return, for each position, the positions on every path from it to one of ``last``, as a sum of ``1 << position``."""
        everywhere, order = (1 << len(self.sets)) - 1, tuple(order)
        passed = [1 << at if at in last else everywhere for at in range(len(self.sets))]
        moved = True
        while moved:
            moved = False
            for at in order:
                found = passed[at]
                for to in nexts[at]:
                    found &= passed[to] | 1 << at
                if found != passed[at]:
                    moved, passed[at] = True, found
        return passed

    def _texts(self, passed: int) -> tuple[str, ...]:
        """Return the characters that the positions ``passed`` take, joined if they always follow each other."""
        texts: list[str] = []
        last = -1
        for at in range(len(self.sets)):
            char = _char_of(self.sets[at]) if passed >> at & 1 else ""
            if char and last >= 0 and self.behind[at] == [last] and at not in self.known.begins:
                texts[-1] += char
            elif char:
                texts.append(char)
            last = at if char else -1
        return tuple(sorted({text for text in texts if not any(text in other and text != other for other in texts)}))

    def _is_blind(self, at: int) -> bool:
        if self.sets[at] & DIGITS != DIGITS or at in self.known.wrong:
            return False
        following = self._digits_behind(at)
        if at in self.known.soft and following <= {at} and not self.edges[at].get(at, 0) & BOUNDED:
            return True
        return self._is_loop(at) or (len(following) == 1 and self._is_head(at, *following))

    def _is_loop(self, at: int) -> bool:
        itself = self.edges[at].get(at, 0)
        if not itself or itself & (BOUNDED | GUARD | DOUBT | SKIP) or self._digits_behind(at) != {at}:
            return False
        crossed = self.known.ends.get(at, 0)
        if at in self.known.possessive:
            return True
        return not crossed & (LOOK | DOUBT) and not (crossed & FREE and itself & LAZY)

    def _is_head(self, at: int, loop: int) -> bool:
        r"""Return whether the position ``at`` acts as the first round of the optional loop after it: ``\d[\d.]*``."""
        if (
            at == loop
            or self.known.groups[at] != self.known.groups[loop]
            or self.edges[at][loop] & ~GREEDY != FREE
            or not self._is_loop(loop)
        ):
            return False
        if loop in self.known.wrong or self.edges[loop][loop] & LAZY:
            return False
        ways, other_ways = self._others(at, loop), self._others(loop, loop)
        if loop in self.known.possessive:
            other_ways = {to: cross(SKIP, crossed) for to, crossed in other_ways.items()}
        return ways == other_ways

    def _others(self, at: int, loop: int) -> dict[int, int]:
        """Return position → crossings for all that may follow ``at`` except ``loop``; -1 is the end of a path."""
        ways = {to: crossed & CROSSED for to, crossed in self.edges[at].items() if to != loop and self.sets[to] & ~DIGITS}
        return ways | ({-1: self.known.leaving[at]} if at in self.known.leaving else {})

    def _digits_behind(self, at: int) -> set[int]:
        """Return the positions that may take the digit right after one taken by ``at``."""
        kept = {at} if at in self.known.possessive else self.edges[at].keys()
        return {to for to in kept if self.known.takes(to) and self.edges[at].get(to, 0) & (FREE | LOOK | DOUBT)}

    def _around(self, at: int, needed: tuple[str, ...]) -> Between:
        behind, ahead = {at}, {at}
        todo = [at]
        while todo:
            new = self._digits_behind(todo.pop()) - ahead
            ahead |= new
            todo += new
        todo = [at]
        while todo:
            to = todo.pop()
            new = {one for one in self.behind[to] if self.known.takes(one) and to in self._digits_behind(one)} - behind
            behind |= new
            todo += new
        before = after = 0
        for one in behind:
            before |= ANYTHING if one in self.known.begins else 0
            for other in self.behind[one]:
                before |= self.sets[other] & ~DIGITS
        for one in ahead:
            after |= ANYTHING if one in self.known.leaving or one in self.known.ends else 0
            for other in self.edges[one]:
                after |= self.sets[other] & ~DIGITS
        return Between(before, after, needed)


def _char_of(taken: int) -> str:
    """Return the only character in ``taken``, a letter in lower case; "" for a digit or a larger set."""
    if taken & (taken - 1):
        return next((chr(97 + at) for at, (low, high) in enumerate(LETTERS) if taken == low | high), "")
    return "" if taken & DIGITS else chr(taken.bit_length() - 1)
