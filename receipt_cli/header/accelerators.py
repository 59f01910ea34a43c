"""Accelerators of the machine: from NVML if its bindings are installed, else nvidia-smi, else rocm-smi.

The inventory covers the whole machine; the flag ``cuda_visible_devices`` records ``CUDA_VISIBLE_DEVICES``. Memory is in
bytes; nvidia-smi prints whole MiB.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from receipt_cli.header.document import ShapeError, parse_object
from receipt_cli.header.facts import FactCollector, HeaderFact
from receipt_cli.header.program import find_program, run_program

_MIB = 1 << 20
_NVIDIA_SMI = ("--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits")
_VERSION = re.compile(r"\d+\.\d+[.\d]*")
_ROCM_SMI = ("--showproductname", "--showmeminfo", "vram", "--json")
_ROCM_NAMES = ("card series", "card model", "device name")
_ROCM_MEMORY = "vram total memory (b)"

Device = tuple[str | None, int | None]
"""Name and memory in bytes of one accelerator, None if unknown."""


def accelerator_facts(environ: Mapping[str, str]) -> tuple[list[HeaderFact], list[str]]:
    """Return the accelerators as facts, equal ones grouped as ``{name, count, memory_bytes}``, and notes.

    ``environ`` gives ``PATH`` and ``CUDA_VISIBLE_DEVICES``. Never raises: without a working tool the inventory stays
    unknown, and notes give the reason. The list is never empty, because "no tool" is not "no accelerator".
    """
    collector = FactCollector()
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible:
        collector.add("/flags/cuda_visible_devices", visible, "env:CUDA_VISIBLE_DEVICES")
    nodes = environ.get("SLURM_JOB_NUM_NODES", "")
    if nodes.isdecimal() and len(nodes) < 9:
        collector.add("/flags/node_count", int(nodes), "env:SLURM_JOB_NUM_NODES")
    devices = _from_nvml(collector) or _from_nvidia_smi(environ, collector) or _from_rocm_smi(environ, collector)
    if devices:
        collector.add("/hardware/accelerators", grouped(devices), "host")
    else:
        collector.note("accelerators: unknown; neither NVML, nvidia-smi nor rocm-smi lists any")
    return collector.facts, collector.notes


def grouped(devices: list[Device]) -> list[dict[str, Any]]:
    """Return ``{name, count, memory_bytes}`` for each kind of device, in order of first appearance."""
    return [{"name": name, "count": count, "memory_bytes": memory} for (name, memory), count in Counter(devices).items()]


def _from_nvml(collector: FactCollector) -> list[Device]:
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return []
    try:
        nvml.nvmlInit()
        try:
            _add_driver(nvml, collector)
            return [_nvml_device(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        finally:
            nvml.nvmlShutdown()
    except (nvml.NVMLError, OSError, AttributeError) as error:
        collector.note(f"accelerators: NVML failed ({type(error).__name__})")
        return []


def _add_driver(nvml: Any, collector: FactCollector) -> None:
    try:
        version = nvml.nvmlSystemGetDriverVersion()
    except (nvml.NVMLError, AttributeError):
        return  # the devices are known without it
    collector.add("/flags/nvidia_driver", version.decode("ascii", "replace") if isinstance(version, bytes) else version, "host")


def _nvml_device(nvml: Any, index: int) -> Device:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    name = nvml.nvmlDeviceGetName(handle)
    if isinstance(name, bytes):
        name = name.decode("utf-8", "replace")
    try:
        memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    except nvml.NVMLError:
        return name, None
    return name, memory or None


def _tool_output(name: str, arguments: tuple[str, ...], environ: Mapping[str, str], collector: FactCollector) -> str:
    path = find_program(name, environ)
    if path is None:
        return ""
    answer = run_program([path, *arguments], environ=environ)
    if answer.problem:
        collector.note(f"accelerators: {answer.problem}")
        return ""
    return answer.stdout.decode("utf-8", "replace")


def _from_nvidia_smi(environ: Mapping[str, str], collector: FactCollector) -> list[Device]:
    devices: list[Device] = []
    for line in _tool_output("nvidia-smi", _NVIDIA_SMI, environ, collector).splitlines():
        head, _, driver = line.rpartition(",")
        if _VERSION.fullmatch(driver.strip()) and "," in head:
            collector.add("/flags/nvidia_driver", driver, "host")
            line = head
        name, comma, memory = line.rpartition(",")
        if comma:
            devices.append((_known(name), _bytes(memory, _MIB)))
        elif line.strip():
            collector.note("accelerators: nvidia-smi printed a line that is not a device")
    return devices


def _from_rocm_smi(environ: Mapping[str, str], collector: FactCollector) -> list[Device]:
    """Read the JSON of rocm-smi; the case of its keys depends on its version, and warnings may precede it."""
    output = _tool_output("rocm-smi", _ROCM_SMI, environ, collector)
    if not output.strip():
        return []
    try:
        cards = parse_object(output[max(output.find("{"), 0) :])
    except ShapeError as error:
        collector.note(f"accelerators: the answer of rocm-smi is {error}")
        return []
    names = (name for name in cards if re.fullmatch(r"card\d+", name))
    devices: list[Device] = []
    for card in sorted(names, key=lambda name: int(name[4:])):
        if isinstance(cards[card], dict):
            fields = {name.lower(): str(value) for name, value in cards[card].items()}
            name = next((known for key in _ROCM_NAMES if (known := _known(fields.get(key, "")))), None)
            devices.append((name, _bytes(fields.get(_ROCM_MEMORY, ""), 1)))
    return devices


def _known(text: str) -> str | None:
    """Return a name, or None for a placeholder: blank, ``N/A``, ``[Not Supported]``."""
    name = text.strip()
    return None if not name or name.upper() == "N/A" or re.fullmatch(r"\[.*\]", name) else name


def _bytes(text: str, unit: int) -> int | None:
    number = text.strip()
    return int(number) * unit or None if re.fullmatch(r"[0-9]{1,15}", number) else None
