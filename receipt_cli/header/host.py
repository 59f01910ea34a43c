"""Facts of this machine, this interpreter and its distributions, and of a running process."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path

import psutil

from receipt_cli.errors import UsageError
from receipt_cli.header.facts import FactCollector, HeaderFact

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
    _add_machine(collector)
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


def _add_machine(collector: FactCollector) -> None:
    try:
        collector.add("/hardware/cpu_count", psutil.cpu_count(logical=True), _SOURCE)
        collector.add("/hardware/ram_bytes", psutil.virtual_memory().total, _SOURCE)
    except (psutil.Error, OSError, RuntimeError, NotImplementedError) as error:
        collector.note(f"host: processors or memory unknown ({type(error).__name__})")


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
