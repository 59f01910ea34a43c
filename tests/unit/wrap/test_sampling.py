"""Samples of GPUs and memory: with a driver that is made up, and without any."""

import json
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.io.samples_file import read_samples
from receipt_cli.wrap.sampling import Device, Sampled, Sampler, find_devices, summarise

SMI = """#!/bin/sh
case "$*" in *"-i 1"*) ;; *) echo "100, 2048, 300.5" ;; esac
echo "3, 1024, [N/A]"
"""


class NoNvml(Exception):
    pass


def nvml(count: int) -> Any:
    module = types.ModuleType("pynvml")
    made: dict[str, Any] = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: count,
        "nvmlDeviceGetHandleByIndex": lambda index: index if index < count else _fail(),
        "nvmlDeviceGetHandleByUUID": lambda name: 0 if name == "GPU-1" else _fail(),
        "nvmlDeviceGetUtilizationRates": lambda handle: types.SimpleNamespace(gpu=50 + handle),
        "nvmlDeviceGetMemoryInfo": lambda handle: types.SimpleNamespace(used=1000 + handle),
        "nvmlDeviceGetPowerUsage": lambda handle: _fail() if handle else 250_000,
    }
    module.__dict__.update(made)
    return module


def _fail() -> Any:
    raise NoNvml


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a driver."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pynvml", None)
    return tmp_path


def test_without_a_driver_nothing_is_sampled(machine: Path) -> None:
    assert find_devices({}) is None
    (machine / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    (machine / "nvidia-smi").chmod(0o755)
    assert find_devices({}) is None


@pytest.mark.parametrize(("visible", "count"), [(None, 2), ("1", 1), ("", 0)])
def test_nvidia_smi_is_asked(machine: Path, visible: str | None, count: int) -> None:
    (machine / "nvidia-smi").write_text(SMI)
    (machine / "nvidia-smi").chmod(0o755)
    look = find_devices({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
    found = [] if look is None else list(look())
    assert found == [Device(1.0, 2 << 30, 300.5), Device(0.03, 1 << 30, None)][2 - count :]


@pytest.mark.parametrize(("visible", "handles"), [(None, [0, 1]), ("1", [1]), ("GPU-1", [0]), ("7", None), ("", None)])
def test_nvml_is_asked_of_the_devices_of_the_job(
    machine: Path, monkeypatch: pytest.MonkeyPatch, visible: str | None, handles: list[int] | None
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml(2))
    look = find_devices({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
    found = None if look is None else list(look())
    known = [Device(0.5, 1000, 250.0), Device(0.51, 1001, None)]
    assert found == (None if handles is None else [known[handle] for handle in handles])


def test_what_samples_show() -> None:
    samples = [
        (0.0, [Device(0.0, 10, 100.0), Device(0.0, 5, 100.0)], 1000),
        (5.0, [Device(1.0, 70, 300.0), Device(0.5, 20, 100.0)], 3000),
        (10.0, [Device(0.01, 60, 100.0), Device(0.0, 20, 100.0)], 2000),
    ]
    assert summarise(samples) == Sampled(3, 10.0, 2, 0.3775, 5.0, 70, 3000.0, 3000)
    unknown = [(at, [Device(None, None, None)], None) for at, _, _ in samples]
    assert summarise(unknown) == Sampled(3, 10.0, 1, None, None, None, None, None)
    assert summarise(samples[:1]) is None


def test_a_sampler_writes_lines_and_survives_failures(tmp_path: Path) -> None:
    taken = threading.Event()
    calls: list[int] = []

    def look() -> list[Device]:
        calls.append(1)
        if len(calls) == 2:
            raise OSError
        if len(calls) > 3:
            taken.set()
        return [Device(0.5, 10, 20.0)]

    sampler = Sampler(tmp_path / "job.log.gpu", look, 0.001)
    sampler.begin()
    sampler.begin()
    assert taken.wait(30)
    found = sampler.end()
    assert found is not None
    assert (found.gpu_count, found.gpu_busy_ratio, found.gpu_peak_bytes) == (1, 0.5, 10)
    head, *lines = (tmp_path / "job.log.gpu").read_text().splitlines()
    assert json.loads(head)["version"] == "receipt-gpu/1"
    assert len(lines) == found.sample_count
    assert json.loads(lines[0])["gpus"] == [[0.5, 10, 20.0]]


def test_a_sampler_goes_on_after_whole_lines_or_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "job.log.gpu"
    for append, launches in ((False, 1), (True, 2), (False, 1)):
        sampler = Sampler(path, lambda: [Device(0.5, 10, 20.0)], 30.0, append=append)
        sampler.begin()
        sampler.end()
        found, wrong = read_samples(path.read_bytes())
        assert (wrong, len(found["launches"]), found["cut_bytes"]) == (None, launches, 0)
        path.write_bytes(path.read_bytes() + b'{"ms":5')
