"""Read the run summary of cppmega's log comparison: means of hot steps, last values, memory, and artefact paths."""

from __future__ import annotations

from receipt_cli.importers.field_names import metric
from receipt_cli.importers.json_text import JsonText, Value, at
from receipt_cli.importers.model import DeclaredPhase, DeclaredStatistic, ForeignRun, last, single
from receipt_cli.importers.values import Fields, words
from receipt_cli.redaction.text import safe_text

FORMAT = "cppmega-run-summary"
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


def recognise(document: Value) -> bool:
    """Return whether ``document`` is one run summary."""
    return isinstance(document, dict) and len(_SIGNS & document.keys()) >= 3


def runs_of(document: Value) -> list[str]:
    """Return the keys of the run summaries in a comparison of several runs."""
    return [key for key, value in document.items() if recognise(value)] if isinstance(document, dict) else []


def read(json_text: JsonText, document: Value) -> ForeignRun:
    """Return the run in a run summary."""
    foreign = ForeignRun(FORMAT, producer="cppmega", trainer="megatron-lm", matched=1)
    fields = Fields(document, foreign.problems)
    phase = DeclaredPhase(last=fields.count("final_train_iteration"))
    phase.records = 0 if phase.last is None else 1
    phase.parameter_count = fields.count("param_total_numel")
    steps = fields.count("hot_step_count")
    for key, meaning in _HOT.items():
        if (value := fields.number(meaning, key)) is not None:
            statistic = DeclaredStatistic({"mean": value}, steps, "steady", meaning.scope, meaning.definition)
            phase.metrics[meaning.name] = statistic
    for key, meaning in _LAST.items():
        if (value := fields.number(meaning, key)) is not None:
            phase.metrics[meaning.name] = last(value)
    for key, meaning in _MEMORY.items():
        if (value := fields.number(meaning, key)) is not None:
            phase.metrics[meaning.name] = single(value, definition=meaning.definition)
    foreign.declared.append(phase)
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
            detail = f"/artifacts/{number}: {kind} did not exist when the summary was made"
            foreign.problems.add("artifact_missing", None, detail)
    for number, warning in enumerate(warnings if isinstance(warnings, list) else []):
        if (message := words(warning)) is not None:
            foreign.problems.add("producer_warning", None, f"/warnings/{number}: {message}")
