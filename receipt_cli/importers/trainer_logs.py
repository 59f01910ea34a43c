"""Read the records that a trainer keeps in a JSON file: those of the Hugging Face Trainer and of Forgather.

``trainer_state.json`` has them as its log history; ``trainer_logs.json`` is an array of them, without its end if the run died.
"""

from __future__ import annotations

import math

from receipt_cli.definitions.units import read_number
from receipt_cli.importers.model import ForeignRun
from receipt_cli.importers.text import JsonText, Number, Record, Value
from receipt_cli.importers.values import IGNORED, STEP, Fields, Names, fact, metric, number_in, other, read_record

HUGGING_FACE, FORGATHER = "hf-trainer-state", "forgather-trainer-logs"
_HISTORY, _MEMORY = "log_history", "peak_mem_allocated"
_SIGNS = frozenset({"global_step", "max_steps", "is_world_process_zero", "num_train_epochs"})
_AT_THE_END = {
    "step": IGNORED,
    "train_runtime": fact("training_time_s"),
    "train_loss": other("train_loss"),
    "train_samples_per_second": metric("samples_per_s", scope="global", definition="mean_over_the_run"),
    "train_steps_per_second": metric("steps_per_s", definition="mean_over_the_run"),
}
_OF_HUGGING_FACE = {
    "step": {
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
    "eval": {
        "step": STEP,
        "epoch": IGNORED,
        "total_flos": IGNORED,
        "num_input_tokens_seen": IGNORED,
        "eval_ppl": metric("val_perplexity"),
    },
    "end": {**_AT_THE_END, "num_input_tokens_seen": IGNORED},
}
_OF_FORGATHER = {
    "step": {
        "timestamp": IGNORED,
        "global_step": STEP,
        "loss": metric("loss", definition="mean_since_last_record"),
        "grad_norm": metric("grad_norm", definition="rms_since_last_record"),
        "tokens": other("tokens"),
        "tok_per_sec": metric("tokens_per_s", scope="global", definition="interval_rate_meaning_varies"),
        "mfu": metric("mfu_ratio", definition="18n_flops"),
        "peak_mem": IGNORED,  # the same value as peak_mem_allocated
    },
    "eval": {"timestamp": IGNORED, "global_step": STEP, "epoch": IGNORED},
    "end": {
        **_AT_THE_END,
        "timestamp": IGNORED,
        "global_step": IGNORED,
        "train_samples": other("train_samples"),
        "effective_batch_size": fact("samples_per_step"),
        "tokens_per_second": other("tokens_per_second"),  # all tokens, even before a resume, over this session's time
        "flops_per_second": other("flops_per_second"),
    },
}
_TRAINERS = ("hf-trainer", "trl", "axolotl", "liger", "optimum-habana")
_NAMES = {
    HUGGING_FACE: {kind: Names(table, _TRAINERS) for kind, table in _OF_HUGGING_FACE.items()},
    FORGATHER: {kind: Names(table, ("forgather", "hf-trainer")) for kind, table in _OF_FORGATHER.items()},
}
"""The meaning of names by format and kind of record."""


def is_state(document: Value) -> bool:
    """Return whether ``document`` has a log history and fields of the Hugging Face Trainer's loop."""
    return isinstance(document, dict) and isinstance(document.get(_HISTORY), list) and bool(_SIGNS & document.keys())


def read_state(json_text: JsonText, document: Value) -> ForeignRun:
    """Return the run in a state of the Hugging Face Trainer."""
    foreign = ForeignRun(HUGGING_FACE, producer="Hugging Face Trainer", trainer="hf-trainer")
    fields = Fields(document, foreign.problems)
    planned = fields.whole("max_steps")
    planned = planned if planned is not None and planned > 0 else None
    for line, where, entry in foreign.objects(json_text.array((_HISTORY,)), f"/{_HISTORY}"):
        _add(foreign, line, where, entry, planned=planned)
    reached = fields.whole("global_step")
    if planned is not None and reached is not None and reached >= planned:
        foreign.completed = True
    foreign.add_fact("/software/trainer", foreign.trainer, f"import:/{_HISTORY}")
    foreign.add_fact("/flags/train_batch_size", fields.whole("train_batch_size"), "import:/train_batch_size")
    foreign.run["name"] = fields.words("trial_name")
    return foreign


def is_array(records: list[Record]) -> bool:
    """Return whether the first records have a step and a time, as Forgather's do."""
    entries = [record.value for record in records[:8]]
    return bool(entries) and all(isinstance(e, dict) and {"global_step", "timestamp"} <= e.keys() for e in entries)


def read_array(json_text: JsonText) -> ForeignRun:
    """Return the run in Forgather's array; a truncated array is read as far as possible."""
    foreign = ForeignRun(FORGATHER, producer="Forgather", trainer="forgather")
    array = json_text.open_array()
    for line, where, record in foreign.objects(array.records, ""):
        sizes, seconds = record.get(_MEMORY), number_in(record.get("timestamp"))
        if isinstance(sizes, list):  # one for each rank
            record = {**record, _MEMORY: _largest(sizes)}
        _add(foreign, line, where, record, clock=math.nan if seconds is None else seconds)
    for line, reason in array.broken:
        foreign.problems.add("array_repaired", line, reason)
    foreign.unmatched += array.lost
    if not array.closed:
        foreign.cut = "the array of records is not closed: the run ended before its end was written, or goes on"
    if array.records:
        foreign.add_fact("/software/trainer", foreign.trainer, "import:/0")
    return foreign


def _add(
    foreign: ForeignRun, line: int, where: str, record: dict[str, Value], *, planned: int | None = None, clock: float = math.nan
) -> None:
    """Add a record: a step, an evaluation, or the totals at the end."""
    kind = "step"
    if "loss" not in record:
        kind = "end" if "train_runtime" in record else "eval" if any(key.startswith("eval_") for key in record) else "step"
    values = read_record(record, _NAMES[foreign.format][kind], foreign.problems, line, where)
    values.planned = planned if kind == "step" else None
    foreign.add_event(kind, values, line, clock=clock)


def _largest(sizes: list[Value]) -> Value:
    """Return the largest number in a list, as printed; None unless all are numbers."""
    numbers = [(read_number(size), size) for size in sizes if isinstance(size, Number)]
    known = [(number, size) for number, size in numbers if number is not None]
    return max(known, key=lambda pair: pair[0])[1] if known and len(known) == len(sizes) else None
