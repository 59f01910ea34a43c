"""Layouts of records that differ from a known one in how many digits their numbers have, made without asking the patterns.

A record's *form* is its bytes with one digit for each run of them. Where no pattern that is tried tells the length of a run
(``grammar.length_sensitivity``), nor anything else does, a record of the form has the same events at the same places, but for
how far its longer and shorter runs move them. What depends on the text of a value is asked of that text again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate, chain
from operator import itemgetter, sub

from receipt_cli.grammar.length_sensitivity import LONGEST, WORD, Between, lengths_compared
from receipt_cli.lazy_pattern import compile_later
from receipt_cli.records.envelope import starts
from receipt_cli.scan.book import Outcome
from receipt_cli.scan.candidates import Candidates
from receipt_cli.scan.extraction import DROPPED, NOWHERE, Extraction, read_unregistered
from receipt_cli.scan.layout import MAX_KEPT, EventLayout, Layout, Parts, Value
from receipt_cli.scan.learn_layout import SOMETIMES_NUMBER, is_comparable, named_twice, value_at
from receipt_cli.scan.number_forms import is_plain

_RUN = compile_later(rb"0+")
MAX_RELATIVES = 16
"""Records of one form that others may be relatives of."""


class Relatives:
    """The records of which layouts were learned, by their form."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[_Relative]] = {}
        self._size = 0

    def find(self, record: bytes, masked: bytes, candidates: Candidates) -> Layout | None:
        """Return the layout of ``record``, if it follows from that of a relative; ``candidates`` are what is tried on it."""
        known = self._known.get(_RUN.sub(b"0", masked))
        if known is None or len(record) > LONGEST:
            return None
        lengths = [*map(len, _RUN.findall(masked))]
        for relative in known:
            layout = relative.derive(record, masked, lengths, candidates)
            if layout is not None:
                return layout
        return None

    def add(self, masked: bytes, layout: Layout, outcome: Outcome, candidates: Candidates) -> None:
        """Remember a record whose layout was learned, if others may be relatives of it."""
        if len(masked) > LONGEST or candidates.markers or layout.absent or layout.echoes or b"0" not in masked:
            return
        if self._size >= MAX_KEPT:
            self._known.clear()
            self._size = 0
        known = self._known.setdefault(_RUN.sub(b"0", masked), [])
        if len(known) < MAX_RELATIVES:
            known.append(_Relative(masked, layout, outcome, candidates))
            self._size += 1


class _Relative:
    """A record whose layout was learned, and what others need to have in common with it."""

    def __init__(self, masked: bytes, layout: Layout, outcome: Outcome, candidates: Candidates) -> None:
        self.masked, self.layout, self.candidates = masked, layout, candidates
        self.outcome: Outcome | None = outcome
        self.usable = True

    def derive(self, record: bytes, masked: bytes, lengths: list[int], candidates: Candidates) -> Layout | None:
        """Return the layout of ``record``, whose form is the same, or None where it does not follow from this one."""
        if candidates is not self.candidates:
            return None
        if self.outcome is not None:
            self.usable, self.outcome = self._prepare(self.outcome), None
        if not self.usable or self.kept(lengths) != self.kept_lengths or (self.short and longest_word(record) > WORD):
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
        """Find the runs that may have other lengths, and how many of them are before each place that counts.

        False where none may.
        """
        record = self.layout.sample
        runs = [found.span() for found in _RUN.finditer(self.masked)]
        self.lengths = [end - start for start, end in runs]
        self.short = longest_word(record) <= WORD
        compared = self._compared(outcome)
        if compared is None:
            return False
        text = record.lower().decode("latin-1")
        matter = [each for each in compared if all(needed in text for needed in each.needed)]
        begins, ends = [start for start, _ in runs], [end for _, end in runs]
        free = [True] * len(runs)
        for index, (start, end) in enumerate(runs):
            before, after = record[start - 1] if start else 256, record[end] if end < len(record) else 256
            free[index] = not any(each.before >> before & 1 and each.after >> after & 1 for each in matter)

        def keep(start: int, end: int) -> None:
            for index in range(bisect_right(ends, start), bisect_left(begins, end)):
                free[index] = False

        def place(at: int) -> tuple[int, int]:
            """Return a place and the number of runs before it; one inside a run keeps the length of that."""
            before = bisect_right(ends, at)
            if before < len(runs) and begins[before] < at:
                free[before] = False
            return at, before

        for start, end, _ in self.layout.fixed:
            keep(start, end)
        anchored = any(rule.anchored for _, rule, _ in self.candidates.rules)
        self.starts = [place(at) for at in starts(record)] if anchored else None
        self.events = []
        pairs = zip(self.layout.events, ((rule, one) for _, rule, found in outcome.read for one in found), strict=True)
        for layout, (_, extraction) in pairs:
            if layout.prefix is not None:
                keep(0, layout.prefix.end)
            self.events.append(_MovingEvent(layout, extraction, record, self.masked, place))
        self.fixed = [(start, end, place(start)[1], digits) for start, end, digits in self.layout.fixed]
        held = [index for index, is_free in enumerate(free) if not is_free]
        self.kept: Callable[[list[int]], object] = itemgetter(*held) if held else len
        self.kept_lengths = self.kept(self.lengths)
        return len(held) < len(runs)

    def _compared(self, outcome: Outcome) -> list[Between] | None:
        """Return between which bytes the lengths of runs matter to what is asked of the record; None: anywhere."""
        record = self.layout.sample
        compared = self.candidates.lengths(self.short)
        picks = {rule.fields[name].value for _, rule, found in outcome.read for one in found for name in one.texts}
        sources = [pick.pattern for pick in picks if pick is not None]
        if compared is None or (sources and not record.isascii()):
            return None
        if any(rule.mapping for _, rule, _ in self.candidates.rules) and (b"\\" in record or not record.isascii()):
            return None
        all_found = [compared, *(lengths_compared(source, LONGEST, WORD if self.short else LONGEST) for source in sources)]
        known = [one for one in all_found if one is not None]
        return [*chain.from_iterable(known)] if len(known) == len(all_found) else None


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
            name, begin, stop, direct, shift, spec, _, number = form
            if number != NOWHERE:
                number = number[0] + start, number[1] + start
            values.append(Value(name, begin + start, stop + start, direct, shift, spec, None, number))
        others = []
        for key, is_twice, (start, begun), (end, ended) in self.others:
            start, end = start + moved[begun], end + moved[ended]
            direct = is_plain(masked[start:end])
            if not direct and (is_twice or read_unregistered(record[start:end].decode("ascii", "replace")) is None):
                return None
            if key.startswith(DROPPED):
                at, before = self.start
                key = f"{DROPPED}{start - at - moved[before]}{DROPPED}{key.split(DROPPED)[2]}"
            others.append(Value(key, start, end, direct, b"", None))
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
            known.key,
            known.grammar,
            known.rule,
            min(at + moved[before], 65535),
            known.prefix,
            tuple(values),
            tuple(others),
            known.bounds,
            parts,
        )


def longest_word(record: bytes) -> int:
    """Return the length of the longest word of a record, between blanks."""
    return max(map(len, record.split(b" ")))
