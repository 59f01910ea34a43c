"""Read the nested training receipt of cppmega_mlx: steps, model, machine and memory."""

from __future__ import annotations

from receipt_cli.importers.field_names import IGNORED, STEP, Names, fact, metric
from receipt_cli.importers.json_text import JsonText, Number, Value, at, members
from receipt_cli.importers.model import DeclaredFailure, DeclaredPhase, DeclaredStatistic, ForeignRun, single
from receipt_cli.importers.values import Fields, RecordValues, read_record, words

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
    """Return whether ``document`` has ``receipt_schema_version``, ``training`` and ``workload``."""
    return (
        isinstance(document, dict)
        and "receipt_schema_version" in document
        and all(isinstance(document.get(key), dict) for key in ("training", "workload"))
    )


def read(json_text: JsonText, document: Value) -> ForeignRun:
    """Return the run in a receipt of cppmega_mlx."""
    foreign = ForeignRun(FORMAT, producer="cppmega_mlx", trainer="cppmega-mlx")
    fields = Fields(document, foreign.problems)
    version = at(document, "receipt_schema_version")
    foreign.format_version = str(version)[:64] or None if isinstance(version, str) else None
    scope = fields.words("receipt_scope")
    foreign.producer = f"cppmega_mlx {scope}"[:200] if scope else foreign.producer
    planned = fields.count("workload", "steps_requested")
    if isinstance(at(document, *_PATH), list):
        _read_steps(foreign, json_text, fields, planned)
    _read_totals(foreign, fields, planned)
    _read_outcome(foreign, fields, planned)
    _read_header(foreign, fields)
    foreign.matched += not foreign.events
    return foreign


def _read_steps(foreign: ForeignRun, json_text: JsonText, fields: Fields, planned: int | None) -> None:
    tokens = fields.number(_TOKENS, "workload", "tokens_per_step")
    for line, where, record in foreign.objects(json_text.array(_PATH), "/training/step_metrics"):
        values = read_record(record, _STEPS, foreign.problems, line, where)
        values.planned = planned
        if tokens is not None and not foreign.events:
            foreign.add_event("header", RecordValues(facts={"tokens_per_step": tokens}), line)
        foreign.add_event("step", values, line)


def _read_totals(foreign: ForeignRun, fields: Fields, planned: int | None) -> None:
    """Add the statistics of the whole run; statistics of step records take precedence."""
    phase = DeclaredPhase(planned=planned)
    phase.parameter_count = fields.count("model", "parameter_count")
    phase.records = fields.count("training", "steps_completed") or 0
    peak = fields.number(metric("peak_memory_bytes"), "memory", "peak_memory_bytes")
    if peak is not None:
        phase.metrics["peak_memory_bytes"] = single(peak)
    losses = {figure: fields.number(metric("loss"), "training", key) for key, figure in _LOSSES.items()}
    phase.metrics["loss"] = DeclaredStatistic({figure: value for figure, value in losses.items() if value is not None})
    finite = at(fields.document, "training", "all_finite")
    if finite in (True, False):
        foreign.checks["finite_losses"] = finite is True
    foreign.declared.append(phase)


def _read_outcome(foreign: ForeignRun, fields: Fields, planned: int | None) -> None:
    status = fields.words("status")
    done = fields.whole("training", "steps_completed")
    if status == "ok" and planned is not None and done is not None and done >= planned:
        foreign.completed = True
    elif status is not None and status != "ok":
        foreign.failure = DeclaredFailure(fields.words("error") or f"the run ended with status {status}")


def _read_header(foreign: ForeignRun, fields: Fields) -> None:
    def add(pointer: str, *path: str) -> None:
        value = at(fields.document, *path)
        if isinstance(value, Number):
            number = fields.whole(*path) if value.lstrip("-").isdigit() else float(value)
            foreign.add_fact(pointer, number, "import:/" + "/".join(path))
        elif isinstance(value, str | bool):
            foreign.add_fact(pointer, value, "import:/" + "/".join(path))

    add("/git/commit", "software", "git_commit")
    add("/software/python", "software", "device", "python")
    add("/software/platform", "software", "device", "platform")
    add("/model/architecture", "model", "name")
    add("/model/parameter_count", "model", "parameter_count")
    for flag, path in _FLAGS.items():
        add(f"/flags/{flag}", *path)
    device = members(fields.document, "software", "device")
    packages = {name: version for name in _PACKAGES if (version := words(device.get(name))) is not None}
    foreign.add_fact("/software/packages", packages or None, "import:/software/device")
    name = fields.words("software", "device", "mlx_device_info", "device_name")
    if name is not None:
        accelerator = {"name": name, "count": 1, "memory_bytes": None}
        foreign.add_fact("/hardware/accelerators", [accelerator], "import:/software/device/mlx_device_info")
    foreign.add_fact("/software/trainer", foreign.trainer, "import:/receipt_schema_version")
