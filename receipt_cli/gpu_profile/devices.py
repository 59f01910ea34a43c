"""The devices and hosts of a session: their start records, and their sampled metrics in base units."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any, TypeAlias

from receipt_cli.gpu_profile.format import DEVICE_ALIASES, DEVICE_COLUMNS, HOST_COLUMNS, Sampled
from receipt_cli.gpu_profile.stream import LATEST_NS, LONGEST_NS, MAX_DEVICE, Json, Rows, is_whole, real, whole
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.statistics import describe

_LEAST = 0.0
_MAX_HOSTS = 64


class Column:
    """The values of one metric of a device or host. ``impossible`` counts values outside its range."""

    def __init__(self, sampled: Sampled) -> None:
        self.impossible = 0
        self._sampled = sampled
        self._values: Cells[float] = Cells("d")
        self._first: tuple[int, float] | None = None
        self._last: tuple[int, float] | None = None

    def add(self, times: Sequence[int], values: Sequence[float]) -> None:
        """Add numbers as recorded, each with its time."""
        result = array("d", (value * self._sampled.times / self._sampled.over for value in values))
        if not result:
            return
        first, last = min(times), max(times)
        if self._first is None or first < self._first[0]:
            self._first = first, result[times.index(first)]
        if self._last is None or last >= self._last[0]:
            self._last = last, result[len(result) - 1 - list(reversed(times)).index(last)]
        self.impossible += sum(math.isfinite(value) and not _LEAST <= value <= self._sampled.most for value in result)
        self._values.extend(result)

    def figures(self) -> dict[str, Any] | None:
        """Return the statistics; None if all values are zero, because 0 is also recorded for unreadable values."""
        values = self._values.whole()
        if self.impossible or not values.any():
            return None
        known = describe(values, values, "all", scope=None, definition=None)
        first, last = (at[1] if at is not None and math.isfinite(at[1]) else None for at in (self._first, self._last))
        figures = known._replace(first=first, last=last)._asdict()
        exact = {name: _plain(figures[name]) for name in ("first", "last", "min", "max")}
        counts = {"record_count": known.record_count, "nonfinite_count": known.nonfinite_count}
        return {**counts, **exact, "mean": known.mean, "median": _plain(known.median)}


def _plain(value: float | None) -> float | int | None:
    """Return a whole value as an integer, any other unchanged."""
    return int(value) if value is not None and value.is_integer() and abs(value) < 2**53 else value


Columns: TypeAlias = "dict[str, Column]"
"""The metrics of one device or host, by name."""
_ORDER = dict.fromkeys(meaning.metric for meaning in (*DEVICE_COLUMNS.values(), *HOST_COLUMNS.values()))


def metrics_of(columns: Columns) -> dict[str, dict[str, Any]]:
    """Return the statistics of each metric that has any, in the format's order."""
    figures = {name: columns[name].figures() for name in _ORDER if name in columns}
    return {name: known for name, known in figures.items() if known is not None}


class Samples:
    """The samples of a session. ``memory`` holds all recorded memory sizes of each device, in MiB."""

    def __init__(self) -> None:
        self.devices: dict[int, Columns] = {}
        self.hosts: dict[str | None, Columns] = {}
        self.memory: dict[int, set[int]] = {}
        self.unreadable = 0

    def add_devices(self, rows: Rows) -> int:
        """Add a batch of device samples; return the number of unreadable rows."""
        rows_of: dict[int, tuple[list[int], list[int]]] = {}
        lost = 0
        for place, (dt, device) in enumerate(zip(rows.columns["dt_ns"], rows.columns["device_id"], strict=True)):
            time = whole(rows.base_ns + dt, 0, LATEST_NS) if is_whole(dt) and -LONGEST_NS < dt < LONGEST_NS else None
            if time is None or not is_whole(device) or not 0 <= device <= MAX_DEVICE:
                lost += 1
                continue
            places, times = rows_of.setdefault(device, ([], []))
            places.append(place)
            times.append(time)
        for device, (places, times) in rows_of.items():
            columns = self.devices.setdefault(device, {})
            for name, column in rows.columns.items():
                values = [column[place] for place in places]
                if name == "total_mib":
                    for value in dict.fromkeys(value for value in values if is_whole(value)):
                        self.total(device, value)
                elif name in DEVICE_COLUMNS:
                    self._put(columns, DEVICE_COLUMNS[name], times, values)
        return lost

    def add_hosts(self, rows: Rows, host: str | None) -> int:
        """Add a batch of host samples; return the number of unreadable rows."""
        good = [
            (place, rows.base_ns + dt)
            for place, dt in enumerate(rows.columns["dt_ns"])
            if is_whole(dt) and -LONGEST_NS < dt < LONGEST_NS and rows.base_ns + dt >= 0
        ]
        columns = self._host(host)
        if columns is not None:
            for name, column in rows.columns.items():
                if name in HOST_COLUMNS:
                    self._put(columns, HOST_COLUMNS[name], [time for _, time in good], [column[place] for place, _ in good])
        return rows.count - len(good)

    def add_event(self, record: Json, host: str | None) -> bool:
        """Add a ``system_sample``, ``system_start`` or ``system_stop``; return whether it is readable."""
        time = whole(record.get("ts_ns"), 0, LATEST_NS)
        devices, declared = record.get("devices"), record.get("host")
        if time is None or not isinstance(devices, list | None) or not isinstance(declared, dict | None):
            return False
        columns = self._host(host) if declared else None
        for name, value in (declared or {}).items():
            if columns is not None and name in HOST_COLUMNS:
                self._put(columns, HOST_COLUMNS[name], [time], [value])
        for entry in devices or ():
            number = device_number(entry)
            if number is None:
                return False
            for name, value in entry.items():
                known = DEVICE_ALIASES.get(name, name)
                if known in DEVICE_COLUMNS:
                    self._put(self.devices.setdefault(number, {}), DEVICE_COLUMNS[known], [time], [value])
            self.total(number, entry.get("total_mib"))
        return True

    def total(self, device: int, mib: object) -> None:
        """Add a recorded memory size of a device; 0 means unreadable."""
        size = whole(mib, 1, 1 << 30)
        sizes = self.memory.setdefault(device, set()) if size is not None else set()
        if size is not None and len(sizes) < 2:
            sizes.add(size)

    def _host(self, name: str | None) -> Columns | None:
        if name not in self.hosts and len(self.hosts) >= _MAX_HOSTS:
            self.unreadable += 1
            return None
        return self.hosts.setdefault(name, {})

    def _put(self, columns: Columns, meaning: Sampled, times: list[int], values: list[Any]) -> None:
        """Add the numbers in ``values``; null is a missing value, anything else an unreadable one."""
        numbers = [real(value) for value in values]
        if None in numbers:
            self.unreadable += sum(number is None and value is not None for number, value in zip(numbers, values, strict=True))
            kept = [(time, number) for time, number in zip(times, numbers, strict=True) if number is not None]
            times, numbers = [time for time, _ in kept], [number for _, number in kept]
        columns.setdefault(meaning.metric, Column(meaning)).add(times, [number for number in numbers if number is not None])


def device_number(entry: object) -> int | None:
    """Return ``id`` or ``device_id`` of an entry in a device list, or None."""
    if not isinstance(entry, dict):
        return None
    return whole(entry.get("id", entry.get("device_id")), 0, MAX_DEVICE + 1)


_LISTS = ("gpu_static_devices", "cuda_static_devices", "rocm_static_devices")
_MAX_LISTED = 1024


class Inventory:
    """The devices in the start records. ``place`` is (file, JSON pointer) of the first list."""

    def __init__(self) -> None:
        self.names: dict[int, set[str]] = {}
        self.vendors: set[str] = set()
        self.place: tuple[str, str] | None = None
        self._uuids: dict[str, int] = {}

    def name(self, number: int) -> str | None:
        """Return the name of a device; None without a name, or with two."""
        names = self.names.get(number, set())
        return next(iter(names)) if len(names) == 1 else None

    def number_of(self, uuid: object) -> int | None:
        """Return the number of the device with this uuid, or None."""
        return self._uuids.get(uuid) if isinstance(uuid, str) else None

    def add(self, record: Json, file: str, samples: Samples) -> None:
        """Add the lists of a ``job_start`` or ``init``; memory sizes go to ``samples``."""
        listed = record.get(_LISTS[0])
        keys = _LISTS[:1] if isinstance(listed, list) and listed else _LISTS[1:]
        for key in (*keys, "devices"):
            entries = record.get(key)
            if not isinstance(entries, list) or not entries:
                continue
            if self.place is None:
                self.place = (file, f"/{key}")
            bare = not any(isinstance(entry, dict) and ("id" in entry or "device_id" in entry) for entry in entries)
            for place, entry in enumerate(entries[:_MAX_LISTED]):
                number = place if bare else device_number(entry)
                if number is not None and number <= MAX_DEVICE and isinstance(entry, dict):
                    self._one(number, entry)
                    if key == "devices":
                        samples.total(number, entry.get("total_mib"))

    def _one(self, number: int, entry: Json) -> None:
        names = self.names.setdefault(number, set())
        name, uuid, vendor = (entry.get(key) for key in ("name", "uuid", "vendor"))
        if isinstance(name, str) and name.strip() and len(names) < 3:
            names.add(name.strip()[:200])
        if isinstance(uuid, str) and uuid and len(self._uuids) < _MAX_LISTED:
            self._uuids.setdefault(uuid, number)
        if isinstance(vendor, str) and len(self.vendors) < 8:
            self.vendors.add(vendor[:40])
