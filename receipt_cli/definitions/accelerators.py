"""The table of accelerators: find a device and its peak in FLOP/s by its printed name."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from receipt_cli.definitions.resources import load_shipped, unpack
from receipt_cli.errors import DataError
from receipt_cli.patterns import compile_later

PEAKS_PATH = "peaks/v2.yaml"

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
    source: str
    sparse_flops_per_s: float | None = None
    conflicts: tuple[tuple[float, str], ...] = ()
    note: str | None = None


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
    """Return the table in the YAML ``text``; ``where`` names it in errors. Raises ``DataError`` for missing or unknown keys."""
    from receipt_cli.definitions.strict_yaml import read_yaml

    data = read_yaml(text, where, shipped=True)
    try:
        return PeakTable(data["version"], hashlib.sha256(text).hexdigest(), tuple(map(_device, data["devices"])))
    except (KeyError, TypeError) as error:
        raise DataError("not a peak table", where=where, why=str(error)) from error


def _device(entry: dict[str, Any]) -> Device:
    conflicts = tuple((rate["flops_per_s"], rate["source"]) for rate in entry.get("conflicts", ()))
    return Device(**{**entry, "matches": tuple(entry["matches"]), "conflicts": conflicts})
