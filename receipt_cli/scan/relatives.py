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
from receipt_cli.scan.extraction import DROPPED, NOWHERE, Extraction, Span, read_unregistered
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
        moved: list[int] = [*accumulate(map(sub, lengths, self.lengths), initial=0)]
        to = {at: at + moved[before] for at, before in self.places.items()}.__getitem__
        fixed = tuple([(to(start), to(end), digits) for start, end, digits in self.layout.fixed])
        if any(record[start:end] != digits for start, end, digits in fixed):
            return None
        if self.starts is not None and starts(record) != tuple(map(to, self.starts)):
            return None
        known = self.layout
        events = [self._moved(*each, record, masked, to) for each in zip(known.events, self.events, strict=True)]
        found = tuple([event for event in events if event is not None])
        if len(found) < len(events):
            return None
        return Layout(record, fixed, (), (), found, known.ignored, known.near, (), known.any_bar)

    def _moved(
        self, layout: EventLayout, event: Extraction, record: bytes, masked: bytes, to: Callable[[int], int]
    ) -> EventLayout | None:
        """Return an event as ``record`` has it; None where the text under an undeclared key becomes a number, or is none now."""
        for before in event.unread:
            if before != NOWHERE:
                after = to(before[0]), to(before[1])
                if _number_in(record, after) is not None or self.doubtful[before] is not _is_doubtful(masked, after):
                    return None
        values = []
        for value in layout.values:
            if value.start < 0:
                values.append(value)
                continue
            start, end = to(value.start), to(value.end)
            form = self._form(value, masked[start:end])
            if form is None:
                return None
            number = form.number if form.number == NOWHERE else (form.number[0] + start, form.number[1] + start)
            values.append(Value(value.name, start, end, value.spec, None, number, form.direct))
        unregistered = []
        for value in layout.unregistered:
            start, end, key = to(value.start), to(value.end), value.name
            direct = is_plain(masked[start:end])
            if not direct and (key in self.twice or _number_in(record, (start, end)) is None):
                return None
            if key.startswith(DROPPED):
                key = f"{DROPPED}{start - to(layout.start)}{DROPPED}{key.split(DROPPED)[2]}"
            unregistered.append(Value(key, start, end, None, None, (start, end) if direct else NOWHERE, direct))
        if not is_comparable(values, layout.bounds):
            return None
        parts = layout.parts
        if parts is not None:
            parts = Parts(parts.column, tuple([s if s == NOWHERE else (to(s[0]), to(s[1])) for s in event.parts]))
        return EventLayout(
            layout.grammar, layout.rule, to(layout.start), layout.prefix, tuple(values), tuple(unregistered), layout.bounds, parts
        )

    def _form(self, value: Value, text: bytes) -> Value | None:
        """Return how a value is read whose text is ``text``, from its own beginning on, with all digits alike."""
        key = id(value.spec), text
        if key not in self.forms:
            assert value.spec is not None
            shown = text.decode("utf-8", "replace").strip()
            self.forms[key] = value_at(value.spec, value.name, shown, (0, len(text)), text)
        return self.forms[key]

    def _prepare(self, outcome: Outcome) -> bool:
        """Find the runs that keep their lengths, since places are inside them; False where all keep them."""
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
        self.places: dict[int, int] = {}  # and how many runs end before each

        def hold(at: int) -> int:
            self.places[at] = before = bisect_right(ends, at)
            if before < len(runs) and begins[before] < at:
                held.add(before)
            return at

        for start, end, _ in self.layout.fixed:
            held.update(range(bisect_right(ends, start), bisect_left(begins, end)))
            self.places |= {at: bisect_right(ends, at) for at in (start, end)}
        rules = [rule for _, rule, _ in outcome.read] + [rule for _, rule in (*outcome.missed, *outcome.ignored)]
        self.starts = starts(record) if any(rule.anchored for rule in rules) else None
        for at in self.starts or ():
            hold(at)
        self.events = [one for *_, found in outcome.read for one in found]
        for layout, event in zip(self.layout.events, self.events, strict=True):
            if layout.prefix is not None:
                held.update(range(bisect_left(begins, layout.prefix.end)))
            event.moved(hold)
        self.twice = {key for one in self.events for key in one.unregistered if named_twice(record, key, one.keys)}
        unread = {span for one in self.events for span in one.unread} - {NOWHERE}
        self.doubtful = {span: _is_doubtful(self.masked, span) for span in unread}
        self.forms: dict[tuple[int, bytes], Value | None] = {}
        self.kept = pick(sorted(held))
        self.kept_lengths = self.kept(self.lengths)
        return len(held) < len(runs)


def _number_in(record: bytes, span: Span) -> float | None:
    return read_unregistered(record[slice(*span)].decode("utf-8", "replace"))


def _is_doubtful(masked: bytes, span: Span) -> bool:
    return SOMETIMES_NUMBER.search(masked, *span) is not None


def pick(indices: Sequence[int]) -> Callable[[Lengths], object]:
    """Return what gives those of the lengths that have these indices."""
    return itemgetter(*indices) if indices else _nothing


def _nothing(_: Lengths) -> object:
    return None


def longest_word(record: bytes) -> int:
    """Return the length of the longest word of a record, between blanks."""
    return max(map(len, record.split(b" ")))
