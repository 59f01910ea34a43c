"""Lines that a terminal or a tool cut at a fixed width → the lines before the cut; the number of lines stays.

A cut line is joined to the next one; all its parts but the last become empty. Three proofs, looked for in the first
``LOOKED_AT`` bytes, in which no line is longer than the cut ones:

- A number is cut: a line of the greatest width ends in a number, and the next one begins with its rest.
- Words are cut: most lines of the greatest width are followed by beginnings that no other line has, of several kinds.
- The place of the cut moves: records that are alike but for their numbers are cut behind different words.

The next line is a rest if it begins as no line begins that follows a shorter one. Heads that each line has were put there after
the cut, by a collector or a launcher: lines are looked at behind them, and a rest is joined without its own.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import heads_of

LOOKED_AT = 64 << 10
"""Bytes within which the cut must show."""
LONGEST = 1 << 20
"""Longest line that is joined, in bytes."""
NARROWEST = 40
"""Least width at which lines are cut."""
_KINDS = 4
"""Fewest kinds of rests that prove that words are cut: a record of two lines repeats the same two."""
_FOREIGN = 0.6
"""Share of the widest lines that must be followed by a rest."""
_INSIDE = 0.2
"""Share of the widest lines that must be cut inside a word or number; the others are cut between two."""
_NUMBER = compile_later(rb"\d(?:\.|[eE]-?)?\Z")
_OF_NUMBER = compile_later(rb"(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?(?![\d:\]]|%\|)|[eE][-+]?\d+\b|[-+]\d+\b")
"""The rest of a number; the share of a bar, ``100%|``, is none."""
_CUT = compile_later(rb"[a-zA-Z]\n[a-z_]|\d\n[\d.%]|[._/-]\n[^\W_]|\n(?:[.,:;)\]}%=/_-][\w ]|\d*e[-+]\d\d)")
"""Where two lines meet inside a word or a number."""
_LETTER = compile_later(rb"\w")
_CONTROL = compile_later(rb"[\r\x1b]")


class Fold(NamedTuple):
    """How the lines of a log are cut."""

    width: int
    starts: frozenset[bytes]
    """How lines begin that follow a shorter line."""
    words: bool
    """Whether words are cut, too; else only rests of numbers are joined."""
    heads: int = 0
    """How many heads each line has, but for empty ones: none of them is part of what was cut."""
    blanks: int = 0
    """How many blanks end the last of these heads; further ones are those of a rest."""

    def behind(self, line: bytes) -> bytes:
        """Return a line without the heads that each line has; empty if it lacks one of them."""
        if not self.heads:
            return line
        heads = heads_of(line)[: self.heads]
        return line[heads[-1].end - heads[-1].blanks + self.blanks :] if len(heads) == self.heads else b""

    def is_full(self, line: bytes) -> bool:
        """Return whether the line has the width at which lines are cut, and is no rule of dashes."""
        if len(line) < self.width or _CONTROL.search(line) or not _LETTER.search(line):
            return False
        return len(line) == self.width or (not line.isascii() and _columns(line) == self.width)

    def goes_on(self, line: bytes, rest: bytes) -> bool:
        """Return whether ``rest`` is the rest of the full ``line`` before it; a line with a time or rank before it is none."""
        if not rest or _opening(rest) in self.starts or heads_of(rest):
            return False
        return self.words or _cuts_number(line, rest)


def find_fold(text: bytes) -> Fold | None:
    """Return how the lines of a log are cut, by its first whole lines; None if they are not."""
    lines = [line.removesuffix(b"\r") for line in text.split(b"\n")[:-1]]
    heads, blanks = _heads_of_each(lines)
    fold = Fold(0, frozenset(), words=True, heads=heads, blanks=blanks)
    beside = [True] * len(lines)
    if heads:  # an empty line may be a part of one that a collector cut and that was joined again: then each is spread so
        told = [(at, line) for at, line in enumerate(lines) if line]
        beside = [True, *(at == before + 1 for (before, _), (at, _) in pairwise(told))]
        lines = [fold.behind(line) for _, line in told]
    plain = [line for line in lines if not _CONTROL.search(line)]
    width = max((len(line) for line in plain if line.isascii()), default=0)
    if width < NARROWEST or any(len(line) > width and _columns(line) > width for line in plain):
        return None
    fold = fold._replace(width=width)
    full = [fold.is_full(line) for line in lines]
    if not any(full):
        return None
    every = [(near, pair) for wide, near, pair in zip(full, beside[1:], pairwise(lines), strict=False) if wide]
    pairs = [pair for near, pair in every if near] or [pair for _, pair in every]
    inside = [(line, rest) for line, rest in pairs if _CUT.search(line[-1:] + b"\n" + rest[:8])]
    numbers = [(line, rest) for line, rest in pairs if _cuts_number(line, rest)]
    moves = _moves(pairs)
    if not (numbers or moves) and len({_opening(rest) for _, rest in inside}) < _KINDS:
        return None  # the usual case
    begins = [lines[0], *(line for wide, line in zip(full, lines[1:], strict=False) if not wide)]
    fold = fold._replace(starts=frozenset(map(_opening, begins)))
    rests, cut, cut_numbers = ([rest for line, rest in some if fold.goes_on(line, rest)] for some in (pairs, inside, numbers))
    words = len(rests) >= _FOREIGN * len(pairs) and len(cut) >= _INSIDE * len(pairs)
    if words and len(set(map(_opening, cut))) >= _KINDS:
        return fold
    if (moves and len(rests) >= _FOREIGN * len(pairs)) or (len(rests) == len(pairs) and len(cut_numbers) >= _KINDS):
        return fold
    return fold._replace(words=False) if cut_numbers else None


def _heads_of_each(lines: Sequence[bytes]) -> tuple[int, int]:
    """Return how many heads each line has, at least, and how many blanks end the last of these.

    Empty lines have none, and the first one may lack some: it may be a part of a line.
    """
    found = []
    for line in filter(None, lines[1:]):
        if not (heads := heads_of(line)):
            return 0, 0  # the usual case
        found.append((line, heads))
    fewest = min((len(heads) for _, heads in found), default=0)
    lasts = ((line, heads[fewest - 1]) for line, heads in found)
    return fewest, min((last.blanks for line, last in lasts if last.end < len(line)), default=0)


def _moves(pairs: Sequence[tuple[bytes, bytes]]) -> bool:
    """Return whether lines that are alike but for their numbers, once they are joined, are cut at several places."""
    rests: dict[bytes, set[bytes]] = {}
    for line, rest in pairs:
        rests.setdefault(_masked(line + rest), set()).add(_masked(rest))
    return any(len(found) > 1 for found in rests.values())


def _masked(text: bytes) -> bytes:
    return re.sub(rb"[\d.]+", b"0", text)


def _cuts_number(line: bytes, rest: bytes) -> bool:
    return _NUMBER.search(line) is not None and _OF_NUMBER.match(rest) is not None


def _columns(line: bytes) -> int:
    return len(line.decode("utf-8", "replace"))


def _opening(line: bytes) -> bytes:
    """Return how a line begins, with one digit for each number and one space for each gap."""
    return re.sub(rb"\d+", b"0", re.sub(rb"\s+", b" ", line[:96]))[:12]


class FoldedLines:
    """Join the cut lines of a stream; the result does not depend on how the stream is cut into pieces.

    Returns nothing until the first lines show whether they are cut.
    """

    def __init__(self, fold: Fold | None = None, *, known: bool = False) -> None:
        """``known``: the same text was searched before, and ``fold`` was found."""
        self.fold = fold
        self.known = known
        self.emptied: array[int] = array("q")
        """Numbers of the lines that became empty, ascending from 1."""
        self._held = b""
        self._before: tuple[bytes, bytes] | None = None  # a full line, and all of its line so far
        self._between = 0  # empty lines behind it, which have no head as others have
        self._lines = 0

    def feed(self, block: bytes) -> bytes:
        """Return the lines that end in ``block``, joined; hold back what the next block may end."""
        if self.known and self.fold is None:
            return block
        self._held += block
        if not self.known:
            if len(self._held) < LOOKED_AT:
                return b""
            self.fold, self.known = find_fold(self._held[: self._held.rfind(b"\n", 0, LOOKED_AT) + 1]), True
            if self.fold is None:
                text, self._held = self._held, b""
                return text
        end = self._held.rfind(b"\n") + 1
        text, self._held = self._held[:end], self._held[end:]
        return self._joined(text)

    @property
    def kept_lines(self) -> int:
        """Number of line ends in the text held back."""
        return self._held.count(b"\n") + (self._before is not None) + self._between

    def rest(self, end: bytes = b"") -> tuple[bytes, FoldedLines]:
        """Return the text held back as if the log ended with ``end``, and what was found until there; changes nothing."""
        held = self._held + end
        done = FoldedLines(self.fold, known=True)
        done.emptied, done._before, done._between, done._lines = self.emptied[:], self._before, self._between, self._lines
        if not self.known:
            done.fold = find_fold(held[: held.rfind(b"\n", 0, LOOKED_AT) + 1])
        if done.fold is None:
            return held, done
        text = done._joined(held[: held.rfind(b"\n") + 1])
        last = held[held.rfind(b"\n") + 1 :]
        if done._before is not None:
            line, whole = done._before
            if done.fold.goes_on(line, rest := done.fold.behind(last)):
                done.emptied.append(done._lines + 1)
                last, whole = whole.removesuffix(b"\r") + rest, b""
            text += whole + b"\n" * (1 + done._between)
        return text + last, done

    def _joined(self, text: bytes) -> bytes:
        """Return whole lines, joined to those before them; hold back the last one if it is full."""
        assert self.fold is not None
        made: list[bytes] = []
        for line in text.split(b"\n")[:-1]:
            whole, own = line, self.fold.behind(line)
            bare = own.removesuffix(b"\r")
            if self._before is not None:
                if self.fold.heads and not line:
                    self._between += 1
                    continue
                last, before = self._before
                if self.fold.goes_on(last, bare):
                    self.emptied.append(self._lines + 1)
                    whole, before = before.removesuffix(b"\r") + own, b""
                made.append(before + b"\n" * (1 + self._between))
                self._lines, self._between = self._lines + 1 + self._between, 0
            if self.fold.is_full(bare) and len(whole) < LONGEST:
                self._before = bare, whole
            else:
                self._before = None
                made.append(whole + b"\n")
                self._lines += 1
        return b"".join(made)


def unfolded(blocks: Iterator[bytes], lines: FoldedLines, report: Callable[[FoldedLines], None]) -> Generator[bytes, None, None]:
    """Yield the text of ``blocks`` with cut lines joined; call ``report`` once the fold is known, and at the end."""
    told = lines.known
    for block in blocks:
        text = lines.feed(block)
        if lines.known and not told:
            told = True
            report(lines)
        if text:
            yield text
    text, done = lines.rest()
    report(done)
    if text:
        yield text
