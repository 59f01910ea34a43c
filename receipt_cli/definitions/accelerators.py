"""The table of accelerators: find a device and its peak in FLOP/s by its printed name."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, cast

from receipt_cli.definitions.resources import load_shipped, unpack
from receipt_cli.errors import DataError
from receipt_cli.patterns import compile_later

PEAKS_PATH = "peaks/v1.yaml"

PRECISIONS = ("bf16", "fp16")
_KEYS = ("peaks", "version", "devices")
_NEEDED = frozenset({"id", "name", "matches", "precision", "flops_per_s", "source"})
_ALLOWED = _NEEDED | {"sparse_flops_per_s", "conflicts", "note"}
_MAKER = compile_later(r"^(?:nvidia|amd|google|tesla|nvidia tesla) (?=.)")
_JOINTS = compile_later(r"[\s_-]+")


class Device(NamedTuple):
    """One accelerator: its dense peak with FP32 accumulation, and the vendor's peak with sparsity, both in FLOP/s.

    ``conflicts`` are other published rates, each with its source.
    """

    id: str
    name: str
    matches: tuple[str, ...]
    precision: str
    flops_per_s: float
    sparse_flops_per_s: float | None
    source: str
    conflicts: tuple[tuple[float, str], ...]
    note: str | None


@dataclass(frozen=True)
class PeakTable:
    """The devices of one version of the table, in file order."""

    version: int
    sha256: str
    devices: tuple[Device, ...]

    def find(self, printed: str) -> Device | None:
        """Return the device with a printed name, or None if no device matches or the name is ambiguous."""
        name = normalise(printed)
        return next((d for d in self.devices if any(re.fullmatch(pattern, name) for pattern in d.matches)), None)

    @property
    def highest(self) -> float:
        """The largest dense peak of any device, in FLOP/s."""
        return max(device.flops_per_s for device in self.devices)


def normalise(printed: str) -> str:
    """Return a printed name in lower case without its maker, each run of blanks, hyphens and underscores as one blank."""
    name = _JOINTS.sub(" ", printed.strip().lower())
    while (shorter := _MAKER.sub("", name)) != name:
        name = shorter
    return name


@cache
def load_peaks() -> PeakTable:
    """Return the shipped table, read once per process.

    Raises ``DataError`` as ``parse_peaks`` does, and if the file is missing.
    """
    return load_shipped(f"schemas/{PEAKS_PATH}", lambda packed: unpack(PeakTable, packed), parse_peaks)


def parse_peaks(text: bytes, where: str) -> PeakTable:
    """Return the table in the YAML ``text``; ``where`` names it in errors.

    Raises ``DataError`` that names the entry for unknown or missing keys, a repeated id, a rate outside 1e12 to 1e18
    FLOP/s, a sparse rate that is not about twice the dense one, or an invalid pattern.
    """
    from receipt_cli.definitions.strict_yaml import read_yaml

    data = read_yaml(text, where, shipped=True)
    entries = data.get("devices")
    if set(data) != set(_KEYS) or data["peaks"] != "accelerators" or type(data["version"]) is not int or not entries:
        raise DataError("not a peak table", where=where, why="needs peaks: accelerators, version, devices")
    devices: dict[str, Device] = {}
    for position, entry in enumerate(entries):
        device = _device(entry, f"{where}: devices[{position}]")
        if device.id in devices:
            raise DataError(f"device {device.id} appears twice", where=where)
        devices[device.id] = device
    return PeakTable(data["version"], hashlib.sha256(text).hexdigest(), tuple(devices.values()))


def _device(entry: Any, place: str) -> Device:
    if not isinstance(entry, dict) or not _NEEDED <= set(entry) <= _ALLOWED:
        keys = set(entry) if isinstance(entry, dict) else set()
        wrong = sorted(map(str, (_NEEDED - keys) | (keys - _ALLOWED)))
        raise DataError("not a device", where=place, why=f"missing or unknown keys: {', '.join(wrong)}")
    place = f"{place} ({entry['id']})"
    for key in ("id", "name", "source"):
        if not isinstance(entry[key], str) or not entry[key]:
            raise DataError(f"{key} must be a string", where=place)
    if entry["precision"] not in PRECISIONS:
        raise DataError(f"precision {entry['precision']!r} is unknown", where=place, why=f"one of {', '.join(PRECISIONS)}")
    dense, sparse = _rate(entry["flops_per_s"], place), entry.get("sparse_flops_per_s")
    if sparse is not None and not 1.9 <= _rate(sparse, place) / dense <= 2.1:
        raise DataError("sparse_flops_per_s is not about twice flops_per_s", where=place)
    return Device(
        id=entry["id"],
        name=entry["name"],
        matches=_patterns(entry["matches"], place),
        precision=entry["precision"],
        flops_per_s=dense,
        sparse_flops_per_s=sparse,
        source=entry["source"],
        conflicts=tuple((_rate(c["flops_per_s"], place), cast(str, c["source"])) for c in entry.get("conflicts", ())),
        note=entry.get("note"),
    )


def _rate(value: Any, place: str) -> float:
    if not isinstance(value, float) or not 1e12 <= value <= 1e18:
        raise DataError(f"{value!r} is not the peak of an accelerator in FLOP/s", where=place, why="from 1e12 to 1e18")
    return value


def _patterns(values: Any, place: str) -> tuple[str, ...]:
    if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
        raise DataError("matches must be a list of patterns", where=place)
    for value in values:
        try:
            re.compile(value)
        except re.error as error:
            raise DataError(f"{value!r} is not a valid regular expression", where=place, why=str(error)) from error
    return tuple(values)
