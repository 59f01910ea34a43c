"""Read MegaCpp's training receipts: of the Modal lane, and of the attention-kernel smoke tests (FA4)."""

from __future__ import annotations

from collections.abc import Mapping

from receipt_cli.definitions.units import read_number
from receipt_cli.importers.field_names import IGNORED, STEP, Meaning, Names, metric
from receipt_cli.importers.json_text import JsonText, Number, Value, at, members
from receipt_cli.importers.model import DeclaredFailure, DeclaredPhase, DeclaredStatistic, ForeignRun, single
from receipt_cli.importers.values import Fields, number_of, read_record

RECEIPT = "megacpp-training-receipt"
KERNEL_RECEIPT = "megacpp-fa4-receipt"
_VERSIONS = ("schema_version", "receipt_schema_version")
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
    foreign, fields = _begin(RECEIPT, document)
    phase = DeclaredPhase()
    phase.records = fields.count("summary", "total_steps") or 0
    phase.steady_records = fields.count("summary", "steady_state_steps")
    phase.parameter_count = fields.count("summary", "num_params")
    phase.training_time_s = fields.seconds("summary", "training_time_sec")
    memory = fields.number(metric("peak_memory_bytes", "MiB"), "summary", "peak_memory_mib")
    if memory:
        phase.metrics["peak_memory_bytes"] = single(memory)
    _read_summary(foreign, phase, members(document, "summary"), _SUMMARY)
    foreign.declared.append(phase)
    _read_outcome(foreign, fields)
    for key in ("commit", "branch", "dirty", "message"):
        value = at(document, "git", key)
        foreign.add_fact(f"/git/{key}", value if isinstance(value, str | bool) else None, f"import:/git/{key}")
    foreign.matched = 1
    return foreign


def read_kernel_receipt(json_text: JsonText, document: Value) -> ForeignRun:
    """Return the run in a receipt of the kernel smoke tests."""
    foreign, fields = _begin(KERNEL_RECEIPT, document)
    phase = DeclaredPhase()
    phase.records = fields.count("training", "num_steps") or 0
    phase.parameter_count = fields.count("training", "num_params") or None
    if isinstance(at(document, "per_step"), list):
        for line, where, record in foreign.objects(json_text.array(("per_step",)), "/per_step"):
            foreign.add_event("step", read_record(record, _PER_STEP, foreign.problems, line, where), line)
    _read_summary(foreign, phase, members(document, "summary"), _KERNEL_SUMMARY)
    wall = fields.seconds("training", "wall_time_sec")
    if wall:
        phase.others["training/wall_time_sec"] = single(wall)
    foreign.declared.append(phase)
    _read_surface(foreign, fields)
    _read_outcome(foreign, fields)
    foreign.matched += not foreign.events
    return foreign


def _begin(name: str, document: Value) -> tuple[ForeignRun, Fields]:
    foreign = ForeignRun(name, producer="MegaCpp", trainer="megacpp")
    fields = Fields(document, foreign.problems)
    version = next((v for key in _VERSIONS if (v := at(document, key)) is not None), None)
    foreign.format_version = str(version)[:64] or None if isinstance(version, str) else None
    foreign.run["preset"] = fields.words("preset")
    return foreign, fields


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
    surface = members(fields.document, "execution_surface")
    for key in ("peak_memory_gb", "gpu_mem_gb"):
        if isinstance(surface.get(key), Number) and read_number(str(surface[key])):
            detail = f"{where}/{key}: GB may be 10**9 or 2**30 bytes"
            foreign.problems.add("ambiguous_unit", None, detail, str(surface[key]))
    name = fields.words("execution_surface", "gpu_type")
    devices = fields.count("execution_surface", "gpu_count") or None
    if name or devices:
        foreign.add_fact("/hardware/accelerators", [{"name": name, "count": devices, "memory_bytes": None}], f"import:{where}")
    backend = fields.words("execution_surface", "actual_backend")
    if backend is not None and backend != "unknown":
        posture = {"requested": None, "observed": backend}
        foreign.add_fact("/execution/attention_backend", posture, f"import:{where}/actual_backend")


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
        detail = "/training/exit_code: -1 may mean an unknown exit code"
        foreign.problems.add("ambiguous_value", None, detail)
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
