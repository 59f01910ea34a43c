"""Read the files of one log into one body, and order their events and markers.

Each file is scanned by itself; the bodies are joined in turn, so that line numbers count through the files. Time stamps of two
hosts disagree and many lines have none, but all ranks share the step. So the streams of the process with most step records,
its restarts included, are the time line, and a record of another rank is placed beside the last step that this rank printed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from receipt_cli.errors import InputError
from receipt_cli.events.file_order import Lane, Part, make_lanes
from receipt_cli.events.table import EventTable, not_nan
from receipt_cli.io.source import Source, Stream, digest_of, joined
from receipt_cli.problems import QUIET_RECORDS, Problem
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.arrivals import Arrivals, arrivals_of
from receipt_cli.scan.columns import POSITION_BITS
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import TAIL_KEPT, Hits, Segment, SegmentBody
from receipt_cli.scan.workers import scan_source

Place = tuple[int, int, int, int, int]
"""Where a record comes in the run: (stream of the time line, record in it, -1 before it or 0 for itself or 1 after it, lane,
record of the lane). Places ascend in the order of the run."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """One file of a log that has several."""

    name: str
    rank: int | None
    sha256: str
    size_bytes: int
    line_count: int


@dataclass(frozen=True, slots=True)
class LogFacts:
    """Size, digest and counts of a log. ``line_count`` includes an open last line, ``record_count`` each redraw of a bar.

    With several ``files`` the digest is that of their digests, each as hex digits and a newline.
    """

    sha256: str
    size_bytes: int
    line_count: int
    record_count: int
    files: tuple[FileFacts, ...] = ()


@dataclass(slots=True)
class Gathered:
    """A log as read. For each stream, ``starts`` and ``lines`` are how many records and lines precede it, ``heads`` its first
    bytes, ``tails`` its last bytes and its size. ``opening`` and ``final``: the first and the last stream of the time line."""

    body: SegmentBody
    log: LogFacts
    streams: Sequence[Stream]
    problems: list[Problem] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    lines: list[int] = field(default_factory=lambda: [0])
    tails: list[tuple[bytes, int]] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    changed: bool = False
    final: int = 0
    opening: int = 0
    arrivals: Arrivals | None = None
    """The times at which the records came, if the events have their times from there."""

    @property
    def twins(self) -> dict[int, int]:
        """Maps a rank to the rank whose lines it repeats in the file that both print into."""
        return {rank: of for stream in self.streams for part in stream.parts for rank, of in part.copies.duplicate_of.items()}

    def tail(self, line: int | None) -> tuple[bytes, bool]:
        """Return the last bytes of the stream that contains ``line``, else of the time line, and whether more precede."""
        number = self.final
        if line is not None:
            number = max(i for i, before in enumerate(self.lines) if before < line)
        data, size = self.tails[number]
        return data, len(data) < size

    def in_order(self, events: EventTable) -> tuple[EventTable, SegmentBody]:
        """Return the events in the order of the run, and the body with its markers in the same order.
        Raises ``UsageError`` if the streams are not of one run."""
        if len(self.streams) == 1:
            return events, self.body

        parts = self._parts(events)
        lanes, loose = make_lanes(self.streams, parts)
        leader = lanes[0]
        if loose:
            self._leave_out({part.number: part.name for part in loose})
        self.opening, self.final = leader.parts[0].number, leader.parts[-1].number
        lane_of = {part.number: number for number, lane in enumerate(lanes) for part in lane.parts}
        lane = np.concatenate([np.full(len(part.events), lane_of.get(part.number, -1)) for part in parts])
        ranks = np.array([NO_RANK if one.rank is None else one.rank for one in lanes], np.int64)
        events = events.having(rank=np.where((events.rank == NO_RANK) & (lane >= 0), ranks[lane], events.rank))
        if not len(leader.parts[0].steps):
            return events.where(lane >= 0), self.body
        numbers = self._numbers(self._places(lanes))
        owners = {part.number: one.rank for one in lanes for part in one.parts if one.rank is not None}
        markers = {name: self._reorder(hits, numbers, owners) for name, hits in self.body.markers.items()}
        copies = (lane > 0) & events.by_source(lambda source: source.is_step) & ~not_nan(events.steps)
        kept = events.where((lane >= 0) & ~copies)
        moved = np.array([_moved(at, numbers) for at in kept.at.tolist()], np.int64)
        return kept.moved(moved), replace(self.body, markers=markers)

    def _leave_out(self, loose: Mapping[int, str]) -> None:
        """Remove the markers of the streams that nothing ties to the run, and note a problem for each."""
        for number, name in loose.items():
            detail = f"{name} was left out: nothing shows that it belongs to the run"
            self.problems.append(Problem("file_of_another_run", self.lines[number] + 1, detail, ""))
        kept = {
            name: hits.where(lambda at: self._stream(at >> POSITION_BITS) not in loose)
            for name, hits in self.body.markers.items()
        }
        self.body = replace(self.body, markers={name: hits for name, hits in kept.items() if hits.at})

    def _parts(self, events: EventTable) -> list[Part]:
        bounds = [*self.starts, self.body.records]
        records = list(pairwise(bounds))
        places = [(first << POSITION_BITS, last << POSITION_BITS) for first, last in records]
        return [Part(i, stream, records[i], events.between(*places[i])) for i, stream in enumerate(self.streams)]

    def _stream(self, record: int) -> int:
        return bisect_left(self.starts, record + 1) - 1

    def _places(self, lanes: Sequence[Lane]) -> dict[int, Place]:
        """Return for each record with an event or a marker, by its number in the log, where it comes in the run."""
        records: list[set[int]] = [set() for _ in self.streams]
        for at in (at for hits in self.body.markers.values() for at in hits.at):
            records[self._stream(at >> POSITION_BITS)].add(at >> POSITION_BITS)
        for part in (part for lane in lanes for part in lane.parts):
            records[part.number].update((part.events.at >> POSITION_BITS).tolist())
        leader = lanes[0]
        order = {part.number: seq for seq, part in enumerate(leader.parts)}
        places = {r: (order[p.number], r, 0, 0, 0) for p in leader.parts for r in records[p.number]}
        anchors = [(place, (order[p.number], record)) for p in leader.parts for record, place in _steps_of(p)]
        for number, lane in enumerate(lanes[1:], 1):
            for record, place in _beside(lane, anchors, records):
                places[record] = (*place, number, record)
        return places

    def _numbers(self, places: dict[int, Place]) -> dict[int, int]:
        """Return the new number of each record by its old one; numbers rise in the order of ``places``.
        Two neighbours that follow each other in one stream keep their distance; otherwise the number rises by 1."""
        numbers: dict[int, int] = {}
        number = before = 0
        for record in sorted(places, key=places.__getitem__):
            near = record > before and self._stream(record) == self._stream(before)
            number += record - before if near else 1
            numbers[record] = number
            before = record
        return numbers

    def _reorder(self, hits: Hits, numbers: dict[int, int], ranks: dict[int, int]) -> Hits:
        """Return the hits in their new order; a hit whose line names no rank has that of its file."""
        moved: list[tuple[int, int, int, int]] = []
        for at, line, rank, form in zip(hits.at, hits.line, hits.rank, hits.form, strict=True):
            own = rank if rank != NO_RANK else ranks.get(self._stream(at >> POSITION_BITS), NO_RANK)
            moved.append((_moved(at, numbers), line, own, form))
        ats, lines, owners, forms = zip(*sorted(moved), strict=True)
        hosts = {_moved(at, numbers): host for at, host in hits.hosts.items()}
        texts = sorted(((_moved(at, numbers), text, code) for at, text, code in hits.known), key=lambda text: text[0])
        return Hits(array("q", ats), array("q", lines), texts, array("q", owners), array("b", forms), hosts)


def gather(engine: Engine, streams: Sequence[Stream], workers: int | None = None) -> Gathered:
    """Read all streams, each file once. Raises ``InputError``."""
    if len(streams) == 1 and len(streams[0].parts) == 1:
        return gathered_from(engine, scan_source(engine, streams[0].parts[0], workers), streams[0])
    whole, files = SegmentBody(), list[FileFacts]()
    gathered = Gathered(whole, LogFacts("", 0, 0, 0), streams, starts=[], lines=[])
    for stream in streams:
        counts = [0] * len(stream.parts)
        try:
            segment = engine.scan(_blocks(stream.parts, counts), whole=True)
        except BaseException:
            for part in stream.parts:
                part.close()  # also ends reading ahead
            raise
        body, lines = engine.finish(segment, _again(stream))
        body.lines = lines
        counts[-1] = body.lines - sum(counts[:-1])  # an open last line counts
        for part, name, count in zip(stream.parts, stream.names, counts, strict=True):
            files.append(FileFacts(name, stream.rank if stream.certain else None, part.sha256, part.size_bytes, count))
            gathered.problems += [problem.moved(whole.lines) for problem in part.found]
            gathered.changed |= part.changed
        gathered.starts.append(whole.records)
        gathered.lines.append(whole.lines)
        gathered.tails.append((segment.last_bytes, segment.size))
        gathered.heads.append(segment.first_bytes)
        whole.extend(body)
    size = sum(file.size_bytes for file in files)
    gathered.log = LogFacts(digest_of([file.sha256 for file in files]), size, whole.lines, whole.records, tuple(files))
    return gathered


def gathered_from(engine: Engine, segment: Segment, stream: Stream) -> Gathered:
    """Return the log from ``segment``, the scan of a stream of one part; ``segment`` is used up.
    Lines count from the first line of the log, even if the source leaves some out."""
    source, heads = stream.parts[0], [segment.first_bytes]
    tails = [(segment.last_bytes, segment.size)]
    body, lines = engine.finish(segment, _again(stream))
    body.copied = source.empty_lines
    arrivals = arrivals_of(source, body, engine.step_columns(body))
    before = source.lines_before
    if before:
        own, body = body, SegmentBody(lines=before, copied=body.copied)
        body.extend(own)
    log = LogFacts(source.sha256, source.size_bytes, before + lines, body.records)
    changed, found = source.changed, source.found
    return Gathered(body, log, [stream], found, lines=[before], tails=tails, heads=heads, changed=changed, arrivals=arrivals)


def _again(stream: Stream) -> Callable[[int], bytes]:
    """Return a function that reads a line of the stream and the next line once more; b"" if the stream cannot be read again."""

    def text(line: int) -> bytes:
        source = joined(stream.parts)
        before = source.lines_before + line - 1
        try:
            again = source.excerpt(before, before + 2)
            return b"" if again is None else b"".join(again.blocks())
        except InputError:  # it disappeared after it was read
            return b""

    return text


def _blocks(parts: Sequence[Source], counts: list[int]) -> Iterator[bytes]:
    """Yield the bytes of all parts and count the line ends of each."""
    for number, part in enumerate(parts):
        for block in part.blocks():
            counts[number] += block.count(b"\n")
            yield block


def last_bytes_before(stream: Stream, line: int) -> bytes:
    """Return the last bytes before ``line`` (from 1) of a stream, which is read once more; b"" if that is impossible.
    Raises ``InputError``."""
    parts = [again for part in stream.parts if (again := part.reopen()) is not None]
    if len(parts) < len(stream.parts):
        return b""
    kept = b""
    missing = line - 1 - parts[0].lines_before
    for block in _blocks(parts, [0] * len(parts)):
        ends = block.count(b"\n")
        if ends >= missing:
            at = -1
            for _ in range(missing):
                at = block.find(b"\n", at + 1)
            return (kept + block[: at + 1])[-TAIL_KEPT:]
        missing -= ends
        kept = (kept + block)[-TAIL_KEPT:]
    return kept


def _beside(
    lane: Lane, anchors: Sequence[tuple[float, tuple[int, int]]], records: Sequence[set[int]]
) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """Yield each record of a lane beside the time line with the first three of its ``Place``: -1 before a record or 1 after it.

    A record before the first step of a stream goes before that step; one at the very end goes to the end of the attempt: that
    other ranks still printed steps does not mean that this one survived. In a stream without steps, errors go to the beginning if
    the process went on after them, else to the end.
    """
    by_step: dict[float, list[int]] = {}
    for index, (step, _) in enumerate(anchors):
        by_step.setdefault(step, []).append(index)
    pointer = 0
    for part in lane.parts:
        steps = dict(_steps_of(part))
        lines = part.events.of_sources(lambda source: source.rule.event in ("header", "compile", "phase"))
        opening = {*(lines.at >> POSITION_BITS).tolist()}
        waiting: list[int] = []
        last: float | None = None
        final = max(steps, default=0)
        for record in sorted(records[part.number]):
            if record in steps:
                again = last is not None and steps[record] < last
                found = by_step.get(steps[record], [])
                at = bisect_left(found, pointer + again)
                pointer = found[at] if at < len(found) else pointer
                yield from ((w, (*anchors[pointer][1], -1)) for w in waiting)
                waiting, last = [], steps[record]
                yield record, (*anchors[pointer][1], 1)
            elif last is None and steps:
                waiting.append(record)
            elif last is not None:
                at = pointer
                if record > final and part.records[1] - record <= QUIET_RECORDS:  # to the end of the attempt
                    while at + 1 < len(anchors) and anchors[at + 1][0] >= anchors[at][0]:
                        at += 1
                yield record, (*anchors[at][1], 1)
            elif record in opening or part.records[1] - record > QUIET_RECORDS:
                yield record, (*anchors[0][1], -1)
            else:
                yield record, (*anchors[-1][1], 1)


def _steps_of(part: Part) -> Iterator[tuple[int, float]]:
    """Yield the number in the log of each step record of a stream, and its position in training, 0 if it prints none."""
    places = np.where(np.isnan(part.steps.positions), 0.0, part.steps.positions)
    return zip((part.steps.at >> POSITION_BITS).tolist(), places.tolist(), strict=True)


def _moved(at: int, numbers: dict[int, int]) -> int:
    return numbers[at >> POSITION_BITS] << POSITION_BITS | at & ((1 << POSITION_BITS) - 1)
