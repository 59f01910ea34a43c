"""Turn facts printed in the log into header facts with their line."""

from __future__ import annotations

from collections.abc import Mapping

from receipt_cli.header.values import FactCollector, HeaderFact

LogFact = tuple[str | int | float | bool, int]
"""A value in base units and its line number, counted from 1."""

POINTERS = {
    "git_commit": "/git/commit",
    "git_branch": "/git/branch",
    "python_version": "/software/python",
    "torch_version": "/software/torch",
    "cuda_version": "/software/cuda",
    "world_size": "/parallelism/world_size",
    "data_parallel": "/parallelism/data",
    "tensor_parallel": "/parallelism/tensor",
    "pipeline_parallel": "/parallelism/pipeline",
    "context_parallel": "/parallelism/context",
    "expert_parallel": "/parallelism/expert",
    "model_name": "/model/architecture",
    "parameter_count": "/model/parameter_count",
    "seed": "/seeds/seed",
    "data_seed": "/seeds/data_seed",
    "cudnn_benchmark": "/flags/cudnn_benchmark",
    "deterministic": "/flags/deterministic",
    "gradient_accumulation_steps": "/flags/gradient_accumulation_steps",
    "micro_batch_size": "/flags/micro_batch_size",
    "optimizer": "/flags/optimizer",
    "precision": "/flags/precision",
    "samples_per_step": "/flags/global_batch_size",
    "start_step": "/flags/start_step",
    "sequence_length": "/flags/sequence_length",
    "tokens_per_step": "/flags/tokens_per_step",
}
"""Name of a log fact → header field."""

_WHOLE_FLAGS = (
    "gradient_accumulation_steps", "micro_batch_size", "samples_per_step", "sequence_length", "start_step",
    "tokens_per_step",
)  # fmt: skip
_TRUTH_FLAGS = ("cudnn_benchmark", "deterministic")
_TRUTHS = {"true": True, "enabled": True, "1": True, "false": False, "disabled": False, "0": False}


def log_facts(facts: Mapping[str, LogFact]) -> tuple[list[HeaderFact], list[str]]:
    """Return the header facts in ``facts`` (name → value and line), each with source ``log:LINE``, and notes.

    ``trainer`` (a name) and ``trainer_version`` form ``/software/trainer``; ``accelerator_name``,
    ``accelerator_memory_bytes`` and ``accelerator_count`` form one entry of ``/hardware/accelerators``. Other names are
    skipped. A value of the wrong type becomes a note.
    """
    collector = FactCollector()
    for name, pointer in POINTERS.items():
        if name in facts:
            value, line = facts[name]
            whole = name in _WHOLE_FLAGS and isinstance(value, float) and value.is_integer()
            if name in _TRUTH_FLAGS:
                value = _TRUTHS.get(str(value).lower(), value)
            collector.add(pointer, int(value) if whole else value, f"log:{line}")
    _add_trainer(facts, collector)
    _add_accelerator(facts, collector)
    return collector.facts, collector.notes


def _add_trainer(facts: Mapping[str, LogFact], collector: FactCollector) -> None:
    name, version = facts.get("trainer"), facts.get("trainer_version")
    if name is None:
        if version is not None:
            collector.note(f"log:{version[1]}: trainer_version left out: the trainer is unknown")
    elif version is None:
        collector.add("/software/trainer", name[0], f"log:{name[1]}")
    else:
        collector.add("/software/trainer", f"{name[0]} {version[0]}", f"log:{version[1]}")


def _add_accelerator(facts: Mapping[str, LogFact], collector: FactCollector) -> None:
    keys = ("name", "memory_bytes", "count")
    known = {key: facts[f"accelerator_{key}"] for key in keys if f"accelerator_{key}" in facts}
    if known:
        first_line = next(iter(known.values()))[1]
        entry = {key: round(value) if isinstance(value, float) else value for key, (value, _) in known.items()}
        collector.add("/hardware/accelerators", [entry], f"log:{first_line}")
