"""When the records of a log came, and what the GPUs did: from the files of times and of samples beside it."""

from __future__ import annotations

import os
from bisect import bisect_left
from copy import copy
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from receipt_cli.errors import InputError, system_errors
from receipt_cli.io.compression import samples_name, times_name
from receipt_cli.io.samples_file import QUIET, read_samples
from receipt_cli.io.times_file import COARSE, END, EXACT_MS, FOLLOWED, LAUNCH, LONG_CODE, LONG_MS, STEPS, Seal, sealed_entries
from receipt_cli.numeric.array_types import Array, Floats, Integers
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.statistics import exact_median
from receipt_cli.records.split import redraws_by_backspaces
from receipt_cli.scan.columns import POSITION_BITS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from hashlib import _Hash

    from receipt_cli.io.source import Source
    from receipt_cli.scan.columns import RuleColumns
    from receipt_cli.scan.segment import SegmentBody

LATENCY_S = 0.005
"""Seconds within which a line is read that comes after a pause."""
_MOST_CARRIED = 4 << 20
"""Bytes of one line from which on its redraws are counted before its end is known."""


class LaunchTimes(NamedTuple):
    """One start of the program: the bytes of the log before it, how many of the last of these have no time, the longest pause.

    ``begun_ms`` and ``ended_ms`` are in milliseconds since 1970; if it was ``followed``, the first is when that began. The end
    is None if it is unknown.
    """

    offset: int
    begun_ms: int
    followed: bool = False
    skipped: int = 0
    pause_ms: int = 0
    ended_ms: int | None = None

    @property
    def start(self) -> float | None:
        """When its command was started, in seconds since 1970; None if unknown."""
        return None if self.followed else self.begun_ms / 1000.0

    @property
    def end(self) -> float | None:
        """When its command ended, in seconds since 1970; None if unknown."""
        return None if self.ended_ms is None else self.ended_ms / 1000.0


class Started(NamedTuple):
    """One start of the program: the records before it, its first line, when it began, and when it ended or its last record came.

    The times are in seconds since 1970, None if unknown.
    """

    records: int
    line: int
    start: float | None
    end: float | None


class Entries(NamedTuple):
    """Decoded entries: the bytes of the log up to the end of each (int64 [k]), and when they came, in seconds since 1970
    (float64 [k]; NaN if unknown); the starts of the program; and the longest pause between reads in milliseconds.
    ``followed``: the log was looked at after each pause, whether it had grown or not."""

    offsets: Integers
    clock: Floats
    launches: tuple[LaunchTimes, ...]
    pause_ms: int
    followed: bool = False


def decode_entries(entries: bytes) -> Entries | None:
    """Decode the entries of a file of times; None if they are malformed."""
    numbers = _numbers(entries)
    if numbers is None:
        return None
    offsets, clocks = [np.empty(0, np.int64)], [np.empty(0)]
    launches: list[LaunchTimes] = []
    at = offset = pause = 0
    now: int | None = None  # milliseconds since 1970
    followed = False
    while at + 1 < len(numbers):
        rest = numbers[at:]
        codes, counts = rest[: len(rest) // 2 * 2 : 2], rest[1::2]
        zeros = np.flatnonzero(counts == 0)
        many = int(zeros[0]) if len(zeros) else len(counts)
        if many:
            if now is None:
                return None
            ends, times = offset + np.cumsum(counts[:many]), now + np.cumsum(spans_of(codes[:many]))
            offsets.append(ends)
            clocks.append(times / 1000.0)
            offset, now = int(ends[-1]), int(times[-1])
        at += 2 * many
        if not len(zeros):
            break
        mark = numbers[at : at + 5].tolist()
        if len(mark) == 5 and mark[2] in (LAUNCH, FOLLOWED):
            followed |= mark[2] == FOLLOWED
            skipped, now = mark[4], mark[3]
            offset += skipped
            if skipped:
                offsets.append(np.array([offset], np.int64))
                clocks.append(np.array([np.nan]))
            at += 5
            if at >= len(numbers):
                return None
            launches.append(LaunchTimes(offset, now, mark[2] == FOLLOWED, skipped, int(numbers[at])))
            pause = max(pause, int(numbers[at]))
            at += 1
        elif len(mark) >= 3 and mark[2] == END and now is not None:
            now += int(spans_of(numbers[at : at + 1])[0])
            launches[-1] = launches[-1]._replace(ended_ms=now)
            at += 3
        else:
            return None
    if at < len(numbers) or not launches:
        return None
    return Entries(np.concatenate(offsets), np.concatenate(clocks), tuple(launches), pause, followed)


def spans_of(codes: Integers) -> Integers:
    """Return the milliseconds that codes of ``io.times_file.code_of`` stand for (int64 [n])."""
    power, steps = np.divmod(np.clip(codes - EXACT_MS, 0, 8 * STEPS - 1), STEPS)
    rounded = (steps + STEPS) * (COARSE << power)
    return np.where(codes < EXACT_MS, codes, np.where(codes < LONG_CODE, rounded, LONG_MS + 1000 * (codes - LONG_CODE)))


def _numbers(data: bytes) -> Integers | None:
    """Return the LEB128 numbers in ``data``; None if the last one is cut, or one is too large."""
    raw = np.frombuffer(data, np.uint8)
    last = np.flatnonzero(raw < 0x80)
    if not len(raw) or not len(last) or last[-1] != len(raw) - 1:
        return None
    first = np.append(0, last[:-1] + 1)
    if (last - first).max() > 7:
        return None
    within = np.arange(len(raw)) - np.repeat(first, last - first + 1)
    return np.add.reduceat((raw & 0x7F).astype(np.int64) << (7 * within), first)


class Arrivals:
    """The times of a log's records. It hears the log while it is read, and counts the records that came with each entry."""

    def __init__(self, data: bytes, name: str = "", samples: Samples | None = None) -> None:
        """Take the bytes of the file of times ``name``, and the samples of GPUs beside it."""
        self.name, self.samples = name, samples
        self.sha256, self.size_bytes = sha256(data).hexdigest(), len(data)
        sealed = sealed_entries(data)
        entries = None if sealed is None else decode_entries(sealed[1])
        self.seal: Seal | None = None if sealed is None or entries is None else sealed[0]
        self.entries = entries or Entries(np.empty(0, np.int64), np.empty(0), (), 0)
        self.problem = "" if entries is not None else "it is no whole file of times"
        self._heard = self._cut = self._records = self._lines = self._total = 0
        self._carried = b""
        self._done = False
        self._prefix = ""
        self._counts: list[Integers] = []
        self._next = 0
        self._redrawn: list[Integers] = []

    # --- while the log is read ---------------------------------------------------------------------------------------

    def hear(self, block: bytes, before: _Hash | None) -> None:
        """Take the next block of the log; ``before`` is the digest of the text before it. Later readings count for nothing."""
        if self._done or self.problem:
            return
        missing = (0 if self.seal is None else self.seal.log_bytes) - self._heard
        if 0 < missing <= len(block):
            digest = sha256() if before is None else before.copy()
            digest.update(memoryview(block)[:missing])
            self._prefix = digest.hexdigest()
        self._heard += len(block)
        text = self._carried + block
        end = text.rfind(b"\n") + 1
        if not end and len(text) > _MOST_CARRIED:
            end = max(0, text.rfind(b"\r"))
        self._carried = text[end:]
        self._count(text[:end])

    def _count(self, text: bytes) -> None:
        """Count the records that came with each entry in ``text``, whole records behind those counted before."""
        if not text:
            return
        raw = np.frombuffer(text, np.uint8)
        lines = np.flatnonzero(raw == 0x0A)
        ends = lines
        redraws = np.empty(0, np.int64)
        if b"\r" in text:
            carriages = np.flatnonzero(raw == 0x0D)
            alone = np.append(raw, 0)[carriages + 1] != 0x0A
            redraws = carriages[alone]
            ends = np.where(raw[np.maximum(lines - 1, 0)] == 0x0D, lines - 1, lines)
        if b"\b" in text:
            redraws = np.append(redraws, np.array(redraws_by_backspaces(text), np.int64))
        if len(redraws):
            ends = np.sort(np.append(ends, redraws))
            self._redrawn.append(self._lines + np.searchsorted(lines, np.sort(redraws)))
        offsets = self.entries.offsets
        until = int(np.searchsorted(offsets, self._cut + len(text)))
        self._counts.append(self._records + np.searchsorted(ends, offsets[self._next : until] - self._cut, "right"))
        self._next = until
        self._cut += len(text)
        self._records += len(ends)
        self._lines += len(lines)

    def _finish(self) -> None:
        if not self._done:
            self._done = True
            self._count(self._carried)
            self._total = self._records + bool(self._carried and self._carried[-1] not in b"\r\n")
            rest = np.full(len(self.entries.offsets) - self._next, self._records + 1)
            self._counts = [np.concatenate([*self._counts, rest]).astype(np.int64)]
            self._redrawn = [np.concatenate([np.empty(0, np.int64), *self._redrawn])]
            if self.seal is not None and self._prefix != self.seal.log_sha256:
                self.problem = "it is of another log, or one of both has changed"

    # --- behind it ---------------------------------------------------------------------------------------------------

    @property
    def fits(self) -> bool:
        """Whether the log begins with the bytes whose times these are; after the log was read."""
        self._finish()
        return not self.problem

    @property
    def pause_s(self) -> float:
        """Seconds within which lines may have one time although they came one after the other."""
        return self.entries.pause_ms / 1000.0

    def clock_of(self, records: Integers) -> Floats:
        """Return when each record of the log came, by its ordinal, in seconds since 1970 (float64 [n]); NaN if unknown."""
        self._finish()
        places = np.searchsorted(self._counts[0], records, "right")
        known = places < len(self.entries.clock)
        return np.where(known, np.append(self.entries.clock, np.nan)[np.minimum(places, len(self.entries.clock))], np.nan)

    def starts(self) -> list[Started]:
        """Return the starts of the program in the log, in order; after it was read."""
        offsets, clock = self.entries.offsets, self.entries.clock
        found: list[Started] = []
        bounds = [*(launch.offset for launch in self.entries.launches[1:]), None]
        for launch, until in zip(self.entries.launches, bounds, strict=True):
            begin = int(np.searchsorted(offsets, launch.offset, "right"))
            end = len(offsets) if until is None else int(np.searchsorted(offsets, until, "right"))
            records = int(self._counts[0][begin - 1]) if begin else 0
            line = bisect_left(range(records + 1), records, key=self._before) + 1
            known = clock[begin:end][~np.isnan(clock[begin:end])]
            last = float(known[-1]) if len(known) else None
            found.append(Started(records, line, launch.start, last if launch.end is None else launch.end))
        return found

    def stamp(self, body: SegmentBody, lines_before: int, line_end: int | None) -> None:
        """Give each event of ``body``, of lines ``lines_before`` + 1 to ``line_end`` of the log, the time of its record.

        If the body has another number of records than these lines, lines were unpacked or left out: then all records of a line
        have the time of its last one.
        """
        first = self._before(lines_before)
        last = self._total if line_end is None else self._before(line_end)
        for columns in body.rules.values():
            records: Array = first + (columns.at.whole() >> POSITION_BITS)
            if body.records != last - first:
                lines = columns.line.whole() + lines_before
                records = lines + np.searchsorted(self._redrawn[0], lines) - 1
            columns.clock = Cells.of(self.clock_of(records))

    def _before(self, lines: int) -> int:
        """Return the number of records of the log in its first ``lines``."""
        return lines + int(np.searchsorted(self._redrawn[0], lines))


class LiveArrivals(Arrivals):
    """Arrival times of a growing log, noted in memory as its bytes are read."""

    def __init__(self, skipped: int, pause_s: float, now: float, wall: float) -> None:
        """Begin at ``now``, which is ``wall`` in seconds since 1970, after the first ``skipped`` bytes, which get no time.

        The log is looked at every ``pause_s``.
        """
        super().__init__(b"")
        pause_ms, self.problem = round(1000 * pause_s), ""
        self._since, self._skipped = wall - now, skipped
        self._known = 1
        self._ends, self._clock = np.full(1024, skipped, np.int64), np.full(1024, np.nan)
        launch = LaunchTimes(skipped, round(1000 * wall), True, skipped, pause_ms)
        self.entries = Entries(self._ends[:1], self._clock[:1], (launch,), pause_ms, True)

    def add(self, blocks: Iterable[bytes], now: float) -> None:
        """Note that ``blocks``, the next ones of the log, were read at ``now``."""
        for block in blocks:
            self.hear(block, None)
        if self._heard > max(self._skipped, int(self._ends[self._known - 1])):
            if self._known == len(self._ends):
                self._ends, self._clock = (np.resize(column, 2 * len(column)) for column in (self._ends, self._clock))
            self._ends[self._known], self._clock[self._known] = self._heard, self._since + now
            self._known += 1
            self.entries = self.entries._replace(offsets=self._ends[: self._known], clock=self._clock[: self._known])

    def until_now(self) -> Arrivals:
        """Return the times of what was read so far, as if the log ended here."""
        for parts in (self._counts, self._redrawn):
            parts[:] = [np.concatenate([np.empty(0, np.int64), *parts])]
        found = copy(self)
        found._counts, found._redrawn = [*self._counts], [*self._redrawn]
        found._finish()
        return found


GAP = 2.5
"""Ordinary pauses between samples beyond which nobody knows what happened between two."""


class Samples:
    """The samples of a file: each says what the GPUs did since the one before it."""

    def __init__(self, data: bytes) -> None:
        """Take the bytes of the file. What is damaged, or back in time, counts as if it was not there."""
        self.sha256, self.size_bytes = sha256(data).hexdigest(), len(data)
        spans = _spans(data)
        begins, ends, known, idle = (np.array(column, np.float64) for column in zip(*spans, strict=True)) if spans else _NONE
        self._ends = ends
        self._busy = (known > 0) & (idle == 0)
        self._known = known > 0
        self._at = np.stack([begins, ends], 1).ravel()
        self._seconds = [self._sums(which * (ends - begins)) for which in (known, idle)]

    def _sums(self, seconds: Array) -> Floats:
        """Return the sum of ``seconds`` up to each begin and end."""
        after = np.cumsum(seconds)
        return np.stack([after - seconds, after], 1).ravel()

    def within(self, begins: Floats, ends: Floats) -> tuple[Floats, Floats]:
        """Return the seconds of some stretches that were sampled, and of these the seconds in which no GPU did anything
        (float64 [n] each).

        ``begins`` and ``ends`` are in seconds since 1970.
        """
        if not len(self._at):
            return np.zeros(len(begins)), np.zeros(len(begins))
        known, idle = (np.interp(ends, self._at, sums) - np.interp(begins, self._at, sums) for sums in self._seconds)
        return known, idle

    def count_in(self, begin: float, end: float) -> tuple[int, int]:
        """Return how many samples there are of some time, and how many of them show a GPU that works."""
        inside = (self._ends > begin) & (self._ends <= end)
        return int(np.count_nonzero(inside & self._known)), int(np.count_nonzero(inside & self._busy))


_NONE = tuple(np.empty(0) for _ in range(4))


def _spans(data: bytes) -> list[tuple[float, float, bool, bool]]:
    """Return begin and end of what each sample is of, in seconds since 1970, whether it says what all GPUs did, and whether that
    was nothing."""
    spans: list[tuple[float, float, bool, bool]] = []
    try:
        for launch in read_samples(data)[0]["launches"]:
            samples = launch["samples"]
            clocks = (launch["started_ms"] + np.array([sample["ms"] for sample in samples], np.float64)) / 1000.0
            lengths = np.diff(clocks)
            usual = exact_median(lengths) if len(lengths) else None
            if usual is None or not (lengths >= 0).all() or (spans and clocks[0] < spans[-1][1]):
                continue
            for begin, length, sample in zip(clocks.tolist(), lengths.tolist(), samples[1:], strict=False):
                uses = [use for use, _, _ in sample["gpus"]]
                known = bool(uses) and None not in uses and length <= GAP * usual
                spans.append((begin, begin + length, known, known and max(uses) < QUIET))
    except (KeyError, TypeError, ValueError):  # a file that its schema refuses
        return []
    return spans


def find_arrivals(path: str, *, samples: bool = True) -> Arrivals | None:
    """Return the times in the file beside the log at ``path``, with the ``samples`` of GPUs if they are there, too.

    None without times. Raises ``InputError`` if a file cannot be read.
    """
    folder, name = os.path.split(path)
    times, gpus = (os.path.join(folder, beside(name)) for beside in (times_name, samples_name))
    if path == "-" or not os.path.isfile(times):
        return None
    found = None
    if samples and os.path.isfile(gpus):
        with system_errors(InputError, "cannot read the samples of the GPUs", gpus), open(gpus, "rb") as file:
            found = Samples(file.read())
    with system_errors(InputError, "cannot read the times of the log", times), open(times, "rb") as file:
        return Arrivals(file.read(), os.path.basename(times), found)


def arrivals_of(source: Source, body: SegmentBody, steps: Iterable[RuleColumns]) -> Arrivals | None:
    """Give the events of ``body`` the times of the records of ``source``, which was read; return these times.

    None, and nothing is given, if there are none, if they do not fit the log, or if its step records (``steps``: the columns of
    rules) have stamps of their own.
    """
    heard = source.listener
    if not isinstance(heard, Arrivals) or not heard.fits:
        return None
    if any(not np.isnan(columns.clock.whole()).all() for columns in steps):
        return None
    heard.stamp(body, source.lines_before, source.line_end)
    return heard
