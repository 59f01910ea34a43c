"""Find the parts of a log that trainers of different grammars printed in sequence: each is its own log.

The trainer with the most evidence owns the lines between its first and its last step record; the search goes on before and
after these. The border between two trainers leaves the fewest records on the wrong side.

Runs that ran side by side put their name before each record, as a sweep does (``Run: NAME | Epoch: 1 | loss …``). Names are runs
if most of them recur after records of others; the folds of a loop come one after another.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise
from typing import NamedTuple

import numpy as np

from receipt_cli.detect.borders import LAST, READ, Gap, find_border, openings_of
from receipt_cli.detect.choose import MIN_SECONDARY, WITH_STEPS, Detection, Explained, explained
from receipt_cli.errors import InputError
from receipt_cli.events.launches import Launch
from receipt_cli.events.starts import introduces
from receipt_cli.events.streams import Gathered, gather
from receipt_cli.grammar.catalog import INDUCED
from receipt_cli.io.source import Source, Stream, joined
from receipt_cli.numeric.ordinals import OrdinalSet
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import plain, starts
from receipt_cli.records.heuristics import count_step_lines
from receipt_cli.records.place import MENTIONED
from receipt_cli.scan.columns import POSITION_BITS, place
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import SegmentBody

ENDS = ("cause", "stop", "error", "completion", "exit_code")
"""Roles of markers that end a run."""
FAILURES = ("cause", "error", "exit_code")
"""Roles of markers that show a failure."""
MOST_PARTS = 64
"""A log with more parts is read as one, because each part reads the log up to its end."""
TRAINERS = ("trainer", "benchmark")
"""Layers whose records identify a program; any program may print a format."""
MIN_FORMAT = 10
"""Fewest step records of a format that are a run; fewer may be results at a trainer's end."""


class _Stretch(NamedTuple):
    """The span of a trainer's records, by ordinal of the first and the last."""

    name: str
    first: int
    last: int


def gaps_of_trainers(engine: Engine, body: SegmentBody, detection: Detection) -> list[Gap]:
    """Return each place where the records of one trainer end and those of the next trainer begin.

    A trainer needs ``MIN_SECONDARY`` step records (a format ``MIN_FORMAT``), or a sign of an end between it and the others.
    """
    known = {c.id: c for c in detection.candidates if c.identified}
    if len(known) < 2:
        return []
    told = explained(engine, body)
    least = {name: MIN_SECONDARY if c.layer in TRAINERS else MIN_FORMAT for name, c in known.items()}
    layers = {name: c.layer for name, c in known.items() if c.alone_steps >= least[name]}
    for c in known.values():
        if c.layer == "library" and c.alone_steps >= MIN_SECONDARY and _is_apart(told[c.id], [told[name] for name in layers]):
            layers[c.id] = c.layer
    signs = sorted({*_positions(engine, body, ENDS), *_end_lines(engine, body, known)})  # records that show an end
    found = list(_split({name: told[name].alone_steps for name in layers}, layers, signs, 0, body.records))
    failures = _positions(engine, body, FAILURES)
    few = [
        c for name, c in known.items() if name not in layers and (c.layer in TRAINERS or (c.layer == "library" and c.rules > 1))
    ]
    for c in sorted(few, key=lambda c: (-c.alone, c.id)):
        new = _Stretch(c.id, told[c.id].alone.min(), told[c.id].alone.max())
        failed = bool(failures) and failures[-1] >= new.first
        ended = c.alone_steps > 0 and any(at >= new.first for at in _end_lines(engine, body, [c.id]))
        found = _with_few(found, new, signs, proven=c.named or failed or ended)
    around = [_Stretch(c.id, told[c.id].alone.min(), told[c.id].alone.max()) for c in few if c.layer in TRAINERS]
    lines = [_lines_around(engine, body, found, at, around) for at in range(len(found))]
    gaps = (
        Gap(last, next_first, one.name, other.name, body=first)
        for (one, (first, last)), (other, (next_first, _)) in pairwise(zip(found, lines, strict=True))
    )
    return [gap for gap in gaps if gap.last < gap.first]


def _lines_around(
    engine: Engine, body: SegmentBody, found: Sequence[_Stretch], at: int, around: Sequence[_Stretch]
) -> tuple[int, int]:
    """Return the first and last line of a stretch, with the trainer of ``around`` that encloses only this one.

    A trainer whose callback prints steps in another format prints its own lines around them.
    """
    run = found[at]
    before = found[at - 1].last if at else -1
    after = found[at + 1].first if at + 1 < len(found) else body.records
    mine = [run, *(one for one in around if before < one.first < run.first and run.last < one.last < after)]
    first, last = min(mine, key=lambda one: one.first), max(mine, key=lambda one: one.last)
    return _line(engine, body, first.name, first.first), _line(engine, body, last.name, last.last)


def _is_apart(library: Explained, others: Sequence[Explained]) -> bool:
    """Return whether all records of a library, its banner too, precede or follow all steps of each trainer.

    A trainer that uses the library prints its steps among the library's, and after its banner.
    """
    first, last = library.alone.min(), library.alone.max()
    spans = [(other.alone_steps.min(), other.alone_steps.max()) for other in others]
    return all(end < first or (last < begin and library.alone_steps.min() > first) for begin, end in spans)


def _end_lines(engine: Engine, body: SegmentBody, names: Collection[str]) -> set[int]:
    """Return the ordinals of the end lines of the trainers ``names``."""
    rules = [(g, r) for g in engine.grammars if g.id in names for r in g.rules if r.event == "end"]
    ends = [columns.at for g, r in rules if (columns := engine.columns(body, g, r)) is not None]
    return {at >> POSITION_BITS for found in ends for at in found}


def _positions(engine: Engine, body: SegmentBody, roles: Sequence[str]) -> list[int]:
    """Return the ordinals of records with markers of these roles, in order."""
    hits = (body.markers[m.id] for m in engine.catalogue.markers if m.role in roles and m.id in body.markers)
    return sorted(
        {at >> POSITION_BITS for found in hits for at, form in zip(found.at, found.form, strict=True) if form != MENTIONED}
    )


def _with_few(found: Sequence[_Stretch], new: _Stretch, signs: Sequence[int], *, proven: bool) -> list[_Stretch]:
    """Return the stretches with the short stretch ``new``, if ends separate it from its neighbours.

    For the last stretch its own end suffices if it is ``proven``: by its name, by a failure, or by its end line and a step.
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
    """Return the gaps before launches without a shared banner, which can be read as separate logs."""
    gaps = (
        _gap_between(before, launch)
        for before, launch in pairwise(launches)
        if launch.apart and before.events and launch.events and _may_be_read_alone(before, launch)
    )
    return [gap for gap in gaps if gap.last < gap.first]


def _may_be_read_alone(before: Launch, launch: Launch) -> bool:
    """Return whether a launch can have a receipt of its own, read without the rest of the log.

    A launch read by learned rules can if its step rules are those of the launch ``before`` it, and no doubt is on it.
    """
    if launch.events[0].grammar.id != INDUCED:
        return True
    one, other = ({source.rule.name for source in run.events.sources if source.is_step} for run in (before, launch))
    return (one == other or not one) and launch.doubtful is None


def _gap_between(before: Launch, launch: Launch) -> Gap:
    """Return the gap between the last step record of a launch and the first of the next, with its events."""
    known, anew = (np.flatnonzero(run.events.by_source(lambda source: source.is_step)) for run in (before, launch))
    begin_at, end_at = (int(known[0]), int(known[-1])) if len(known) else (len(before.events) - 1, len(before.events) - 1)
    first = int(anew[0]) if len(anew) else 0
    one, other = before.events[end_at], launch.events[first]
    lead, body = (
        {source.rule.name for source in part.sources} for part in (before.events[:begin_at], before.events[begin_at:end_at])
    )
    sides: dict[int, int] = {}
    again: set[str] = set()
    begin = min((e.line for e in launch.events[:first] if e.rule.event == "header" and introduces(e)), default=other.line)
    for side, events in ((1, launch.events[:first]), (-1, before.events[end_at + 1 :])):
        for event in reversed(events):
            name, kind = event.rule.name, event.rule.event
            habit = (name in lead) - (name in body)
            if kind == "end":
                sides[event.line] = -LAST
            elif kind == "eval" and side > 0:
                sides[event.line] = READ
            elif kind == "header" and name not in body and introduces(event):
                sides[event.line] = 0 if name in again and side < 0 else READ  # it may be repeated at the end of a run
            else:
                figure = kind == "header" and bool(event.rule.fields) and not event.facts and event.line < begin
                sides[event.line] = side * READ if habit == side else habit or (-1 if figure else side)
            again.add(name)
    end = min((e.line for e in launch.events[:first] if sides[e.line] == READ), default=other.line)
    body_line = before.events[begin_at].line
    return Gap(one.line, end, one.grammar.id, other.grammar.id, sides, launch.line, body_line)


def read_parts(engine: Engine, gathered: Gathered, gaps: Sequence[Gap], workers: int | None = None) -> list[Gathered]:
    """Return the parts of a log in order, each scanned as a separate log with the line numbers of the whole.

    Without gaps the parts are the named runs that ran side by side. Empty if there is one part, if several processes wrote the
    log, or if the log cannot be read again or has changed.
    """
    if not gaps or gaps[0].one == INDUCED:
        named = read_named(engine, gathered, workers)
        if named or not gaps:
            return named
    if not 0 < len(gaps) < MOST_PARTS or len(gathered.streams) > 1:
        return []
    source, names = joined(gathered.streams[0].parts), gathered.streams[0].names[:1]
    openings = openings_of(gathered.heads[0], gaps[0].body - 1 - (source.lines_before or 0))
    start, end = source.lines_before, source.line_end
    parts: list[Gathered] = []
    try:
        borders = [find_border(engine, source, gap, openings) for gap in gaps]
        for before, until in pairwise([start, *borders, end]):
            again = source.excerpt(before or 0, until)
            if again is None:
                return []
            parts.append(gather(engine, [Stream((again,), names)], workers))
    except InputError:  # gone since it was read
        return []
    return parts if parts[-1].log.sha256 == gathered.log.sha256 else []


def _split(
    steps: Mapping[str, OrdinalSet], layers: Mapping[str, str], signs: Sequence[int], start: int, end: int
) -> Iterator[_Stretch]:
    """Yield the stretch of each trainer from record ``start`` to ``end`` (exclusive), in order.

    Bars and other formats that a trainer prints between its steps belong to it before and after these too, unless one of
    ``signs`` separates them.
    """
    counts = {name: ordinals.range_cardinality(start, end) for name, ordinals in steps.items()}
    counts = {name: count for name, count in counts.items() if count >= MIN_SECONDARY}
    if not counts:
        return
    best = min(counts, key=lambda name: (-WITH_STEPS.get(layers[name], 3), -counts[name], name))
    first = steps[best].next_set_bit(start)
    last = steps[best][steps[best].rank(end - 1) - 1]
    rest = {name: steps[name] for name in counts if name != best}
    own = {name for name in rest if layers[name] not in TRAINERS and rest[name].range_cardinality(first, last + 1)}
    before = {name: s for name, s in rest.items() if s.range_cardinality(start, first)}
    before = {name: s for name, s in before.items() if name not in own or _is_between(signs, s[s.rank(first - 1) - 1], first)}
    behind = {name: s for name, s in rest.items() if s.range_cardinality(last + 1, end)}
    behind = {name: s for name, s in behind.items() if name not in own or _is_between(signs, last + 1, s.next_set_bit(last + 1))}
    yield from _split(before, layers, signs, start, first)
    yield _Stretch(best, first, last)
    yield from _split(behind, layers, signs, last + 1, end)


def _is_between(signs: Sequence[int], one: int, other: int) -> bool:
    """Return whether one of the signs is in ``[one, other)``."""
    return bisect_left(signs, one) < bisect_left(signs, other)


def _line(engine: Engine, body: SegmentBody, name: str, ordinal: int) -> int:
    """Return the line of the record at ``ordinal``, which a rule of grammar ``name`` reads."""
    rules = ((grammar, rule) for grammar in engine.grammars if grammar.id == name for rule in grammar.rules)
    for grammar, rule in rules:
        columns = engine.columns(body, grammar, rule)
        row = bisect_left(columns.at, place(ordinal)) if columns is not None else 0
        if columns is not None and row < len(columns) and columns.at[row] >> POSITION_BITS == ordinal:
            return columns.line[row]
    raise AssertionError("no rule reads the record")


FEWEST = 3
"""Fewest records of a name that is a run."""
MOST_NAMES = 256
"""Most names that are read as separate runs: each reads the log again."""
MOST_BYTES = 256 << 20
"""Most bytes that are read again in all."""
ROLES = {b"train", b"training", b"val", b"valid", b"validation", b"test", b"testing", b"eval", b"evaluation", b"dev"}
"""Names of activities within one run."""
WORDS = (b"run", b"trial", b"fold", b"exp")
"""Lower-case starts of ``NAMED``: searching each is five times faster than one joint pattern."""
NAMED = compile_later(
    rb"\[?(?:[Rr]un|RUN|[Tt]rial|TRIAL|[Ff]old|FOLD|[Ee]xperiment|[Ee]xp)(?:[ _]?(?:name|id)(?![A-Za-z]))?+[:=# _-]{1,3}"
    rb"(?P<name>[^\s|\[\]:,=](?:[^|\[\]:,=\r\n]{0,80}?[^\s|\[\]:,=])??)(?: ?\||\]:?|:| -)[ \t]"
)


def read_named(engine: Engine, gathered: Gathered, workers: int | None = None) -> list[Gathered]:
    """Return the log once for each run name that its records carry, in the order of the last record of each.

    Lines of other runs are blanked. Lines without a name belong to the last run. Empty if records have no names, or each name's
    records come in one block. Raises ``InputError``.
    """
    ends = {*gathered.heads, *(data for data, _ in gathered.tails)}
    if len(gathered.streams) > 1 or not any(map(has_name, ends)):
        return []
    source = joined(gathered.streams[0].parts)
    again = source.reopen() if (source.lines_before, source.line_end) == (0, None) else None
    lines = {} if again is None else {line: (name, step) for line, name, step in _named(again)}
    records = [name for name, step in lines.values() if step]
    counts = Counter(records)
    names = {name for name, count in counts.items() if count >= FEWEST}
    turns = Counter(name for name, _ in groupby(name for name in records if name in names))
    back = sum(count > 1 for count in turns.values())
    many = len(names) > MOST_NAMES or gathered.log.size_bytes * len(names) > MOST_BYTES
    if len(names) < 2 or many or 2 * back < len(names) or any(name.lower() in ROLES for name in counts):
        return []
    mine: dict[bytes, list[int]] = {name: [] for name in names}
    for line, (name, _) in lines.items():
        if name in names:
            mine[name].append(line)
    first = sorted(names, key=lambda name: mine[name][-1])[:-1]
    found: list[Gathered] = []
    for name in first:
        own = set(mine[name])
        begin, end = mine[name][0], mine[name][-1]
        hidden = [line for line in range(begin, end + 1) if line not in own]
        found.append(_read(engine, source.excerpt(begin - 1, end), hidden, gathered, workers))
    hidden = sorted(line for name in first for line in mine[name])
    return [*found, _read(engine, source.reopen(), hidden, gathered, workers)]


def _read(engine: Engine, source: Source | None, hidden: list[int], whole: Gathered, workers: int | None) -> Gathered:
    assert source is not None  # it could be reopened before
    source.report_copies(source.copies._replace(lines=sorted({*source.copies.lines, *hidden})))
    return gather(engine, [Stream((source,), whole.streams[0].names[:1])], workers)


def _named(source: Source) -> Iterator[tuple[int, bytes, bool]]:
    """Yield number and name of each line that begins with a name, and whether a step record follows the name."""
    number, rest = 0, b""
    for block in chain(source.blocks(), (b"\n",)):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            number += 1
            if has_name(line):
                yield from _name_of(number, line)


def has_name(text: bytes) -> bool:
    """Return whether ``text`` contains a name; no name crosses a line end."""
    lowered = text.lower()
    for word in WORDS:
        at = lowered.find(word)
        while at >= 0:
            if NAMED.match(text, at) is not None:
                return True
            at = lowered.find(word, at + 1)
    return False


def _name_of(number: int, line: bytes) -> Iterator[tuple[int, bytes, bool]]:
    record = plain(line + b"\n").rstrip(b"\n")
    for at in (0, *starts(record)):
        found = NAMED.match(record, at)
        if found is not None:
            yield number, found["name"], count_step_lines(record[found.end() :] + b"\n", 1) > 0
            return
