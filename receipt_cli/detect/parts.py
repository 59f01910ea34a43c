"""Find the parts of a log that trainers of different grammars printed one behind the other: each is a log of its own.

The trainer with the most evidence has the lines between its first and its last step record; before and behind these the
search goes on. Between two trainers the border is where the fewest records are on the side of the other one.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from types import MappingProxyType

from receipt_cli.detect.choose import MIN_SECONDARY, WITH_STEPS, Alone, Detection, find_alone
from receipt_cli.errors import InputError
from receipt_cli.events.launches import Launch, configures, introduces
from receipt_cli.events.streams import Gathered, gather
from receipt_cli.grammar.catalog import INDUCED
from receipt_cli.io.source import Source, Stream
from receipt_cli.lazy_dataclass import NamedTuple
from receipt_cli.lazy_pattern import compile_later
from receipt_cli.numeric.ordinals import OrdinalSet
from receipt_cli.records.envelope import plain, read_clock
from receipt_cli.records.place import MENTIONED
from receipt_cli.scan.columns import POSITION_BITS, place
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.layout import MASK
from receipt_cli.scan.segment import SegmentBody

ENDS = ("cause", "stop", "error", "completion", "exit_code")
"""Roles of the markers that show that a run ended."""
FAILURES = ("cause", "error", "exit_code")
"""Those of a failure."""
MOST_PARTS = 64
"""A log of more parts is read as one: each part reads the log again up to its end."""
MOST_LINES = 4000
"""Lines between two trainers that are looked at one by one; where there are more, the border is before the second one."""
SILENCE, APART = 60, 3600
"""Seconds without a line behind which a program may have begun anew; seconds between two runs that part their lines."""
STAMPED = 100
"""Bytes of a line in which its stamp is."""
TRAINERS = ("trainer", "benchmark")
"""Layers whose records show a program; those of a format are printed by any."""
MIN_FORMAT = 10
"""Step records of a format that are a run of their own: fewer may be the results that a trainer prints at its end."""
READ = 3
"""A line that a trainer's rules read counts as so many that look like its lines."""
LAST = 12
"""The same of a line with which a run ended."""
NEAR = 200
"""Lines of each of two runs that show how its lines begin."""
HEAD = 12
"""Bytes of a line that show which logger printed it."""
STAMP = 4
"""So many digits at the beginning of a line are a time stamp."""
_LETTER = compile_later(rb"\w")
_WORD = compile_later(rb"[^\W\d_]|[\x80-\xff]")
_CALL = compile_later(
    rb"(?:[\w.@:~/-]{0,80}[$#>+] )?(?:nohup: |[\w./-]{0,200}\b(?:python[\d.]*|torchrun|srun|mpirun|deepspeed|accelerate launch)\s"
    rb"|Namespace\()"
)


class _Stretch(NamedTuple):
    """The records between the first and the last that show where a trainer printed, by ordinal."""

    name: str
    first: int
    last: int


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


def gaps_of_trainers(engine: Engine, body: SegmentBody, detection: Detection) -> list[Gap]:
    """Return the gaps between trainers whose records come one behind the other.

    Step records show where a trainer printed. One with fewer of them counts where a sign of an end parts it from the others.
    """
    known = {c.id: c for c in detection.candidates if c.identified}
    if len(known) < 2:
        return []
    alone = find_alone(engine, body, known)
    least = {name: MIN_SECONDARY if c.layer in TRAINERS else MIN_FORMAT for name, c in known.items()}
    layers = {name: c.layer for name, c in known.items() if c.alone_steps >= least[name]}
    for c in known.values():
        if c.layer == "library" and c.alone_steps >= MIN_SECONDARY and _is_apart(alone[c.id], [alone[name] for name in layers]):
            layers[c.id] = c.layer
    found = list(_split({name: alone[name].steps for name in layers}, layers, 0, body.records))
    signs = _signs(engine, body, known)
    failures = _positions(engine, body, FAILURES)
    few = [
        c for name, c in known.items() if name not in layers and (c.layer in TRAINERS or (c.layer == "library" and c.rules > 1))
    ]
    for c in sorted(few, key=lambda c: (-c.alone, c.id)):
        new = _Stretch(c.id, alone[c.id].records.min(), alone[c.id].records.max())
        failed = bool(failures) and failures[-1] >= new.first
        ended = c.alone_steps > 0 and any(at >= new.first for at in _end_lines(engine, body, [c.id]))
        found = _with_few(found, new, signs, proven=c.named or failed or ended)
    lines = [(_line(engine, body, run.name, run.first), _line(engine, body, run.name, run.last)) for run in found]
    gaps = (
        Gap(last, next_first, one.name, other.name, body=first)
        for (one, (first, last)), (other, (next_first, _)) in pairwise(zip(found, lines, strict=True))
    )
    return [gap for gap in gaps if gap.last < gap.first]


def _is_apart(library: Alone, others: Sequence[Alone]) -> bool:
    """True where all that a library printed, its banner too, precedes or follows all steps of each trainer.

    A trainer that runs on the library prints its steps among those of the library, and behind its banner.
    """
    first, last = library.records.min(), library.records.max()
    spans = [(other.steps.min(), other.steps.max()) for other in others]
    return all(end < first or (last < begin and library.steps.min() > first) for begin, end in spans)


def _signs(engine: Engine, body: SegmentBody, names: Collection[str]) -> list[int]:
    """Return the records that show an end: markers of failures and completions, and end lines of the trainers ``names``."""
    return sorted({*_positions(engine, body, ENDS), *_end_lines(engine, body, names)})


def _end_lines(engine: Engine, body: SegmentBody, names: Collection[str]) -> set[int]:
    """Return the records that are end lines of the trainers ``names``."""
    rules = [(g, r) for g in engine.grammars if g.id in names for r in g.rules if r.event == "end"]
    ends = [columns.at for g, r in rules if (columns := engine.columns(body, g, r)) is not None]
    return {at >> POSITION_BITS for found in ends for at in found}


def _positions(engine: Engine, body: SegmentBody, roles: Sequence[str]) -> list[int]:
    """Return the records with markers of some roles, in order."""
    hits = (body.markers[m.id] for m in engine.catalogue.markers if m.role in roles and m.id in body.markers)
    return sorted(
        {at >> POSITION_BITS for found in hits for at, form in zip(found.at, found.form, strict=True) if form != MENTIONED}
    )


def _with_few(found: Sequence[_Stretch], new: _Stretch, signs: Sequence[int], *, proven: bool) -> list[_Stretch]:
    """Return the stretches with a ``new`` one of few records, where it is outside of them and an end parts it from each.

    Behind the others its own end is enough where it is ``proven``: by its name, a failure there, or its end line and a step.
    """
    every = sorted([*found, new], key=lambda one: one.first)
    at = every.index(new)
    for one, other in pairwise(every[max(0, at - 1) : at + 2]):
        begin = bisect_left(signs, one.first if one is new else one.last)
        parted = begin < bisect_left(signs, other.first)
        ended = proven and other is every[-1] and other is new and bool(signs) and signs[-1] >= new.first
        if one.last >= other.first or not (parted or ended):
            return list(found)
    return every


def gaps_of_launches(launches: Sequence[Launch]) -> list[Gap]:
    """Return the gaps before launches that share no banner with the one before: each can be read as a log of its own."""
    gaps = (
        _gap_between(before, launch)
        for before, launch in pairwise(launches)
        if launch.apart and before.events and launch.events[0].grammar.id != INDUCED  # whose rules are learned from all of it
    )
    return [gap for gap in gaps if gap.last < gap.first]


def _gap_between(before: Launch, launch: Launch) -> Gap:
    """Return the gap between the last step record of a launch and the first of the next one, with the events in it."""
    steps = [at for at, event in enumerate(before.events) if event.is_step] or [len(before.events) - 1]
    first = next((at for at, event in enumerate(launch.events) if event.is_step), 0)
    one, other = before.events[steps[-1]], launch.events[first]
    lead = {event.rule.name for event in before.events[: steps[0]]}
    body = {event.rule.name for event in before.events[steps[0] : steps[-1]]}
    sides: dict[int, int] = {}
    again: set[str] = set()
    begin = min((e.line for e in launch.events[:first] if e.rule.event == "header" and introduces(e)), default=other.line)
    for side, events in ((1, launch.events[:first]), (-1, before.events[steps[-1] + 1 :])):
        for event in reversed(events):
            name, kind = event.rule.name, event.rule.event
            habit = (name in lead) - (name in body)
            if kind == "end":
                sides[event.line] = -LAST
            elif kind == "eval" and side > 0:
                sides[event.line] = READ
            elif kind == "header" and name not in body and introduces(event):
                sides[event.line] = 0 if name in again and side < 0 else READ  # it may come once more at the end of a run
            else:
                figure = kind == "header" and not event.facts and event.line < begin
                sides[event.line] = side * READ if habit == side else habit or (-1 if figure else side)
            again.add(name)
    begun = [e.line for e in launch.events[:first] if sides[e.line] == READ]
    end, body_line = min(begun, default=other.line), before.events[steps[0]].line
    return Gap(one.last_line, end, one.grammar.id, other.grammar.id, sides, launch.line, body_line, bool(begun))


def read_parts(engine: Engine, gathered: Gathered, gaps: Sequence[Gap], workers: int | None = None) -> list[Gathered]:
    """Return the parts of a log in order, each scanned anew as a log of its own; lines count from the first of the log.

    Without gaps those are the runs that ran side by side under names of their own. Empty where there is one part or more
    than one file, and where the log cannot be read again or has changed.
    """
    if not gaps:
        from receipt_cli.detect.names import read_named  # few logs have names

        return read_named(engine, gathered, workers)
    if not 0 < len(gaps) < MOST_PARTS or len(gathered.streams) > 1 or len(gathered.streams[0].parts) > 1:
        return []
    [source], names = gathered.streams[0].parts, gathered.streams[0].names
    opening = _shape(gathered.heads[0].partition(b"\n")[0])
    start, end = source.lines_before, source.line_end
    parts: list[Gathered] = []
    try:
        near = {name: list(_lines_of(gathered.body, name)) for name in gathered.body.near}
        borders = [_find_border(engine, source, gap, opening, near) for gap in gaps]
        for before, until in pairwise([start, *borders, end]):
            again = source.excerpt(before or 0, until)
            if again is None:
                return []
            parts.append(gather(engine, [Stream((again,), names)], workers))
    except InputError:  # gone since it was read
        return []
    return parts if parts[-1].log.sha256 == gathered.log.sha256 else []


def _split(steps: Mapping[str, OrdinalSet], layers: Mapping[str, str], start: int, end: int) -> Iterator[_Stretch]:
    """Yield the stretch of each trainer from record ``start`` to ``end`` (exclusive), in order."""
    counts = {name: ordinals.range_cardinality(start, end) for name, ordinals in steps.items()}
    counts = {name: count for name, count in counts.items() if count >= MIN_SECONDARY}
    if not counts:
        return
    best = min(counts, key=lambda name: (-WITH_STEPS.get(layers[name], 3), -counts[name], name))
    first = steps[best].next_set_bit(start)
    last = steps[best][steps[best].rank(end - 1) - 1]
    rest = {name: steps[name] for name in counts if name != best}
    yield from _split(rest, layers, start, first)
    yield _Stretch(best, first, last)
    yield from _split(rest, layers, last + 1, end)


def _line(engine: Engine, body: SegmentBody, name: str, ordinal: int) -> int:
    """Return the line of a record that a rule of the grammar reads."""
    rules = ((grammar, rule) for grammar in engine.grammars if grammar.id == name for rule in grammar.rules)
    for grammar, rule in rules:
        columns = engine.columns(body, grammar, rule)
        row = bisect_left(columns.at, place(ordinal)) if columns is not None else 0
        if columns is not None and row < len(columns) and columns.at[row] >> POSITION_BITS == ordinal:
            return columns.line[row]
    raise AssertionError("no rule reads the record")


def _find_border(engine: Engine, source: Source, gap: Gap, opening: bytes, near: Mapping[str, Sequence[float]]) -> int:
    """Return how many lines of the log precede the first line of the second run of a gap.

    The fewest lines are then on the side of the other run. Of several such places it is one where a program is called or
    prints what the log began with, ``opening``; behind the longest silence; else the first where anything is printed,
    but for lines that are indented: these go on.
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
    if not _WORD.search(opening) or opening in map(_shape, body):
        opening = b""  # a rule of dashes, or a line that the run prints again and again
    again = next((at for at, line in enumerate(lines) if at and opening and _shape(line) == opening), None)
    weights = [sides.side(place) if again is None or place < again else LAST for place in range(1, len(lines) - 1)]
    behind = list(accumulate(weights, initial=0))
    best = [place for place, cost in enumerate(behind, 1) if cost == min(behind)]
    begins = [place for place in best if _begins(lines[place], opening)]
    printed = (place for place in begins or best if _LETTER.search(lines[place]) and not lines[place][:1].isspace())
    return gap.last - 1 + (sides.behind_silence(begins or best) or next(printed, best[-1]))


class _Sides:
    """The lines of a gap, the last of the first run and the first of the second among them: whose they are."""

    def __init__(
        self, engine: Engine, gap: Gap, lines: Sequence[bytes], around: tuple[Sequence[bytes], Sequence[bytes]],
        near: Mapping[str, Sequence[float]],
    ) -> None:  # fmt: skip
        self.gap, self.lines = gap, lines
        self.bodies = [_read(engine, line) for line in lines]
        self.near = {gap.one for line in near.get(gap.one, ()) if line < gap.last}
        self.near |= {gap.other for line in near.get(gap.other, ()) if line > gap.first}
        self.rules = {(g.ref, r.name): r for g in engine.grammars if g.id in (gap.one, gap.other) for r in g.rules}
        self.companions = {name for name, rule in self.rules.items() if rule.companion and name[0].partition("@")[0] == gap.one}
        self.clocks = [read_clock(plain(line)[:STAMPED]) for line in lines]
        self.following: set[int] = set()
        before, after = ({_shape(line)[:HEAD] for line in some} for some in around)
        self.heads = before - after, after - before
        self.edges = _first_clock(reversed(around[0])), _first_clock(around[1])

    def side(self, place: int) -> int:
        """Return a number below 0 for a line of the first run, above 0 for one of the second, 0 where nothing shows it.

        What reads the line weighs most. Then count its time and a marker, since how a run ended is the last that it prints;
        then a near miss, if the run has others, and whose head it has.
        """
        gap, line, body = self.gap, self.lines[place], self.bodies[place]
        if body.rules and body.rules.keys() <= self.companions:
            return -READ  # of the record before it, into which it may have gone already
        shown = gap.sides.get(gap.last + place, 0)
        if abs(shown) >= READ:
            return shown - (READ if body.markers else 0)
        read = {ref.partition("@")[0] for ref, _ in body.rules}
        owners = read | body.ignored.keys()
        if gap.one == gap.other and gap.one in read and (gap.led or place == 1 or place - 1 in self.following):
            self.following.add(place)
            return -READ  # a line that belongs to the last record, and is no event
        if gap.one != gap.other and (gap.one in owners) != (gap.other in owners) and _LETTER.search(line):
            return READ if gap.other in owners else 0 if self._configures(body) else -READ
        if gap.one != gap.other and {gap.one, gap.other} <= read and self._ends(body):
            return -LAST  # the one behind has begun no steps that could be over
        (before, after), clock = self.edges, self.clocks[place]
        if abs(after - before) >= APART and clock == clock:
            return 1 if abs(after - clock) < abs(clock - before) else -1
        if clock == clock and math.isnan(before) != math.isnan(after):
            return 1 if math.isnan(before) or (abs(clock - before) >= APART and not body.markers) else -1
        if body.markers:
            return -READ
        near = self.near & body.near.keys()
        if (gap.one in near) != (gap.other in near):
            return 1 if gap.other in near else -1
        head = _shape(line)[:HEAD]
        stamped = head.count(b"0") >= STAMP
        return shown or ((head in self.heads[1]) - (head in self.heads[0]) if stamped else 0)

    def _ends(self, body: SegmentBody) -> bool:
        """True for a line that one of the two trainers prints at its end."""
        return any(self.rules[name].event == "end" for name in body.rules if name in self.rules)

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


def _lines_of(body: SegmentBody, name: str) -> Iterator[float]:
    """Yield the lines of the first near misses of a grammar, and infinity where the log has more of them."""
    near = body.near[name]
    yield from (miss.line_number for _, miss in near.first)
    if near.count > len(near.first):
        yield math.inf


def _read(engine: Engine, line: bytes) -> SegmentBody:
    body = SegmentBody()
    engine.read(body, line + b"\n")
    return body


def _first_clock(lines: Iterable[bytes]) -> float:
    clocks = (read_clock(plain(line)[:STAMPED]) for line in lines)
    return next((clock for clock in clocks if clock == clock), math.nan)


def _begins(line: bytes, opening: bytes) -> bool:
    """True for a line with which a program begins."""
    return bool(_CALL.match(line)) or (bool(opening) and _shape(line) == opening)


def _shape(line: bytes) -> bytes:
    return plain(line + b"\n").strip().translate(MASK)
