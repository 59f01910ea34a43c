"""Find from the time stamps in a log when the job began and ended, as far as its log shows.
Stamps of lines that no rule reads count at both ends: a job is older than its first step, and outlives its last one."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from receipt_cli.analysis.completed import begins_again, told, words_of
from receipt_cli.events.banners import is_command
from receipt_cli.events.launches import DAY, END
from receipt_cli.events.streams import Gathered
from receipt_cli.events.table import EventTable
from receipt_cli.numeric.array_types import Floats, Integers
from receipt_cli.numeric.spill import slices
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import (
    CLOCK_MASKED,
    MASK,
    UNIX_MASKED,
    behind_heads,
    head_ends,
    is_blind,
    may_have_time,
    plain,
    read_clock,
)
from receipt_cli.scan.segment import HEAD_KEPT


class ClockSkip(NamedTuple):
    """A gap of an hour or more between two stamps (``before``, ``after``), and the line after it.
    If summer time began in it, no wall time is known."""

    line: int
    before: float
    after: float


HOUR_S = 3600.0
MOST_GAPS = 16
"""Most gaps that are looked at."""
_SPRING = (3, 4, 9, 10)
"""Months in which clocks are put forward, in the north and in the south."""
_HOURS = 4
"""Clocks are put forward by 4 o'clock at the latest."""
_USUAL_S = 900.0
"""Seconds between records beyond which an additional hour is no sign."""
_SINCE_1970 = 1e11
"""Seconds since 1970 beyond which a number is no date."""


def skips_hour(gap: ClockSkip, usual: float) -> bool:
    """Return whether a gap between stamps of a local clock contains the hour that summer time skips on a Sunday in spring.
    ``usual``: the seconds between other stamps. The gap must be an hour longer, and no stamp may lie in that hour."""
    more = gap.after - gap.before - HOUR_S
    if not -1 <= more <= max(5.0, 3 * usual) or usual > _USUAL_S or gap.after >= _SINCE_1970:
        return False
    midnight = math.floor(gap.after / DAY) * DAY
    day = datetime(1970, 1, 1) + timedelta(seconds=midnight)
    hidden = any(gap.before < midnight + h * HOUR_S and gap.after >= midnight + (h + 1) * HOUR_S for h in range(_HOURS))
    return hidden and day.weekday() == 6 and day.month in _SPRING


JITTER = (5.0, 60.0)
"""Seconds (least, most) by which a stamp may precede that of an earlier line, because other ranks print late.
Between them, a hundredth of the time of the log counts. Summer time and a clock that was set are more."""
_SHARE = 0.01
_ZONED = compile_later(rb"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d(?!\d)| (?:UTC|GMT)\b)|(?<!\d)[12]\d{9}\.\d{3,9} ")
_SAID = compile_later(rb"\] datetime: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) *\Z")
"""A stamp at the end of a line, as Megatron's `print_datetime` writes it."""
_SHORT = 512
"""Longest line, in bytes, for which the places of its stamps are cached."""


class LogTime(NamedTuple):
    """Earliest and latest stamp of a run, RFC 3339; ``zone`` is "utc" if its lines name their offset, else None."""

    first: str
    last: str
    zone: str | None
    source: str

    @classmethod
    def of(cls, first: float, last: float, *, zoned: bool, source: str) -> LogTime:
        """Return the time of a log whose first and last stamps are given in seconds since 1970."""
        first_, last_ = (format_clock(clock) + ("Z" if zoned else "") for clock in (first, last))
        return cls(first_, last_, "utc" if zoned else None, source)


class Stamp(NamedTuple):
    """The time of one line, in seconds, and whether it names its zone."""

    line: int
    clock: float
    zoned: bool


class Stamps(NamedTuple):
    """The first and the last stamp of some lines. ``zones`` holds True if any names its zone, False if any does not."""

    first: Stamp | None = None
    last: Stamp | None = None
    zones: frozenset[bool] = frozenset()

    @classmethod
    def of(cls, stamps: Sequence[Stamp]) -> Stamps:
        """Return the first, the last and the zones of ``stamps``."""
        return cls(stamps[0], stamps[-1], frozenset(stamp.zoned for stamp in stamps)) if stamps else cls()


class Edges(NamedTuple):
    """The stamps of the first and of the last lines of a log, lines that no rule reads included.
    ``grain``: seconds by which they may be off, None if the stamps themselves show it."""

    head: Stamps = Stamps()
    tail: Stamps = Stamps()
    grain: float | None = None

    @property
    def zones(self) -> frozenset[bool]:
        """Whether the stamps name their zone: both values if only some do."""
        return self.head.zones | self.tail.zones

    def of_run(self, number: int, last: int) -> Edges:
        """Return the edges of run ``number`` in a log whose last run is ``last``."""
        head = Stamps() if number else self.head
        if number == last:
            return Edges(head, self.tail)
        return Edges(Stamps.of([head.first] if head.first is not None else []))


@dataclass(frozen=True, slots=True)
class Life:
    """When a job began and ended; ``grain``: seconds by which its stamps may be off, 1 if they are whole.
    ``led``: a line before the first step record has a stamp; ``last_line`` is the last line that has one."""

    start: float
    end: float
    grain: float
    led: bool
    last_line: int

    @property
    def seconds(self) -> float:
        """The seconds from beginning to end."""
        return self.end - self.start


class Outside(NamedTuple):
    """Work that only unread lines show: the stamp of the first line of the training ``loop``, NaN if unknown; whether lines
    ``after`` the last record show training, an evaluation or a program; if the log's first line comes again behind them, the
    stamps up to there (``tail``); and whether lines ``between`` the last step and the last record show such work."""

    loop: float = math.nan
    after: bool = False
    tail: Stamps | None = None
    between: bool = False


def find_work(
    lines: Mapping[int, bytes],
    steps: Sequence[int],
    last_step: int,
    read: Integers,
    epoch: Set[str],
    working: Set[str],
    closing: Collection[str],
) -> Outside:
    """Return what unread lines show: where the training loop begins, and whether work follows the last record.

    ``lines``: both ends of the log by number; ``steps``: the lines of the first two records, ``last_step``: that of the last;
    ``read``: all lines of records. The loop begins with an unread line with a word of ``epoch`` that comes with another number
    between the two records. Words of ``working`` or ``epoch`` show work, unless a line of a new kind has one of ``closing``.
    """

    def spoken(line: bytes) -> set[str]:
        return set(_PLAIN_WORD.findall(line.lower().decode("ascii", "replace")))

    def shows(line: bytes, known: Set[tuple[bytes, ...]]) -> bool:
        own = spoken(line)
        return not own.isdisjoint(working | epoch) and (not known.isdisjoint(words_of(line)) or own.isdisjoint(closing))

    first, second = (*steps, 0, 0)[:2]
    early, last = set(read[read < first].tolist()), int(read.max(initial=0))
    between = {words for _, words in told({number: line for number, line in lines.items() if first < number <= last})}
    texts = {number: behind_heads(plain(line + b"\n")) for number, line in lines.items() if number < second}
    again = {words: text for number, text in texts.items() if number > first for words in words_of(text)}
    unread = (n for n, text in texts.items() if n < first and n not in early and not epoch.isdisjoint(spoken(text)))
    begins = (lines[n] for n in unread if any(again.get(words, texts[n]) != texts[n] for words in words_of(texts[n])))
    loop = next((stamp.clock for line in begins for stamp in line_stamps(plain(line + b"\n"), 1)[:1]), math.nan)
    until = begins_again(lines, last, first)
    behind = {number: line for number, line in lines.items() if last < number < until}
    after = any(is_command(line) or shows(line, between) for line in behind.values())
    late = set(read[read > last_step].tolist())
    held = any(shows(line, between) for number, line in lines.items() if last_step < number < last and number not in late)
    if until == math.inf:
        return Outside(loop, after, between=held)
    tail = Stamps.of([s for number, line in behind.items() for s in line_stamps(plain(line + b"\n"), number)])
    return Outside(loop, after, tail, held)


_PLAIN_WORD = compile_later(r"(?<![a-z0-9/.])[a-z]++(?![\w/]{0,80}[./])")
"""A word that is no part of a path or file name."""


class ClockBack(NamedTuple):
    """The line at which the stamps go back by more than any jitter: they prove nothing then."""

    line: int
    seconds: float


def read_edges(head: bytes, tail: bytes, *, cut: bool, lines: tuple[int, int]) -> Edges:
    """Return the stamps in the first and in the last bytes of a file; ``cut``: more bytes precede ``tail``.
    ``lines`` are the number of lines before the file, and up to its end with an open last line."""
    first = Stamps.of(line_stamps(_plain(head), lines[0] + 1))
    if cut:
        tail = tail[tail.find(b"\n") + 1 :]
    ends = tail.count(b"\n") + (0 if tail.endswith(b"\n") else 1)
    return Edges(first, Stamps.of(line_stamps(_plain(tail), lines[1] - ends + 1)))


def log_edges(gathered: Gathered) -> Edges:
    """Return the stamps at both ends of a log; none if it begins in one file and ends in another."""
    if gathered.opening != gathered.final:
        return Edges()
    (tail, size), before = gathered.tails[gathered.final], gathered.lines[gathered.final]
    until = [*gathered.lines, gathered.log.line_count][gathered.final + 1]
    return read_edges(gathered.heads[gathered.final], tail, cut=len(tail) < size, lines=(before, until))


def is_zoned(edges: Edges) -> bool | None:
    """Return whether the stamps at both ends of a log name their zone; None if only some do, or there are none."""
    return next(iter(edges.zones)) if len(edges.zones) == 1 else None


_plain = lru_cache(maxsize=2)(plain)
"""For the ends of a log: a small log is both."""


@lru_cache(maxsize=2)
def line_stamps(text: bytes, number: int) -> list[Stamp]:
    """Return the stamps at the heads of lines, the first of which has this number; cached: a small log is both of its ends."""
    masked = text.translate(MASK)
    if not _may_have_stamps(masked):
        return []
    found: list[Stamp] = []
    start = 0
    for whole in masked.splitlines(keepends=True):
        if _may_have_stamps(whole):
            form = whole.rstrip(b"\r\n")
            line = text[start : start + len(form)]
            spans = _stamped_form(form) if len(form) <= _SHORT else None
            for begin, end, zoned in _stamped(line) if spans is None else spans:
                if not math.isnan(clock := read_clock(line[begin:end])):
                    found.append(Stamp(number, clock, zoned))
                    break
        number, start = number + whole.endswith(b"\n"), start + len(whole)  # redraws are of one line
    return found


def _may_have_stamps(masked: bytes) -> bool:
    return CLOCK_MASKED in masked or UNIX_MASKED in masked


def _stamped(line: bytes) -> Sequence[tuple[int, int, bool]]:
    """Return the spans of a line that may contain its time stamp: ``(start, end, whether a time zone is named)``."""
    record = line.lstrip(b" ")
    blanks = len(line) - len(record)
    said = _SAID.search(record) if b"datetime: " in record else None
    spans = ((0, _head(record)), said.span(1) if said is not None else (0, 0))
    timed = [(a, b) for a, b in spans if may_have_time(record[a:b].translate(MASK))]
    return [(a + blanks, b + blanks, _ZONED.search(record, a, b) is not None) for a, b in timed]


@lru_cache(maxsize=4096)
def _stamped_form(form: bytes) -> Sequence[tuple[int, int, bool]] | None:
    """Return ``_stamped`` of all lines that are ``form`` with each digit as 0; None if it depends on the digits of a line."""
    return None if UNIX_MASKED in form or not is_blind(form) else _stamped(form)


def _head(record: bytes) -> int:
    """Return the end of the heads of a line: envelopes, and heads after the blanks with which a trainer's own line may begin."""
    end = max(head_ends(record), default=0) if record else 0
    if 0 < end < len(record) and record[end : end + 1] == b" ":
        own = record[end:].lstrip(b" ")
        end = max((len(record) - len(own) + place for place in head_ends(own)), default=end) if own else end
    return end


@dataclass(slots=True)
class _Walk:
    """Collects the first and the latest stamp of the events so far, and how far a stamp went back."""

    first: float = math.nan
    first_line: int = 0
    latest: float = -math.inf
    last_line: int = 0
    back: float = 0.0
    back_line: int = 0
    whole: bool = True
    count: int = 0
    hours: list[ClockSkip] = field(default_factory=list)
    """Gaps of an hour or more."""

    @property
    def broken(self) -> bool:
        """Whether a stamp lies further back than any jitter."""
        least, most = JITTER
        return self.back > max(least, min(most, _SHARE * (self.latest - self.first)))

    @property
    def skip(self) -> ClockSkip | None:
        """The first gap in which summer time began, or None."""
        others = self.latest - self.first - sum(gap.after - gap.before for gap in self.hours)
        usual = others / max(1, self.count - 1 - len(self.hours))
        return next((gap for gap in self.hours if skips_hour(gap, usual)), None)

    def take(self, clocks: Floats, lines: Integers) -> None:
        """Update the range and the gaps of the stamps with some records, in log order; records without a stamp are skipped."""
        known = ~np.isnan(clocks)
        clocks, lines = clocks[known], lines[known]
        if not len(clocks):
            return
        latest = np.maximum.accumulate(np.append(self.latest, clocks))[:-1]
        with np.errstate(invalid="ignore"):
            gaps = np.flatnonzero((clocks - latest >= HOUR_S - 1) & (latest > -math.inf))
        for at in gaps[: max(0, MOST_GAPS - len(self.hours))].tolist():
            self.hours.append(ClockSkip(int(lines[at]), float(latest[at]), float(clocks[at])))
        worst = int((latest - clocks).argmax())
        if latest[worst] - clocks[worst] > self.back:
            self.back, self.back_line = float(latest[worst] - clocks[worst]), int(lines[worst])
        if math.isnan(self.first):
            self.first, self.first_line = float(clocks[0]), int(lines[0])
        self.count += len(clocks)
        self.first, self.latest = min(self.first, float(clocks.min())), max(self.latest, float(clocks.max()))
        self.last_line = max(self.last_line, int(lines.max()))
        self.whole = self.whole and bool((clocks == np.floor(clocks)).all())

    def take_one(self, stamp: Stamp) -> None:
        """Update the range and the gaps with the stamp of one line."""
        self.take(np.array([stamp.clock]), np.array([stamp.line]))


def find_life(
    events: EventTable, start: int, edges: Edges, steps: tuple[int, int], *, local: bool = True
) -> Life | ClockBack | ClockSkip | None:
    """Return when the job began and ended that printed ``events`` from position ``start`` in the log on.

    ``steps`` are the lines of its first and its last step record; ``local``: the stamps name no zone. None if no line has a
    stamp, or if the stamps do not enclose the steps: they are of a part of the job then. What is a day or more away from the
    steps, with nothing between, is another start of the program.
    """
    walk = _stamps_of(events, start, edges)
    days = [gap.line for gap in walk.hours if gap.after - gap.before >= DAY]
    first, until = max((n for n in days if n <= steps[0]), default=0), min((n for n in days if n > steps[1]), default=END)
    if first or until < END:
        head = Stamps.of([edges.head.first] if edges.head.first is not None and not first else [])
        own = Edges(head, edges.tail if until == END else Stamps(), edges.grain)
        walk = _stamps_of(events.where((events.line >= first) & (events.line < until)), start, own)
    if walk.broken:
        return ClockBack(walk.back_line, walk.back)
    if local and (skip := walk.skip) is not None:
        return skip
    if math.isnan(walk.first) or walk.first_line > steps[0] or walk.last_line < steps[1]:
        return None
    grain = edges.grain if edges.grain is not None else 1.0 if walk.whole else 0.0
    return Life(walk.first, walk.latest, grain, walk.first_line < steps[0], walk.last_line)


def find_time(events: EventTable, start: int, edges: Edges, zoned: bool | None) -> LogTime | None:
    """Return when a run ran, by the stamps of its ``events`` from position ``start`` on and of the ``edges`` of its log.

    ``zoned``: whether the lines name their zone, None if only some do. None if that is None, no line has a stamp, or the clock
    goes back.
    """
    walk = _stamps_of(events, start, edges)
    if walk.broken or math.isnan(walk.first) or zoned is None:
        return None
    return LogTime.of(walk.first, walk.latest, zoned=zoned, source="log_lines")


def format_clock(clock: float) -> str:
    """Return seconds since 1970 as RFC 3339 without a zone."""
    moment = datetime(1970, 1, 1) + timedelta(microseconds=round(clock * 1e6))
    text = moment.strftime("%Y-%m-%dT%H:%M:%S.%f").zfill(26)  # a year of three digits has none before it on some systems
    return text.rstrip("0").rstrip(".")


def _stamps_of(events: EventTable, start: int, edges: Edges) -> _Walk:
    """Return the stamps of a run, and those of lines that no rule reads if they may be of the same clock."""
    walk = _walk(events, start, edges if len(edges.zones) == 1 else Edges())
    return _walk(events, start, Edges()) if walk.broken else walk


def _walk(events: EventTable, start: int, edges: Edges) -> _Walk:
    walk = _Walk()
    if edges.head.first is not None:
        walk.take_one(edges.head.first)
    table = events.between(start, END)
    for clocks, lines in ((table.clock[part], table.line[part]) for part in slices(table.count)):
        walk.take(clocks, lines)
    latest = edges.tail.last or edges.head.last  # if the last bytes have no stamp, the first bytes may have the latest
    if latest is not None and latest.line > walk.last_line:
        walk.take_one(latest)
    return walk


_DATED = compile_later(
    rb"(?:19|20)\d\d([-/])[01]\d\1[0-3]\d[ T_]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    rb"(?P<zone>Z|[+-]\d\d:?\d\d(?!\d)| (?:UTC|GMT)\b)?(?: [AP]M\b)?(?!\d)"
    rb"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<where>[A-Z]{3,5} )?(?:19|20)\d\d\b"
)
_TO_CLOCK = (11, 7)
"""Bytes of a date before its clock: of one in numbers, and of the name of a month with a day."""
_OPENING = compile_later(rb"[>\s]{0,8}(?:[\[(]|[A-Z]{2,10}[ :])?(?:[A-Z][a-z]{2},? )?\Z")
"""Text that may precede a stamp at the beginning of a line: a quote, a bracket, the name of a logger, a weekday."""
_STATING = compile_later(
    rb"(?i)(?:^|[^a-z])(?:(?:cancelled|started|starting|begun|ended|ending|finished|running|run|launched|job) (?:at|on)"
    rb"|(?:(?:start|begin|end|finish|current|local|launch)[a-z]*[ _-])?(?:date ?)?(?:time|datetime|timestamp|date|now)"
    rb"|(?:start|begin|end|finish)[a-z]*[ _-]time of [a-z_ ]{1,40})"
    rb"[ \t]{0,16}[:=]?[ \t]{0,4}(?:[a-z]{3},? )?\Z"
)
"""Words before a stamp that state when something was: ``CANCELLED AT``, ``START TIME:``, ``time      :``."""
_OTHER = compile_later(
    rb"(?i)buil[dt]|compil|modif|creat|releas|expir|updat|commit|version|valid|deadline|limit|\beta\b|expect|estimat"
)
"""Words of a line whose time is not that of the job: of a build, a file, a commit, a forecast."""


def find_log_time(gathered: Gathered) -> LogTime | None:
    """Return the earliest and the latest stamp in the first and the last bytes of a log; None if there is none.

    Stamps that name their offset are of another clock than those that do not: the more frequent kind counts. ``source`` is
    ``log_ends``.
    """
    head, (tail, size) = gathered.heads[gathered.opening], gathered.tails[gathered.final]
    if len(head) >= HEAD_KEPT:
        head = head[: head.rfind(b"\n") + 1]
    if len(tail) < size:
        tail = tail[tail.find(b"\n") + 1 :]
    stamps = [stamp for text in dict.fromkeys((head, tail)) for stamp in _stamps(_plain(text))]  # in a small log both are equal
    zoned = 2 * sum(stamp.zoned for stamp in stamps) >= len(stamps)
    clocks = [stamp.clock for stamp in stamps if stamp.zoned == zoned]
    return LogTime.of(min(clocks), max(clocks), zoned=zoned, source="log_ends") if clocks else None


def _stamps(text: bytes) -> Iterator[Stamp]:
    yield from line_stamps(text, 1)
    for found in _dated(text):
        start = max(text.rfind(b"\n", 0, found.start()), text.rfind(b"\r", 0, found.start())) + 1
        before = text[max(start, found.start() - 120) : found.start()]
        opens = start >= found.start() - 120 and _OPENING.match(before) is not None
        if (opens or _STATING.search(before) is not None) and _OTHER.search(before) is None:
            clock = read_clock(found[0].replace(b"_", b" "))
            if not math.isnan(clock):
                yield Stamp(1, math.floor(clock), found["zone"] is not None or found["where"] in (b"UTC ", b"GMT "))


def _dated(text: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the matches of ``_DATED``, none of which overlap.
    It looks for clock times (``12:34:56``) first, which is far faster than the pattern alone."""
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
