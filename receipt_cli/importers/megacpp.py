"""MegaCpp's training receipts: that of the Modal lane, and that of the attention-kernel smoke tests (FA4)."""

from __future__ import annotations

from collections.abc import Mapping

from receipt_cli.definitions.units import read_number
from receipt_cli.importers.field_names import IGNORED, STEP, Meaning, Names, metric
from receipt_cli.importers.json_text import JsonText, Number, Value, at, members
from receipt_cli.importers.model import Failed, Found, Part, Stated, single
from receipt_cli.importers.values import count, number_of, seconds, take, whole, words

RECEIPT = "megacpp-training-receipt"
KERNEL_RECEIPT = "megacpp-fa4-receipt"
_VERSIONS = ("schema_version", "receipt_schema_version")
_MFU_SURE = 2.0
"""An MFU above this is no ratio: the trainer prints percent. At or below it may be either."""

Figure = tuple[str, str]
"""(metric, figure of its statistic)."""
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
    """True for the receipt of the Modal lane: a summary with its spellings beside the checks."""
    summary = members(document, "summary").keys()
    return isinstance(at(document, "checks"), dict) and len(summary & {*_SUMMARY, "total_steps", "steady_state_steps"}) >= 2


def recognise_kernel_receipt(document: Value) -> bool:
    """True for the receipt of the kernel smoke tests: the surface that it ran on, and a summary or the steps."""
    summary = members(document, "summary").keys()
    told = bool(summary & _KERNEL_SUMMARY.keys()) or isinstance(at(document, "per_step"), list)
    return told and (isinstance(at(document, "execution_surface"), dict) or isinstance(at(document, "training"), dict))


def read(json_text: JsonText, document: Value) -> Found:
    """Return what a receipt of the Modal lane says of its run."""
    found = _begin(RECEIPT, document)
    summary = members(document, "summary")
    part = Part()
    part.records = count(summary.get("total_steps"), found.doubts, None, "/summary/total_steps") or 0
    part.steady_records = count(summary.get("steady_state_steps"), found.doubts, None, "/summary/steady_state_steps")
    part.parameter_count = count(summary.get("num_params"), found.doubts, None, "/summary/num_params")
    part.training_time_s = seconds(summary.get("training_time_sec"), found.doubts, None, "/summary/training_time_sec")
    peak = metric("peak_memory_bytes", "MiB")
    memory = number_of(summary.get("peak_memory_mib"), peak, found.doubts, None, "/summary/peak_memory_mib")
    if memory:
        part.metrics["peak_memory_bytes"] = single(memory)
    _state(found, part, summary, _SUMMARY, "/summary")
    found.parts.append(part)
    _judge(found, document)
    for key in ("commit", "branch", "dirty", "message"):
        value = at(document, "git", key)
        found.know(f"/git/{key}", value if isinstance(value, str | bool) else None, f"import:/git/{key}")
    found.matched = 1
    return found


def read_kernel_receipt(json_text: JsonText, document: Value) -> Found:
    """Return what a receipt of the kernel smoke tests says of its run."""
    found = _begin(KERNEL_RECEIPT, document)
    part = Part()
    part.records = count(at(document, "training", "num_steps"), found.doubts, None, "/training/num_steps") or 0
    part.parameter_count = count(at(document, "training", "num_params"), found.doubts, None, "/training/num_params") or None
    if isinstance(at(document, "per_step"), list):
        for number, record in enumerate(json_text.array(("per_step",))):
            _tell(found, record.value, record.line, f"/per_step/{number}")
    _state(found, part, members(document, "summary"), _KERNEL_SUMMARY, "/summary")
    wall = seconds(at(document, "training", "wall_time_sec"), found.doubts, None, "/training/wall_time_sec")
    if wall:
        part.others["training/wall_time_sec"] = single(wall)
    found.parts.append(part)
    _surface(found, document)
    _judge(found, document)
    found.matched += not found.events
    return found


def _begin(name: str, document: Value) -> Found:
    found = Found(name, producer="MegaCpp", trainer="megacpp")
    version = next((v for key in _VERSIONS if (v := at(document, key)) is not None), None)
    found.format_version = str(version)[:64] or None if isinstance(version, str) else None
    found.run["preset"] = words(at(document, "preset"))
    return found


def _tell(found: Found, value: Value, line: int, where: str) -> None:
    if not isinstance(value, dict):
        found.unmatched += 1
        found.doubts.add("record_is_no_object", line, f"{where}: is no object")
        return
    found.tell("step", take(value, _PER_STEP, found.doubts, line, where), line)
    found.matched += 1


def _state(found: Found, part: Part, summary: Mapping[str, Value], table: Mapping[str, Figure], where: str) -> None:
    """Keep the aggregates of ``summary``, gathered by metric."""
    figures: dict[str, dict[str, float]] = {}
    for spelling, (name, figure) in table.items():
        value = _figure(found, name, summary.get(spelling), f"{where}/{spelling}")
        if value is not None:
            figures.setdefault(name, {})[figure] = value
    for name, stated in figures.items():
        steady = name in _STEADY and part.steady_records is not None
        values = part.steady_records if steady else part.records
        own = "window_of_producer" if "mean" in stated and not steady else None  # all steps or its steady ones, it does not say
        part.metrics[name] = Stated(
            stated, values, "steady" if steady else "all", "global" if name == "tokens_per_s" else None, own
        )


def _figure(found: Found, name: str, value: Value, place: str) -> float | None:
    """Return a figure in base units; an MFU of which nobody can tell whether it is percent is left out."""
    meaning = Meaning("metric", name, "percent" if name == "mfu_ratio" else None)
    number = number_of(value, meaning, found.doubts, None, place)
    if name == "mfu_ratio" and number is not None and 0 < number * 100 <= _MFU_SURE:
        found.doubts.add("ambiguous_unit", None, f"{place}: may be percent or a ratio", str(value))
        return None
    return number


def _surface(found: Found, document: Value) -> None:
    """Keep the machine and the backend; memory in GB, of which nobody says how many bytes it has, is left out."""
    where = "/execution_surface"
    surface = members(document, "execution_surface")
    for key in ("peak_memory_gb", "gpu_mem_gb"):
        if isinstance(surface.get(key), Number) and read_number(str(surface[key])):
            found.doubts.add("ambiguous_unit", None, f"{where}/{key}: GB may be 10**9 or 2**30 bytes", str(surface[key]))
    name = words(surface.get("gpu_type"))
    devices = count(surface.get("gpu_count"), found.doubts, None, f"{where}/gpu_count") or None
    if name or devices:
        found.know("/hardware/accelerators", [{"name": name, "count": devices, "memory_bytes": None}], f"import:{where}")
    backend = words(surface.get("actual_backend"))
    if backend is not None and backend != "unknown":
        posture = {"requested": None, "observed": backend}
        found.know("/execution/attention_backend", posture, f"import:{where}/actual_backend")


def _judge(found: Found, document: Value) -> None:
    """Keep how the run ended, as the receipt says."""
    checks = members(document, "checks")
    for name, spelling in _CHECKS.items():
        value = checks.get(spelling)
        found.checks[name] = value if isinstance(value, bool) else None
    finite = [checks.get(key) for key in ("all_losses_finite", "no_nan_loss")]
    found.checks["finite_losses"] = False if False in finite else True if finite[0] is True else None
    code = whole(at(document, "training", "exit_code"), found.doubts, None, "/training/exit_code")
    if code == -1:
        found.doubts.add("ambiguous_value", None, "/training/exit_code: -1 is also what stands for an unknown exit code")
    elif code is not None and abs(code) < 2**31:
        found.run["exit_code"] = code
    status = (words(at(document, "status")) or "").upper()
    reason = words(at(document, "failure_reason"))
    bad = False in (found.checks["zero_exit_code"], found.checks["no_oom"])
    if status in _BAD and reason is None:
        reason = f"the receipt says {status}"
    if reason is not None or bad:
        found.failed = Failed(reason, _tail(at(document, "log_tail")))
    elif found.checks["zero_exit_code"] or status in _GOOD:
        found.completed = True


def _tail(value: Value) -> list[str]:
    if isinstance(value, list):
        return [line for line in value if isinstance(line, str)]
    return value.splitlines() if isinstance(value, str) else []
