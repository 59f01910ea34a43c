"""Kernels, memory copies and scopes of a session, with their times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from receipt_cli.gpu_profile.format import NAMED_COPIES
from receipt_cli.gpu_profile.spans import Spans
from receipt_cli.gpu_profile.stream import (
    LATEST_NS,
    LONGEST_NS,
    MAX_DEVICE,
    MAX_NAME,
    Json,
    Rows,
    exact_total,
    is_whole,
    real,
    whole,
    whole_columns,
)
from receipt_cli.numeric.array_types import Integers

Key = TypeVar("Key")
NS = 10**9


class Timing:
    """Durations of one thing."""

    __slots__ = ("count", "longest", "shortest", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.shortest = 0
        self.longest = 0

    def add(self, count: int, total: int, shortest: int, longest: int) -> None:
        """Add ``count`` durations, at least one."""
        self.shortest = shortest if not self.count else min(self.shortest, shortest)
        self.longest = max(self.longest, longest)
        self.count += count
        self.total += total

    def figures(self) -> dict[str, Any]:
        """Return count, total, min, mean and max in seconds."""
        known = self.count > 0
        return {
            "count": self.count,
            "total_s": self.total / NS,
            "min_s": self.shortest / NS if known else None,
            "mean_s": self.total / (self.count * NS) if known else None,
            "max_s": self.longest / NS if known else None,
        }


class Timings(Generic[Key]):
    """Timings of at most ``most`` keys; durations of any further key are summed in ``left_out``."""

    def __init__(self, most: int) -> None:
        self.of: dict[Key, Timing] = {}
        self.left_out = Timing()
        self._most = most

    def at(self, key: Key) -> Timing:
        """Return the timing of ``key``."""
        found = self.of.get(key)
        if found is not None:
            return found
        return self.of.setdefault(key, Timing()) if len(self.of) < self._most else self.left_out

    def add_grouped(self: Timings[int], keys: Integers, durations: Integers) -> None:
        """Add durations (int64 [n], n <= 4,096, from 0 to below 2**50) to ``keys`` (int64 [n])."""
        if not len(keys):
            return
        order = np.argsort(keys, kind="stable")
        keys, durations = keys[order], durations[order]
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        counts = np.diff(np.append(starts, len(keys)))
        groups: Iterable[tuple[int, ...]] = zip(
            keys[starts].tolist(),
            counts.tolist(),
            np.add.reduceat(durations, starts).tolist(),
            np.minimum.reduceat(durations, starts).tolist(),
            np.maximum.reduceat(durations, starts).tolist(),
            strict=True,
        )
        for key, *durations_of in groups:
            self.at(key).add(*durations_of)


MAX_NAMES = 1 << 16
_MAX_OPEN = 1 << 18
_DT = (-LONGEST_NS, LONGEST_NS)
_DURATION = (0, LONGEST_NS)
_ID = (0, 1 << 62)
Named = int | str
"""A kernel or scope by its id in the dictionary, or by its name if the record contains it."""


class Kernels:
    """All launches of a session. ``spans`` are by device, None for records without a device.

    ``unended`` counts starts without an end, ``unstarted`` ends without a start, ``forgotten`` starts beyond the limit.
    """

    def __init__(self) -> None:
        self.by_name: Timings[Named] = Timings(MAX_NAMES)
        self.all = Timing()
        self.spans: dict[int | None, Spans] = {}
        self.unstarted = 0
        self.forgotten = 0
        self._open: dict[tuple[object, int], tuple[str, int, int | None]] = {}

    @property
    def unended(self) -> int:
        """Number of starts without an end so far."""
        return len(self._open)

    def add_batch(self, rows: Rows) -> int:
        """Add the launches of a batch; return the number of unreadable rows."""
        bounds = {"dt_ns": _DT, "duration_ns": _DURATION, "kernel_id": _ID}
        if "device_id" in rows.columns:
            bounds["device_id"] = (0, MAX_DEVICE + 1)
        lost = 0
        for columns, left_out in whole_columns(rows, bounds):
            starts = columns["dt_ns"] + rows.base_ns
            timely = starts >= 0
            if not timely.all():
                columns, starts = {name: column[timely] for name, column in columns.items()}, starts[timely]
            lost += left_out + int(np.count_nonzero(~timely))
            self._add(columns["kernel_id"], starts, columns["duration_ns"], columns.get("device_id"))
        return lost

    def _add(self, names: Integers, starts: Integers, durations: Integers, devices: Integers | None) -> None:
        if not len(starts):
            return
        self.by_name.add_grouped(names, durations)  # type: ignore[misc]  # ids are names
        self.all.add(len(starts), int(durations.sum()), int(durations.min()), int(durations.max()))
        ends = starts + durations
        if devices is None:
            self.spans.setdefault(None, Spans()).add(starts, ends)
            return
        for device in np.unique(devices).tolist():
            here = devices == device
            self.spans.setdefault(device, Spans()).add(starts[here], ends[here])

    def add_event(self, record: Json) -> bool:
        """Add a ``kernel_event``; return whether it is readable."""
        name, start, end = record.get("name"), whole(record.get("start_ns"), 0, LATEST_NS), record.get("end_ns")
        device = whole(record.get("device_id"), 0, MAX_DEVICE + 1)
        if not isinstance(name, str) or start is None or (device is None and record.get("device_id") is not None):
            return False
        end = whole(end, start, start + LONGEST_NS)
        if end is None:
            return False
        self._one(name[:MAX_NAME], start, end, device)
        return True

    def begin(self, record: Json, device: int | None) -> bool:
        """Add a ``kernel_start``; return whether it is readable."""
        name, start, key = record.get("name"), whole(record.get("ts_ns"), 0, LATEST_NS), _pair(record)
        if not isinstance(name, str) or start is None or key is None or key in self._open:
            return False
        if len(self._open) < _MAX_OPEN:
            self._open[key] = (name[:MAX_NAME], start, device)
        else:
            self.forgotten += 1
        return True

    def end(self, record: Json) -> bool:
        """Add a ``kernel_end``; return whether it is readable."""
        end, key = whole(record.get("ts_ns"), 0, LATEST_NS), _pair(record)
        if end is None or key is None:
            return False
        begun = self._open.pop(key, None)
        if begun is None:
            self.unstarted += 1
            return True
        name, start, device = begun
        if not start <= end < start + LONGEST_NS:
            return False
        self._one(name, start, end, device)
        return True

    def _one(self, name: str, start: int, end: int, device: int | None) -> None:
        self.by_name.at(name).add(1, end - start, end - start, end - start)
        self.all.add(1, end - start, end - start, end - start)
        self.spans.setdefault(device, Spans()).add_one(start, end)


def _pair(record: Json) -> tuple[object, int] | None:
    """Return the key that pairs a start with its end: process and number of the launch."""
    number, pid = whole(record.get("corr_id"), 0, 1 << 62), real(record.get("pid"))
    return None if number is None else (pid, number)


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


MAX_SCOPE_NAMES = 1 << 14
_BEGIN, _END, _GOES_ON, _BREAKS_OFF = 0, 1, 2, 3
"""The last two: a scope already open when this session began, and one still open at its end."""


class Scopes:
    """All scopes of a session. ``open`` counts those without an end by name, ``forgotten`` those beyond the limit."""

    def __init__(self) -> None:
        self.by_name: Timings[Named] = Timings(MAX_SCOPE_NAMES)
        self.backwards = 0
        self.forgotten = 0
        self._begun: dict[int, tuple[int, int]] = {}
        self._ended: dict[int, int] = {}
        self._stacks: dict[tuple[object, ...], list[int]] = {}
        self._stacked = 0

    @property
    def unbegun(self) -> int:
        """Number of ends without a begin."""
        return len(self._ended)

    def open(self) -> Counter[Named]:
        """Return the number of open scopes of each name."""
        found: Counter[Named] = Counter(name for name, _ in self._begun.values())
        for (name, *_), begins in self._stacks.items():
            assert isinstance(name, str)
            found[name] += len(begins)
        return found

    def add_batch(self, rows: Rows) -> int:
        """Add the begins and ends of a batch; return the number of unreadable rows."""
        needed = [rows.columns[name] for name in ("dt_ns", "scope_instance_id", "name_id", "event_type")]
        first = rows.columns.get("original_start_ns", (None,) * rows.count)
        lost = 0
        for dt, scope, name, kind, began in zip(*needed, first, strict=True):
            good = all(map(is_whole, (dt, scope, name, kind))) and -LONGEST_NS < dt < LONGEST_NS and name >= 0 <= scope
            time = whole(rows.base_ns + dt, 0, LATEST_NS) if good else None
            if time is None or not 0 <= kind <= _BREAKS_OFF:
                lost += 1
            elif kind == _BEGIN:
                lost += not self._begin(scope, name, time)
            elif kind == _GOES_ON:
                start = whole(began, 1, time + 1)
                lost += start is None or not self._begin(scope, name, start)
            elif kind == _END:
                lost += not self._end(scope, time)
        return lost

    def _begin(self, scope: int, name: int, start: int) -> bool:
        if scope in self._ended:
            return self._span(name, start, self._ended.pop(scope))
        if scope in self._begun:
            return False
        if len(self._begun) < _MAX_OPEN:
            self._begun[scope] = (name, start)
        else:
            self.forgotten += 1
        return True

    def _end(self, scope: int, end: int) -> bool:
        begun = self._begun.pop(scope, None)
        if begun is not None:
            return self._span(*begun, end)
        if scope in self._ended:
            return False
        if len(self._ended) < _MAX_OPEN:
            self._ended[scope] = end
        else:
            self.forgotten += 1
        return True

    def _span(self, name: Named, start: int, end: int) -> bool:
        length = end - start
        if not 0 <= length < LONGEST_NS:
            self.backwards += 1
            return False
        self.by_name.at(name).add(1, length, length, length)
        return True

    def add_event(self, record: Json, *, begins: bool) -> bool:
        """Add a ``scope_begin`` or ``scope_end``, paired by nesting; return whether it is readable."""
        name, time = record.get("name"), whole(record.get("ts_ns"), 0, LATEST_NS)
        if not isinstance(name, str) or time is None:
            return False
        key = (name[:MAX_NAME], *(str(record.get(part))[:200] for part in ("pid", "user_scope", "scope_depth")))
        stack = self._stacks.get(key)
        if begins:
            if self._stacked >= _MAX_OPEN:
                self.forgotten += 1
                return True
            self._stacked += 1
            self._stacks.setdefault(key, []).append(time)
            return True
        if not stack:
            return False
        self._stacked -= 1
        start = stack.pop()
        if not stack:
            del self._stacks[key]
        return self._span(name[:MAX_NAME], start, time)
