"""Read ``wandb-summary.json``, which has the last value of each logged metric, and the metadata and config beside it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from receipt_cli.definitions.strict_yaml import read_yaml
from receipt_cli.errors import DataError
from receipt_cli.importers.model import DeclaredPhase, ForeignRun
from receipt_cli.importers.text import Document, JsonText, NotJson, Value, at
from receipt_cli.importers.values import IGNORED, STEP, Fields, Names, as_number, fact, metric, read_record, words
from receipt_cli.problems import pointer

FORMAT = "wandb-summary"
NAME, METADATA, CONFIG = "wandb-summary.json", "wandb-metadata.json", "config.yaml"
_OWN = frozenset({"_wandb", "_runtime", "_timestamp", "_step"})
_PREFIXES = {"train/": "", "eval/": "eval_", "trainer/": ""}
_IGNORED = dict.fromkeys((*sorted(_OWN), "global_step", "step"), IGNORED)
_NANOCHAT = Names(
    {
        **_IGNORED,
        "step": STEP,
        "train/dt": metric("step_time_s"),
        "train/mfu": metric("mfu_ratio", "percent"),
        "train/tok_per_sec": metric("tokens_per_s", scope="global"),
        "total_training_time": fact("training_time_s"),
        "total_training_flops": metric("total_flops"),
    },
    ("nanochat",),
    _PREFIXES,
)
_HUGGING_FACE = Names(
    {
        **_IGNORED,
        "train/global_step": STEP,
        "train_runtime": fact("training_time_s"),
        "train/train_runtime": fact("training_time_s"),
        "train_samples_per_second": metric("samples_per_s", scope="global", definition="mean_over_the_run"),
        "train_steps_per_second": metric("steps_per_s", definition="mean_over_the_run"),
        "train_loss": IGNORED,
    },
    ("hf-trainer", "trl", "axolotl"),
    _PREFIXES,
)
_LIGHTNING = Names({**_IGNORED, "trainer/global_step": STEP}, ("lightning",))
ANY = Names({**_IGNORED, "step": STEP, "global_step": STEP}, (), _PREFIXES)
DIALECTS: tuple[tuple[frozenset[str], str | None, Names], ...] = (
    (frozenset({"total_training_flops", "total_training_time"}), "nanochat", _NANOCHAT),
    (frozenset({"train/global_step"}), "hf-trainer", _HUGGING_FACE),
    (frozenset({"trainer/global_step"}), "lightning", _LIGHTNING),
    (frozenset(), None, ANY),
)
"""(keys that identify a trainer, its name, the meaning of its names)."""
_FLAG = re.compile(
    r"(?i)(?:.*[_/])?(?:lr|learning_rate|batch_size|seq_len|seq_length|max_seq_len|block_size|weight_decay|grad_clip|max_grad_norm|"
    r"gradient_accumulation_steps|dtype|precision|bf16|fp16|tf32|optim|optimizer|dropout|warmup_steps|warmup_ratio|depth|n_layer)"
)
"""Names of settings that affect numerics or performance, with any prefix."""
_MAX_FLAGS = 64
Beside = Callable[[str], Document | None]
"""Takes a file name; returns that file of the document's folder, or None."""
_STARTED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z", re.ASCII)


def recognise(document: Value) -> bool:
    """Return whether ``document`` has two of the keys that wandb itself adds."""
    return isinstance(document, dict) and len(_OWN & document.keys()) >= 2


def read(json_text: JsonText, document: Value, beside: Beside = lambda _: None) -> ForeignRun:
    """Return the run in a summary."""
    summary = document if isinstance(document, dict) else {}
    signs, trainer, names = next(dialect for dialect in DIALECTS if dialect[0] <= summary.keys())
    foreign = ForeignRun(FORMAT, name=NAME, producer="wandb", trainer=trainer, matched=1)
    values = read_record(_flat(summary), names, foreign.problems, None, "")
    phase = DeclaredPhase(last=values.step)
    phase.add_last(values)
    time = values.facts.get("training_time_s")
    phase.training_time_s = time if isinstance(time, float) and 0 <= time < math.inf else None
    phase.records = 1 if values.step is not None or "loss" in phase.metrics else 0
    foreign.declared.append(phase)
    if trainer is not None:
        foreign.add_fact("/software/trainer", trainer, f"import:{pointer(min(signs))}")
    add_metadata(foreign, beside(METADATA))
    config = beside(CONFIG)
    if config is not None:
        try:
            settings = read_yaml(config.text.encode("utf-8"), config.name)
            if "_wandb" in settings:  # without it, another program's file
                foreign.beside.append(config)
                read_config(foreign, settings, f"import:{CONFIG}#")
        except DataError as error:
            foreign.problems.add("file_beside_unreadable", None, f"{config.name}: {error.message}")
    return foreign


def _flat(summary: dict[str, Value]) -> dict[str, Value]:
    """Return the values, with those of a nested object as ``key/name``; media and histograms are ignored."""
    flat: dict[str, Value] = {}
    for key, value in summary.items():
        if not isinstance(value, dict):
            flat[key] = value
        elif key != "_wandb" and "_type" not in value:
            flat.update({f"{key}/{name}": inner for name, inner in value.items() if as_number(inner) is not None})
    return flat


def add_metadata(foreign: ForeignRun, metadata: Document | None) -> None:
    """Add code, software and machine of ``wandb-metadata.json``, if there is one, without user and host names."""
    if metadata is None:
        return
    try:
        content = JsonText(metadata.text).value()
    except NotJson as error:
        foreign.problems.add("file_beside_unreadable", None, f"{METADATA}: line {error.line}: {error}")
        return
    if not isinstance(content, dict):
        return
    foreign.beside.append(metadata)
    fields, origin = Fields(content, foreign.problems, f"{METADATA}#"), f"import:{METADATA}#"
    python = fields.words("python")
    for place, value, path in (
        ("/git/commit", fields.words("git", "commit"), "git/commit"),
        ("/software/python", python and python.removeprefix("CPython "), "python"),
        ("/software/platform", fields.words("os"), "os"),
        ("/software/cuda", fields.words("cudaVersion"), "cudaVersion"),
        ("/cwd", fields.words("root"), "root"),
    ):
        foreign.add_fact(place, value, f"{origin}/{path}")
    for key in ("cpu_count_logical", "cpu_count"):
        if (count := fields.whole(key)) is not None:
            foreign.add_fact("/hardware/cpu_count", count, f"{origin}/{key}")
            break
    foreign.add_fact("/hardware/ram_bytes", _bytes(at(fields.document, "memory", "total")), f"{origin}/memory/total")
    _read_accelerators(foreign, fields, origin)
    started = fields.words("startedAt")
    if started is not None and _STARTED.fullmatch(started):
        foreign.run["started_at"] = started


def _bytes(value: Value) -> int | None:
    """Return a size that newer versions write as a string of digits; None for the rounded gigabytes of older versions."""
    if not isinstance(value, str) or not value.isascii() or not value.isdigit() or len(value) >= 19:
        return None
    size = int(value)
    return size if size > 0 else None


def _read_accelerators(foreign: ForeignRun, fields: Fields, origin: str) -> None:
    devices = at(fields.document, "gpu_nvidia")
    listed = [d for d in devices if isinstance(d, dict)] if isinstance(devices, list) else []
    models = Counter((words(d.get("name")), _bytes(d.get("memoryTotal"))) for d in listed)
    entries: list[dict[str, Any]] = [{"name": n, "count": c, "memory_bytes": m} for (n, m), c in models.items()]
    if entries:
        foreign.add_fact("/hardware/accelerators", entries, f"{origin}/gpu_nvidia")
    elif (name := fields.words("gpu")) is not None:
        entry = {"name": name, "count": fields.whole("gpu_count") or None, "memory_bytes": None}
        foreign.add_fact("/hardware/accelerators", [entry], f"{origin}/gpu")


def read_config(foreign: ForeignRun, config: Mapping[Any, Any], origin: str) -> None:
    """Add the settings that affect numerics or performance, the seed, and wandb's version.

    ``config`` maps each setting to an object with ``value``, as in ``config.yaml``; ``origin`` is the prefix of each source.
    """
    kept = 0
    for key, entry in config.items():
        if not isinstance(key, str) or not isinstance(entry, dict) or "value" not in entry:
            continue
        value, place = entry["value"], origin + pointer(key, "value")
        if key == "_wandb":
            version = value.get("cli_version") if isinstance(value, dict) else None
            if isinstance(version, str) and version:
                foreign.producer = f"wandb {version}"[:200]
        elif key.rpartition("/")[2] == "seed" and isinstance(value, int) and not isinstance(value, bool):
            foreign.add_fact(pointer("seeds", key), value, place)
        elif _FLAG.fullmatch(key) and isinstance(value, str | int | float | bool) and value != "" and kept < _MAX_FLAGS:
            kept += 1
            foreign.add_fact(pointer("flags", key), value, place)
