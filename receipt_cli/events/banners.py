"""Find where a program began again: what it printed before its first step stands before a later first step, too.

No rule needs to read these lines: what counts is that most of them come again, with other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from receipt_cli.events.model import Event
from receipt_cli.io.source import Source, Stream
from receipt_cli.lazy_pattern import compile_later
from receipt_cli.records.envelope import plain

COMMON = 5
"""Kinds of lines that must come again, and half of all: a loop prints a heading or two."""
MOST_STARTS = 100
"""A log whose steps go back more often is of several processes, or of a loop."""
MOST_LINES = 4000
"""Lines before a first step that are compared: the nearest."""
_DIGITS = compile_later(rb"\d+")
_LETTER = compile_later(rb"[^\W\d_]")


def find_banners(events: Sequence[Event], streams: Sequence[Stream]) -> frozenset[int]:
    """Return the positions of the step records before which most of what precedes the first one of the log comes again.

    The log is read again where steps go back, unless it has several files. Raises ``InputError``.
    """
    steps = [event for event in events if event.is_step and event.position is not None]
    backs = [(one.last_line, other) for one, other in pairwise(steps) if (other.position or 0.0) <= _last_position(one)]
    backs = [(line, event) for line, event in backs if event.line - line > COMMON]
    if not backs or len(backs) > MOST_STARTS or len(streams) > 1 or len(streams[0].parts) > 1:
        return frozenset()
    source = streams[0].parts[0]
    spans = [(source.lines_before, steps[0].line - 1), *((line, event.line - 1) for line, event in backs)]
    again = source.reopen() if spans[0][1] - spans[0][0] >= COMMON else None
    if again is None:
        return frozenset()
    head, *others = (frozenset(map(_shape, filter(_LETTER.search, lines))) for lines in _lines_of(again, spans))
    return frozenset(
        event.at for (_, event), shapes in zip(backs, others, strict=False) if len(head & shapes) >= max(COMMON, len(head) / 2)
    )


def _last_position(event: Event) -> float:
    return event.position or 0.0 if event.last_step is None else float(event.last_step)


def _lines_of(source: Source, spans: Sequence[tuple[int, int]]) -> Iterator[list[bytes]]:
    """Yield the lines behind the first so many, up to line so many, of each of some spans in order."""
    first = source.lines_before
    wanted = list(spans)
    text = b""
    for block in source.blocks():
        text += block
        ends = text.count(b"\n")
        if wanted and first + ends < wanted[0][0]:
            text, first = text[text.rfind(b"\n") + 1 :], first + ends
            continue
        lines = text.split(b"\n")
        while wanted and wanted[0][1] <= first + ends:
            before, end = wanted.pop(0)
            yield lines[max(before, end - MOST_LINES) - first : end - first]
        if not wanted:
            return
        keep = max(0, max(wanted[0][0], wanted[0][1] - MOST_LINES) - first)
        keep = min(keep, ends)
        text, first = b"\n".join(lines[keep:]), first + keep


def _shape(line: bytes) -> bytes:
    return _DIGITS.sub(b"0", plain(line + b"\n").strip())
