"""Read ``trainer_state.json`` of the Hugging Face Trainer: its log history, record by record, like its console lines."""

from __future__ import annotations

from receipt_cli.importers.model import ForeignRun
from receipt_cli.importers.text import JsonText, Value
from receipt_cli.importers.values import IGNORED, STEP, Fields, Names, fact, metric, other, read_record

FORMAT = "hf-trainer-state"
_HISTORY = "log_history"
_SIGNS = frozenset({"global_step", "max_steps", "is_world_process_zero", "num_train_epochs"})
_TRAINERS = ("hf-trainer", "trl", "axolotl", "liger", "optimum-habana")

_TRAINING = Names(
    {
        "step": STEP,
        "loss": metric("loss", definition="mean_since_last_record"),
        "grad_norm": metric("grad_norm", definition="before_clipping"),
        "train_runtime": metric("elapsed_time_s"),
        "num_input_tokens_seen": metric("tokens_total"),
        "completions/mean_length": metric("response_token_count_mean"),
        "step_time": metric("step_time_s"),
        "mean_token_accuracy": metric("train_accuracy"),
        "ppl": metric("perplexity"),
        "tokens_per_second_per_gpu": metric("tokens_per_s_per_device", scope="device"),
        "total_peak_memory_reserved_MB": metric("peak_memory_reserved_bytes", "MiB"),
        "total_peak_memory_allocated_MB": metric("peak_memory_allocated_bytes", "MiB"),
        "max_memory_allocated (GB)": metric("peak_memory_allocated_bytes", "GB"),
        "memory/max_mem_active(gib)": metric("peak_memory_active_bytes", "GiB"),
        "memory/max_allocated (GiB)": metric("peak_memory_allocated_bytes", "GiB"),
        "memory/max_mem_allocated(gib)": metric("peak_memory_allocated_bytes", "GiB"),
    },
    _TRAINERS,
)
_EVALUATION = Names(
    {
        "step": STEP,
        "epoch": IGNORED,
        "total_flos": IGNORED,
        "num_input_tokens_seen": IGNORED,
        "eval_ppl": metric("val_perplexity"),
    },
    _TRAINERS,
)
_END = Names(
    {
        "step": IGNORED,
        "num_input_tokens_seen": IGNORED,
        "train_runtime": fact("training_time_s"),
        "train_loss": other("train_loss"),
        "train_samples_per_second": metric("samples_per_s", scope="global", definition="mean_over_the_run"),
        "train_steps_per_second": metric("steps_per_s", definition="mean_over_the_run"),
    },
    _TRAINERS,
)
_KINDS = {"step": _TRAINING, "eval": _EVALUATION, "end": _END}


def recognise(document: Value) -> bool:
    """Return whether ``document`` has a log history and fields of the loop's state."""
    return isinstance(document, dict) and isinstance(document.get(_HISTORY), list) and bool(_SIGNS & document.keys())


def read(json_text: JsonText, document: Value) -> ForeignRun:
    """Return the run in a trainer state."""
    foreign = ForeignRun(FORMAT, producer="Hugging Face Trainer", trainer="hf-trainer")
    fields = Fields(document, foreign.problems)
    planned = fields.whole("max_steps")
    planned = planned if planned is not None and planned > 0 else None
    for line, where, entry in foreign.objects(json_text.array((_HISTORY,)), f"/{_HISTORY}"):
        kind = _kind(entry)
        values = read_record(entry, _KINDS[kind], foreign.problems, line, where)
        values.planned = planned if kind == "step" else None
        foreign.add_event(kind, values, line)
    reached = fields.whole("global_step")
    if planned is not None and reached is not None and reached >= planned:
        foreign.completed = True
    foreign.add_fact("/software/trainer", foreign.trainer, f"import:/{_HISTORY}")
    foreign.add_fact("/flags/train_batch_size", fields.whole("train_batch_size"), "import:/train_batch_size")
    foreign.run["name"] = fields.words("trial_name")
    return foreign


def _kind(entry: dict[str, Value]) -> str:
    if "loss" in entry:
        return "step"
    if "train_runtime" in entry:
        return "end"
    return "eval" if any(key.startswith("eval_") for key in entry) else "step"
