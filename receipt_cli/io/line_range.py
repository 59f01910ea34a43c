"""Yield a range of lines from blocks of text, and keep marks from which to read on without the lines before."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from receipt_cli.io.envelopes import Unpacker

if TYPE_CHECKING:
    from hashlib import _Hash

MOST = 1024
"""Most marks kept; at the limit, every second one is dropped."""


class Mark(NamedTuple):
    """A mark between two blocks: bytes and lines before it, their digest, and a function that makes an unpacker to go on."""

    size: int
    lines: int
    digest: _Hash
    unpacker: Callable[[Any], Unpacker]


class Marks:
    """Marks in a plain UTF-8 file, in order: each run of a log can be read without the runs before it."""

    def __init__(self) -> None:
        self._marks: list[Mark] = []
        self._noted = False

    def noting(self, unpacker: Unpacker, place: Callable[[], tuple[int, _Hash] | None]) -> Callable[[bytes], None] | None:
        """Return a function that marks the end of each block, on the first call only; then None.

        ``place`` returns the bytes read of the file and their digest, or None if no mark may be set.
        """
        if self._noted:
            return None
        self._noted = True
        passed = seen = 0
        apart = 1

        def note(block: bytes) -> None:
            nonlocal passed, seen, apart
            passed, seen = passed + 1, seen + len(block)
            here = place()
            if here is None or here[0] != seen or passed % apart:
                return  # more was read ahead to detect the encoding
            self._marks.append(Mark(seen, unpacker.line_count, here[1].copy(), unpacker.mark()))
            if len(self._marks) == MOST:
                del self._marks[::2]
                apart *= 2

        return note

    def last_before(self, line: int) -> Mark | None:
        """Return the last mark with at most ``line`` lines before it, or None."""
        at = bisect_right(self._marks, line, key=lambda mark: mark.lines)
        return self._marks[at - 1] if at else None


def lines_of(text: Iterator[bytes], before: int, end: int | None, *, passed: int = 0) -> Iterator[bytes]:
    """Yield lines ``before`` + 1 to ``end`` (None: the last); ``text`` begins after line ``passed``."""
    lines = passed
    for block in text:
        first, lines = lines, lines + block.count(b"\n")
        if lines < before:
            continue
        stop = len(block) if end is None or lines < end else _behind(block, end - first)
        start = _behind(block, before - first) if first < before else 0
        yield block[start:stop]
        if end is not None and lines >= end:
            return


def _behind(block: bytes, count: int) -> int:
    """Return the position after ``count`` line ends."""
    rest = block.split(b"\n", count)[count]
    return len(block) - len(rest)
