"""The result of scanning a segment of a log: columns, marker hits and counts, open at both ends."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias

from receipt_cli.numeric.column import shifted
from receipt_cli.numeric.ordinals import OrdinalSet
from receipt_cli.problems import MAX_FIRST, MAX_NAMED, NearMiss, Problem
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.records.heuristics import MAX_SEEN
from receipt_cli.records.place import PRINTED
from receipt_cli.records.split import Fragment
from receipt_cli.scan.columns import Bounded, RuleColumns, place
from receipt_cli.scan.forms import MARK, MAX_FORMS, OTHER

TAIL_KEPT = 112 * 1024
HEAD_KEPT = 32 * 1024
"""Bytes at the start of a log that are searched for timestamps of lines without a rule."""
KEPT_HITS = 256
RuleKey = tuple[str, str]
"""(grammar reference ``id@vN``, rule name); during a scan the form of the records follows the name."""
Message: TypeAlias = tuple[int, bytes, "int | None"]
"""Position, bytes and exit code of a hit."""


@dataclass(slots=True)
class Hits:
    """All hits of one marker: position, line, rank and form; text and exit code of the first and last ones.

    ``hosts`` are the hosts named in their heads, by position.
    """

    at: array[int] = field(default_factory=lambda: array("q"))
    line: array[int] = field(default_factory=lambda: array("q"))
    known: list[Message] = field(default_factory=list)
    rank: array[int] = field(default_factory=lambda: array("q"))
    form: array[int] = field(default_factory=lambda: array("b"))
    hosts: dict[int, str] = field(default_factory=dict)

    @property
    def texts(self) -> list[tuple[int, str, int | None]]:
        """Position, text and exit code (None without one) of each of the first and the last hits, in their order."""
        return [(at, raw.decode("utf-8", "replace"), code) for at, raw, code in self.known]

    def add(self, message: Message, line: int, rank: int = NO_RANK, form: int = PRINTED, host: str | None = None) -> None:
        """Add a hit; positions ascend."""
        self.add_all(array("q", [message[0]]), array("q", [line]), array("q", [rank]), array("b", [form]), [message])
        if host is not None and len(self.hosts) < KEPT_HITS:
            self.hosts[message[0]] = host

    def add_all(self, at: array[int], line: array[int], rank: array[int], form: array[int], messages: Iterable[Message]) -> None:
        """Add hits; ``messages`` may omit those between the first and last ``KEPT_HITS``."""
        self.at.extend(at)
        self.line.extend(line)
        self.rank.extend(rank)
        self.form.extend(form)
        self.known.extend(messages)
        if len(self.known) > 2 * KEPT_HITS:
            del self.known[KEPT_HITS:-KEPT_HITS]

    def where(self, kept: Callable[[int], bool]) -> Hits:
        """Return the hits at positions for which ``kept`` is true."""
        rows = [row for row in zip(self.at, self.line, self.rank, self.form, strict=True) if kept(row[0])]
        ats, lines, ranks, forms = zip(*rows, strict=True) if rows else ((), (), (), ())
        known = [message for message in self.known if kept(message[0])]
        hosts = {at: host for at, host in self.hosts.items() if kept(at)}
        return Hits(array("q", ats), array("q", lines), known, array("q", ranks), array("b", forms), hosts)

    def extend(self, other: Hits, records: int, lines: int) -> None:
        """Add the hits of the next piece."""
        shift = place(records)
        for at, host in other.hosts.items():
            if len(self.hosts) < KEPT_HITS:
                self.hosts[at + shift] = host
        messages = ((at + shift, raw, code) for at, raw, code in other.known)
        self.add_all(shifted(other.at, shift), shifted(other.line, lines), other.rank, other.form, messages)


def count_between(lines: Sequence[int], first: int, last: int) -> int:
    """Return how many of the ascending ``lines`` are in ``[first, last)``."""
    return bisect_left(lines, last) - bisect_left(lines, first)


ABSENT = "absent"
"""``words`` of a doubt about texts that mean "no value"."""
_NULLS = frozenset(("null", "none", "n/a", "", *("-" * count for count in range(1, 9))))


class Doubt(NamedTuple):
    """Records or numbers of a rule that were left out: why, rule and column, count, place, and evidence.

    ``lines`` are the first few lines and the last, ``at`` the positions of the first and the last record.
    """

    kind: str
    key: RuleKey
    rows: int
    lines: tuple[int, ...]
    at: tuple[int, ...]
    name: str = ""
    words: str = ""
    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, kind: str, key: RuleKey, parts: Sequence[RuleColumns], name: str = "", words: str = "") -> Doubt:
        """Return the doubt about all records of ``parts``, or about their numbers in column ``name``."""
        rows = sorted((at, line) for part in parts for at, line in zip(part.at, part.line, strict=True))
        columns = [
            column for part in parts for column in (part.numbers.get(name), part.unregistered.get(name)) if column is not None
        ]
        values = tuple(f"{value:.12g}" for column in columns for value in column.values[:MAX_NAMED])[:MAX_NAMED]
        lines = tuple(dict.fromkeys(line for _, line in (*rows[: MAX_NAMED - 1], rows[-1])))
        return cls(kind, key, len(rows), lines, (rows[0][0], rows[-1][0]), name, words, values)

    @classmethod
    def unread(cls, key: RuleKey, parts: Sequence[RuleColumns], name: str) -> Doubt:
        """Return the doubt about records of ``parts`` whose text in column ``name`` is not a number."""
        found = [(part, part.unread[name]) for part in parts if name in part.unread]
        rows = sorted(
            (part.at[row], part.line[row], text)
            for part, texts in found
            for row, text in zip(texts.rows, texts.values, strict=True)
        )
        lines = tuple(dict.fromkeys(line for _, line, _ in (*rows[: MAX_NAMED - 1], rows[-1])))
        values = tuple(dict.fromkeys(text for *_, text in rows))[:MAX_NAMED]
        absent = ABSENT if all(text.lower() in _NULLS for *_, text in rows) else ""
        return cls("figure_unread", key, len(rows), lines, (rows[0][0], rows[-1][0]), name, absent, values)

    def moved(self, records: int, lines: int) -> Doubt:
        """Return the doubt moved by this many records and lines."""
        shift = place(records)
        return self._replace(lines=tuple(line + lines for line in self.lines), at=tuple(at + shift for at in self.at))


@dataclass(slots=True)
class Problems:
    """The problems of a log: the count of each kind, the first ones by position, and the first of each kind."""

    kinds: Counter[str] = field(default_factory=Counter)
    first: list[tuple[int, Problem]] = field(default_factory=list)

    def add(self, at: int, problem: Problem) -> None:
        """Count ``problem`` at ``at``; positions ascend."""
        if len(self.first) < MAX_FIRST or problem.kind not in self.kinds:
            self.first.append((at, problem))
        self.kinds[problem.kind] += 1

    def extend(self, other: Problems, records: int, lines: int) -> None:
        """Add the problems of the next piece, which begins after this many records and lines."""
        known = {*self.kinds}
        for at, problem in other.first:
            if len(self.first) < MAX_FIRST or problem.kind not in known:
                self.first.append((at + place(records), problem.moved(lines)))
            known.add(problem.kind)
        self.kinds.update(other.kinds)


@dataclass(slots=True)
class SegmentBody:
    """What a scan of whole records found; ``records`` counts record ends, ``lines`` counts ``\\n``."""

    records: int = 0
    lines: int = 0
    blank: int = 0
    undecodable: int = 0
    rules: dict[RuleKey, RuleColumns] = field(default_factory=lambda: defaultdict(RuleColumns))
    forms: dict[RuleKey, set[str]] = field(default_factory=lambda: defaultdict(set))
    near: dict[str, Bounded[NearMiss]] = field(default_factory=lambda: defaultdict(partial(Bounded, MAX_FIRST)))
    ignored: dict[str, OrdinalSet] = field(default_factory=lambda: defaultdict(OrdinalSet))
    undecodable_matched: OrdinalSet = field(default_factory=OrdinalSet)
    markers: dict[str, Hits] = field(default_factory=lambda: defaultdict(Hits))
    problems: Problems = field(default_factory=Problems)
    metric_like: Bounded[str] = field(default_factory=lambda: Bounded(MAX_SEEN))
    step_like: int = 0
    nul_count: int = 0
    nul_line: int | None = None
    doubts: list[Doubt] = field(default_factory=list)
    copied: Sequence[int] = ()
    """Line numbers of blanked lines, ascending: copies of others, or parts of a later line."""

    def key_of(self, ref: str, name: str, form: str) -> RuleKey:
        """Return the column key for records of one form; beyond ``MAX_FORMS`` forms share a key."""
        key = ref, name + form
        if not form or key in self.rules:
            return key
        known = self.forms[ref, name]
        if len(known) >= MAX_FORMS and form not in known:
            return ref, name + MARK + OTHER
        known.add(form)
        return key

    def count_nuls(self, raw: bytes) -> None:
        """Count the NUL bytes of the next records as printed."""
        if b"\x00" in raw:
            self.nul_count += raw.count(b"\x00")
            if self.nul_line is None:
                self.nul_line = self.lines + raw.count(b"\n", 0, raw.find(b"\x00")) + 1

    def extend(self, other: SegmentBody) -> None:
        """Add the body of the next segment, which is used up."""
        records, lines = self.records, self.lines
        for (ref, name), columns in other.rules.items():
            base, mark, form = name.partition(MARK)
            self.rules[self.key_of(ref, base, mark + form)].extend(columns, records, lines)
        self.doubts += [doubt.moved(records, lines) for doubt in other.doubts]
        for name, near in other.near.items():
            self.near[name].extend(near, records, lambda miss: miss.moved(lines))
        for name, ordinals in other.ignored.items():
            self.ignored[name] |= ordinals.shift(records)
        self.undecodable_matched |= other.undecodable_matched.shift(records)
        for name, hits in other.markers.items():
            self.markers[name].extend(hits, records, lines)
        self.problems.extend(other.problems, records, lines)
        self.metric_like.extend(other.metric_like, records, str)
        self.metric_like.count = min(MAX_SEEN, self.metric_like.count)
        self.step_like = min(MAX_SEEN, self.step_like + other.step_like)
        self.nul_count += other.nul_count
        if self.nul_line is None and other.nul_line is not None:
            self.nul_line = other.nul_line + lines
        self.records += other.records
        self.lines += other.lines
        self.blank += other.blank
        self.undecodable += other.undecodable


@dataclass(slots=True)
class Segment:
    """The fold of a segment of a log, open at both ends.

    ``head`` is the text before the first record end, ``head_end`` this end (empty if there is none; then ``head`` is the whole
    text), and ``tail`` the text after the last end. If the segment is a ``whole`` log, its body starts with the first record,
    and the head is empty.
    """

    head: Fragment = field(default_factory=Fragment)
    head_end: bytes = b""
    body: SegmentBody = field(default_factory=SegmentBody)
    tail: Fragment = field(default_factory=Fragment)
    whole: bool = False
    size: int = 0
    last_bytes: bytes = b""
    first_bytes: bytes = b""

    @property
    def open_end(self) -> Fragment:
        """The text that no record end follows yet."""
        return self.tail if self.head_end else self.head
