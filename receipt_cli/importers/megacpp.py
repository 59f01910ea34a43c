"""Read the documents of two related projects: MegaCpp (with its public samples) and cppmega (with cppmega_mlx).

The keys of the samples are from ``gpu_profile_receipt_sample.py``, ``compile_runtime_receipt_sample.py`` and
``goodput_tracker_sample.py`` in DatasunriseOU/site_samples.
"""

from __future__ import annotations

from collections.abc import Mapping

from receipt_cli.importers.model import DeclaredFailure, DeclaredPhase, DeclaredStatistic, ForeignRun, JsonFormat, single
from receipt_cli.importers.text import JsonText, Value, at, members
from receipt_cli.importers.values import (
    IGNORED,
    STEP,
    Fields,
    Meaning,
    Names,
    RecordValues,
    fact,
    metric,
    number_in,
    number_of,
    read_record,
    words,
)
from receipt_cli.redaction.text import safe_text

_SUMMARIES = "cppmega-run-summary"
_SIGNS = frozenset({"hot_step_avg_ms", "hot_step_count", "final_train_iteration", "final_train_loss"})
_HOT = {
    "hot_step_avg_ms": metric("step_time_s", "ms", definition="mean_of_hot_steps"),
    "tok_per_sec": metric("tokens_per_s", scope="global", definition="mean_of_step_rates"),
}
_LAST = {
    "final_train_loss": metric("loss"),
    "final_val_loss": metric("val_loss"),
    "final_test_loss": metric("test_loss"),
    "skipped_iterations": metric("skipped_step_count"),
    "nan_iterations": metric("nan_step_count"),
}
_MEMORY = {
    "setup_alloc_bytes": metric("memory_allocated_bytes", definition="after_setup"),
    "max_alloc_bytes": metric("peak_memory_allocated_bytes"),
}
_MAX_ARTIFACTS = 1000


def recognise_summary(document: Value) -> bool:
    """Return whether ``document`` is one run summary."""
    return isinstance(document, dict) and len(_SIGNS & document.keys()) >= 3


def runs_of(document: Value) -> list[str]:
    """Return the keys of the run summaries in a comparison of several runs."""
    return [key for key, value in document.items() if recognise_summary(value)] if isinstance(document, dict) else []


def read_summary(json_text: JsonText, document: Value) -> ForeignRun:
    """Return the run in a run summary."""
    foreign, fields, phase = _begin(_SUMMARIES, document, "cppmega", "megatron-lm")
    foreign.matched = 1
    phase.last = fields.count("final_train_iteration")
    phase.records = 0 if phase.last is None else 1
    phase.parameter_count = fields.count("param_total_numel")
    steps = fields.count("hot_step_count")
    for key, meaning in _HOT.items():
        phase.state(meaning, fields.number(meaning, key), "mean", count=steps, window="steady")
    for key, meaning in _LAST.items():
        phase.state(meaning, fields.number(meaning, key), "last")
    for key, meaning in _MEMORY.items():
        phase.state(meaning, fields.number(meaning, key))
    foreign.add_fact("/model/parameter_count", phase.parameter_count, "import:/param_total_numel")
    for flag, key in (("sequence_length", "seq_length"), ("tokens_per_step", "tokens_per_step")):
        foreign.add_fact(f"/flags/{flag}", fields.count(key), f"import:/{key}")
    _artifacts(foreign, document)
    foreign.run["name"] = fields.words("label")
    return foreign


def _artifacts(foreign: ForeignRun, document: Value) -> None:
    """Add the artefacts as attachments; each warning of the producer becomes a problem."""
    artifacts, warnings = at(document, "artifacts"), at(document, "warnings")
    for number, artifact in enumerate(artifacts[:_MAX_ARTIFACTS] if isinstance(artifacts, list) else []):
        kind, path = (safe_text(words(at(artifact, key)) or "") for key in ("kind", "path"))
        if not kind or not path:
            continue
        foreign.attachments.append({"kind": kind, "uri": path, "sha256": None, "size_bytes": None})
        if at(artifact, "exists") is False:
            foreign.problems.add("artifact_missing", None, f"/artifacts/{number}: {kind} did not exist when the summary was made")
    for number, warning in enumerate(warnings if isinstance(warnings, list) else []):
        if (message := words(warning)) is not None:
            foreign.problems.add("producer_warning", None, f"/warnings/{number}: {message}")


_MLX = "cppmega-mlx-receipt"
_PATH = ("training", "step_metrics")
_MLX_STEPS = Names(
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
_FACTS = {
    "/git/commit": ("software", "git_commit"),
    "/software/python": ("software", "device", "python"),
    "/software/platform": ("software", "device", "platform"),
    "/model/architecture": ("model", "name"),
    "/model/parameter_count": ("model", "parameter_count"),
    "/flags/micro_batch_size": ("workload", "batch_size"),
    "/flags/sequence_length": ("workload", "seq_len"),
    "/flags/tokens_per_step": ("workload", "tokens_per_step"),
    "/flags/precision": ("workload", "dtype"),
    "/flags/optimizer": ("training", "optimizer", "name"),
    "/flags/learning_rate": ("workload", "learning_rate"),
    "/flags/grad_checkpoint": ("workload", "grad_checkpoint"),
}
_LOSS, _PEAK = metric("loss"), metric("peak_memory_bytes")
_LOSSES = {"initial_loss": "first", "final_loss": "last", "mean_loss": "mean"}
_TOKENS = fact("tokens_per_step")
_PACKAGES = ("mlx", "mlx_lm", "mlx_metal")


def recognise_mlx(document: Value) -> bool:
    """Return whether ``document`` has ``receipt_schema_version``, ``training`` and ``workload``."""
    stated = "receipt_schema_version" in members(document)
    return stated and all(isinstance(at(document, key), dict) for key in ("training", "workload"))


def read_mlx(json_text: JsonText, document: Value) -> ForeignRun:
    """Return the run in a receipt of cppmega_mlx."""
    foreign, fields, phase = _begin(_MLX, document, "cppmega_mlx", "cppmega-mlx")
    foreign.format_version = _version(document, "receipt_schema_version")
    scope = fields.words("receipt_scope")
    foreign.producer = f"cppmega_mlx {scope}"[:200] if scope else foreign.producer
    phase.planned = planned = fields.count("workload", "steps_requested")
    if isinstance(at(document, *_PATH), list):
        _read_steps(foreign, json_text, fields, planned)
    _read_totals(foreign, fields, phase)
    _read_mlx_outcome(foreign, fields, planned)
    _read_header(foreign, fields)
    foreign.matched += not foreign.count
    return foreign


def _read_steps(foreign: ForeignRun, json_text: JsonText, fields: Fields, planned: int | None) -> None:
    tokens = fields.number(_TOKENS, "workload", "tokens_per_step")
    for line, where, record in foreign.objects(json_text.array(_PATH), "/training/step_metrics"):
        values = read_record(record, _MLX_STEPS, foreign.problems, line, where)
        values.planned = planned
        if tokens is not None and not foreign.count:
            foreign.add_event("header", RecordValues(facts={"tokens_per_step": tokens}), line)
        foreign.add_event("step", values, line)


def _read_totals(foreign: ForeignRun, fields: Fields, phase: DeclaredPhase) -> None:
    """Add the statistics of the whole run; statistics of step records take precedence."""
    phase.parameter_count = fields.count("model", "parameter_count")
    phase.records = fields.count("training", "steps_completed") or 0
    phase.state(_PEAK, fields.number(_PEAK, "memory", "peak_memory_bytes"))
    for key, figure in _LOSSES.items():
        phase.state(_LOSS, fields.number(_LOSS, "training", key), figure)
    finite = at(fields.document, "training", "all_finite")
    if finite in (True, False):
        foreign.checks["finite_losses"] = finite is True


def _read_mlx_outcome(foreign: ForeignRun, fields: Fields, planned: int | None) -> None:
    status = fields.words("status")
    done = fields.whole("training", "steps_completed")
    if status == "ok" and planned is not None and done is not None and done >= planned:
        foreign.completed = True
    elif status is not None and status != "ok":
        foreign.failure = DeclaredFailure(fields.words("error") or f"the run ended with status {status}")


def _read_header(foreign: ForeignRun, fields: Fields) -> None:
    for pointer, path in _FACTS.items():
        foreign.add_from(fields.document, pointer, *path)
    device = members(fields.document, "software", "device")
    packages = {name: version for name in _PACKAGES if (version := words(device.get(name))) is not None}
    foreign.add_fact("/software/packages", packages or None, "import:/software/device")
    name = fields.words("software", "device", "mlx_device_info", "device_name")
    if name is not None:
        accelerator = {"name": name, "count": 1, "memory_bytes": None}
        foreign.add_fact("/hardware/accelerators", [accelerator], "import:/software/device/mlx_device_info")
    foreign.add_fact("/software/trainer", foreign.trainer, "import:/receipt_schema_version")


RECEIPT = "megacpp-training-receipt"
KERNEL_RECEIPT = "megacpp-fa4-receipt"
_MFU_SURE = 2.0
"""Largest MFU that may be a ratio; a larger one is percent, a smaller one may be either."""

Figure = tuple[str, str]
"""(metric, name of the statistic)."""
_SUMMARY: dict[str, Figure] = {
    "mean_tok_sec": ("tokens_per_s", "mean"),
    "median_tok_sec": ("tokens_per_s", "median"),
    "min_tok_sec": ("tokens_per_s", "min"),
    "max_tok_sec": ("tokens_per_s", "max"),
    "first_loss": ("loss", "first"),
    "final_loss": ("loss", "last"),
    "mean_loss": ("loss", "mean"),
    "mean_gnorm": ("grad_norm", "mean"),
    "max_gnorm": ("grad_norm", "max"),
    "mean_mfu": ("mfu_ratio", "mean"),
}
_KERNEL_SUMMARY: dict[str, Figure] = {
    "tok_sec_mean": ("tokens_per_s", "mean"),
    "tok_sec_min": ("tokens_per_s", "min"),
    "tok_sec_max": ("tokens_per_s", "max"),
    "mfu_mean": ("mfu_ratio", "mean"),
    "loss_first": ("loss", "first"),
    "loss_last": ("loss", "last"),
}
_STEADY = ("tokens_per_s", "mfu_ratio")
_PER_STEP = Names({"step": STEP, "dt_ms": metric("step_time_s", "ms"), "mfu": IGNORED}, ("megacpp", "nanochat"))
_GOOD, _BAD = ("PASS", "OK", "SUCCESS"), ("FAIL", "FAILED", "ERROR", "CRASH", "CRASHED", "OOM", "TIMEOUT")
_CHECKS = {"zero_exit_code": "exit_code_zero", "has_steps": "has_steps", "no_oom": "no_oom"}


def recognise(document: Value) -> bool:
    """Return whether ``document`` is a receipt of the Modal lane, by its checks and the keys of its summary."""
    summary = members(document, "summary").keys()
    return isinstance(at(document, "checks"), dict) and len(summary & {*_SUMMARY, "total_steps", "steady_state_steps"}) >= 2


def recognise_kernel_receipt(document: Value) -> bool:
    """Return whether ``document`` is a receipt of the kernel smoke tests: an execution surface, and a summary or steps."""
    summary = members(document, "summary").keys()
    figures = bool(summary & _KERNEL_SUMMARY.keys()) or isinstance(at(document, "per_step"), list)
    return figures and (isinstance(at(document, "execution_surface"), dict) or isinstance(at(document, "training"), dict))


def read(json_text: JsonText, document: Value) -> ForeignRun:
    """Return the run in a receipt of the Modal lane."""
    foreign, fields, phase = _begin_receipt(RECEIPT, document)
    phase.records = fields.count("summary", "total_steps") or 0
    phase.steady_records = fields.count("summary", "steady_state_steps")
    phase.parameter_count = fields.count("summary", "num_params")
    phase.training_time_s = fields.seconds("summary", "training_time_sec")
    phase.state(_PEAK, fields.number(metric("peak_memory_bytes", "MiB"), "summary", "peak_memory_mib") or None)
    _read_summary(foreign, phase, members(document, "summary"), _SUMMARY)
    _read_outcome(foreign, fields)
    for key in ("commit", "branch", "dirty", "message"):
        foreign.add_from(document, f"/git/{key}", "git", key)
    foreign.matched = 1
    return foreign


def read_kernel_receipt(json_text: JsonText, document: Value) -> ForeignRun:
    """Return the run in a receipt of the kernel smoke tests."""
    foreign, fields, phase = _begin_receipt(KERNEL_RECEIPT, document)
    phase.records = fields.count("training", "num_steps") or 0
    phase.parameter_count = fields.count("training", "num_params") or None
    if isinstance(at(document, "per_step"), list):
        for line, where, record in foreign.objects(json_text.array(("per_step",)), "/per_step"):
            foreign.add_event("step", read_record(record, _PER_STEP, foreign.problems, line, where), line)
    _read_summary(foreign, phase, members(document, "summary"), _KERNEL_SUMMARY)
    wall = fields.seconds("training", "wall_time_sec")
    if wall:
        phase.others["training/wall_time_sec"] = single(wall)
    _read_surface(foreign, fields)
    _read_outcome(foreign, fields)
    foreign.matched += not foreign.count
    return foreign


def _begin(
    name: str, document: Value, producer: str = "MegaCpp", trainer: str = "megacpp"
) -> tuple[ForeignRun, Fields, DeclaredPhase]:
    """Return the run of a document with one declared phase, still empty."""
    foreign, phase = ForeignRun(name, producer=producer, trainer=trainer), DeclaredPhase()
    foreign.declared.append(phase)
    return foreign, Fields(document, foreign.problems), phase


def _begin_receipt(name: str, document: Value) -> tuple[ForeignRun, Fields, DeclaredPhase]:
    foreign, fields, phase = _begin(name, document)
    foreign.format_version = _version(document, "schema_version", "receipt_schema_version")
    foreign.run["preset"] = fields.words("preset")
    return foreign, fields, phase


def _version(document: Value, *keys: str) -> str | None:
    """Return the first stated version, cut; None unless it is a string."""
    version = next((v for key in keys if (v := at(document, key)) is not None), None)
    return version[:64] or None if isinstance(version, str) else None


def _read_summary(foreign: ForeignRun, phase: DeclaredPhase, summary: Mapping[str, Value], table: Mapping[str, Figure]) -> None:
    """Add the aggregates in ``summary`` to ``phase``, grouped by metric."""
    figures: dict[str, dict[str, float]] = {}
    for spelling, (name, figure) in table.items():
        value = _figure(foreign, name, summary.get(spelling), f"/summary/{spelling}")
        if value is not None:
            figures.setdefault(name, {})[figure] = value
    for name, values in figures.items():
        steady = name in _STEADY and phase.steady_records is not None
        count = phase.steady_records if steady else phase.records
        # The receipt does not state whether a mean is over all steps or over steady ones.
        definition = "window_of_producer" if "mean" in values and not steady else None
        scope = "global" if name == "tokens_per_s" else None
        phase.metrics[name] = DeclaredStatistic(values, count, "steady" if steady else "all", scope, definition)


def _figure(foreign: ForeignRun, name: str, value: Value, place: str) -> float | None:
    """Return a value in base units; None, with a problem, for an MFU that may be percent or a ratio."""
    meaning = Meaning("metric", name, "percent" if name == "mfu_ratio" else None)
    number = number_of(value, meaning, foreign.problems, None, place)
    if name == "mfu_ratio" and number is not None and 0 < number * 100 <= _MFU_SURE:
        foreign.problems.add("ambiguous_unit", None, f"{place}: may be percent or a ratio", str(value))
        return None
    return number


def _read_surface(foreign: ForeignRun, fields: Fields) -> None:
    """Add the machine and the backend. Memory in GB is ignored, because GB may be 10**9 or 2**30 bytes."""
    where = "/execution_surface"
    for key in ("peak_memory_gb", "gpu_mem_gb"):
        _note_gigabytes(foreign, fields.document, "execution_surface", key)
    name = fields.words("execution_surface", "gpu_type")
    devices = fields.count("execution_surface", "gpu_count") or None
    if name or devices:
        foreign.add_fact("/hardware/accelerators", [{"name": name, "count": devices, "memory_bytes": None}], f"import:{where}")
    backend = fields.words("execution_surface", "actual_backend")
    if backend is not None and backend != "unknown":
        posture = {"requested": None, "observed": backend}
        foreign.add_fact("/execution/attention_backend", posture, f"import:{where}/actual_backend")


def _note_gigabytes(foreign: ForeignRun, document: Value, *path: str) -> None:
    value = at(document, *path)
    if number_in(value):
        foreign.problems.add("ambiguous_unit", None, f"/{'/'.join(path)}: GB may be 10**9 or 2**30 bytes", str(value))


def _read_outcome(foreign: ForeignRun, fields: Fields) -> None:
    """Add the declared checks, exit code and failure."""
    checks = members(fields.document, "checks")
    for name, spelling in _CHECKS.items():
        value = checks.get(spelling)
        foreign.checks[name] = value if isinstance(value, bool) else None
    finite = [checks.get(key) for key in ("all_losses_finite", "no_nan_loss")]
    foreign.checks["finite_losses"] = False if False in finite else True if finite[0] is True else None
    code = fields.whole("training", "exit_code")
    if code == -1:
        foreign.problems.add("ambiguous_value", None, "/training/exit_code: -1 may mean an unknown exit code")
    elif code is not None and abs(code) < 2**31:
        foreign.run["exit_code"] = code
    status = (fields.words("status") or "").upper()
    reason = fields.words("failure_reason")
    bad = False in (foreign.checks["zero_exit_code"], foreign.checks["no_oom"])
    if status in _BAD and reason is None:
        reason = f"the receipt says {status}"
    if reason is not None or bad:
        foreign.failure = DeclaredFailure(reason, _tail(at(fields.document, "log_tail")))
    elif foreign.checks["zero_exit_code"] or status in _GOOD:
        foreign.completed = True


def _tail(value: Value) -> list[str]:
    if isinstance(value, list):
        return [line for line in value if isinstance(line, str)]
    return value.splitlines() if isinstance(value, str) else []


LANE, COMPILATION, GOODPUT = "megacpp-profile-lane", "megacpp-compile-receipt", "megacpp-goodput-summary"
_POSTURE = ("device_type", "compile_enabled", "regional_compile", "dynamic_batch", "use_cuda_graphs", "moe_enabled")
_OF_LANE = {"elapsed_s", "tok_per_sec", "dense_fa4_requested"}
_OF_GOODPUT = {"goodput", "wall_time_s", "step_time_s", "step_count", "avg_step_s"}
"""Keys by which these documents are recognised."""
_SHARES = ("checkpoint", "eval", "compilation", "data_loading", "idle")


def recognise_compilation(document: Value) -> bool:
    """Return whether ``document`` has the compilation settings of a run."""
    return "compile_enabled" in members(document) and isinstance(at(document, "compile_warmup"), dict)


def read_lane(json_text: JsonText, document: Value) -> ForeignRun:
    """Return the run of a timed lane, whose rate excludes warm-up. Memory in GB is ignored: GB is ambiguous."""
    foreign, fields, phase = _begin(LANE, document)
    foreign.matched = 1
    foreign.run["name"] = fields.words("label")
    phase.records = fields.count("steps") or 0
    rate = metric("tokens_per_s", scope="global", definition="timed_loop_without_warmup")
    phase.state(rate, fields.number(rate, "tok_per_sec") or None)
    phase.training_time_s = fields.seconds("elapsed_s")
    _note_gigabytes(foreign, document, "peak_mem_gb")
    asked, seen = at(document, "dense_fa4_requested"), at(document, "dense_fa4_dispatch_observed")
    if isinstance(asked, bool):
        posture = {"requested": asked, "observed": seen if isinstance(seen, bool) else None}
        foreign.add_fact("/execution/dense_fa4", posture, "import:/dense_fa4_requested")
    status = (fields.words("status") or "").lower()
    if status == "ok":
        foreign.completed = True
    elif status:
        foreign.failure = DeclaredFailure(f"the receipt says {status}")
    return foreign


def read_compilation(json_text: JsonText, document: Value) -> ForeignRun:
    """Return a run with its compilation settings as header flags."""
    foreign, _, _ = _begin(COMPILATION, document)
    foreign.matched = 1
    for name in _POSTURE:
        foreign.add_from(document, f"/flags/{name}", name)
    foreign.add_from(document, "/flags/compile_warmup", "compile_warmup", "enabled")
    foreign.add_from(document, "/flags/compile_warmup_reason", "compile_warmup", "reason")
    return foreign


def read_goodput(json_text: JsonText, document: Value) -> ForeignRun:
    """Return a run with the values of a goodput tracker as other metrics; a summary has no step records."""
    foreign, fields, phase = _begin(GOODPUT, document)
    foreign.matched = 1
    phase.records = fields.count("step_count") or 0
    phase.training_time_s = fields.seconds("step_time_s")
    phase.state(metric("step_time_s", definition="mean_of_the_run"), fields.seconds("avg_step_s") or None)
    for name in ("goodput", "wall_time_s", *_SHARES):
        number = number_in(at(document, name))
        if number is not None:
            phase.others[name] = single(number)
    return foreign


OBJECTS = (
    JsonFormat(_MLX, "training receipt of cppmega_mlx", recognise_mlx, read_mlx),
    JsonFormat(_SUMMARIES, "run summary of cppmega's log comparison", recognise_summary, read_summary),
    JsonFormat(RECEIPT, "MegaCpp training receipt (Modal)", recognise, read),
    JsonFormat(KERNEL_RECEIPT, "MegaCpp kernel receipt (FA4)", recognise_kernel_receipt, read_kernel_receipt),
    JsonFormat(LANE, "timed lane of MegaCpp's samples", lambda document: members(document).keys() >= _OF_LANE, read_lane),
    JsonFormat(COMPILATION, "compile receipt of MegaCpp's samples", recognise_compilation, read_compilation),
    JsonFormat(
        GOODPUT, "goodput summary of MegaCpp's samples", lambda document: members(document).keys() >= _OF_GOODPUT, read_goodput
    ),
)
"""Every format of this module."""
