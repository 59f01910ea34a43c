"""Find the line between two runs of a log with which the second one begins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, islice, pairwise
from types import MappingProxyType
from typing import NamedTuple

from receipt_cli.events.launches import SAID_DONE
from receipt_cli.events.starts import configures
from receipt_cli.io.source import Source
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import CLOCK_MASKED, MASK, UNIX_MASKED, behind_heads, head_ends, plain, read_clock
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import SegmentBody

STOPS = ("cause", "stop", "exit_code")
"""Those of an end that no run goes on behind: before its first step they are of the run before."""
MOST_LINES = 4000
"""Lines between two trainers that are looked at one by one; where there are more, the border is before the second one."""
SILENCE, APART, DAY = 60, 3600, 86400
"""Seconds without a line behind which a program may have begun anew; seconds between two runs that part their lines; and
seconds from a run behind which a line that is near the other run is not its own: an evaluation may take hours."""
STAMPED = 100
"""Bytes of a line in which its stamp is."""
READ = 3
"""A line that a trainer's rules read counts as so many that look like its lines."""
LAST = 12
"""The same of a line with which a run ended."""
OPENINGS = 8
"""Kinds of lines that a log begins with, one of which is the first of a program."""
NEAR = 200
"""Lines of each of two runs that show how its lines begin."""
HEAD = 12
"""Bytes of a line that show which logger printed it."""
STAMP = 4
"""So many digits at the beginning of a line are a time stamp."""
_NOISE = compile_later(rb"[\x00\x08\x1b^]")
"""What a terminal shows otherwise than it is written: a time may be among it."""
_LETTER = compile_later(rb"\w")
_WORD = compile_later(rb"[^\W\d_]|[\x80-\xff]")
_PROCESS = compile_later(rb"\([\w.: ]{0,60}?pid=\d+[^)\n]{0,60}\)")
_CALL = compile_later(
    rb"(?:[\w.@:~/-]{0,80}[$#>+] )?(?:nohup: |[\w./-]{0,200}\b(?:python[\d.]*|torchrun|srun|mpirun|deepspeed|accelerate launch)\s"
    rb"|Namespace\()"
)


class Gap(NamedTuple):
    """The lines between two runs: behind line ``last``, of the one, and before line ``first``, of the other.

    ``one`` and ``other`` are the ids of the grammars that read them. ``sides`` has, by line, on which side events are as
    far as they show it: below 0 for the one run, above 0 for the other. ``start`` is where the other one begins at the
    latest, if that is not line ``first``; ``body`` the first step record of the one; ``led``: line ``first`` is of a banner.
    """

    last: int
    first: int
    one: str
    other: str
    sides: Mapping[int, int] = MappingProxyType({})
    start: int | None = None
    body: int = 1
    led: bool = False


def find_border(engine: Engine, source: Source, gap: Gap, openings: Sequence[bytes], near: Mapping[str, Sequence[float]]) -> int:
    """Return how many lines of the log precede the first line of the second run of a gap.

    The fewest lines are then on the side of the other run. Of several such places it is one where a program is called or
    prints what the log began with, the first of ``openings`` that comes again; behind the longest silence; else the first
    where anything is printed, but for lines that are indented: these go on.
    ``near`` are the lines of the first near misses of each grammar.
    """
    begin = max(source.lines_before or 0, gap.body - 1 if gap.one == gap.other else 0, gap.last - 1 - NEAR)
    around = source.excerpt(begin, gap.first + NEAR) if gap.first - gap.last <= MOST_LINES else None
    if around is None:
        return min(gap.start or gap.first, gap.first) - 1
    every = b"".join(around.blocks()).removesuffix(b"\n").split(b"\n")
    at, end = gap.last - 1 - begin, gap.first - begin
    lines = every[at:end]
    sides = _Sides(engine, gap, lines, (every[: at + 1], every[end - 1 :]), near)
    body = every[max(0, gap.body - 1 - begin) : at] if gap.one != gap.other else []  # a restart prints its opening again
    shapes = list(map(shape, lines))
    often = {*map(shape, body)}  # lines that the run prints again and again
    opening = next((one for one in _come_again(openings, shapes[1:]) if one not in often), b"")
    opens = (at for at, line in enumerate(shapes) if at and opening and line == opening)
    again = next((at for at in opens if gap.sides.get(gap.last + at, 1) > 0), None)
    weights = [sides.side(place) if again is None or place < again else LAST for place in range(1, len(lines) - 1)]
    behind = list(accumulate(weights, initial=0))
    best = [place for place, cost in enumerate(behind, 1) if cost == min(behind)]
    begins = [place for place in best if _begins(lines[place], opening)]
    printed = (place for place in begins or best if _LETTER.search(lines[place]) and not _bare(lines[place])[:1].isspace())
    return gap.last - 1 + (sides.behind_silence(begins or best) or next(printed, best[-1]))


class _Sides:
    """The lines of a gap, the last of the first run and the first of the second among them: whose they are."""

    def __init__(
        self, engine: Engine, gap: Gap, lines: Sequence[bytes], around: tuple[Sequence[bytes], Sequence[bytes]],
        near: Mapping[str, Sequence[float]],
    ) -> None:  # fmt: skip
        self.gap, self.lines = gap, lines
        self.bodies = list(map(engine.read_alone, lines))
        self.near = {gap.one for line in near.get(gap.one, ()) if line < gap.last}
        self.near |= {gap.other for line in near.get(gap.other, ()) if line > gap.first}
        self.rules = {(g.ref, r.name): r for g in engine.grammars if g.id in (gap.one, gap.other) for r in g.rules}
        self.companions = {name for name, rule in self.rules.items() if rule.companion and name[0].partition("@")[0] == gap.one}
        self.clocks = [read_clock(plain(line)[:STAMPED]) for line in lines]
        self.stops = {marker.id for marker in engine.catalogue.markers if marker.role in STOPS} | {SAID_DONE}
        backs = [at for at, (one, other) in enumerate(pairwise(self.clocks), 1) if other < one - SILENCE]
        self.back: int | None = backs[0] if backs else None
        self.following: set[int] = set()
        self.traced = set(_traced(lines))
        self.around = around
        self.edges = _first_clock(around[0][::-1]), _first_clock(around[1])

    @cached_property
    def processes(self) -> tuple[set[bytes], set[bytes]]:
        """Who printed the lines of each run, where these say so."""
        one, other = ({_process(line) for line in some if _may_have_process(line)} - {b""} for some in self.around)
        return one, other

    @cached_property
    def collector(self) -> bytes:
        """The head of what collected the lines."""
        return _collector((*self.around[0], *self.lines, *self.around[1]))

    @cached_property
    def heads(self) -> tuple[set[bytes], set[bytes]]:
        """How the lines of one run begin, and none of the other's."""
        before, after = ({_head(line, self.collector) for line in some} for some in self.around)
        return before - after, after - before

    def side(self, place: int) -> int:
        """Return a number below 0 for a line of the first run, above 0 for one of the second, 0 where nothing shows it.

        What reads the line weighs most. Then count its time and a marker, since how a run ended is the last that it prints;
        then a near miss, if the run has others, and whose head it has.
        """
        gap, line, body = self.gap, self.lines[place], self.bodies[place]
        if body.rules and body.rules.keys() <= self.companions:
            return -READ  # of the record before it, into which it may have gone already
        dated = self._dated(place)
        if dated and not self._reads(body, "end"):
            return dated
        shown = gap.sides.get(gap.last + place, 0)
        if abs(shown) >= READ:
            return shown - (READ if body.markers else 0)
        read = {ref.partition("@")[0] for ref, _ in body.rules}
        owners = read | body.ignored.keys()
        if gap.one == gap.other and gap.one in read and shown <= 0 and (gap.led or place == 1 or place - 1 in self.following):
            self.following.add(place)
            return -READ  # a line that belongs to the last record, and is no event
        if gap.one == gap.other and self._reads(body, "step"):
            return -READ  # the last record once more, behind the line that reports the end
        if gap.one != gap.other and (gap.one in owners) != (gap.other in owners) and _LETTER.search(line):
            return READ if gap.other in owners else 0 if self._configures(body) else -READ
        if gap.one != gap.other and {gap.one, gap.other} <= read and self._reads(body, "end"):
            return -LAST  # the one behind has begun no steps that could be over
        if place in self.traced or not self.stops.isdisjoint(body.markers):
            return -READ
        (before, after), clock = self.edges, self.clocks[place]
        if abs(after - before) >= APART and clock == clock:
            return 1 if abs(after - clock) < abs(clock - before) else -1
        if clock == clock and math.isnan(before) != math.isnan(after):
            return 1 if math.isnan(before) or (abs(clock - before) >= APART and not body.markers) else -1
        if body.markers:
            return -READ
        printed = {_process(line)} & (self.processes[0] ^ self.processes[1])
        if printed:
            return READ if printed <= self.processes[1] else -READ
        near = self.near & body.near.keys()
        if (gap.one in near) != (gap.other in near):
            return 1 if gap.other in near else -1
        if shown:
            return shown
        head = _head(line, self.collector)
        stamped = head.count(b"0") >= STAMP
        return (head in self.heads[1]) - (head in self.heads[0]) if stamped else 0

    def _dated(self, place: int) -> int:
        """Return a number as ``side`` does where the time of a line is proof: near one run, a day from the other, or back."""
        if self.back is not None:
            return LAST if place >= self.back else -LAST
        (before, after), clock = self.edges, self.clocks[place]
        one, other = abs(clock - before), abs(clock - after)
        if after < before and (clock >= before or clock <= after):
            return -LAST if clock >= before else LAST
        return 0 if not (min(one, other) <= APART and max(one, other) >= DAY) else -LAST if one < other else LAST

    def _reads(self, body: SegmentBody, kind: str) -> bool:
        """True for a line that a rule of one of the two trainers reads as an event of this kind: ``end``, ``step``."""
        return any(self.rules[name].event == kind for name in body.rules if name in self.rules)

    def _configures(self, body: SegmentBody) -> bool:
        """True for a line that only headers of the configuration read, without a figure: behind steps it shows no side."""
        rules = [self.rules[name] for name in body.rules if name in self.rules]
        return bool(rules) and all(map(configures, rules))

    def behind_silence(self, places: Sequence[int]) -> int | None:
        """Return the one of ``places`` behind the longest silence by the stamps of the lines, None where none is long."""
        silences: dict[int, float] = {}
        before = math.nan
        for at, clock in enumerate(self.clocks):
            silences[at] = clock - before
            before = clock if clock == clock else before
        long = [place for place in places if silences[place] >= SILENCE]
        return max(long, key=lambda place: (silences[place], -place), default=None)


def _traced(lines: Sequence[bytes]) -> Iterator[int]:
    """Yield the lines of Python tracebacks, each with the exception behind it."""
    inside = False
    for at, line in enumerate(map(_bare, lines)):
        if line.startswith(b"Traceback (most recent call last)"):
            inside = True
        if inside:
            yield at
            inside = not line or line[:1].isspace() or line.startswith(b"Traceback ")


def _bare(line: bytes) -> bytes:
    return behind_heads(plain(line + b"\n").rstrip(b"\n"))


def _may_have_process(line: bytes) -> bool:
    return b"pid=" in line or _NOISE.search(line) is not None


def _process(line: bytes) -> bytes:
    """Return the head of a line with the id of the process that printed it, empty without one."""
    found = _PROCESS.match(plain(line + b"\n"))
    return found[0] if found else b""


def _first_clock(lines: Sequence[bytes]) -> float:
    text = b"\n".join(lines)
    if _NOISE.search(text) is None:
        masked = text.translate(MASK)
        if CLOCK_MASKED not in masked and UNIX_MASKED not in masked:
            return math.nan
    clocks = (read_clock(plain(line)[:STAMPED]) for line in lines)
    return next((clock for clock in clocks if clock == clock), math.nan)


def _begins(line: bytes, opening: bytes) -> bool:
    """True for a line with which a program begins."""
    return bool(_CALL.match(_bare(line))) or (bool(opening) and shape(line) == opening)


def _collector(lines: Iterable[bytes]) -> bytes:
    """Return the first head of all lines with each digit as 0, where it is the same; else empty."""
    records = (record for record in map(plain, lines) if record.strip())
    heads = (record[: min(head_ends(record), default=0)].translate(MASK) for record in records)
    first = next(heads, b"")
    return first if first and all(head == first for head in heads) else b""


def _head(line: bytes, collector: bytes) -> bytes:
    """Return how the head of a line begins behind that of a collector, with each digit as 0."""
    record = plain(line)[len(collector) :]
    return record[: min(HEAD, max(head_ends(record), default=0))].translate(MASK)


def _come_again(openings: Sequence[bytes], shapes: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the openings that are among ``shapes``: the first one, and others where the next one is soon behind them there, too.

    A run may print one of its first lines at its end.
    """
    for at, one in enumerate(openings):
        places = [place for place, shape in enumerate(shapes, 1) if shape == one]
        led = any(other in shapes[place : place + OPENINGS] for place in places for other in openings[at + 1 : at + 2])
        if places and (at == 0 or led):
            yield one


def openings_of(head: bytes, lines: int) -> list[bytes]:
    """Return the kinds of the first ``lines`` of a log, those before its steps: a collector may write before a program does."""
    shapes = (shape(line) for line in head.split(b"\n")[: max(0, min(NEAR, lines))])
    return list(islice(dict.fromkeys(one for one in shapes if _WORD.search(one)), OPENINGS))


def shape(line: bytes) -> bytes:
    """Return a line without its envelope, with each digit as 0."""
    return _bare(line).strip().translate(MASK)
