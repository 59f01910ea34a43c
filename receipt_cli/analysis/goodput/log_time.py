"""First and last stamp of a log of which no run has a time: at line starts, behind a quote, or in a statement."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from receipt_cli.analysis.goodput.timestamps import LogTime, Stamp, format_clock, line_stamps
from receipt_cli.events.streams import Gathered
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import CLOCK_MASKED, MASK, plain, read_clock
from receipt_cli.scan.segment import HEAD_KEPT

_DATED = compile_later(
    rb"(?P<date>(?:19|20)\d\d([-/])[01]\d\2[0-3]\d)[ T_](?P<clock>\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?"
    rb"(?P<zone>Z|[+-]\d\d:?\d\d(?!\d)| (?:UTC|GMT)\b)?(?: (?P<half>[AP]M)\b)?(?!\d)"
    rb"|(?P<month>[A-Z][a-z]{2}) (?P<day>[ \d]\d) (?P<at>\d\d:\d\d:\d\d) (?P<where>[A-Z]{3,5} )?(?P<year>(?:19|20)\d\d)\b"
)
_TO_CLOCK = (11, 7)
"""Bytes of them before their clock: of a date in numbers, of the name of a month and a day."""
_OPENING = compile_later(rb"[>\s]{0,8}(?:[\[(]|[A-Z]{2,10}[ :])?(?:[A-Z][a-z]{2},? )?\Z")
"""What may precede a stamp at the beginning of a line: a quote, a bracket, the name of a logger, a weekday."""
_STATING = compile_later(
    rb"(?i)(?:^|[^a-z])(?:(?:cancelled|started|starting|begun|ended|ending|finished|running|run|launched|job) (?:at|on)"
    rb"|(?:(?:start|begin|end|finish|current|local|launch)[a-z]*[ _-])?(?:date ?)?(?:time|datetime|timestamp|date|now)"
    rb"|(?:start|begin|end|finish)[a-z]*[ _-]time of [a-z_ ]{1,40})"
    rb"[ \t]{0,16}[:=]?[ \t]{0,4}(?:[a-z]{3},? )?\Z"
)
"""Words before a stamp that say when something was: ``CANCELLED AT``, ``START TIME:``, ``time      :``."""
_OTHER = compile_later(
    rb"(?i)buil[dt]|compil|modif|creat|releas|expir|updat|commit|version|valid|deadline|limit|\beta\b|expect|estimat"
)
"""Words of a line whose time is not that of the job: of a build, a file, a commit, a forecast."""


def find_log_time(gathered: Gathered) -> LogTime | None:
    """Return the earliest and the latest stamp in the first and the last bytes of a log; None where they contain none.

    Stamps that name their offset are of another clock than those that do not: the more frequent kind counts. ``source`` is
    ``log_ends``.
    """
    head, (tail, size) = gathered.heads[gathered.opening], gathered.tails[gathered.final]
    if len(head) >= HEAD_KEPT:
        head = head[: head.rfind(b"\n") + 1]
    if len(tail) < size:
        tail = tail[tail.find(b"\n") + 1 :]
    stamps = [stamp for text in dict.fromkeys((head, tail)) for stamp in _stamps(plain(text))]  # of a small log both are the same
    zoned = 2 * sum(stamp.zoned for stamp in stamps) >= len(stamps)
    clocks = [stamp.clock for stamp in stamps if stamp.zoned == zoned]
    if not clocks:
        return None
    zone = "Z" if zoned else ""
    return LogTime(format_clock(min(clocks)) + zone, format_clock(max(clocks)) + zone, "utc" if zoned else None, "log_ends")


def _stamps(text: bytes) -> Iterator[Stamp]:
    yield from line_stamps(text)
    for found in _dated(text):
        start = max(text.rfind(b"\n", 0, found.start()), text.rfind(b"\r", 0, found.start())) + 1
        before = text[max(start, found.start() - 120) : found.start()]
        opens = start >= found.start() - 120 and _OPENING.match(before) is not None
        if (opens or _STATING.search(before) is not None) and _OTHER.search(before) is None:
            clock = _clock(found.groupdict())
            if not math.isnan(clock):
                yield Stamp(1, clock, found["zone"] is not None or found["where"] in (b"UTC ", b"GMT "))


def _dated(text: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the matches of ``_DATED``, each behind the one before: their clocks are found many times faster."""
    masked, end = text.translate(MASK), 0
    at = masked.find(CLOCK_MASKED)
    while at >= 0:
        for start in (at - before for before in _TO_CLOCK):
            found = _DATED.match(text, start) if start >= end else None
            if found is not None:
                yield found
                end = found.end()
                break
        at = masked.find(CLOCK_MASKED, at + 1)


def _clock(parts: dict[str, bytes | None]) -> float:
    """Return the seconds since 1970 of a match of ``_DATED``, or NaN; a fraction of a second is left out."""
    if parts["year"] is not None:
        return read_clock(b"%b %b %b %b%b" % tuple(parts[key] or b"" for key in ("month", "day", "at", "where", "year")))
    date, time, zone = (parts[key] or b"" for key in ("date", "clock", "zone"))
    clock, half, hour = read_clock(b"%b %b%b" % (date, time, zone)), parts["half"], int(time[:2])
    if half is None or hour > 12:
        return clock
    return clock + 3600 * ((hour % 12) + (12 if half == b"PM" else 0) - hour)
