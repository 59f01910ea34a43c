"""Some of the lines of a text that comes in blocks, and places from which it can be read again without those before."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from receipt_cli.io.envelopes import Unpacker

if TYPE_CHECKING:
    from hashlib import _Hash

MOST = 1024
"""So many places are kept; of more, every second one."""


class Mark(NamedTuple):
    """A place between two blocks: the bytes and lines before it, their digest, and what makes an unpacker that goes on."""

    size: int
    lines: int
    digest: _Hash
    unpacker: Callable[[Any], Unpacker]


class Marks:
    """Places of a plain file of UTF-8, in order: of a log of many runs each is read without those before it."""

    def __init__(self) -> None:
        self._marks: list[Mark] = []
        self._noted = False

    def noting(self, unpacker: Unpacker, place: Callable[[], tuple[int, _Hash] | None]) -> Callable[[bytes], None] | None:
        """Return what notes the place behind each block that ``unpacker`` has read, the first time; None later on.

        ``place`` returns how many bytes of the file were read, and their digest; None where nothing is to be noted.
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
                return  # more was read ahead, to tell the encoding by
            self._marks.append(Mark(seen, unpacker.line_count, here[1].copy(), unpacker.mark()))
            if len(self._marks) == MOST:
                del self._marks[::2]
                apart *= 2

        return note

    def last_before(self, line: int) -> Mark | None:
        """Return the last place with at most ``line`` lines before it."""
        at = bisect_right(self._marks, line, key=lambda mark: mark.lines)
        return self._marks[at - 1] if at else None


def lines_of(text: Iterator[bytes], before: int, end: int | None, *, passed: int = 0) -> Iterator[bytes]:
    """Yield the lines behind the first ``before``, up to line ``end``; ``text`` begins behind the ``passed`` first ones."""
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
    """Return the place behind ``count`` line ends."""
    rest = block.split(b"\n", count)[count]
    return len(block) - len(rest)
