"""Cache of learned layouts by masked bytes, and of layouts derived from them without the patterns.

Derived are those of records that differ from a known one only in the lengths of their numbers. A record's *form* is its bytes
with each run of digits as one digit. If no tried pattern distinguishes run lengths (``grammar.length_sensitivity``), a record of
the form has the same events, moved by its longer and shorter runs. Checks that depend on the text of a value are repeated on
the new text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import itemgetter, sub

from receipt_cli.grammar.length_sensitivity import lengths_compared
from receipt_cli.records.envelope import MASK, before, starts
from receipt_cli.records.heuristics import Prefilter
from receipt_cli.scan.book import Outcome
from receipt_cli.scan.candidates import LONGEST, RUN, WORD, Candidates
from receipt_cli.scan.extraction import DROPPED, NOWHERE, Extraction, Span, read_unregistered
from receipt_cli.scan.forms import note_forms
from receipt_cli.scan.layout import MAX_KEPT, SOMETIMES_NUMBER, Layout, named_twice
from receipt_cli.scan.number_forms import is_plain

MAX_VARIANTS = 64
"""Most layouts that differ only in fixed digits."""
MAX_FAILURES = 4
"""Failures to learn a layout for one form before no more are tried."""
EAGER = 64
"""Layouts per set of candidates learned at first sight; after that only for forms that recur."""
MAX_FORMS = 1 << 16
"""Most forms remembered to detect recurrence."""


class LayoutCache:
    """Learned and derived layouts by masked bytes."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[Layout]] = {}
        self._size = 0
        self._failed: dict[bytes, int] = {}
        self._relatives: dict[Candidates, dict[bytes, LayoutVariants]] = {}
        self._learned = 0
        self._met: set[int] = set()

    def find(self, masked: bytes, record: bytes) -> Layout | None:
        """Return the layout of ``record``, whose masked form is ``masked``, or None."""
        for layout in self._known.get(masked, ()):
            if layout.fits(record):
                return layout if layout.in_bounds(record) else None
        return None

    def derive(self, record: bytes, masked: bytes, candidates: Candidates, prefilter: Prefilter) -> Layout | None:
        """Derive the layout of ``record`` from a record with other number lengths, and cache it; None if impossible."""
        forms = self._relatives.get(candidates) if self.wanted(masked) else None
        relatives = forms.get(form_of(masked)) if forms is not None else None
        layout = relatives.derive(record, masked) if relatives is not None else None
        asked = candidates.asked
        if layout is None or asked is None or prefilter.possible_in(masked) or any(asked.possible_in(masked)):
            return None
        self._keep(masked, layout)
        return layout if layout.in_bounds(record) else None

    def wanted(self, masked: bytes) -> bool:
        """Return whether learning a layout for this form is still worth trying."""
        return self._failed.get(masked, 0) < MAX_FAILURES and len(self._known.get(masked, ())) < MAX_VARIANTS

    def comes_again(self, masked: bytes, candidates: Candidates) -> bool:
        """Return whether a form recurs, so that learning its layout pays; varying words give each line its own form."""
        if candidates.learned < EAGER:
            return True
        form = hash(form_of(masked))
        if form in self._met:
            return True
        if len(self._met) >= MAX_FORMS:
            self._met.clear()
        self._met.add(form)
        return False

    def add(self, masked: bytes, layout: Layout | None, candidates: Candidates) -> None:
        """Cache ``layout`` learned from a record of this form, or the failure to learn one."""
        candidates.learned += 1
        if layout is None:
            if len(self._failed) >= MAX_KEPT:
                self._failed.clear()
            self._failed[masked] = self._failed.get(masked, 0) + 1
            return
        self._keep(masked, layout)
        if not may_have_variants(layout, candidates):
            return
        if self._learned >= MAX_KEPT:
            self._relatives.clear()
            self._learned = 0
        self._learned += 1
        forms = self._relatives.setdefault(candidates, {})
        relatives = forms.get(form_of(masked))
        if relatives is None:
            relatives = forms[form_of(masked)] = LayoutVariants(candidates, layout.sample)
        relatives.add(masked, layout)

    def _keep(self, masked: bytes, layout: Layout) -> None:
        if self._size >= MAX_KEPT:
            self._known.clear()
            self._size = 0
        self._known.setdefault(masked, []).append(layout)
        self._size += 1


MAX_VARIANTS_OF_FORM = 16
"""Most sample records per form and per set of lengths that matter."""
PATIENCE = 16
"""Records of known forms per set of rules before the rules are checked for length sensitivity."""
Lengths = Sequence[int]
"""The length of each run of digits in a record."""


@lru_cache(2)
def form_of(masked: bytes) -> bytes:
    """Return the form of a masked record; cached, because most are asked for twice in a row."""
    return RUN.sub(b"0", masked)


def may_have_variants(layout: Layout, candidates: Candidates) -> bool:
    """Return whether layouts of other records may be derived from this one."""
    return not (not layout.outcome.read or len(layout.sample) > LONGEST or candidates.markers or layout.absent or layout.echoes)


class LayoutVariants:
    """Records of one form with the same candidates and learned layouts."""

    def __init__(self, candidates: Candidates, sample: bytes) -> None:
        self.candidates, self.sample = candidates, sample
        self.short = longest_word(sample) <= WORD
        self.waiting: list[_LayoutVariant] = []
        self.known: dict[object, list[_LayoutVariant]] = {}

    def add(self, masked: bytes, layout: Layout) -> None:
        """Add a record of the form."""
        if len(self.waiting) < MAX_VARIANTS_OF_FORM and not (self.short and longest_word(masked) > WORD):
            self.waiting.append(_LayoutVariant(masked, layout))

    def derive(self, record: bytes, masked: bytes) -> Layout | None:
        """Return the layout of a record of the form, or None if it cannot be derived."""
        self.candidates.met += 1
        if self.candidates.met <= PATIENCE or len(record) > LONGEST or self._matter is None:
            return None
        if self.short and longest_word(record) > WORD:
            return None
        for relative in self.waiting:
            known = self.known.setdefault(self._matter(relative.lengths), [])
            if len(known) < MAX_VARIANTS_OF_FORM:
                known.append(relative)
        self.waiting.clear()
        lengths = _lengths(masked)
        for relative in self.known.get(self._matter(lengths), ()):
            layout = relative.derive(record, masked, lengths)
            if layout is not None:
                return layout
        return None

    @cached_property
    def _matter(self) -> Callable[[Lengths], object] | None:
        """The function that selects the lengths patterns may compare; None if they may compare any."""
        record, candidates = self.sample, self.candidates
        compared = candidates.lengths(self.short)
        if compared is None or (candidates.has_mapping and (b"\\" in record or not record.isascii())):
            return None
        text = record.lower().decode("latin-1")
        asked = [each for each in compared if all(needed in text for needed in each.needed)]
        around = [
            (record[start - 1] if start else 256, record[end] if end < len(record) else 256)
            for start, end in (found.span() for found in RUN.finditer(record.translate(MASK)))
        ]
        held = [
            index
            for index, (before, after) in enumerate(around)
            if any(each.before >> before & 1 and each.after >> after & 1 for each in asked)
        ]
        return _pick(held) if len(held) < len(around) else None


class _LayoutVariant:
    """A record with a learned layout, and the conditions for deriving others from it."""

    def __init__(self, masked: bytes, layout: Layout) -> None:
        self.masked, self.layout = masked, layout

    @cached_property
    def lengths(self) -> Lengths:
        """The lengths of the record's runs of digits."""
        return _lengths(self.masked)

    @cached_property
    def usable(self) -> bool:
        """Return whether some run may change its length."""
        return self._prepare()

    def derive(self, record: bytes, masked: bytes, lengths: Lengths) -> Layout | None:
        """Return the layout of ``record``, or None if it cannot be derived from this one."""
        if not self.usable or self.kept(lengths) != self.kept_lengths:
            return None
        moved: list[int] = [*accumulate(map(sub, lengths, self.lengths), initial=0)]
        to = {at: at + moved[before] for at, before in self.places.items()}.__getitem__
        fixed = tuple([(to(start), to(end), digits) for start, end, digits in self.layout.fixed])
        if any(record[start:end] != digits for start, end, digits in fixed):
            return None
        if self.starts is not None and starts(record) != tuple(map(to, self.starts)):
            return None
        known = self.layout.outcome
        read = []
        for grammar, rule, events in known.read:
            found = [event.moved(to) for event in events]
            if not all(self._holds(*pair, record, masked) for pair in zip(events, found, strict=True)):
                return None
            read.append((grammar, rule, found))
        for grammar in {grammar.ref: grammar for grammar, _, _ in read}.values():
            note_forms(record, [(rule, found) for own, rule, found in read if own is grammar])
        return Layout(record, fixed, (), (), Outcome(read, known.ignored, known.missed), self.layout.any_bar)

    def _holds(self, event: Extraction, moved: Extraction, record: bytes, masked: bytes) -> bool:
        """Return whether values of undeclared keys that are numbers stay so, and others too."""
        for was, span in zip(event.unread, moved.unread, strict=True):
            if was != NOWHERE and (_number_in(record, span) is not None or self.doubtful[was] is not _is_doubtful(masked, span)):
                return False
        for key, span in moved.unregistered_spans.items():
            if not is_plain(masked[slice(*span)]) and (key in self.twice or _number_in(record, span) is None):
                return False
        if self.drops:
            spans = moved.unregistered_spans.items()
            moved.unregistered_spans = {  # the key of a count-only cell has its offset from the start of the event
                f"{DROPPED}{span[0] - moved.start}{DROPPED}{key.split(DROPPED)[2]}" if key.startswith(DROPPED) else key: span
                for key, span in spans
            }
        return True

    def _prepare(self) -> bool:
        """Find the runs that must keep their length, because spans end inside them; return whether others exist."""
        record, outcome = self.layout.sample, self.layout.outcome
        picks = {rule.fields[name].value for _, rule, found in outcome.read for one in found for name in one.texts}
        if any(pick is not None and lengths_compared(pick.pattern, LONGEST, LONGEST) != () for pick in picks):
            return False
        if len(picks) > 1 and not record.isascii():
            return False
        runs = [found.span() for found in RUN.finditer(self.masked)]
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
        found = [one for *_, events in outcome.read for one in events]
        for event in found:
            held.update(range(bisect_left(begins, len(before(record, event.start)))))
            event.moved(hold)
        self.twice = {key for one in found for key in one.unregistered_spans if named_twice(record, key, one.keys)}
        self.drops = any(key.startswith(DROPPED) for one in found for key in one.unregistered_spans)
        unread = {span for one in found for span in one.unread} - {NOWHERE}
        self.doubtful = {span: _is_doubtful(self.masked, span) for span in unread}
        self.kept = _pick(sorted(held))
        self.kept_lengths = self.kept(self.lengths)
        return len(held) < len(runs)


def _lengths(masked: bytes) -> Lengths:
    return [*map(len, RUN.findall(masked))]


def _number_in(record: bytes, span: Span) -> float | None:
    return read_unregistered(record[slice(*span)].decode("utf-8", "replace"))


def _is_doubtful(masked: bytes, span: Span) -> bool:
    return SOMETIMES_NUMBER.search(masked, *span) is not None


def _pick(indices: Sequence[int]) -> Callable[[Lengths], object]:
    """Return the function that selects the lengths at ``indices``."""
    return itemgetter(*indices) if indices else _nothing


def _nothing(_: Lengths) -> object:
    return None


def longest_word(record: bytes) -> int:
    """Return the length of the longest word of a record, between blanks."""
    return max(map(len, record.split(b" ")))
