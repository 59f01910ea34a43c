"""Find the line at which the second of two runs in one log begins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import NamedTuple

from receipt_cli.events.banners import MOST_LINES, SILENCE, STAMPED, first_time, shapes_of
from receipt_cli.events.launches import DAY, SAID_DONE
from receipt_cli.events.starts import configures
from receipt_cli.io.source import Source
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import behind_heads, plain, read_clock
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import SegmentBody

STOPS = ("cause", "stop", "exit_code")
"""Roles of markers after which a run does not go on: before the second run's first step they belong to the first run."""
APART = 3600
"""Seconds between two runs from which line times decide. Beyond a day from a run, a line near the other run is not its own: an
evaluation may take hours."""
READ = 3
"""Weight of a line that a trainer's rules read; a similar-looking line weighs 1."""
LAST = 12
"""Weight of a line that ends a run."""
OPENINGS = 8
"""Kinds of first lines of a log among which the start of a program is sought."""
NEAR = 200
"""Lines of each run that are searched for a time, and first lines of a log among which its program starts."""
_LETTER = compile_later(rb"\w")
_CALL = compile_later(
    rb"(?:[\w.@:~/-]{0,80}[$#>+] )?(?:nohup: |[\w./-]{0,200}\b(?:python[\d.]*|torchrun|srun|mpirun|deepspeed|accelerate launch)\s"
    rb"|Namespace\()"
)


class Gap(NamedTuple):
    """The lines between two runs: after line ``last`` of the first run, before line ``first`` of the second.

    ``one`` and ``other`` are the ids of their grammars. ``sides``: side of each event by line, below 0 for the first run, above
    0 for the second. ``start``: the latest line at which the second run begins, if not ``first``. ``body``: line of the first
    run's first step record.
    """

    last: int
    first: int
    one: str
    other: str
    sides: Mapping[int, int] = MappingProxyType({})
    start: int | None = None
    body: int = 1


def find_border(engine: Engine, source: Source, gap: Gap, openings: Sequence[bytes]) -> int:
    """Return the number of lines before the second run of a gap, and before its starts that came to no step.

    The border leaves the fewest lines on the wrong side. Ties: a line that calls a program or repeats the log's opening (the
    first of ``openings`` that recurs), then the line after the longest silence, then the first printed one that is not indented.
    """
    begin = max(source.lines_before or 0, gap.body - 1 if gap.one == gap.other else 0, gap.last - 1 - NEAR)
    around = source.excerpt(begin, gap.first + NEAR) if gap.first - gap.last <= MOST_LINES else None
    if around is None:
        return min(gap.start or gap.first, gap.first) - 1
    every = b"".join(around.blocks()).removesuffix(b"\n").split(b"\n")
    last, end = gap.last - 1 - begin, gap.first - begin
    lines = every[last:end]
    sides = _Sides(engine, gap, lines, every[: last + 1], every[end - 1 :])
    body = every[max(0, gap.body - 1 - begin) : last] if gap.one != gap.other else []  # a restart repeats its opening
    shapes = _kinds(lines)
    often = {*_kinds(body)}  # lines that the run repeats
    behind = dict(pairwise(openings))  # a run may print one of its first lines at its end again, but not the next one, too
    led = {one for at, one in enumerate(shapes[1:], 2) if one in openings[:1] or behind.get(one) in shapes[at : at + OPENINGS]}
    opening = next((one for one in openings if one in led and one not in often), b"")
    opens = (at for at, line in enumerate(shapes) if at and opening and line == opening)
    again = next((at for at in opens if gap.sides.get(gap.last + at, 1) > 0), None)
    weights = [sides.side(place) if again is None or place < again else LAST for place in range(1, len(lines) - 1)]
    costs = list(accumulate(weights, initial=0))
    best = [place for place, cost in enumerate(costs, 1) if cost == min(costs)]
    begins = [place for place in best if _CALL.match(_bare(lines[place])) or (opening and shapes[place] == opening)]
    printed = (place for place in begins or best if _LETTER.search(lines[place]) and not _bare(lines[place])[:1].isspace())
    return gap.last - 1 + (sides.behind_silence(begins or best) or next(printed, best[-1]))


class _Sides:
    """Assigns the lines of a gap, its two edge lines included, to the first or the second run."""

    def __init__(
        self, engine: Engine, gap: Gap, lines: Sequence[bytes], before: Sequence[bytes], behind: Sequence[bytes]
    ) -> None:
        self.gap, self.lines = gap, lines
        self.bodies = list(map(engine.read_alone, lines))
        self.rules = {(g.ref, r.name): r for g in engine.grammars if g.id in (gap.one, gap.other) for r in g.rules}
        self.companions = {name for name, rule in self.rules.items() if rule.companion and name[0].partition("@")[0] == gap.one}
        self.clocks = [read_clock(plain(line)[:STAMPED]) for line in lines]
        self.stops = {marker.id for marker in engine.catalogue.markers if marker.role in STOPS} | SAID_DONE
        backs = [at for at, (one, other) in enumerate(pairwise(self.clocks), 1) if other < one - SILENCE]
        self.back: int | None = backs[0] if backs else None
        self.traced = set(_traced(lines))
        self.edges = first_time(before[::-1]), first_time(behind)

    @cached_property
    def silences(self) -> list[float]:
        """The seconds before each line since the last line with a time; NaN if either has none."""
        found, before = list[float](), math.nan
        for clock in self.clocks:
            found.append(clock - before)
            before = clock if clock == clock else before
        return found

    def side(self, place: int) -> int:
        """Return a number below 0 for a line of the first run, above 0 for the second, 0 if unknown.

        A rule that reads the line weighs most; then its time, and a marker, since a run prints its failure last.
        """
        gap, line, body = self.gap, self.lines[place], self.bodies[place]
        if body.rules and body.rules.keys() <= self.companions:
            return -READ  # part of the record before it
        dated = self._dated(place)
        if dated and not self._reads(body, "end"):
            return dated
        shown = gap.sides.get(gap.last + place, 0)
        if abs(shown) >= READ:
            return shown - (READ if body.markers else 0)
        read = {ref.partition("@")[0] for ref, _ in body.rules}
        owners = read | body.ignored.keys()
        if gap.one == gap.other and gap.one in read and shown <= 0:
            return -READ  # a line of the last record, not an event
        if gap.one != gap.other and (gap.one in owners) != (gap.other in owners) and _LETTER.search(line):
            return READ if gap.other in owners else 0 if self._configures(body) else -READ
        if gap.one != gap.other and {gap.one, gap.other} <= read and self._reads(body, "end"):
            return -LAST  # the second run has no steps yet that could end
        if place in self.traced or not self.stops.isdisjoint(body.markers):
            return -READ
        (before, after), clock = self.edges, self.clocks[place]
        if abs(after - before) >= APART and clock == clock:
            return 1 if abs(after - clock) < abs(clock - before) else -1
        if clock == clock and math.isnan(before) != math.isnan(after):
            return 1 if math.isnan(before) or (abs(clock - before) >= APART and not body.markers) else -1
        return -READ if body.markers else shown

    def _dated(self, place: int) -> int:
        """Return the side as ``side`` does if the line's time proves it: near one run and a day from the other, or going back."""
        if self.back is not None:
            return LAST if place >= self.back else -LAST
        (before, after), clock = self.edges, self.clocks[place]
        one, other = abs(clock - before), abs(clock - after)
        if after < before and (clock >= before or clock <= after):
            return -LAST if clock >= before else LAST
        return 0 if not (min(one, other) <= APART and max(one, other) >= DAY) else -LAST if one < other else LAST

    def _reads(self, body: SegmentBody, kind: str) -> bool:
        """Return whether a rule of the two trainers reads the line as an event of ``kind``: ``end``, ``step``."""
        return any(self.rules[name].event == kind for name in body.rules if name in self.rules)

    def _configures(self, body: SegmentBody) -> bool:
        """Return whether only configuration headers without a figure read the line: after steps it shows no side."""
        rules = [self.rules[name] for name in body.rules if name in self.rules]
        return bool(rules) and all(map(configures, rules))

    def behind_silence(self, places: Sequence[int]) -> int | None:
        """Return the index in ``places`` after the longest silence, None if none lasts ``SILENCE`` seconds."""
        long = [place for place in places if self.silences[place] >= SILENCE]
        return max(long, key=lambda place: (self.silences[place], -place), default=None)


def _traced(lines: Sequence[bytes]) -> Iterator[int]:
    """Yield the indices of lines in Python tracebacks, their exceptions included."""
    inside = False
    for at, line in enumerate(map(_bare, lines)):
        if line.startswith(b"Traceback (most recent call last)"):
            inside = True
        if inside:
            yield at
            inside = not line or line[:1].isspace() or line.startswith(b"Traceback ")


def _bare(line: bytes) -> bytes:
    return behind_heads(plain(line + b"\n").rstrip(b"\n"))


def openings_of(head: bytes, lines: int) -> list[bytes]:
    """Return the kinds of the first ``lines`` of a log, up to ``OPENINGS``; a collector may print before the program."""
    shapes = _kinds(head.split(b"\n")[: max(0, min(NEAR, lines))])
    return list(dict.fromkeys(filter(None, shapes)))[:OPENINGS]


def _kinds(lines: Sequence[bytes]) -> list[bytes]:
    return [b" ".join(shape.split()) for shape in shapes_of(lines)]
