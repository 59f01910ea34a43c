"""Read Forgather's ``trainer_logs.json``: an array of records, which lacks its end if the run died."""

from __future__ import annotations

import math

from receipt_cli.definitions.units import read_number
from receipt_cli.importers.model import ForeignRun
from receipt_cli.importers.text import JsonText, Number, Record, Value
from receipt_cli.importers.values import IGNORED, STEP, Names, fact, metric, number_in, other, read_record

FORMAT = "forgather-trainer-logs"
_TRAINERS = ("forgather", "hf-trainer")
_MEMORY = "peak_mem_allocated"

_TRAINING = Names(
    {
        "timestamp": IGNORED,
        "global_step": STEP,
        "loss": metric("loss", definition="mean_since_last_record"),
        "grad_norm": metric("grad_norm", definition="rms_since_last_record"),
        "tokens": other("tokens"),
        "tok_per_sec": metric("tokens_per_s", scope="global", definition="interval_rate_meaning_varies"),
        "mfu": metric("mfu_ratio", definition="18n_flops"),
        "peak_mem": IGNORED,  # the same value as peak_mem_allocated
    },
    _TRAINERS,
)
_EVALUATION = Names({"timestamp": IGNORED, "global_step": STEP, "epoch": IGNORED}, _TRAINERS)
_END = Names(
    {
        "timestamp": IGNORED,
        "global_step": IGNORED,
        "step": IGNORED,
        "train_runtime": fact("training_time_s"),
        "train_samples": other("train_samples"),
        "train_loss": other("train_loss"),
        "train_samples_per_second": metric("samples_per_s", scope="global", definition="mean_over_the_run"),
        "train_steps_per_second": metric("steps_per_s", definition="mean_over_the_run"),
        "effective_batch_size": fact("samples_per_step"),
        "tokens_per_second": other("tokens_per_second"),  # all tokens, even before a resume, over this session's time
        "flops_per_second": other("flops_per_second"),
    },
    _TRAINERS,
)
_KINDS = {"step": _TRAINING, "eval": _EVALUATION, "end": _END}


def recognise(records: list[Record]) -> bool:
    """Return whether the first records have a step and a time, as Forgather's do."""
    entries = [record.value for record in records[:8]]
    return bool(entries) and all(isinstance(e, dict) and {"global_step", "timestamp"} <= e.keys() for e in entries)


def read(json_text: JsonText) -> ForeignRun:
    """Return the run in the array; a truncated array is read as far as possible."""
    foreign = ForeignRun(FORMAT, producer="Forgather", trainer="forgather")
    array = json_text.open_array()
    for line, where, record in foreign.objects(array.records, ""):
        _add(foreign, line, where, record)
    for line, reason in array.broken:
        foreign.problems.add("array_repaired", line, reason)
    foreign.unmatched += array.lost
    if not array.closed:
        foreign.cut = "the array of records is not closed: the run ended before its end was written, or goes on"
    if array.records:
        foreign.add_fact("/software/trainer", foreign.trainer, "import:/0")
    return foreign


def _add(foreign: ForeignRun, line: int, where: str, record: dict[str, Value]) -> None:
    sizes, seconds = record.get(_MEMORY), number_in(record.get("timestamp"))
    if isinstance(sizes, list):  # one for each rank
        record = {**record, _MEMORY: _largest(sizes)}
    kind = "end" if "train_runtime" in record else "eval" if "eval_loss" in record and "loss" not in record else "step"
    values = read_record(record, _KINDS[kind], foreign.problems, line, where)
    foreign.add_event(kind, values, line, clock=math.nan if seconds is None else seconds)


def _largest(sizes: list[Value]) -> Value:
    """Return the largest number in a list, as printed; None unless all are numbers."""
    numbers = [(read_number(size), size) for size in sizes if isinstance(size, Number)]
    known = [(number, size) for number, size in numbers if number is not None]
    return max(known, key=lambda pair: pair[0])[1] if known and len(known) == len(sizes) else None
