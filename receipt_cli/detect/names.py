"""Find the runs of one log that ran side by side and put their name before each record: each is its own log.

A sweep prints ``Run: NAME | Epoch: 1 | loss …``, or ``[trial 3] step 20 …``. Names are runs if most of them recur after records
of others; the folds of a loop come one after another and are not side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from receipt_cli.events.streams import Gathered, gather
from receipt_cli.io.joined_parts import Stream, joined
from receipt_cli.io.source import Source
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import plain, starts
from receipt_cli.records.heuristics import count_step_lines
from receipt_cli.scan.engine import Engine

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
    """Return the log once for each run named before its records, in the order of their last records.

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
    number, rest = 1, b""
    for block in source.blocks():
        text = rest + block
        end = text.rfind(b"\n") + 1
        yield from _named_in(text[:end], number)
        number, rest = number + text.count(b"\n", 0, end), text[end:]
    yield from _named_in(rest, number)


def _named_in(text: bytes, number: int) -> Iterator[tuple[int, bytes, bool]]:
    """``_named`` for whole lines, the first of which is line ``number``."""
    behind = 0
    for at in sorted(_places(text)):
        if at >= behind:
            start = text.rfind(b"\n", 0, at) + 1
            number += text.count(b"\n", behind, start)
            behind = text.find(b"\n", at) + 1 or len(text)
            yield from _name_of(number, text[start:behind].removesuffix(b"\n"))
            number += 1


def has_name(text: bytes) -> bool:
    """Return whether ``text`` contains a name."""
    return next(_places(text), None) is not None


def _places(text: bytes) -> Iterator[int]:
    """Yield the offsets of names, word by word; no name crosses a line end."""
    lowered = text.lower()
    for word in WORDS:
        at = lowered.find(word)
        while at >= 0:
            if NAMED.match(text, at) is not None:
                yield at
            at = lowered.find(word, at + 1)


def _name_of(number: int, line: bytes) -> Iterator[tuple[int, bytes, bool]]:
    record = plain(line + b"\n").rstrip(b"\n")
    for at in (0, *starts(record)):
        found = NAMED.match(record, at)
        if found is not None:
            yield number, found["name"], count_step_lines(record[found.end() :] + b"\n", 1) > 0
            return
