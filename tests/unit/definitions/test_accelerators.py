"""A printed device name → its row of the peak table; what the table must look like."""

from __future__ import annotations

import re

import pytest

from receipt_cli.definitions.accelerators import load_peaks, normalise, parse_peaks
from receipt_cli.errors import DataError

NAMES = [
    ("NVIDIA H100 80GB HBM3", "h100-sxm"),
    ("NVIDIA H100 PCIe", "h100-pcie"),
    ("NVIDIA H100 NVL", "h100-nvl"),
    ("NVIDIA H200 NVL", "h200-nvl"),
    ("NVIDIA H800", "h800-sxm"),
    ("NVIDIA H20", "h20"),
    ("NVIDIA GH200 480GB", "gh200"),
    ("NVIDIA A100-SXM4-40GB", "a100"),
    ("NVIDIA A100 80GB PCIe", "a100"),
    ("A100-PCIE-40GB", "a100"),
    ("NVIDIA A800-SXM4-80GB", "a800"),
    ("NVIDIA L4", "l4"),
    ("NVIDIA B200", "b200"),
    ("Tesla T4", "t4"),
    ("Tesla V100-SXM2-16GB", "v100-sxm2"),
    ("Tesla V100-PCIE-32GB", "v100-pcie"),
    ("NVIDIA GeForce RTX 3090", "rtx-3090"),
    ("NVIDIA GeForce RTX 3090 Ti", "rtx-3090-ti"),
    ("AMD Instinct MI300X", "mi300x"),
    ("AMD Instinct MI250X", "mi250x-gcd"),
    ("TPU v5 lite", "tpu-v5e"),
    ("TPU v6 lite", "tpu-v6e"),
]
UNKNOWN = [
    "NVIDIA H100",  # SXM, PCIe or NVL: three peaks
    "NVIDIA A10G",
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
    "NVIDIA GeForce RTX 4090 Laptop GPU",
    "NVIDIA GeForce RTX 4070 SUPER",
    "NVIDIA GeForce GTX 1080",
    "cpu",
    "",
]


@pytest.mark.parametrize(("printed", "device"), NAMES)
def test_a_name_means_a_device(printed: str, device: str) -> None:
    found = load_peaks().find(printed)
    assert found is not None and found.id == device
    name = normalise(printed)
    assert [d.id for d in load_peaks().devices if parse_matches(d.matches, name)] == [device]  # and no other


def parse_matches(patterns: tuple[str, ...], name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


@pytest.mark.parametrize("printed", UNKNOWN)
def test_a_name_that_leaves_it_open_means_none(printed: str) -> None:
    assert load_peaks().find(printed) is None


def test_every_rate_has_a_source_and_conflicts_are_other_rates() -> None:
    table = load_peaks()
    assert table.version == 2 and table.highest == max(d.flops_per_s for d in table.devices)
    for device in table.devices:
        assert len(device.source) > 10
        assert all(source and rate != device.flops_per_s for rate, source in device.conflicts)
        assert device.precision == "bf16" or device.note  # no BF16: the note says so


def test_the_shipped_table_is_sound() -> None:
    devices = load_peaks().devices
    assert len({device.id for device in devices}) == len(devices)
    for device in devices:
        assert device.id and device.name and device.matches and device.precision in ("bf16", "fp16")
        rates = [device.flops_per_s, *(rate for rate, _ in device.conflicts)]
        assert all(isinstance(rate, float) and 1e12 <= rate <= 1e18 for rate in rates)
        assert device.sparse_flops_per_s is None or 1.9 <= device.sparse_flops_per_s / device.flops_per_s <= 2.1
        assert all(re.compile(pattern) for pattern in device.matches)


GOOD = """
peaks: accelerators
version: 1
devices:
  - {id: x1, name: X1, matches: ['x1'], precision: bf16, flops_per_s: 1.0e+14, sparse_flops_per_s: 2.0e+14, source: a datasheet}
"""


@pytest.mark.parametrize("broken", [GOOD.replace("source: a", "origin: b, source: a"), GOOD.replace(", source: a datasheet", "")])
def test_a_broken_table_is_refused(broken: str) -> None:
    assert parse_peaks(GOOD.encode(), "peaks").find("Nvidia X1") is not None
    with pytest.raises(DataError, match="not a peak table"):
        parse_peaks(broken.encode(), "peaks")
