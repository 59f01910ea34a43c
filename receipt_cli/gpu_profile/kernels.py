"""Kernel launches by name, and the busy intervals of each device."""

from __future__ import annotations

import numpy as np

from receipt_cli.gpu_profile.batch import LATEST_NS, LONGEST_NS, MAX_DEVICE, Json, Rows, real, whole, whole_columns
from receipt_cli.gpu_profile.dictionaries import MAX_NAME
from receipt_cli.gpu_profile.spans import Spans
from receipt_cli.gpu_profile.timing import Timing, Timings
from receipt_cli.numeric.array_types import Integers

MAX_NAMES = 1 << 16
_MAX_OPEN = 1 << 18
_DT = (-LONGEST_NS, LONGEST_NS)
_DURATION = (0, LONGEST_NS)
_ID = (0, 1 << 62)
Named = int | str
"""A kernel by its id in the dictionary, or by its name if the record contains it."""


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
