"""Cache of learned layouts by masked bytes, and of layouts derived from them."""

from __future__ import annotations

from receipt_cli.records.heuristics import Prefilter
from receipt_cli.scan.candidates import Candidates
from receipt_cli.scan.layout import MAX_KEPT, Layout
from receipt_cli.scan.relatives import LayoutVariants, form_of, may_have_variants

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
