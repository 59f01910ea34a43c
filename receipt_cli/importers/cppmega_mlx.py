"""The nested training receipt of cppmega_mlx: its steps one by one, and what it says of model, machine and memory."""

from __future__ import annotations

from receipt_cli.importers.field_names import IGNORED, STEP, Names, fact, metric
from receipt_cli.importers.json_text import JsonText, Number, Value, at, members
from receipt_cli.importers.model import Failed, Found, Part, Stated, single
from receipt_cli.importers.values import Taken, count, number_of, take, whole, words

FORMAT = "cppmega-mlx-receipt"
_PATH = ("training", "step_metrics")
_STEPS = Names(
    {
        "step": STEP,
        "ntokens": metric("step_token_count", definition="loss_targets"),
        "seconds": metric("step_time_s"),
        "tokens_per_second": metric("tokens_per_s", scope="global", definition="loss_targets_per_second"),
        "trained_tokens": metric("tokens_total", definition="loss_targets"),
        "compiled": IGNORED,
        "updated": IGNORED,
    },
    ("cppmega-mlx",),
)
_FLAGS = {
    "micro_batch_size": ("workload", "batch_size"),
    "sequence_length": ("workload", "seq_len"),
    "tokens_per_step": ("workload", "tokens_per_step"),
    "precision": ("workload", "dtype"),
    "optimizer": ("training", "optimizer", "name"),
    "learning_rate": ("workload", "learning_rate"),
    "grad_checkpoint": ("workload", "grad_checkpoint"),
}
_LOSSES = {"initial_loss": "first", "final_loss": "last", "mean_loss": "mean"}
_TOKENS = fact("tokens_per_step")
_PACKAGES = ("mlx", "mlx_lm", "mlx_metal")


def recognise(document: Value) -> bool:
    """True for a receipt with a version of its own, a training block and the workload that it is of."""
    return (
        isinstance(document, dict)
        and "receipt_schema_version" in document
        and all(isinstance(document.get(key), dict) for key in ("training", "workload"))
    )


def read(json_text: JsonText, document: Value) -> Found:
    """Return what a receipt of cppmega_mlx says of its run."""
    found = Found(FORMAT, producer="cppmega_mlx", trainer="cppmega-mlx")
    version = at(document, "receipt_schema_version")
    found.format_version = str(version)[:64] or None if isinstance(version, str) else None
    scope = words(at(document, "receipt_scope"))
    found.producer = f"cppmega_mlx {scope}"[:200] if scope else found.producer
    planned = count(at(document, "workload", "steps_requested"), found.doubts, None, "/workload/steps_requested")
    if isinstance(at(document, *_PATH), list):
        _tell_steps(found, json_text, document, planned)
    _state(found, document, planned)
    _end(found, document, planned)
    _header(found, document)
    found.matched += not found.events
    return found


def _tell_steps(found: Found, json_text: JsonText, document: Value, planned: int | None) -> None:
    tokens = number_of(at(document, "workload", "tokens_per_step"), _TOKENS, found.doubts, None, "/workload/tokens_per_step")
    for number, record in enumerate(json_text.array(_PATH)):
        where = f"/training/step_metrics/{number}"
        if not isinstance(record.value, dict):
            found.unmatched += 1
            found.doubts.add("record_is_no_object", record.line, f"{where}: is no object")
            continue
        taken = take(record.value, _STEPS, found.doubts, record.line, where)
        taken.planned = planned
        if tokens is not None and not found.events:
            found.tell("header", Taken(facts={"tokens_per_step": tokens}), record.line)
        found.tell("step", taken, record.line)
        found.matched += 1


def _state(found: Found, document: Value, planned: int | None) -> None:
    """Keep what the receipt states of the run as a whole; what its steps give stands before it."""
    part = Part(planned=planned)
    part.parameter_count = count(at(document, "model", "parameter_count"), found.doubts, None, "/model/parameter_count")
    part.records = count(at(document, "training", "steps_completed"), found.doubts, None, "/training/steps_completed") or 0
    peak = number_of(
        at(document, "memory", "peak_memory_bytes"), metric("peak_memory_bytes"), found.doubts, None, "/memory/peak_memory_bytes"
    )
    if peak is not None:
        part.metrics["peak_memory_bytes"] = single(peak)
    losses = {figure: _loss(found, document, key) for key, figure in _LOSSES.items()}
    part.metrics["loss"] = Stated({figure: value for figure, value in losses.items() if value is not None})
    if at(document, "training", "all_finite") in (True, False):
        found.checks["finite_losses"] = at(document, "training", "all_finite") is True
    found.parts.append(part)


def _loss(found: Found, document: Value, key: str) -> float | None:
    return number_of(at(document, "training", key), metric("loss"), found.doubts, None, f"/training/{key}")


def _end(found: Found, document: Value, planned: int | None) -> None:
    status = words(at(document, "status"))
    done = whole(at(document, "training", "steps_completed"), found.doubts, None, "/training/steps_completed")
    if status == "ok" and planned is not None and done is not None and done >= planned:
        found.completed = True
    elif status is not None and status != "ok":
        found.failed = Failed(words(at(document, "error")) or f"the run ended with status {status}")


def _header(found: Found, document: Value) -> None:
    def know(pointer: str, *path: str) -> None:
        value = at(document, *path)
        if isinstance(value, Number):
            value_of = whole(value, found.doubts, None, "/" + "/".join(path)) if value.lstrip("-").isdigit() else float(value)
            found.know(pointer, value_of, "import:/" + "/".join(path))
        elif isinstance(value, str | bool):
            found.know(pointer, value, "import:/" + "/".join(path))

    know("/git/commit", "software", "git_commit")
    know("/software/python", "software", "device", "python")
    know("/software/platform", "software", "device", "platform")
    know("/model/architecture", "model", "name")
    know("/model/parameter_count", "model", "parameter_count")
    for flag, path in _FLAGS.items():
        know(f"/flags/{flag}", *path)
    device = members(document, "software", "device")
    packages = {name: version for name in _PACKAGES if (version := words(device.get(name))) is not None}
    found.know("/software/packages", packages or None, "import:/software/device")
    name = words(at(document, "software", "device", "mlx_device_info", "device_name"))
    if name is not None:
        accelerator = {"name": name, "count": 1, "memory_bytes": None}
        found.know("/hardware/accelerators", [accelerator], "import:/software/device/mlx_device_info")
    found.know("/software/trainer", found.trainer, "import:/receipt_schema_version")
