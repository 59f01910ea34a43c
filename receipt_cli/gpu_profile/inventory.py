"""The devices in a session's start record: number, name, identity and vendor."""

from __future__ import annotations

from receipt_cli.gpu_profile.batch import MAX_DEVICE, Json
from receipt_cli.gpu_profile.sampled import Samples, device_number

_LISTS = ("gpu_static_devices", "cuda_static_devices", "rocm_static_devices")
_MAX_LISTED = 1024


class Inventory:
    """The devices in the start records. ``place`` is (file, JSON pointer) of the first list."""

    def __init__(self) -> None:
        self.names: dict[int, set[str]] = {}
        self.vendors: set[str] = set()
        self.place: tuple[str, str] | None = None
        self._uuids: dict[str, int] = {}

    @property
    def numbers(self) -> set[int]:
        """Numbers of the listed devices."""
        return set(self.names)

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
