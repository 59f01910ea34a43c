"""The run summary of cppmega's log comparison: hot steps averaged, the last values, memory, and where its artefacts are."""

from __future__ import annotations

from receipt_cli.importers.field_names import Meaning, metric
from receipt_cli.importers.json_text import JsonText, Value, at
from receipt_cli.importers.model import Found, Part, Stated, single
from receipt_cli.importers.values import count, number_of, words
from receipt_cli.redaction.text import safe_text

FORMAT = "cppmega-run-summary"
_SIGNS = frozenset({"hot_step_avg_ms", "hot_step_count", "final_train_iteration", "final_train_loss"})
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
    """True for one run summary."""
    return isinstance(document, dict) and len(_SIGNS & document.keys()) >= 3


def runs_of(document: Value) -> list[str]:
    """Return the keys under which a comparison holds the summaries of several runs."""
    return [key for key, value in document.items() if recognise(value)] if isinstance(document, dict) else []


def read(json_text: JsonText, document: Value) -> Found:
    """Return what a run summary says of its run."""
    found = Found(FORMAT, producer="cppmega", trainer="megatron-lm")
    part = Part(last=_count(found, document, "final_train_iteration"))
    part.records = 0 if part.last is None else 1
    part.parameter_count = _count(found, document, "param_total_numel")
    steps = _count(found, document, "hot_step_count")
    hot = {
        "step_time_s": ("hot_step_avg_ms", metric("step_time_s", "ms"), None, "mean_of_hot_steps"),
        "tokens_per_s": ("tok_per_sec", metric("tokens_per_s"), "global", "mean_of_step_rates"),
    }
    for name, (key, meaning, scope, definition) in hot.items():
        value = _number(found, document, key, meaning)
        if value is not None:
            part.metrics[name] = Stated({"mean": value}, steps, "steady", scope, definition)
    for key, meaning in _LAST.items():
        value = _number(found, document, key, meaning)
        if value is not None:
            part.metrics[meaning.name] = Stated({"last": value})
    for key, meaning in _MEMORY.items():
        value = _number(found, document, key, meaning)
        if value is not None:
            part.metrics[meaning.name] = single(value, definition=meaning.definition)
    found.parts.append(part)
    _header(found, document)
    _artifacts(found, document)
    found.run["name"] = words(at(document, "label"))
    found.matched = 1
    return found


def _count(found: Found, document: Value, key: str) -> int | None:
    return count(at(document, key), found.doubts, None, f"/{key}")


def _number(found: Found, document: Value, key: str, meaning: Meaning) -> float | None:
    return number_of(at(document, key), meaning, found.doubts, None, f"/{key}")


def _header(found: Found, document: Value) -> None:
    found.know("/model/parameter_count", found.parts[0].parameter_count, "import:/param_total_numel")
    for flag, key in (("sequence_length", "seq_length"), ("tokens_per_step", "tokens_per_step")):
        found.know(f"/flags/{flag}", _count(found, document, key), f"import:/{key}")


def _artifacts(found: Found, document: Value) -> None:
    """Keep where the artefacts are, by reference; what the producer warned of becomes a problem."""
    artifacts, warnings = at(document, "artifacts"), at(document, "warnings")
    for number, artifact in enumerate(artifacts[:_MAX_ARTIFACTS] if isinstance(artifacts, list) else []):
        kind, path = (safe_text(words(at(artifact, key)) or "") for key in ("kind", "path"))
        if not kind or not path:
            continue
        found.attachments.append({"kind": kind, "uri": path, "sha256": None, "size_bytes": None})
        if at(artifact, "exists") is False:
            found.doubts.add("artifact_missing", None, f"/artifacts/{number}: {kind} did not exist when the summary was made")
    for number, warning in enumerate(warnings if isinstance(warnings, list) else []):
        if (said := words(warning)) is not None:
            found.doubts.add("producer_warning", None, f"/warnings/{number}: {said}")
