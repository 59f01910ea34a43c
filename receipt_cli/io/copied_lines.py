"""Several processes print the same lines into one log → the same log with one copy; the other copies become empty lines.

Copies are exact: every line occurs equally often, or one rank repeats the lines of another. ``events.copies`` compares records
of processes whose times or memory differ. A log appended to itself has its copies one after the other, and keeps them.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from operator import eq
from typing import NamedTuple

from receipt_cli.records.envelope import NO_RANK, split_rank

LOOKED_AT = 512
"""Lines after which repetition must show: processes alternate after a few KiB at most."""
LOOKED_AT_BYTES = 1 << 20
"""``LOOKED_AT`` in bytes, for a log of long lines."""
LONGEST = 16 << 20
"""Largest log searched for copies, in bytes; a longer log is left unchanged."""
_AGAIN = 0.8
"""Share of the first lines that must repeat; below 1 because the last copies may be unfinished."""
_FEWEST = 2
"""Fewest distinct records of a copy: a single line may repeat by chance."""
_LONGEST_TURN = 64
"""Longest turn, in lines, searched for processes that alternate after equally many lines."""
_COMPARED = 8
"""Lines that must match the first copy at the start of a turn; fewer only if the process lags by less."""
_TURNS = (*((turn, _COMPARED) for turn in (1, 2, 4, 8, 16, 32, 64)), *((turn, LONGEST) for turn in range(1, 65)))
"""(fewest lines by which a process lags at the start of its turn, lines compared there): tried in this order."""


class Copies(NamedTuple):
    """Copies in a log: copying rank → rank whose lines it repeats; and the copied lines' numbers, ascending from 1."""

    duplicate_of: dict[int, int]
    lines: Sequence[int]


NO_COPIES = Copies({}, ())


class CopiedLines:
    """Blank the copies among the lines of a stream; the result does not depend on how the stream is cut into pieces.

    Returns nothing until the first lines show whether they repeat.
    """

    def __init__(self) -> None:
        self._kept: list[bytes] | None = []  # None once the log is read as it is
        self._size = 0
        self._lines = 0
        self._due_lines = LOOKED_AT
        self._due_bytes = LOOKED_AT_BYTES

    def feed(self, block: bytes) -> bytes:
        """Return the text, held back so far, in which no line can be a copy."""
        if self._kept is None:
            return block
        self._kept.append(block)
        self._size += len(block)
        self._lines += block.count(b"\n")
        if self._lines < self._due_lines and self._size < self._due_bytes:
            return b""
        text = b"".join(self._kept)
        if self._size <= LONGEST and self._promises(text):
            self._kept = [text]
            return b""
        self._kept = None
        return text

    def _promises(self, text: bytes) -> bool:
        """Return whether the beginning of the log may hold copies; looked at in fixed steps, so that pieces do not matter."""
        while self._size >= self._due_bytes:
            if not _promise(text[: self._due_bytes].split(b"\n")[:-1]):
                return False
            self._due_bytes *= 2
        lines = text.split(b"\n") if self._lines >= self._due_lines else []
        while self._lines >= self._due_lines:
            if not _promise(lines[: self._due_lines]):
                return False
            self._due_lines *= 2
        return True

    @property
    def kept_lines(self) -> int:
        """Number of line ends in the text held back."""
        return self._lines if self._kept is not None else 0

    def rest(self, end: bytes = b"") -> tuple[bytes, Copies]:
        """Return the text held back as if the log ended with ``end``, and the copies in it; changes nothing."""
        if self._kept is None:
            return end, NO_COPIES
        text = b"".join((*self._kept, end))
        return (text, NO_COPIES) if len(text) > LONGEST else without_copies(text)


def left_out(blocks: Iterator[bytes], report: Callable[[Copies], None]) -> Generator[bytes, None, None]:
    """Yield the text of ``blocks`` with copies blanked; call ``report`` before the text that holds them is yielded."""
    copied = CopiedLines()
    for block in blocks:
        if text := copied.feed(block):
            yield text
    text, found = copied.rest()
    report(found)
    if text:
        yield text


def without_copies(text: bytes) -> tuple[bytes, Copies]:
    """Return a whole log with copies as empty lines, and the copies."""
    copies = _search(text)
    return (_blanked(text, copies), copies) if copies.lines else (text, NO_COPIES)


def blanked(blocks: Iterator[bytes], copies: Copies, before: int = 0) -> Iterator[bytes]:
    """Yield ``blocks`` with known ``copies`` blanked; ``before`` is the number of log lines before the first block."""
    return iter([_blanked(b"".join(blocks), copies, before)]) if copies.lines else blocks


def _blanked(text: bytes, copies: Copies, before: int = 0) -> bytes:
    lines = text.split(b"\n")
    first, end = bisect_right(copies.lines, before), bisect_right(copies.lines, before + len(lines))
    for number in copies.lines[first:end]:  # the log may have changed since; its digest shows that
        lines[number - before - 1] = b""
    return b"\n".join(lines)


def _search(text: bytes) -> Copies:
    lines = text.split(b"\n")
    nonblank = [number for number, line in enumerate(lines) if line.strip()]
    duplicate_of: dict[int, int] = {}
    copies: list[int] = []
    if _is_labelled(lines):
        ranks: dict[int, list[int]] = {}
        bodies: dict[int, list[bytes]] = {}
        for number in nonblank:
            rank, body = split_rank(lines[number])
            if rank != NO_RANK:
                ranks.setdefault(rank, []).append(number)
                bodies.setdefault(rank, []).append(body)
        duplicate_of = _duplicates(bodies)
        copies = [number for rank in duplicate_of for number in ranks[rank]]
    shown = [lines[number] for number in nonblank]
    if not duplicate_of and 2 * len({*shown}) <= len(shown):  # else the processes are not equal
        found = _copies(shown)
        copies = [number for number, copy in zip(nonblank, found, strict=True) if copy] if found else _in_turns(lines, nonblank)
    return Copies(duplicate_of, sorted(number + 1 for number in copies)) if copies else NO_COPIES


def _is_labelled(lines: Sequence[bytes]) -> bool:
    """Return whether one of the first lines names its rank."""
    first = [line for line in lines[:64] if line.strip()][:8]
    return any(split_rank(line)[0] != NO_RANK for line in first)


def _promise(lines: Sequence[bytes]) -> bool:
    """Return whether the first lines of a log may be copies."""
    lines = [line for line in lines if line.strip()]
    if len(lines) < _FEWEST:
        return False  # one line without an end is kept for nothing
    again = sum(count for count in Counter(lines).values() if count > 1)
    if again >= _AGAIN * len(lines):
        return True
    if not _is_labelled(lines):
        return False
    bodies: dict[int, list[bytes]] = {}
    for line in lines:
        rank, body = split_rank(line)
        if rank != NO_RANK:
            bodies.setdefault(rank, []).append(body)
    pairs = sorted(bodies.values(), key=len)
    return any(longer[: len(shorter)] == shorter for at, shorter in enumerate(pairs) for longer in pairs[at + 1 :])


def _duplicates(bodies: dict[int, list[bytes]]) -> dict[int, int]:
    """Return copying rank → leader; the leader prints most lines, the lowest rank of several."""
    if len(bodies) < 2:
        return {}
    leader = min(bodies, key=lambda rank: (-len(bodies[rank]), rank))
    if _count_records(set(bodies[leader])) < _FEWEST:
        return {}
    return {rank: leader for rank in sorted(bodies) if rank != leader and bodies[rank] == bodies[leader]}


def _process_numbers(lines: Sequence[bytes]) -> list[int]:
    """Return the numbers of equal processes that may have printed ``lines``, largest first."""
    counts = Counter(lines)
    if len(lines) < 2 * len(counts) or _count_records(counts) < _FEWEST:
        return []
    every = math.gcd(*counts.values())
    return [times for times in range(every, 1, -1) if every % times == 0]


def _copies(lines: Sequence[bytes]) -> list[bool] | None:
    """Return for each line whether it is a copy, or None if equal processes did not print the lines."""
    parts = _process_numbers(lines)
    periods = (len(lines) // times for times in parts)
    period = next((size for size in periods if lines[size:] == lines[:-size]), len(lines))
    tried = ((times, period, *turn) for times in parts for turn in _TURNS)
    return next((found for hypothesis in tried if (found := _separated(lines, *hypothesis)) is not None), None)


def _in_turns(lines: Sequence[bytes], nonblank: Sequence[int]) -> list[int]:
    """Return the indices of copies if processes alternate after a constant number of lines.

    ``nonblank`` holds the indices of non-blank lines. Returns [] without copies, and if the log may be appended to itself.
    """
    every = lines[: nonblank[-1] + 1] if nonblank else []
    near = range(1, min(len(every), 2 * _LONGEST_TURN) + 1)
    again = next((n for n in near if all(map(eq, islice(every, n, None), every))), len(every))
    for times in _process_numbers([every[number] for number in nonblank]):
        size = -(-len(every) // times)
        period = min(again, size)
        for turn in range(1, min(_LONGEST_TURN, size // 2, period // 2) + 1):
            rest = len(every) % (turn * times)  # the last turn of each may be shorter
            if rest % times == 0 and all(_alike(every, at, turn, times) for at in range(0, len(every), turn * times)):
                last = len(every) - rest
                return [at for at in nonblank if (at % (turn * times) >= turn if at < last else at >= last + rest // times)]
    return []


def _alike(lines: Sequence[bytes], at: int, turn: int, times: int) -> bool:
    """Return whether the lines from ``at`` on are ``times`` equal turns, shorter ones at the end of the log."""
    turn = min(turn, (len(lines) - at) // times)
    return all(lines[at : at + turn] == lines[other : other + turn] for other in range(at + turn, at + times * turn, turn))


def _count_records(lines: Iterable[bytes]) -> int:
    """Return the number of records in lines; each redraw is a record."""
    return sum(1 + line.strip().count(b"\r") for line in lines)


def _separated(lines: Sequence[bytes], times: int, period: int, turn: int, most: int) -> list[bool] | None:
    """Return as ``_copies`` for ``times`` processes, each at least ``turn`` lines behind at the start of its turn.

    In its turn a process prints at least its backlog, at most ``most`` lines of which are compared. The log repeats itself
    after ``period`` lines: a log appended to itself is no copy.
    """
    size = len(lines) // times
    first: list[bytes] = []
    places = [0] * (times - 1)
    at_place = {0: [*range(times - 1)]}  # place → processes there, ascending: they are interchangeable
    copy: list[bool] = []
    writer: int | None = None
    for at, line in enumerate(lines):
        if writer is None or places[writer] == len(first) or first[places[writer]] != line:
            writer = None
            for place, numbers in sorted(at_place.items(), key=lambda each: each[1][0]):
                behind = len(first) - place
                if not behind or first[place] != line or (behind < turn and len(first) < size):
                    continue
                if all(
                    lines[at : at + compared] == first[place : place + compared]
                    for compared in (min(behind, _COMPARED), min(behind, most))  # most mismatches show in the first
                ):
                    if 2 * behind > min(size, period):
                        return None
                    writer = numbers[0]
                    break
        if writer is None:
            first.append(line)
            if len(first) > size:
                return None
        else:
            place = places[writer]
            at_place[place].remove(writer)
            if not at_place[place]:
                del at_place[place]
            insort(at_place.setdefault(place + 1, []), writer)
            places[writer] = place + 1
        copy.append(writer is not None)
    return copy if all(place == size for place in places) else None
