"""Read documents of MegaCpp's public samples: a timed lane, the compilation settings of a run, a goodput summary.

Their keys are from ``gpu_profile_receipt_sample.py``, ``compile_runtime_receipt_sample.py`` and
``goodput_tracker_sample.py`` in DatasunriseOU/site_samples.
"""

from __future__ import annotations

from receipt_cli.definitions.units import read_number
from receipt_cli.importers.field_names import metric
from receipt_cli.importers.json_text import JsonText, Number, Value, at, members
from receipt_cli.importers.model import DeclaredFailure, DeclaredPhase, ForeignRun, single
from receipt_cli.importers.values import Fields

LANE, COMPILATION, GOODPUT = "megacpp-profile-lane", "megacpp-compile-receipt", "megacpp-goodput-summary"
_POSTURE = ("device_type", "compile_enabled", "regional_compile", "dynamic_batch", "use_cuda_graphs", "moe_enabled")
_SHARES = ("checkpoint", "eval", "compilation", "data_loading", "idle")


def recognise_lane(document: Value) -> bool:
    """Return whether ``document`` is a timed lane: elapsed time, rate, and the requested attention kernel."""
    return {"elapsed_s", "tok_per_sec", "dense_fa4_requested"} <= _keys(document)


def recognise_compilation(document: Value) -> bool:
    """Return whether ``document`` has the compilation settings of a run."""
    return "compile_enabled" in _keys(document) and isinstance(at(document, "compile_warmup"), dict)


def recognise_goodput(document: Value) -> bool:
    """Return whether ``document`` is the summary of a goodput tracker."""
    return {"goodput", "wall_time_s", "step_time_s", "step_count", "avg_step_s"} <= _keys(document)


def read_lane(json_text: JsonText, document: Value) -> ForeignRun:
    """Return the run of a timed lane, whose rate excludes warm-up. Memory in GB is ignored: GB is ambiguous."""
    foreign, fields, phase = _begin(LANE, document)
    foreign.run["name"] = fields.words("label")
    phase.records = fields.count("steps") or 0
    rate = fields.number(metric("tokens_per_s"), "tok_per_sec")
    if rate:
        phase.metrics["tokens_per_s"] = single(rate, scope="global", definition="timed_loop_without_warmup")
    phase.training_time_s = fields.seconds("elapsed_s")
    memory = at(document, "peak_mem_gb")
    if isinstance(memory, Number) and read_number(str(memory)):
        foreign.problems.add("ambiguous_unit", None, "/peak_mem_gb: GB may be 10**9 or 2**30 bytes", str(memory))
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
    for name in _POSTURE:
        value = at(document, name)
        foreign.add_fact(f"/flags/{name}", value if isinstance(value, bool | str) else None, f"import:/{name}")
    warm, why = (at(document, "compile_warmup", key) for key in ("enabled", "reason"))
    foreign.add_fact("/flags/compile_warmup", warm if isinstance(warm, bool) else None, "import:/compile_warmup/enabled")
    foreign.add_fact("/flags/compile_warmup_reason", why if isinstance(why, str) else None, "import:/compile_warmup/reason")
    return foreign


def read_goodput(json_text: JsonText, document: Value) -> ForeignRun:
    """Return a run with the values of a goodput tracker as other metrics; a summary has no step records."""
    foreign, fields, phase = _begin(GOODPUT, document)
    phase.records = fields.count("step_count") or 0
    phase.training_time_s = fields.seconds("step_time_s")
    mean = fields.seconds("avg_step_s")
    if mean:
        phase.metrics["step_time_s"] = single(mean, definition="mean_of_the_run")
    for name in ("goodput", "wall_time_s", *_SHARES):
        value = at(document, name)
        number = read_number(str(value)) if isinstance(value, Number) else None
        if number is not None:
            phase.others[name] = single(number)
    return foreign


def _begin(name: str, document: Value) -> tuple[ForeignRun, Fields, DeclaredPhase]:
    foreign = ForeignRun(name, producer="MegaCpp", trainer="megacpp")
    phase = DeclaredPhase()
    foreign.declared.append(phase)
    foreign.matched = 1
    return foreign, Fields(document, foreign.problems), phase


def _keys(document: Value) -> set[str]:
    return set(members(document)) if isinstance(document, dict) else set()
