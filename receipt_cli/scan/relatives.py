"""Layouts of records that differ from a known one in how many digits their numbers have, made without asking the patterns.

A record's *form* is its bytes with one digit for each run of them. Where no pattern that is tried tells the length of a run
(``grammar.length_sensitivity``), nor anything else does, a record of the form has the same events at the same places, but for
how far its longer and shorter runs move them. What depends on the text of a value is asked of that text again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from operator import itemgetter, sub

from receipt_cli.lazy_pattern import compile_later
from receipt_cli.records.envelope import MASK, starts
from receipt_cli.scan.book import Outcome
from receipt_cli.scan.candidates import LONGEST, WORD, Candidates
from receipt_cli.scan.extraction import DROPPED, NOWHERE, Extraction, read_unregistered
from receipt_cli.scan.layout import MAX_KEPT, EventLayout, Layout, Parts, Value
from receipt_cli.scan.learn_layout import SOMETIMES_NUMBER, is_comparable, named_twice, value_at
from receipt_cli.scan.number_forms import is_plain

_RUN = compile_later(rb"0+")
MAX_RELATIVES = 16
"""Records of one form, and of the same lengths where these matter, that others may be relatives of."""
PATIENCE = 16
"""Records of known forms for which the same rules are tried, before these are asked what lengths mean to them."""
Lengths = Sequence[int]
"""How many digits each run of a record has."""


class Relatives:
    """The records of which layouts were learned, by what was tried on them and by their form."""

    def __init__(self) -> None:
        self._known: dict[Candidates, dict[bytes, _Form]] = {}
        self._size = 0
        self._latest = b"", b""

    def find(self, record: bytes, masked: bytes, candidates: Candidates) -> Layout | None:
        """Return the layout of ``record``, if it follows from that of a relative; ``candidates`` are what is tried on it."""
        forms = self._known.get(candidates)
        form = forms.get(self._name(masked)) if forms is not None and len(record) <= LONGEST else None
        if form is None:
            return None
        candidates.met += 1
        return form.derive(record, masked) if candidates.met > PATIENCE else None

    def add(self, masked: bytes, layout: Layout, outcome: Outcome, candidates: Candidates) -> None:
        """Remember a record whose layout was learned, if rules read it and others may be relatives of it."""
        if not outcome.read or len(masked) > LONGEST or candidates.markers or layout.absent or layout.echoes:
            return
        if self._size >= MAX_KEPT:
            self._known.clear()
            self._size = 0
        forms = self._known.setdefault(candidates, {})
        name = self._name(masked)
        if name not in forms:
            forms[name] = _Form(candidates, layout.sample)
        forms[name].add(_Relative(masked, layout, outcome))
        self._size += 1

    def _name(self, masked: bytes) -> bytes:
        """Return the bytes that all records of a form share; most are asked for twice in a row."""
        if self._latest[0] is not masked:
            self._latest = masked, _RUN.sub(b"0", masked)
        return self._latest[1]


class _Form:
    """Records of one form on which the same is tried."""

    def __init__(self, candidates: Candidates, sample: bytes) -> None:
        self.candidates, self.sample = candidates, sample
        self.short = True
        self.matter: Callable[[Lengths], object] | None = None
        self.usable = True
        self.waiting: list[_Relative] = []
        self.known: dict[object, list[_Relative]] = {}

    def add(self, relative: _Relative) -> None:
        """Remember a record of the form."""
        if self.usable and len(self.waiting) < MAX_RELATIVES:
            self.waiting.append(relative)

    def derive(self, record: bytes, masked: bytes) -> Layout | None:
        """Return the layout of a record of the form, or None where it does not follow from a known one."""
        if self.matter is None and self.usable:
            self.matter = self._judge()
            self.usable = self.matter is not None
        if self.matter is None or (self.short and longest_word(record) > WORD):
            return None
        for relative in self.waiting:
            known = self.known.setdefault(self.matter(relative.lengths), [])
            if len(known) < MAX_RELATIVES and not (self.short and longest_word(relative.masked) > WORD):
                known.append(relative)
        self.waiting.clear()
        lengths = [*map(len, _RUN.findall(masked))]
        for relative in self.known.get(self.matter(lengths), ()):
            layout = relative.derive(record, masked, lengths)
            if layout is not None:
                return layout
        return None

    def _judge(self) -> Callable[[Lengths], object] | None:
        """Return what picks the lengths that patterns may tell apart; None where they may all matter."""
        record, candidates = self.sample, self.candidates
        self.short = longest_word(record) <= WORD
        compared = candidates.lengths(self.short)
        if compared is None or (candidates.has_mapping and (b"\\" in record or not record.isascii())):
            return None
        text = record.lower().decode("latin-1")
        asked = [each for each in compared if all(needed in text for needed in each.needed)]
        around = [
            (record[start - 1] if start else 256, record[end] if end < len(record) else 256)
            for start, end in (found.span() for found in _RUN.finditer(record.translate(MASK)))
        ]
        held = [
            index
            for index, (before, after) in enumerate(around)
            if any(each.before >> before & 1 and each.after >> after & 1 for each in asked)
        ]
        return pick(held) if len(held) < len(around) else None


class _Relative:
    """A record whose layout was learned, and what others of its form need to have in common with it."""

    def __init__(self, masked: bytes, layout: Layout, outcome: Outcome) -> None:
        self.masked, self.layout = masked, layout
        self.outcome: Outcome | None = outcome
        self.usable = True

    @cached_property
    def lengths(self) -> Lengths:
        """The lengths of its runs of digits."""
        return [*map(len, _RUN.findall(self.masked))]

    def derive(self, record: bytes, masked: bytes, lengths: Lengths) -> Layout | None:
        """Return the layout of ``record``, or None where it does not follow from this one."""
        if self.outcome is not None:
            self.usable, self.outcome = self._prepare(self.outcome), None
        if not self.usable or self.kept(lengths) != self.kept_lengths:
            return None
        moved = [*accumulate(map(sub, lengths, self.lengths), initial=0)]
        fixed = tuple([(start + moved[before], end + moved[before], digits) for start, end, before, digits in self.fixed])
        if any(record[start:end] != digits for start, end, digits in fixed):
            return None
        if self.starts is not None and starts(record) != tuple([at + moved[before] for at, before in self.starts]):
            return None
        events = [event.move(record, masked, moved) for event in self.events]
        found = tuple([event for event in events if event is not None])
        if len(found) < len(events):
            return None
        known = self.layout
        return Layout(record, fixed, (), (), found, known.ignored, known.near, (), known.any_bar)

    def _prepare(self, outcome: Outcome) -> bool:
        """Find the runs that keep their lengths, and how many are before each place that counts; False where all keep them."""
        from receipt_cli.grammar.length_sensitivity import lengths_compared

        record = self.layout.sample
        picks = {rule.fields[name].value for _, rule, found in outcome.read for one in found for name in one.texts}
        if any(pick is not None and lengths_compared(pick.pattern, LONGEST, LONGEST) != () for pick in picks):
            return False
        if len(picks) > 1 and not record.isascii():
            return False
        runs = [found.span() for found in _RUN.finditer(self.masked)]
        begins, ends = [start for start, _ in runs], [end for _, end in runs]
        held: set[int] = set()

        def place(at: int) -> tuple[int, int]:
            """Return a place and the number of runs before it; one inside a run holds the length of that."""
            before = bisect_right(ends, at)
            if before < len(runs) and begins[before] < at:
                held.add(before)
            return at, before

        for start, end, _ in self.layout.fixed:
            held.update(range(bisect_right(ends, start), bisect_left(begins, end)))
        rules = [rule for _, rule, _ in outcome.read] + [rule for _, rule in (*outcome.missed, *outcome.ignored)]
        self.starts = [place(at) for at in starts(record)] if any(rule.anchored for rule in rules) else None
        self.events = []
        for layout, extraction in zip(self.layout.events, (one for *_, found in outcome.read for one in found), strict=True):
            if layout.prefix is not None:
                held.update(range(bisect_left(begins, layout.prefix.end)))
            self.events.append(_MovingEvent(layout, extraction, record, self.masked, place))
        self.fixed = [(start, end, place(start)[1], digits) for start, end, digits in self.layout.fixed]
        self.kept = pick(sorted(held))
        self.kept_lengths = self.kept(self.lengths)
        return len(held) < len(runs)


def pick(indices: Sequence[int]) -> Callable[[Lengths], object]:
    """Return what gives those of the lengths that have these indices."""
    return itemgetter(*indices) if indices else _nothing


def _nothing(_: Lengths) -> object:
    return None


Place = tuple[int, int]
"""A place in a record, and how many runs of digits are before it."""


class _MovingEvent:
    """An event of a record, ready to be moved to the places that it has in a relative."""

    def __init__(
        self, layout: EventLayout, extraction: Extraction, record: bytes, masked: bytes, place: Callable[[int], Place]
    ) -> None:
        self.layout = layout
        self.start = place(extraction.start)
        place(extraction.end)
        self.values: list[tuple[Value, Place, Place, dict[bytes, Value | None]]] = []
        for value in layout.values:
            start, end = extraction.spans.get(value.name, NOWHERE)
            self.values.append((value, place(start), place(end), {}) if start >= 0 else (value, NOWHERE, NOWHERE, {}))
        self.others: list[tuple[str, bool, Place, Place]] = []
        for key in extraction.unregistered:
            start, end = extraction.unregistered_spans[key]
            self.others.append((key, named_twice(record, key, extraction.keys), place(start), place(end)))
        self.unread = [
            (place(start), place(end), SOMETIMES_NUMBER.search(masked, start, end) is not None)
            for start, end in extraction.unread
            if start >= 0
        ]
        self.parts = [(place(start), place(end)) for start, end in extraction.parts]
        for start, end in (*extraction.keys, *extraction.declared):
            if start >= 0:
                place(start), place(end)

    def move(self, record: bytes, masked: bytes, moved: list[int]) -> EventLayout | None:
        """Return the event of ``record``; ``moved`` is how far the places are moved that have so many runs before them."""
        known = self.layout
        values = []
        for value, (start, begun), (end, ended), forms in self.values:
            if start < 0:
                values.append(value)
                continue
            start, end = start + moved[begun], end + moved[ended]
            text = masked[start:end]
            if text not in forms:
                assert value.spec is not None
                forms[text] = value_at(value.spec, value.name, text.decode("utf-8", "replace"), (0, len(text)), text)
            form = forms[text]
            if form is None:
                return None
            number = form.number
            if number != NOWHERE:
                number = number[0] + start, number[1] + start
            values.append(form._replace(start=start, end=end, number=number))
        others = []
        for key, is_twice, (start, begun), (end, ended) in self.others:
            start, end = start + moved[begun], end + moved[ended]
            direct = is_plain(masked[start:end])
            if not direct and (is_twice or read_unregistered(record[start:end].decode("ascii", "replace")) is None):
                return None
            if key.startswith(DROPPED):
                at, before = self.start
                key = f"{DROPPED}{start - at - moved[before]}{DROPPED}{key.split(DROPPED)[2]}"
            others.append(Value(key, start, end, None, None, (start, end) if direct else NOWHERE, direct))
        for (start, begun), (end, ended), sometimes in self.unread:
            start, end = start + moved[begun], end + moved[ended]
            if (SOMETIMES_NUMBER.search(masked, start, end) is not None) is not sometimes:
                return None
            if read_unregistered(record[start:end].decode("utf-8", "replace")) is not None:
                return None
        if not is_comparable(values, known.bounds):
            return None
        at, before = self.start
        parts = known.parts
        if parts is not None:
            parts = Parts(parts.column, tuple([(s + moved[m], e + moved[n]) for (s, m), (e, n) in self.parts]))
        return EventLayout(
            known.grammar,
            known.rule,
            at + moved[before],
            known.prefix,
            tuple(values),
            tuple(others),
            known.bounds,
            parts,
        )


def longest_word(record: bytes) -> int:
    """Return the length of the longest word of a record, between blanks."""
    return max(map(len, record.split(b" ")))
