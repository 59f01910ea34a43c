"""Sample what the GPUs and the memory of this machine do while a command runs, into a file beside its log.

NVML answers if its bindings are installed, else nvidia-smi; without either nothing is sampled. Only the devices count that
the command may use (``CUDA_VISIBLE_DEVICES``).
"""

from __future__ import annotations

import contextlib
import importlib
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from receipt_cli.io.samples_file import QUIET, head_line, sample_line

_QUERY = ("--query-gpu=utilization.gpu,memory.used,power.draw", "--format=csv,noheader,nounits")
_MIB = 1 << 20
_TIMEOUT_S = 10.0


class Device(NamedTuple):
    """What one GPU does: share of the time in which a kernel ran, memory in use in bytes, power in watts; None if unknown."""

    utilization: float | None
    memory_bytes: int | None
    power_w: float | None


Look = Callable[[], Sequence[Device]]


def find_devices(environ: Mapping[str, str]) -> Look | None:
    """Return what asks the GPUs that a command with this environment may use; None if nothing answers."""
    wanted = environ.get("CUDA_VISIBLE_DEVICES")
    chosen = None if wanted is None else [name.strip() for name in wanted.split(",") if name.strip()]
    for find in (_by_nvml, _by_nvidia_smi):
        look = find(chosen)
        if look is not None and _answers(look):
            return look
    return None


def _answers(look: Look) -> bool:
    try:
        return bool(look())
    except Exception:  # a driver that is broken
        return False


def _by_nvml(chosen: Sequence[str] | None) -> Look | None:
    try:
        nvml: Any = importlib.import_module("pynvml")
        nvml.nvmlInit()
        names = chosen if chosen is not None else [str(number) for number in range(nvml.nvmlDeviceGetCount())]
        by_number, by_id = nvml.nvmlDeviceGetHandleByIndex, nvml.nvmlDeviceGetHandleByUUID
        handles = [by_number(int(name)) if name.isdecimal() else by_id(name) for name in names]
    except Exception:  # not installed, no driver, or no such device
        return None

    def look() -> Sequence[Device]:
        return [
            Device(
                _asked(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100),  # noqa: B023  # called at once
                _asked(lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used)),  # noqa: B023
                _asked(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),  # noqa: B023
            )
            for handle in handles
        ]

    return look


def _asked(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception:  # a device need not know all
        return None


def _by_nvidia_smi(chosen: Sequence[str] | None) -> Look | None:
    program = shutil.which("nvidia-smi")
    if program is None or chosen == []:
        return None
    only = [] if chosen is None else ["-i", ",".join(chosen)]

    def look() -> Sequence[Device]:
        done = subprocess.run([program, *only, *_QUERY], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
        return [_device(line) for line in done.stdout.splitlines() if line.strip()]

    return look


def _device(line: str) -> Device:
    """Return the device in a line of nvidia-smi: percent, MiB, watts; a word stands for what is unknown."""
    values: list[float | None] = []
    for word in line.split(","):
        try:
            values.append(float(word))
        except ValueError:
            values.append(None)
    use, memory, power = (*values, None, None, None)[:3]
    return Device(None if use is None else use / 100, None if memory is None else int(memory * _MIB), power)


class Sampled(NamedTuple):
    """What samples show: their number, the seconds that they are of, and the number of GPUs.

    ``gpu_busy_ratio`` is the mean utilization; ``gpu_idle_s`` the time in which no device did anything; ``gpu_peak_bytes`` the
    most memory in use on one device; ``energy_j`` that of all of them; ``host_peak_bytes`` the most memory in use on the
    machine. None if unknown.
    """

    sample_count: int
    duration_s: float
    gpu_count: int
    gpu_busy_ratio: float | None
    gpu_idle_s: float | None
    gpu_peak_bytes: int | None
    energy_j: float | None
    host_peak_bytes: int | None


def summarise(samples: Sequence[tuple[float, Sequence[Device], int | None]]) -> Sampled | None:
    """Return what samples (seconds, devices, host memory in bytes) show; None of fewer than two.

    Each sample but the first counts for the time since the one before.
    """
    if len(samples) < 2:
        return None
    spans = [after[0] - before[0] for before, after in pairwise(samples)]
    used = [[device.utilization for device in devices] for _, devices, _ in samples[1:]]
    power = [[device.power_w for device in devices] for _, devices, _ in samples[1:]]
    memory = [device.memory_bytes for _, devices, _ in samples for device in devices if device.memory_bytes is not None]
    host = [size for _, _, size in samples if size is not None]
    duration = sum(spans)
    busy = idle = energy = None
    if duration > 0 and all(share is not None for shares in used for share in shares):
        shares = [[share for share in one if share is not None] for one in used]
        busy = sum(span * sum(one) / len(one) for span, one in zip(spans, shares, strict=True)) / duration
        idle = sum(span for span, one in zip(spans, shares, strict=True) if max(one) < QUIET)
    if all(watts is not None for one in power for watts in one):
        energy = sum(span * sum(watts for watts in one if watts is not None) for span, one in zip(spans, power, strict=True))
    return Sampled(
        len(samples),
        round(duration, 3),
        len(samples[0][1]),
        None if busy is None else round(min(1.0, busy), 4),
        None if idle is None else round(idle, 3),
        max(memory, default=None),
        None if energy is None else round(energy, 1),
        max(host, default=None),
    )


class Sampler:
    """Writes samples of GPUs and memory to a file, in a thread of its own that ``begin`` starts."""

    def __init__(
        self, path: Path, look: Look, every_s: float, clock: Callable[[], float] = time.monotonic, *, append: bool = False
    ) -> None:
        """Write to ``path`` what ``look`` returns ``every_s``; with ``append`` after the launches that are there."""
        self.path, self._append = path, append
        self._look, self._every_s, self._clock = look, every_s, clock
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.samples: list[tuple[float, Sequence[Device], int | None]] = []

    def begin(self) -> None:
        """Begin; do nothing if it has begun."""
        if self._thread is None:
            self._thread = threading.Thread(name="samples", target=self._run, daemon=True)
            self._thread.start()

    def end(self) -> Sampled | None:
        """End; return what was seen."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_TIMEOUT_S)
        return summarise(self.samples)

    def _run(self) -> None:
        with contextlib.suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.truncate(_whole_bytes(self.path) if self._append else 0)
            file.write(head_line(round(1000 * time.time())))
            start = self._clock()
            while True:
                self.sample(file.write, start)
                file.flush()
                if self._over.wait(self._every_s):
                    return

    def sample(self, write: Callable[[str], object], start: float) -> None:
        """Take one sample; one that fails is left out."""
        with contextlib.suppress(Exception):
            devices, host = self._look(), psutil.virtual_memory()
            at = self._clock() - start
            self.samples.append((at, devices, host.total - host.available))
            write(sample_line(round(1000 * at), host.total - host.available, devices))


def _whole_bytes(path: Path) -> int:
    """Return the size of the whole lines of a file: the last line of a sampler that was killed may have no end."""
    return path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0
