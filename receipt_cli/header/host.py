"""Facts of this machine: platform, processors, memory and accelerators; the Python of a job and its packages; a running process.

Accelerators come from NVML if its bindings are installed, else nvidia-smi, else rocm-smi, and cover the whole machine; the flag
``cuda_visible_devices`` records ``CUDA_VISIBLE_DEVICES``. Memory is in bytes; nvidia-smi prints whole MiB. A job often
runs another Python than ``receipt``.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from receipt_cli.errors import UsageError
from receipt_cli.header.document import ShapeError, parse_object
from receipt_cli.header.program import find_program, run_program
from receipt_cli.header.values import FactCollector, HeaderFact

_SOURCE = "host"
_CUDA_TAG = re.compile(r"\+cu(\d{1,2})(\d)(?:$|[.\-_])", re.ASCII)

DISTRIBUTIONS = (
    "accelerate", "apex", "axolotl", "bitsandbytes", "composer", "datasets", "deepspeed", "fairscale", "flash-attn", "flax",
    "jax", "jaxlib", "keras", "liger-kernel", "lightgbm", "lightning", "litgpt", "megatron-core", "mlx", "mosaicml",
    "numpy", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "optax", "peft",
    "pytorch-lightning", "scikit-learn", "sentence-transformers", "tensorflow", "tokenizers", "torchao", "torchaudio",
    "torchtitan", "torchtune", "torchvision", "torch-xla", "transformer-engine", "transformers", "triton", "trl",
    "ultralytics", "unsloth", "vllm", "xformers", "xgboost",
)  # fmt: skip
"""Distributions whose version can change numerics or performance."""


def host_facts(here: Path) -> tuple[list[HeaderFact], list[str]]:
    """Return platform, logical CPUs, memory in bytes and ``cwd``. Never raises: an unknown fact becomes a note."""
    collector = FactCollector()
    collector.add("/software/platform", platform.platform(), _SOURCE)
    try:
        collector.add("/hardware/cpu_count", psutil.cpu_count(logical=True), _SOURCE)
        collector.add("/hardware/ram_bytes", psutil.virtual_memory().total, _SOURCE)
    except (psutil.Error, OSError, RuntimeError, NotImplementedError) as error:
        collector.note(f"host: processors or memory unknown ({type(error).__name__})")
    collector.add("/cwd", os.path.abspath(here), _SOURCE)
    return collector.facts, collector.notes


def own_interpreter() -> tuple[str, str | None, str | None, dict[str, str]]:
    """Return the versions of this interpreter, its torch, torch's CUDA, and its distributions.

    No distribution is imported. CUDA is known only from torch's local version tag (``+cu130`` is 13.0).
    """
    torch = installed_version("torch")
    versions = {name: version for name in DISTRIBUTIONS if (version := installed_version(name)) is not None}
    return platform.python_version(), torch, cuda_of(torch), versions


def process_of(pid: int) -> tuple[dict[str, str], list[str]]:
    """Return the environment and command of a process. Raises ``UsageError`` if they cannot be read."""
    try:
        process = psutil.Process(pid)
        return process.environ(), process.cmdline()
    except (psutil.Error, OSError) as error:
        raise UsageError(f"process {pid} cannot be read", why=type(error).__name__) from None


def installed_version(distribution: str) -> str | None:
    """Return the version in an installed distribution's metadata, or None."""
    try:
        version: object = metadata.version(distribution)
    except (metadata.PackageNotFoundError, KeyError, OSError, ValueError):
        return None
    return version if isinstance(version, str) and version.strip() else None


def cuda_of(torch_version: str | None) -> str | None:
    """Return the CUDA version in torch's local version tag (``2.9.0+cu130``: ``13.0``), or None."""
    tag = _CUDA_TAG.search(torch_version or "")
    return f"{tag[1]}.{tag[2]}" if tag else None


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


_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?t?)?")
_FIRST_LINE = re.compile(rb"#! ?(\S+)(?: +(\S+))?[^\n]*\n(?:'''exec' \"?(/[^\"\n ]+)\"? )?")
"""First line of a script, plus the second if the interpreter's path is too long for the first."""
OURS = ("/software/python", "/software/torch", "/software/cuda", "/software/packages")
"""Header fields that describe an interpreter, not the machine."""
_ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX")
_ASK = """
import json, platform, sys
from importlib import metadata
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except Exception:
        pass
print(json.dumps([platform.python_version(), found]))
"""


def job_interpreter(environ: Mapping[str, str]) -> str | None:
    """Return the Python that a job with this environment runs, or None.

    It is the virtual environment's, else conda's, else the first on ``PATH``.
    """
    for folder in filter(None, map(environ.get, _ENVIRONMENTS)):
        path = os.path.join(folder, "bin", "python")
        if os.access(path, os.X_OK):
            return path
    return _which("python", environ) or _which("python3", environ)


def command_interpreter(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the path of the Python that ``command`` runs, "" if unknown.

    A command that is no Python may start any. The environment's Python counts if an environment is active or it is ours.
    """
    path = find_interpreter(command, environ)
    if path is not None:
        return path
    guess = job_interpreter(environ)
    active = any(environ.get(name) for name in _ENVIRONMENTS)
    return guess if guess is not None and (active or _is_ours(guess)) else ""


def process_interpreter(pid: int) -> tuple[dict[str, str], str]:
    """Return the environment and Python of a process. Raises ``UsageError`` if it runs no Python or cannot be read."""
    environ, command = process_of(pid)
    path = find_interpreter(command, environ) if command else None
    if path is None:
        raise UsageError(f"process {pid} runs no Python", why=f"it runs {ascii(command[0])[:200] if command else 'nothing'}")
    return environ, path


def find_interpreter(command: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return the path of the Python that runs ``command``; None if it is neither Python nor a Python script."""
    path = _which(command[0], environ)
    if path is None or _is_python(path):
        return path
    try:
        with open(path, "rb") as file:
            line = _FIRST_LINE.match(file.read(4096))
    except OSError:
        return None
    if line is None:
        return None
    words = [os.fsdecode(word) for word in line.groups() if word]
    if len(words) > 1 and os.path.basename(words[0]) == "env":
        words = [_which(words[1], environ) or ""]
    return next((word for word in reversed(words) if _is_python(word)), None)


def _which(name: str, environ: Mapping[str, str]) -> str | None:
    return shutil.which(name, path=environ.get("PATH"))


def _is_python(path: str) -> bool:
    return _PYTHON.fullmatch(os.path.basename(path)) is not None


def _is_ours(path: str) -> bool:
    """Return whether an interpreter has our packages; compares folders, because links to it lead elsewhere."""
    return os.path.dirname(os.path.abspath(path)) == os.path.dirname(os.path.abspath(sys.executable))


def ask_interpreter(path: str, environ: Mapping[str, str]) -> tuple[dict[str, object], str]:
    """Return version and packages of an interpreter by header pointer, and the reason of a failure, else ""."""
    if _is_ours(path):
        return dict(zip(OURS, own_interpreter(), strict=True)), ""
    answer = run_program([os.path.abspath(path), "-c", _ASK, "torch", *DISTRIBUTIONS], environ=environ)
    if answer.problem:
        return {}, answer.problem
    try:
        version, found = json.loads(answer.stdout)
        torch = found.pop("torch", None)
        return dict(zip(OURS, (version, torch, cuda_of(torch), found), strict=True)), ""
    except (ValueError, TypeError, AttributeError):
        return {}, "its answer is not the expected JSON"
