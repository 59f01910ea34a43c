"""Memory copies and fills, by direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from receipt_cli.gpu_profile.batch import LATEST_NS, LONGEST_NS, Json, Rows, exact_total, whole, whole_columns
from receipt_cli.gpu_profile.format import NAMED_COPIES

_SIZE = (0, 1 << 60)
_KIND = (0, 1 << 31)


@dataclass(slots=True)
class CopyTotals:
    """Copies in one direction: count, nanoseconds, bytes. ``size`` is None if a record lacks it."""

    count: int = 0
    total_ns: int = 0
    size: int | None = 0

    def add(self, count: int, total_ns: int, size: int | None) -> None:
        """Add ``count`` copies."""
        self.count += count
        self.total_ns += total_ns
        self.size = None if size is None or self.size is None else self.size + size


class Copies:
    """All copies and fills of a session: by direction, or by a number whose meaning depends on the vendor."""

    def __init__(self) -> None:
        self.by_kind: dict[int | None, CopyTotals] = {}
        self.by_direction: dict[str, CopyTotals] = {}

    def add_batch(self, rows: Rows) -> int:
        """Add the copies of a batch; return the number of unreadable rows."""
        bounds = {"dt_ns": (-LONGEST_NS, LONGEST_NS), "duration_ns": (0, LONGEST_NS)}
        bounds |= {name: bound for name, bound in (("bytes", _SIZE), ("copy_kind", _KIND)) if name in rows.columns}
        lost = 0
        for columns, left_out in whole_columns(rows, bounds):
            lost += left_out
            durations, sizes, kinds = columns["duration_ns"], columns.get("bytes"), columns.get("copy_kind")
            for kind in [None] if kinds is None else np.unique(kinds).tolist():
                here = slice(None) if kinds is None else kinds == kind
                size = None if sizes is None else exact_total(sizes[here])
                self._kind(kind).add(len(durations[here]), int(durations[here].sum()), size)
        return lost

    def _kind(self, kind: int | None) -> CopyTotals:
        """Return the totals of a kind. Kinds above 255 are in no table and count as one unknown kind."""
        return self.by_kind.setdefault(kind if kind is not None and kind < 256 else None, CopyTotals())

    def add_event(self, record: Json, *, fill: bool) -> bool:
        """Add a ``memcpy_event``, or with ``fill`` a ``memset_event``; return whether it is readable."""
        start = whole(record.get("start_ns"), 0, LATEST_NS)
        end = None if start is None else whole(record.get("end_ns"), start, start + LONGEST_NS)
        size = whole(record.get("bytes"), *_SIZE)
        if start is None or end is None or (size is None and record.get("bytes") is not None):
            return False
        kind = record.get("copy_kind")
        direction = "fill" if fill else NAMED_COPIES.get(kind, "unknown") if isinstance(kind, str) else "unknown"
        self.by_direction.setdefault(direction, CopyTotals()).add(1, end - start, size)
        return True

    def merged(self, table: Mapping[int, str]) -> dict[str, CopyTotals]:
        """Return the copies by direction; ``table`` maps kinds to directions; other kinds are unknown."""
        found = {direction: CopyTotals(m.count, m.total_ns, m.size) for direction, m in self.by_direction.items()}
        for kind, moved in self.by_kind.items():
            direction = "unknown" if kind is None else table.get(kind, "unknown")
            found.setdefault(direction, CopyTotals()).add(moved.count, moved.total_ns, moved.size)
        return found
