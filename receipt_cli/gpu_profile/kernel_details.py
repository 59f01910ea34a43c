"""Details recorded inside kernels: launch settings, and reasons why warps did not issue."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from receipt_cli.gpu_profile.stream import MAX_NAME, Dictionary, Json, Rows, is_whole, real, shown, whole

MAX_LAUNCHES = 1 << 16
"""Most launches with details, and most kernel names in records of one launch each."""
MAX_REASONS = 256
_SIZES = re.compile(r"\(?(\d{1,10}), ?(\d{1,10}), ?(\d{1,10})\)?")
_MOST = 1 << 31
_COUNTS = {
    "registers_per_thread": (1, ("num_regs",)),
    "static_shared_bytes": (0, ("static_shared", "static_shared_bytes")),
    "dynamic_shared_bytes": (0, ("dyn_shared", "dyn_shared_bytes")),
}
"""Our name of a count → (least value, its names in generations of the recorder). The recorder writes 0 registers if it cannot
read them."""
_PREFIX, _NOT_ISSUED, _SELECTED = "smsp__pcsamp_warps_issue_stalled_", "_not_issued", "selected"
_ENUM = {
    2: "instruction_fetch", 3: "execution_dependency", 4: "memory_dependency", 5: "texture", 6: "synchronization",
    7: "constant_memory_dependency", 8: "pipe_busy", 9: "memory_throttle", 10: "not_selected", 11: "other", 12: "sleeping",
}  # fmt: skip
"""``CUpti_ActivityPCSamplingStallReason``; 0 is invalid, 1 is an issued instruction."""
_NO_STALL = 1
_PC_SAMPLING = (0, "pc_sampling")


@dataclass(slots=True)
class Launch:
    """Values common to the launches of a kernel, by our names; ``apart`` are names whose values differ."""

    count: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    apart: set[str] = field(default_factory=set)
    occupancies: tuple[float, float] | None = None

    def add(self, values: Json) -> None:
        """Add the details of one launch."""
        self.count += 1
        for name, value in values.items():
            if name == "occupancy":
                low, high = self.occupancies or (value, value)
                self.occupancies = min(low, value), max(high, value)
            elif self.values.setdefault(name, value) != value:
                self.apart.add(name)

    def document(self) -> Json:
        """Return the block of the document; null if launches differ or nothing was recorded."""
        names = ("grid", "block", *_COUNTS)
        known = {name: None if name in self.apart else self.values.get(name) for name in names}
        low, high = self.occupancies or (None, None)
        return {"detail_count": self.count, **known, "occupancy_min_ratio": low, "occupancy_max_ratio": high}


class KernelDetails:
    """Details of launches, which the newer recorder writes apart from their times, under the number of the launch.

    All kernels of a CUDA graph share one number; a number with different kernels or details is ignored. ``unreadable`` counts
    records without a number, ``left_out`` those beyond ``MAX_LAUNCHES``.
    """

    def __init__(self) -> None:
        self.unreadable = 0
        self.left_out = 0
        self._by_name: dict[str, Launch] = {}
        self._names: dict[str, str] = {}
        self._rows: dict[int, tuple[int, Json] | None] = {}
        self._details: dict[int, Json | None] = {}

    def add_batch(self, rows: Rows) -> None:
        """Add the kernels of those launches in a batch that have details."""
        names = ("corr_id", "kernel_id", "has_details")
        if any(name not in rows.columns for name in names):
            return
        known = [(name, least, key) for name, (least, keys) in _COUNTS.items() for key in keys]
        counts = [(name, least, rows.columns[key]) for name, least, key in known if key in rows.columns]
        for row, (number, kernel, detailed) in enumerate(zip(*(rows.columns[name] for name in names), strict=True)):
            if detailed == 1 and is_whole(number) and is_whole(kernel):
                found = {name: whole(column[row], least, _MOST) for name, least, column in counts}
                self._put(self._rows, number, (kernel, {name: value for name, value in found.items() if value is not None}))

    def add_detail(self, record: Json) -> None:
        """Add a ``kernel_detail``."""
        number = whole(record.get("corr_id"), 0, 1 << 62)
        if number is None:
            self.unreadable += 1
        else:
            self._put(self._details, number, _values(record))

    def add_event(self, record: Json) -> None:
        """Add the details in a ``kernel_event`` or ``kernel_start`` of the older recorder."""
        name, values = record.get("name"), _values(record)
        if record.get("has_details") is not True or not isinstance(name, str) or not values:
            return
        if name not in self._names:
            if len(self._names) >= MAX_LAUNCHES:
                self.left_out += 1
                return
            self._names[name] = shown(name[:MAX_NAME]) or "#"
        self._by_name.setdefault(self._names[name], Launch()).add(values)

    def by_name(self, names: Dictionary) -> dict[str, Launch]:
        """Return the launches by kernel name."""
        found = dict(self._by_name)
        for number, detail in self._details.items():
            row = self._rows.get(number)
            if row is not None and detail is not None:
                found.setdefault(names.name(row[0]) or f"#{row[0]}", Launch()).add({**row[1], **detail})
        return found

    def _put(self, kept: dict[int, Any], number: int, value: object) -> None:
        if number in kept:
            kept[number] = value if kept[number] == value else None
        elif len(kept) < MAX_LAUNCHES:
            kept[number] = value
        else:
            self.left_out += 1


def _values(record: Json) -> Json:
    values: Json = {}
    for name in ("grid", "block"):
        sizes = _SIZES.fullmatch(record[name]) if isinstance(record.get(name), str) else None
        if sizes is not None and all(map(int, sizes.groups())):
            values[name] = [int(size) for size in sizes.groups()]
    for name, (least, keys) in _COUNTS.items():
        value = next((whole(record[key], least, _MOST) for key in keys if key in record), None)
        if value is not None:
            values[name] = value
    occupancy = real(record.get("occupancy"))
    if occupancy is not None and 0 < occupancy <= 1:
        values["occupancy"] = occupancy
    return values


class StallSamples:
    """Samples of warps that did not issue, by reason.

    ``unreadable`` counts unreadable records, ``nameless`` samples of reasons without a name. With more than ``MAX_REASONS``
    reasons, ``too_many`` is true and no reason is returned.
    """

    def __init__(self) -> None:
        self.unreadable = 0
        self.nameless = 0
        self.too_many = False
        self._counts: Counter[tuple[int | str, int]] = Counter()

    def add_batch(self, rows: Rows) -> int:
        """Add a batch of samples inside kernels; return the number of unreadable rows."""
        lost = 0
        others = {"sample_kind": 0, "metric_id": 0, "reason_name": None}
        columns = [rows.columns[name] for name in ("metric_value", "stall_reason")]
        columns += [rows.columns.get(name, (default,) * rows.count) for name, default in others.items()]
        for value, stall, kind, metric, name in zip(*columns, strict=True):
            if kind not in _PC_SAMPLING:
                continue
            count, number = whole(value, 0, 1 << 62), whole(stall, 0, _MOST)
            key = name if isinstance(name, str) and name else whole(metric, 0, 1 << 62)
            if count is None or number is None or key is None:
                lost += 1
            else:
                self._add(key, number, count)
        return lost

    def add_event(self, record: Json) -> None:
        """Add a ``profile_sample`` of the older recorder if it is of a stall."""
        if record.get("sample_kind", 0) not in _PC_SAMPLING or "stall_reason" not in record:
            return
        count, number = whole(record.get("sample_count"), 0, 1 << 62), whole(record["stall_reason"], 0, _MOST)
        name = record.get("reason_name")
        if count is None or number is None:
            self.unreadable += 1
        else:
            self._add(name if isinstance(name, str) and name else 0, number, count)

    def document(self, names: Dictionary) -> list[Json]:
        """Return the reasons with their samples, largest first. Call it once, at the end."""
        found: Counter[tuple[str, bool]] = Counter()
        for (key, number), count in self._counts.items():
            name = shown(key) if isinstance(key, str) else names.name(key) if key else _ENUM.get(number, f"#{number}")
            if name is None:
                self.nameless += count
            elif name.startswith(_PREFIX):
                reason = name.removeprefix(_PREFIX)
                bare = reason.removesuffix(_NOT_ISSUED)
                if bare != _SELECTED:
                    found[bare or reason or name, bare != reason] += count
            elif number > _NO_STALL:
                found[name, False] += count
        if self.too_many:
            return []
        totals = {kind: sum(count for (_, other), count in found.items() if other is kind) for kind in (False, True)}
        return [
            {"reason": reason, "not_issued": kind, "sample_count": count, "ratio": count / totals[kind]}
            for (reason, kind), count in sorted(found.items(), key=lambda item: (-item[1], item[0]))
        ]

    def _add(self, key: int | str, number: int, count: int) -> None:
        if not count:
            return
        if (key, number) in self._counts or len(self._counts) < MAX_REASONS:
            self._counts[key, number] += count
        else:
            self.too_many = True
