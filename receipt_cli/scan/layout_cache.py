"""The layouts that a scan has learned, by the masked bytes of their records."""

from __future__ import annotations

from receipt_cli.scan.layout import MAX_KEPT, Layout

MAX_VARIANTS = 64
"""Layouts that differ only in fixed digits."""
MAX_FAILURES = 4
"""Records of one form that may turn out to have no layout, before no more of them are tried."""


class LayoutCache:
    """The layouts that were learned."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[Layout]] = {}
        self._size = 0
        self._failed: dict[bytes, int] = {}

    def find(self, masked: bytes, record: bytes) -> Layout | None:
        """Return the layout of ``record``, whose masked form is ``masked``, or None."""
        for layout in self._known.get(masked, ()):
            if layout.fits(record):
                return layout if layout.in_bounds(record) else None
        return None

    def wanted(self, masked: bytes) -> bool:
        """True unless there is reason to think that records of this form have no layout."""
        return self._failed.get(masked, 0) < MAX_FAILURES and len(self._known.get(masked, ())) < MAX_VARIANTS

    def add(self, masked: bytes, layout: Layout | None) -> None:
        """Remember ``layout``, or that a record of this form has none."""
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
