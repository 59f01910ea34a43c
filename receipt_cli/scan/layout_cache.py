"""Cache of learned layouts by masked bytes."""

from __future__ import annotations

from receipt_cli.scan.candidates import RUN, Candidates
from receipt_cli.scan.layout import MAX_KEPT, Layout

MAX_VARIANTS = 64
"""Most layouts that differ only in fixed digits."""
MAX_FAILURES = 4
"""Failures to learn a layout for one form before no more are tried."""
EAGER = 64
"""Layouts per set of candidates learned at first sight; after that only for forms that recur, whatever their numbers' lengths."""
MAX_FORMS = 1 << 16
"""Most forms remembered to detect recurrence."""


class LayoutCache:
    """Learned layouts by masked bytes."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[Layout]] = {}
        self._size = 0
        self._failed: dict[bytes, int] = {}
        self._met: set[int] = set()

    def find(self, masked: bytes, record: bytes) -> Layout | None:
        """Return the layout of ``record``, whose masked form is ``masked``, or None."""
        for layout in self._known.get(masked, ()):
            if layout.fits(record):
                return layout if layout.in_bounds(record) else None
        return None

    def wanted(self, masked: bytes) -> bool:
        """Return whether learning a layout for this form is still worth trying."""
        return self._failed.get(masked, 0) < MAX_FAILURES and len(self._known.get(masked, ())) < MAX_VARIANTS

    def comes_again(self, masked: bytes, candidates: Candidates) -> bool:
        """Return whether a form recurs, so that learning its layout pays; varying words give each line its own form."""
        if candidates.learned < EAGER:
            return True
        form = hash(RUN.sub(b"0", masked))
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
        if self._size >= MAX_KEPT:
            self._known.clear()
            self._size = 0
        self._known.setdefault(masked, []).append(layout)
        self._size += 1
