import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from receipt_cli.header.document import merge
from receipt_cli.header.host import accelerator_facts

MIB = 1 << 20
Device = tuple[str | None, int, int | None]
UNKNOWN = "accelerators: unknown; neither NVML, nvidia-smi nor rocm-smi lists any"


@pytest.fixture(autouse=True)
def no_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)


def tool(folder: Path, name: str, output: str, status: int = 0, error: str = "") -> dict[str, str]:
    """Put a script ``name`` into ``folder`` that records its arguments; return an environment that finds it."""
    (folder / f"{name}.out").write_text(output, "utf-8")
    path = folder / name
    path.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/{name}.args\n'
        f"/bin/cat {folder}/{name}.out\necho '{error}' >&2\nexit {status}\n",
        "utf-8",
    )
    path.chmod(0o755)
    return {"PATH": str(folder)}


def inventory(environ: dict[str, str]) -> tuple[list[Device] | None, list[str]]:
    """Return name, count and memory of each kind of accelerator, and the notes."""
    facts, notes = accelerator_facts(environ)
    header = merge(facts)
    assert header["sources"].get("/hardware/accelerators", "host") == "host"
    listed = header["hardware"]["accelerators"]
    return listed and [(each["name"], each["count"], each["memory_bytes"]) for each in listed], notes


@pytest.mark.parametrize(
    ("output", "want"),
    [
        ("Tesla T4, 15360\n", [("Tesla T4", 1, 15360 * MIB)]),
        ("NVIDIA H100 80GB HBM3, 81559\n" * 8, [("NVIDIA H100 80GB HBM3", 8, 81559 * MIB)]),
        ("A, 100\nB, 200\nA, 100\nA, 300\n", [("A", 2, 100 * MIB), ("B", 1, 200 * MIB), ("A", 1, 300 * MIB)]),
        ("NVIDIA GB10, [N/A]\n", [("NVIDIA GB10", 1, None)]),
        ("X, [Not Supported]\r\n", [("X", 1, None)]),
        ("[Unknown Error], 15360\n", [(None, 1, 15360 * MIB)]),
    ],
)
def test_nvidia_smi_is_read(tmp_path: Path, output: str, want: list[Device]) -> None:
    environ = tool(tmp_path, "nvidia-smi", output)
    assert inventory(environ) == (want, [])
    assert (tmp_path / "nvidia-smi.args").read_text().split() == [
        "--query-gpu=name,memory.total,driver_version",
        "--format=csv,noheader,nounits",
    ]


def test_the_version_of_the_driver_is_a_flag(tmp_path: Path) -> None:
    environ = tool(tmp_path, "nvidia-smi", "NVIDIA H100 80GB HBM3, 81559, 550.54.15\n" * 2)
    header = merge(accelerator_facts(environ)[0])
    assert header["hardware"]["accelerators"] == [{"name": "NVIDIA H100 80GB HBM3", "count": 2, "memory_bytes": 81559 * MIB}]
    assert header["flags"] == {"nvidia_driver": "550.54.15"}


def test_the_nodes_of_a_job_are_a_flag(tmp_path: Path) -> None:
    header = merge(accelerator_facts({"PATH": str(tmp_path), "SLURM_JOB_NUM_NODES": "4"})[0])
    assert (header["flags"], header["sources"]) == ({"node_count": 4}, {"/flags/node_count": "env:SLURM_JOB_NUM_NODES"})


DRIVER = "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver."


@pytest.mark.parametrize(
    ("output", "status", "mode", "notes"),
    [
        (DRIVER, 9, 0o755, [f"accelerators: nvidia-smi failed with status 9: {DRIVER}"]),
        ("No devices were found\n", 0, 0o755, ["accelerators: nvidia-smi printed a line that is not a device"]),
        ("A, 1\n", 0, 0o644, []),  # it is not executable
        (None, 0, 0, []),  # there is none
    ],
)
def test_a_machine_without_a_tool_that_tells_has_an_unknown_inventory(
    tmp_path: Path, output: str | None, status: int, mode: int, notes: list[str]
) -> None:
    environ = {"PATH": str(tmp_path)} if output is None else tool(tmp_path, "nvidia-smi", output, status)
    if output is not None:
        (tmp_path / "nvidia-smi").chmod(mode)
    assert inventory(environ) == (None, [*notes, UNKNOWN])


CARD = {"VRAM Total Memory (B)": "206141652992", "VRAM Total Used Memory (B)": "299827200"}


@pytest.mark.parametrize(
    ("cards", "want"),
    [
        (
            {"card0": CARD | {"Card series": "AMD Instinct MI300X"}, "card1": CARD | {"Card Series": "AMD Instinct MI300X"}},
            [("AMD Instinct MI300X", 2, 206141652992)],
        ),
        ({"card1": {"Card Series": "N/A", "Card Model": "0x744c"}, "system": {"Driver version": "6.1"}}, [("0x744c", 1, None)]),
        ({f"card{n}": {"Card Series": "B" if n == 2 else "A"} for n in (10, 2)}, [("B", 1, None), ("A", 1, None)]),
    ],
)
def test_rocm_smi_is_read(tmp_path: Path, cards: dict[str, Any], want: list[Device]) -> None:
    environ = tool(tmp_path, "rocm-smi", "WARNING: low-power state\n\n" + json.dumps(cards))
    assert inventory(environ) == (want, [])
    arguments = (tmp_path / "rocm-smi.args").read_text().split()
    assert arguments == ["--showproductname", "--showmeminfo", "vram", "--json"]


@pytest.mark.parametrize("output", ["ERROR: no device", "[]", '{"card0": [', '{"card0": 5}', "{}", ""])
def test_an_answer_of_rocm_smi_without_devices_is_unknown(tmp_path: Path, output: str) -> None:
    value, notes = inventory(tool(tmp_path, "rocm-smi", output))
    assert value is None
    assert notes[-1] == UNKNOWN


class FakeError(Exception):
    pass


def fake_nvml(devices: list[tuple[Any, int | None]], closed: list[bool]) -> ModuleType:
    def memory(handle: int) -> SimpleNamespace:
        total = devices[handle][1]
        if total is None:
            raise FakeError
        return SimpleNamespace(total=total)

    module = ModuleType("pynvml")
    module.__dict__.update(
        NVMLError=FakeError,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: closed.append(True),
        nvmlDeviceGetCount=lambda: len(devices),
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda handle: devices[handle][0],
        nvmlDeviceGetMemoryInfo=memory,
    )
    return module


def test_nvml_comes_first_and_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []
    devices = [("NVIDIA H200", 150754820096), (b"NVIDIA H200", 150754820096), ("NVIDIA GB10", None)]
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(devices, closed))
    environ = tool(tmp_path, "nvidia-smi", "other, 1\n")
    assert inventory(environ) == ([("NVIDIA H200", 2, 150754820096), ("NVIDIA GB10", 1, None)], [])
    assert closed == [True]


def test_nvml_that_fails_hands_over_to_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise FakeError

    module = fake_nvml([], [])
    module.__dict__["nvmlInit"] = fail
    monkeypatch.setitem(sys.modules, "pynvml", module)
    value, notes = inventory(tool(tmp_path, "nvidia-smi", "NV, 1\n"))
    assert value == [("NV", 1, MIB)]
    assert notes == ["accelerators: NVML failed (FakeError)"]


@pytest.mark.parametrize(("visible", "want"), [("0,1", {"cuda_visible_devices": "0,1"}), ("", None), (None, None)])
def test_visible_devices_are_a_flag_only_when_set(tmp_path: Path, visible: str | None, want: object) -> None:
    environ = tool(tmp_path, "nvidia-smi", "NV, 1\n" * 4)
    if visible is not None:
        environ["CUDA_VISIBLE_DEVICES"] = visible
    header = merge(accelerator_facts(environ)[0])
    assert header["flags"] == want
    assert header["hardware"]["accelerators"][0]["count"] == 4
    if want:
        assert header["sources"]["/flags/cuda_visible_devices"] == "env:CUDA_VISIBLE_DEVICES"
