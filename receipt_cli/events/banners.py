"""Find where a program began again: the lines that it printed before its first step come again before a later first step.
No rule needs to read these lines: it counts that most of them come again, with other numbers."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise

import numpy as np

from receipt_cli.definitions.failure_markers import MANY_PROCESSES, Catalogue
from receipt_cli.events.launches import DAY, END, Launch
from receipt_cli.events.starts import run_in
from receipt_cli.events.table import EventTable, not_nan, numbers_in
from receipt_cli.io.source import Source, Stream, joined, numbered_lines
from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.spill import slices
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import NO_RANK, behind_heads, form_of_heads, head_ends, plain, read_clock, time_of_day
from receipt_cli.records.place import MENTIONED
from receipt_cli.scan.segment import SegmentBody

COMMON = 5
"""Fewest kinds of lines that must come again, besides half of all: a loop prints a heading or two."""
SHORT = 2
"""Fewest lines of a banner that come again as they are, besides half of all."""
FEW = 4
"""Before the first line of the program, ``COMMON`` kinds of lines and one in ``FEW`` of all may stand."""
OF_START = 0.4
"""Share of the kinds of lines before a first failure, from the first line of the program on, that must come again."""
MOST_STARTS = 1000
"""Most restarts of steps, and starts, that are compared: a log with more is of several processes, or of a loop."""
MOST_LINES = 4000
"""Most lines between two steps that are compared: before the later one, the nearest."""
MOST_HEAD = 1 << 16
"""Most lines before the first step of a log that are searched for starts."""
LONGEST = 1024
"""Most bytes of a line that are compared there."""
SILENCE = 60
"""Seconds of silence after which a program may have started."""
SOON = 10
"""Fewest seconds between two starts of a program that one process at a time prints."""
STAMPED = 100
"""Bytes at the start of a line that are searched for a timestamp."""
MOST_DIGITS = 19
"""Digits from which on a number counts nothing."""
_COMMAND = compile_later(
    rb"(?:[\w.@~:/\\()\[\] -]{0,200}[$#%>] |\++ )(?:\w{1,60}=\S{0,200} ){0,20}(?:\S{0,80}/)?"
    rb"(?:python[\d.]{0,5}|torchrun|accelerate|deepspeed|srun|mpirun|bash|sh) \S"
)
_TRACEBACK = b"Traceback (most recent call last):"
_ERROR = compile_later(rb"\b(?:ERROR|CRITICAL|FATAL)\b")
_DIGITS = compile_later(rb"\d+")
_LETTER = compile_later(rb"[^\W\d_]|[\x80-\xff]")
_EPOCH = compile_later(rb"(?i)\W{0,9}(?:\w{1,9}\W)?epoch[^\w/]{0,5}\d+")
"""A heading of an epoch, from the start of its line on."""


def find_banners(events: EventTable, streams: Sequence[Stream]) -> dict[int, bool | None]:
    """Return the positions in the log of steps that begin anew after most lines before the first step have come again, and
    whether these are many; None where a heading counts the next epoch instead, so that no program was started.

    Steps begin anew if they go back; steps without a number, if their loss does. The log is read again for this, unless several
    processes wrote it. Raises ``InputError``.
    """
    steps = events.where(events.by_source(lambda source: source.is_step))
    placed = steps.where(not_nan(steps.positions))
    least = SHORT
    anew = _falls(placed)
    if not len(placed):
        placed, anew, least = steps, _losses_back(steps), 1
    if not (len(anew) or least == 1) or len(anew) > MOST_STARTS or len(placed) < 2 or len(streams) > 1:
        return {}
    source = joined(streams[0].parts)
    begin = source.lines_before, placed[0].line - 1
    again = source.reopen() if begin[1] > begin[0] else None
    if again is None:
        return {}
    backs = zip(placed.line[anew - 1].tolist(), placed.line[anew].tolist(), strict=True)
    first, *others = _lines_of(again, [begin, *((before, line - 1) for before, line in backs)])
    places, told = placed.at[anew].tolist(), list(map(_texts, (first, *others)))
    head, texts = frozenset(filter(None, shapes_of(first))), _banner(told[0]) if len(first) >= least else []
    far = [len(lines) >= least for lines in others]
    after = [(at, lines, said) for at, lines, said in zip(places, others, told[1:], strict=True) if len(lines) >= least]
    long = {at for at, lines, _ in after if len(head.intersection(shapes_of(lines))) >= max(COMMON, len(head) / 2)}
    found: dict[int, bool | None] = {at: at in long for at, _, said in after if at in long or _come_again(texts, said, least)}
    if least > 1:
        inner = (at for at, goes_on in zip(places, _next_epochs(told), strict=True) if goes_on)
        found |= {at: None for at in inner if at not in found}
    if texts and (least == 1 or any(at not in found and texts[0] in said for at, _, said in after)):
        opened = _opened(placed.line, _lines_with(source.reopen(), texts[0]), None if least == 1 else anew[far])
        found |= {at: False for at in placed.at[opened].tolist() if at not in found}
    return found


def _next_epochs(stretches: Sequence[Sequence[bytes]]) -> list[bool]:
    """Return for each but the first of some stretches of texts, each before a first step, whether its last heading counts the
    epoch after that of the stretch before."""
    headings = [next((text for text in reversed(texts) if _EPOCH.match(text)), b"") for texts in stretches]
    forms = [_DIGITS.sub(b"0", heading) for heading in headings]
    pairs = zip(pairwise(forms), pairwise(headings), strict=True)
    return [form == other and _counts_on(*heads) for (form, other), heads in pairs]


def _opened(lines: Integers, openings: Integers, anew: Integers | None) -> Integers:
    """Return the indices of the steps that follow a repetition of the log's first line, if this line opens programs.

    ``lines`` are those of the steps, ``openings`` those of the repetitions. The line opens a loop instead if most of these steps
    go on: they are not among those that begin ``anew``. If steps have no number (None), two repetitions without a step between
    them must show that it opens programs; a line before every other record is part of the records.
    """
    behind = np.searchsorted(lines, openings[openings > lines[0]])
    opened = np.unique(behind[behind < len(lines)])
    if anew is None:
        return opened if len(opened) < len(behind) and 2 * len(opened) < len(lines) else opened[:0]
    begins = np.intersect1d(opened, anew)
    return begins if 2 * len(begins) > len(opened) else begins[:0]


def _lines_with(source: Source | None, text: bytes) -> Integers:
    """Return the numbers (int64, ascending) of the lines that have this text behind their heads."""
    found, number, rest = list[int](), 0 if source is None else source.lines_before, b""
    for block in () if source is None else (*source.blocks(), b"\n"):
        rest += block
        end = rest.rfind(b"\n") + 1
        if text in rest[:end]:
            found += [
                at for at, line in enumerate(rest[:end].split(b"\n"), number + 1) if text in line and [text] == _texts([line])
            ]
        number, rest = number + rest[:end].count(b"\n"), rest[end:]
    return np.array(found, np.int64)


def _falls(steps: EventTable) -> Integers:
    """Return the indices of steps that are no higher than the step before; other lines stand between the two.
    In one epoch the batches or samples so far count, if the log prints them."""
    found = [np.empty(0, np.int64)]
    for part in slices(len(steps) - 1):
        rises, more, apart = (
            np.diff(column[part.start : part.stop + 1]) for column in (steps.positions, steps.inside, steps.line)
        )
        found.append(part.start + 1 + np.flatnonzero(((rises < 0) | ((rises == 0) & ~(more > 0))) & (apart > 1)))
    return np.concatenate(found)


def _losses_back(steps: EventTable) -> Integers:
    """Return the indices of the steps at which the loss jumps back to where the training began, or above that.

    Other lines must stand before such a step. The next one is compared with the loss of the step found last.
    """
    found, begin = list[int](), 0
    losses = steps.metric("loss")
    values = np.full(len(steps), np.nan)
    values[numbers_in(losses.rows)] = losses.values
    for number in (np.flatnonzero((np.diff(steps.line) > 1) & (np.diff(values) > 0)) + 1).tolist():
        first, before, now = values[[begin, number - 1, number]].tolist()
        if number - begin > 1 and 2 * (first - now) < now - before:
            found.append(number)
            begin = number
    return np.array(found, np.int64)


def _texts(lines: Sequence[bytes]) -> list[bytes]:
    """Return the lines that have a letter, without their heads."""
    return [behind_heads(record).strip() for record in _plain(lines) if _LETTER.search(record)]


def _banner(texts: Sequence[bytes]) -> Sequence[bytes]:
    """Return the lines before a first step from the last one on that is as the first: starts that failed may precede it."""
    return texts[len(texts) - 1 - texts[::-1].index(texts[0]) :] if texts else texts


def _come_again(banner: Sequence[bytes], texts: Sequence[bytes], least: int) -> bool:
    """Return whether most lines of a banner, and ``least`` of them, are among ``texts`` as they are, or another fold is named.
    If one of the lines counts on otherwise, they are of a loop."""
    known = {*banner}
    common = known.intersection(texts)
    one, other = (run_in.__wrapped__(tuple(lines)) for lines in (banner, texts))
    if None not in (one, other) and one != other:
        return True
    if len(common) < max(least, len(known) / 2):
        return False
    counted = {_DIGITS.sub(b"0", text): text for text in banner}
    begun = texts[next(at for at, text in enumerate(texts) if text in common) :]
    return not any(_counts_on(counted.get(_DIGITS.sub(b"0", text), text), text) for text in begun)


def _counts_on(before: bytes, text: bytes) -> bool:
    """Return whether two lines of one form differ in one number, which is one higher in ``text``."""
    numbers = zip(_DIGITS.findall(before), _DIGITS.findall(text), strict=True)
    rises = [(old, new) for old, new in numbers if new != old]
    return len(rises) == 1 and max(map(len, rises[0])) < MOST_DIGITS and int(rises[0][1]) - int(rises[0][0]) == 1


def part_starts(launches: list[Launch], body: SegmentBody, catalogue: Catalogue, streams: Sequence[Stream]) -> list[Launch]:
    """Return the launches of a log; each start of the program before the first step is a launch of its own.

    A failure, a stop or a silence must show that the start before it is over. If a launcher reports a restart, or several
    processes print, no launch begins.
    """
    whole = launches[0]
    roles = {marker.id: marker.role for marker in catalogue.markers}
    steps = whole.events.by_source(lambda source: source.is_step)
    lead = whole.events[: int(steps.argmax()) if steps.any() else len(steps)]
    first_step = whole.events[len(lead)].line if steps.any() else END
    limit = min(first_step, launches[1].line if len(launches) > 1 else END)
    hits = sorted(
        (line, at, roles.get(name), rank)
        for name, found in body.markers.items()
        for line, at, form, rank in zip(found.line, found.at, found.form, found.rank, strict=True)
        if form != MENTIONED and line < limit
    )
    failures = sorted({line for line, _, role, _ in hits if role in ("cause", "stop", "error")})
    source = joined(streams[0].parts)
    before, end, most = source.lines_before, min(limit - 1, body.lines), source.lines_before + MOST_HEAD
    several = len(streams) > 1 or any(role == "restart" for _, _, role, _ in hits)
    again = None if several or not before + 1 < (failures[-1] if failures else end) <= most else source.reopen()
    if again is None:
        return launches
    lines = [line for _, line in islice(numbered_lines(again, LONGEST), min(end, most) - before)]
    first = max(_DIGITS.split(next((text for line in lines for text in _texts([line])), b"")), key=len)
    shapes = shapes_of(lines) if failures or sum(first in line for line in lines) > 1 else []
    alone = all(rank == NO_RANK for *_, rank in hits) and not (MANY_PROCESSES - {"worker_exception"}) & body.markers.keys()
    breaks = [line - before - 1 for line in failures]
    failed = _behind_failures(lines, shapes, hits[0][0] - before - 1, breaks, alone=alone) if failures else []
    silent = _behind_silence(lines, shapes, failed, 1 if before else SHORT + 1) if end <= most else []
    begins = sorted({*failed, *silent})
    if limit < first_step and begins and bisect_left(breaks, begins[-1]) == len(breaks):
        begins.pop()  # the next launch begins there
    ats = [(line, at) for line, at, *_ in hits]
    every = sorted([*ats, *zip(lead.line.tolist(), lead.at.tolist(), strict=True)]) if begins else ats
    parts = [Launch(whole.events, whole.start, line=whole.line)]
    for at in begins:
        known, line = ats if at in failed else every, before + 1 + at
        place = bisect_left(known, (line, 0))
        parts.append(Launch(whole.events, known[place - 1][1] + 1 if place else whole.start, line=line, apart=True))
    ends = [*(part.start for part in parts[1:]), whole.end]
    parts = [part._replace(end=end, events=part.events.between(part.start, end)) for part, end in zip(parts, ends, strict=True)]
    return [*parts, *launches[1:]] if begins else launches


def _behind_failures(
    lines: Sequence[bytes], shapes: Sequence[bytes], until: int, failures: Sequence[int], *, alone: bool
) -> list[int]:
    """Return the indices of lines at which the program begins again after a failure or a stop.

    It prints the opening of the log again, and ``OF_START`` of the kinds of lines before the first marker, at ``until`` (all of
    them if they are few); or a command is printed there.
    """
    heads = (line[: max(head_ends(line), default=0)] for line in _plain(lines))  # no program begins with an error of its logger
    shapes = [b"" if _ERROR.search(head) else shape for shape, head in zip(shapes, heads, strict=True)]
    announced = {at - 1 for at, shape in enumerate(shapes) if shape.endswith(_TRACEBACK)}  # by a process that names itself
    shapes = [b"" if at in announced and shape.endswith(b":") else shape for at, shape in enumerate(shapes)]
    opening = _opening(shapes, until)
    head = {shape for shape in shapes[shapes.index(opening) if opening in shapes[:until] else 0 : until] if shape}
    head -= {shape for shape in head if shape.endswith(_TRACEBACK)}
    if len(head) < COMMON and not (alone and shapes[:until].count(opening) == 1):
        return []
    begins = [0]
    for at, (shape, text) in enumerate(zip(shapes, lines, strict=True)):
        following = bisect_left(failures, at)
        if (shape == opening or is_command(text)) and bisect_left(failures, begins[-1]) < following:
            recurring = head & {*shapes[at : failures[following] if following < len(failures) else len(lines)]}
            common = shape and shape == opening and len(recurring) >= min(len(head), max(COMMON, OF_START * len(head)))
            begins += [at] * bool(common or is_command(text))
    return begins[1:]


def _behind_silence(lines: Sequence[bytes], shapes: Sequence[bytes], known: Sequence[int], fewest: int) -> list[int]:
    """Return the indices of lines at which the program begins again after ``SILENCE`` seconds, or at one of the ``known`` lines.

    It prints the first line of the log again, and ``COMMON`` kinds of lines and half of those up to there; all if they are few,
    but not fewer than ``fewest``. Several processes print the line several times, and a loop counts on.
    """
    opening = next(filter(None, shapes), b"")
    places = [at for at, shape in enumerate(shapes) if opening and shape == opening]
    if not 2 <= len(places) <= MOST_STARTS:
        return []
    silences = _silences([lines[begin:end] for begin, end in pairwise([*places, len(lines)])])
    rests = [math.inf, *(math.inf if at in known else rest for at, rest in zip(places[1:], silences, strict=True)), math.inf]
    if 2 * sum(one >= SILENCE <= other for one, other in pairwise(rests)) <= sum(rest >= SILENCE for rest in rests[1:]):
        return []
    begins = [at for at, rest in zip(places, rests, strict=False) if rest >= SOON]
    texts = [behind_heads(record).strip() for record in _plain(lines)]
    kinds = [
        {shapes[at]: texts[at] for at in range(end - 1, begin - 1, -1) if shapes[at]}
        for begin, end in pairwise([*begins, len(lines)])
    ]
    pairs = [{shape: (one[shape], other[shape]) for shape in one.keys() & other.keys()} for one, other in pairwise(kinds)]
    counted = [{shape for shape, pair in both.items() if _counts_on(*pair)} for both in pairs]
    headings = (map(_EPOCH.match, pair) for both in pairs for pair in both.values())
    if set.intersection(*counted) or any(one and other and one[0] != other[0] for one, other in headings):
        return []
    least = max(fewest, min(len(kinds[0]), max(COMMON, len(kinds[0]) / 2)))
    return [at for at, both in zip(begins[1:], kinds[1:], strict=True) if len(kinds[0].keys() & both.keys()) >= least]


def _silences(parts: Sequence[Sequence[bytes]]) -> list[float]:
    """Return the seconds from both ends of each part to the next part, the fewer ones; 0 if not all have a time.
    If the first part has no date, the times of day count."""
    dated = not math.isnan(first_time(parts[0]))
    read: Callable[[bytes], float] = read_clock if dated else _of_day
    times = np.array([[first_time(part, read), first_time(part[::-1], read)] for part in parts])
    rests = times[1:, :1] - times[:-1]
    return list(np.nan_to_num((rests if dated else (rests + SILENCE) % DAY - SILENCE).min(axis=1)).tolist())


def first_time(lines: Sequence[bytes], read: Callable[[bytes], float] = read_clock) -> float:
    """Return the first time at the beginning of a line, NaN without one."""
    times = (read(plain(line)[:STAMPED]) for line in lines)
    return next((time for time in times if time == time), math.nan)


def _of_day(prefix: bytes) -> float:
    """Return the last time of day in ``prefix`` as on one day, NaN without one."""
    span = time_of_day(prefix) if prefix.count(b":") > 1 else None
    return read_clock(b"2000-01-01 " + prefix[slice(*span)]) if span else math.nan


def is_command(line: bytes) -> bool:
    """Return whether a line shows a command after the prompt of a shell, or as ``set -x`` does."""
    return _COMMAND.match(line) is not None


def _opening(shapes: Sequence[bytes], until: int) -> bytes:
    """Return the first line before ``until`` that comes again after it; if too many kinds of lines precede that, the first line.
    What collected the log, or a notice of the system, may precede the first line of the program."""
    head, again = [*dict.fromkeys(filter(None, shapes[:until]))], {*shapes[until:]}
    return next((shape for shape in head[: COMMON + 1 + len(head) // FEW] if shape in again), head[0] if head else b"")


def _lines_of(source: Source, spans: Sequence[tuple[int, int]]) -> Iterator[list[bytes]]:
    """Yield the lines of each of some ``(after, up_to)`` spans of line numbers, in order; at most the last ``MOST_LINES``."""
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
    lines = text.split(b"\n")  # the last line of a log may have no end
    yield from (lines[max(before, end - MOST_LINES) - first : end - first] for before, end in wanted)


def shapes_of(lines: Sequence[bytes]) -> list[bytes]:
    """Return each line without its heads and with all numbers alike; empty if it has no letter."""
    records = _plain(lines)
    forms = map(form_of_heads, records)
    asked = zip(records, forms, strict=True)
    return [_shape_of.__wrapped__(record) if form is None else _shape_of(form) for record, form in asked]


def _plain(lines: Sequence[bytes]) -> list[bytes]:
    return [record.strip(b"\r") for record in plain(b"\n".join([*lines, b""])).split(b"\n")[:-1]]


@lru_cache(maxsize=4096)
def _shape_of(record: bytes) -> bytes:
    text = behind_heads(record)
    return _DIGITS.sub(b"0", text.strip()) if _LETTER.search(text) else b""
