r"""Find the runs of digits whose length a pattern compares. The length of any other run does not change its matches.

A pattern is read as the automaton of its positions, which each consume a byte. A position that takes digits is *blind* to
their number if one unbounded loop takes the whole run (``\d++``, ``\S+``, ``[^,]*``, ``\d[\d.]*+``): no other position can
take a part of it, and no match, group or assertion can begin or end inside the run. A path through the pattern then
continues after the run as after a run of one digit, and the order of two paths is the same. Any other position
(``\d{4}``, ``\d\d``, ``.{0,60}``) matters for runs between the bytes that may come before and after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from receipt_cli.grammar.digit_sensitivity import DIGITS, LETTERS, Unknown, find_name, opens, set_of, tokens_of

_BLANK = 1 << 32
FREE, LOOK, GUARD, DOUBT, SKIP = 1, 2, 4, 8, 16
"""Crossings of a path between two bytes: none; an assertion that holds between two digits; one that fails there; any other;
a skipped possessive loop that would take a digit."""
CROSSED = 31
BOUNDED, LAZY, GREEDY = 32, 64, 128
"""A step that repeats up to a bound, as little as possible, or as much as possible."""
_MAX_POSITIONS = 1500


@dataclass(slots=True)
class Part:
    """A part of a pattern: ``nullable`` are its crossings if it takes no byte; ``first``, ``last``: position → crossings."""

    nullable: int
    first: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    size: int = 0
    """Number of its positions."""
    grouped: bool = False
    """Whether it contains a capturing group."""


def cross(one: int, other: int) -> int:
    """Return the crossings of a path with one crossing of each."""
    if one == FREE or not other:
        return other if one else 0
    if other == FREE or not one:
        return one if other else 0
    found = 0
    for a in _each(one):
        for b in _each(other):
            least, most = min(a, b), max(a, b)
            found |= most if least == FREE or most == SKIP == least else GUARD if {GUARD, SKIP} & {a, b} else most
    return found


def _each(crossed: int) -> list[int]:
    return [one for one in (FREE, LOOK, GUARD, DOUBT, SKIP) if crossed & one]


class Automaton:
    """The positions of a pattern, by number. Raises ``Unknown``.

    ``sets`` are the bytes that each position takes, as sums of ``1 << byte``; ``edges`` are the positions that may follow it,
    each with its crossings. Bounds from ``longest``, or ``word`` for a repetition without blanks, count as unbounded.
    """

    def __init__(self, pattern: str, longest: int, word: int) -> None:
        tokens = tokens_of(pattern)
        if tokens is None:
            raise Unknown
        self.tokens, self.longest, self.word = tokens, longest, word
        self.at = 0
        self.sets: list[int] = []
        self.edges: list[dict[int, int]] = []
        self.possessive: set[int] = set()
        """Positions of possessive, unbounded loops."""
        self.begins: set[int] = set()
        """First positions of the pattern and of assertions."""
        self.ends: dict[int, int] = {}
        """Last positions of the pattern, of assertions and of atomic groups → crossings to that end."""
        self.leaving: dict[int, int] = {}
        """``ends`` without atomic groups: positions after which a path ends."""
        self.soft: set[int] = set()
        """Positions at which an assertion is decided, whatever follows or precedes them."""
        self.wrong: set[int] = set()
        """Positions that a path may reach inside a run of digits, but not at its beginning."""
        self.inner: set[int] = set()
        """Positions of atomic groups."""
        self.groups: list[int] = []
        """Innermost capturing group of each position."""
        self._open = [0]
        self._holds = False
        whole = self._alternatives()
        if self.at < len(self.tokens) or whole.nullable & ~(GUARD | SKIP) or len(self.sets) > _MAX_POSITIONS:
            raise Unknown
        self.begins |= whole.first.keys()
        doubted = DOUBT
        if self._holds and any(crossed & ~(FREE | LOOK) for crossed in whole.first.values()):
            doubted |= FREE | LOOK  # a match may begin inside a run after a possessive part failed at its beginning
        self.wrong |= {at for at, crossed in whole.first.items() if crossed & doubted and self.takes(at)}
        self._end(whole)

    def takes(self, at: int) -> bool:
        """Return whether the position ``at`` takes a digit."""
        return bool(self.sets[at] & DIGITS)

    def _end(self, part: Part, *, path: bool = True) -> None:
        for at, crossed in part.last.items():
            self.ends[at] = self.ends.get(at, 0) | crossed
        if path:
            for at, crossed in part.last.items():
                self.leaving[at] = self.leaving.get(at, 0) | crossed

    def _peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def _alternatives(self) -> Part:
        found = self._sequence()
        while self._peek() == "|":
            self.at += 1
            other = self._sequence()
            found = Part(
                found.nullable | other.nullable,
                _merged(found.first, other.first),
                _merged(found.last, other.last),
                found.size + other.size,
                found.grouped or other.grouped,
            )
        return found

    def _sequence(self) -> Part:
        found = Part(FREE)
        while self._peek() not in ("", "|", ")"):
            begun = len(self.sets)
            found = self._joined(found, self._repeated(self._one(), begun))
        return found

    def _joined(self, one: Part, other: Part) -> Part:
        for left, crossed in one.last.items():
            for right, more in other.first.items():
                self._edge(left, right, cross(crossed, more))
        first, last = dict(one.first), dict(other.last)
        if one.nullable:
            first = _merged(first, {at: cross(one.nullable, crossed) for at, crossed in other.first.items()})
        if other.nullable:
            last = _merged(last, {at: cross(crossed, other.nullable) for at, crossed in one.last.items()})
        nullable = cross(one.nullable, other.nullable)
        return Part(nullable, first, last, one.size + other.size, one.grouped or other.grouped)

    def _edge(self, one: int, other: int, crossed: int) -> None:
        self.edges[one][other] = self.edges[one].get(other, 0) | crossed

    def _repeated(self, part: Part, begun: int) -> Part:
        while self._peek()[:1] in ("*", "+", "?", "{") and self._peek():
            token = self.tokens[self.at][0]
            self.at += 1
            mode = self._peek() if self._peek() in ("?", "+") else ""
            self.at += bool(mode)
            low, high = _times(token)
            part = self._times(part, begun, low, high, mode)
        return part

    def _times(self, part: Part, begun: int, low: int, high: int | None, mode: str) -> Part:
        if high == 0:
            return Part(FREE)
        single = part.size == 1 and len(part.first) == 1
        if high is None or high > 1:
            only = next(iter(part.first), -1)
            limit = self.word if single and not self.sets[only] & _BLANK else self.longest
            bounded = low > 1 or part.grouped or bool(part.nullable) or (high is not None and high < limit)
            flags = (BOUNDED if bounded else 0) | (LAZY if mode == "?" else GREEDY)
            for left, crossed in part.last.items():
                for right, more in part.first.items():
                    self._edge(left, right, cross(crossed, more) | flags)
            if _is_bare(part) and mode == "+" and not bounded and not self.edges[only][only] & ~(FREE | LOOK | GREEDY):
                self.possessive.add(only)
        skipped = self._skipped(part) if mode == "+" else FREE
        if mode == "+" and not _is_bare(part):
            self._hold(part, begun)
        if low > 1:
            part = Part(part.nullable, _doubted(part.first), _doubted(part.last), part.size, part.grouped)
        nullable = part.nullable | (skipped if low == 0 else 0)
        return Part(nullable, part.first, part.last, part.size, part.grouped)

    def _skipped(self, part: Part) -> int:
        """Return the crossings if an optional possessive part takes nothing."""
        digits = [at for at in part.first if self.takes(at)]
        if digits and _is_bare(part) and part.first[digits[0]] == FREE and self.sets[digits[0]] & DIGITS == DIGITS:
            return SKIP
        return DOUBT if digits or part.nullable else LOOK if part.size > 1 else FREE

    def _hold(self, part: Part, begun: int) -> None:
        """Record that a part is possessive: the engine does not backtrack into it."""
        self._holds = True
        self.inner |= set(range(begun, len(self.sets)))
        self._end(part, path=False)

    def _one(self) -> Part:
        token, _ = self.tokens[self.at]
        self.at += 1
        if opens(token):
            return self._group(token)
        if token == "\\K":
            return Part(DOUBT)
        if token in ("^", "$") or (len(token) == 2 and token[0] == "\\" and token[1] in "AZzbG"):
            return Part(GUARD)
        if (token.startswith("(") and not token.startswith("(?")) or token.startswith(("(?&", "(?P=", "(*")):
            raise Unknown
        if token.startswith("(?"):  # flags
            return Part(FREE)
        if token[0] in "*+?{)|" or (len(token) == 2 and token[0] == "\\" and (token[1] in "BKmMvhR" or token[1].isdigit())):
            raise Unknown
        return self._position(set_of(token))

    def _position(self, taken: int) -> Part:
        self.sets.append(taken)
        self.edges.append({})
        self.groups.append(self._open[-1])
        at = len(self.sets) - 1
        return Part(0, {at: FREE}, {at: FREE}, 1)

    def _group(self, token: str) -> Part:
        if token.startswith(("(?(", "(?|")):
            raise Unknown
        begun, kept = len(self.sets), token == "(" or bool(find_name(token))
        self._open.append(self.at if kept else self._open[-1])
        part = self._alternatives()
        self._open.pop()
        if self._peek() != ")":
            raise Unknown
        self.at += 1
        part.grouped |= kept
        if token == "(?>":
            self._hold(part, begun)
            part.nullable = self._skipped(part) if part.nullable else 0
        elif token in ("(?=", "(?!"):
            return self._ahead(part, token == "(?!")
        elif token in ("(?<=", "(?<!"):
            if any(at >= begun for at in self.possessive):
                raise Unknown
            return self._behind(part, token == "(?<!")
        return part

    def _ahead(self, part: Part, negative: bool) -> Part:
        self._stand_alone(part)
        sure = {at for at, crossed in part.last.items() if crossed & FREE}
        asked = self._asked(part, part.first, sure, negative, LOOK)
        if not part.grouped:
            self.soft |= sure
            part.last = {at: crossed & ~FREE for at, crossed in part.last.items()}
        self._end(part, path=False)
        return Part(asked, grouped=part.grouped)

    def _behind(self, part: Part, negative: bool) -> Part:
        if part.grouped:
            raise Unknown
        self._stand_alone(part)
        sure = {at for at, crossed in part.first.items() if crossed & FREE}
        self.soft |= sure
        self.wrong |= {at for at, crossed in part.first.items() if crossed & (LOOK | DOUBT) and self.takes(at)}
        return Part(self._asked(part, part.last, sure, negative, DOUBT))

    def _stand_alone(self, part: Part) -> None:
        """Let the paths in an assertion begin and end with it."""
        self.begins |= part.first.keys()
        for at, crossed in part.last.items():
            self.leaving[at] = self.leaving.get(at, 0) | crossed

    def _asked(self, part: Part, beside: dict[int, int], sure: set[int], negative: bool, unless: int) -> int:
        """Return the crossings of an assertion; ``beside`` are its positions next to its place in the pattern.

        ``unless``: the crossing of a negative assertion that takes no digits.
        """
        digits = [at for at in beside if self.takes(at)]
        if negative and any(at in sure and beside[at] & FREE and self.sets[at] & DIGITS == DIGITS for at in digits):
            return GUARD
        if digits or part.nullable & ~(GUARD | SKIP):
            return DOUBT
        return unless if negative else GUARD


def _is_bare(part: Part) -> bool:
    """Return whether ``part`` is one position without an assertion after it."""
    return part.size == 1 and not part.nullable and [*part.last.values()] == [FREE]


def _merged(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    return {at: one.get(at, 0) | other.get(at, 0) for at in {**one, **other}}


def _doubted(places: dict[int, int]) -> dict[int, int]:
    """Return the first or last positions of a part that must repeat, with doubtful crossings."""
    return dict.fromkeys(places, DOUBT)


def _times(token: str) -> tuple[int, int | None]:
    if token in "*+?":
        return int(token == "+"), 1 if token == "?" else None
    low, comma, high = token[1:-1].partition(",")
    return int(low or 0), int(high) if high else None if comma else int(low)


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
