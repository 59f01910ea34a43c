"""Some of the lines of a text that comes in blocks."""

from __future__ import annotations

from collections.abc import Iterator


def lines_of(text: Iterator[bytes], before: int, end: int | None) -> Iterator[bytes]:
    """Yield the lines behind the first ``before``, up to line ``end``."""
    lines = 0
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
