"""Recognise lines of unknown trainers that look like a printed metric or a step record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from receipt_cli.lazy_pattern import compile_later
from receipt_cli.records.prefilter import Prefilter

METRIC_LINE = compile_later(
    rb"(?i)\b(?:step|iter(?:ation)?|epoch|batch|loss|lr|acc(?:uracy)?|ppl|tok(?:ens)?/s(?:ec)?|mfu)\b[^\n\r\d]{0,12}\d[^\n\r]*+"
)
STEP_LINE = compile_later(
    rb"(?i)(?<![\w.-])(?:step|iter(?:ation)?|epoch|batch)s?\b[ \t\f\v:=#(\[]{0,6}\d[^\n\r]{0,200}?"
    rb"(?:loss|\blr|learning[ _]rate|acc(?:uracy)?|ppl|/s(?:ec)?|eta)\b[ :=(]{0,4}[-+]?[\d(n]"
)
_STEP_WORDS = (b"step", b"iter", b"epoch", b"batch")
_METRIC_WORDS = (*_STEP_WORDS, b"loss", b"lr", b"acc", b"ppl", b"tok", b"mfu")
"""What such lines begin with: the pattern is tried only behind one of these."""
MAX_SEEN = 3
"""Such lines are kept, or counted, up to this many."""


def metric_lines(records: bytes, limit: int) -> list[tuple[int, bytes]]:
    """Return offset and bytes of the first ``limit`` records of normalised ``records`` that look like metrics."""
    found: list[tuple[int, bytes]] = []
    for hit in _hits(METRIC_LINE, _METRIC_WORDS, records):
        start = max(records.rfind(b"\n", 0, hit.start()), records.rfind(b"\r", 0, hit.start())) + 1
        record = records[start : hit.end()]
        if record.isascii() or _readable(record):
            found.append((start, record))
        if len(found) >= limit:
            break
    return found


def _hits(pattern: re.Pattern[bytes], words: tuple[bytes, ...], records: bytes) -> Iterator[re.Match[bytes]]:
    """Yield what ``pattern.finditer`` does, of a pattern whose matches begin with one of ``words`` in any case."""
    done = 0
    for start in _gate(words).starts(records.lower()):
        if start >= done and (hit := pattern.match(records, start)) is not None:
            done = hit.end()
            yield hit


@cache
def _gate(words: tuple[bytes, ...]) -> Prefilter:
    return Prefilter(words)


def _readable(record: bytes) -> bool:
    """True for UTF-8 text without control characters: not a chance find in binary data."""
    try:
        return record.decode("utf-8").isprintable()
    except UnicodeDecodeError:
        return False


def count_step_lines(records: bytes, limit: int) -> int:
    """Return how many times normalised ``records`` look like a step record, at most ``limit``."""
    count = 0
    for _ in _hits(STEP_LINE, _STEP_WORDS, records):
        count += 1
        if count >= limit:
            break
    return count
