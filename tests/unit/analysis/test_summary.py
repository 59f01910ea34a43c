"""Step records → the summary: steady/1, windows, batches, parameter counts, reported beside derived."""

import math
from collections.abc import Iterable

import pytest

from tests.tools.logs import receipt_of, toy_receipt

NANOCHAT = (
    "step {n:05d}/00100 ({n}.00%) | loss: 3.0 | lrm: 1.00 | dt: 500.00ms | tok/sec: {rate:,} | mfu: 40.00 | total time: 0.02m\n"
)
MEGATRON = (
    " iteration {n:8d}/     100 | consumed samples: {n:12d} | elapsed time per iteration (ms): {ms} | learning rate: 1.0E-05 |"
    " global batch size: {batch:5d} | lm loss: 9.0E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)


def steps(numbers: Iterable[int], **values: str) -> str:
    cells = "".join(f" | {name}={value}" for name, value in {"loss": "2.5", "time": "0.5", **values}.items())
    return "".join(f"toy step {n}{cells}\n" for n in numbers)


@pytest.mark.parametrize(
    ("n", "warmup"), [(1, 0), (2, 0), (3, 1), (9, 1), (10, 1), (19, 1), (20, 2), (99, 9), (100, 10), (101, 10), (1000, 10)]
)
def test_the_warm_up_of_n_records(n: int, warmup: int) -> None:
    state = toy_receipt(steps(range(n)))["summary"]["steady_state"]
    assert state == {"rule": "steady/1", "record_count": n - warmup, "excluded_warmup": warmup, "excluded_implausible": 0}


def test_the_warm_up_is_left_out_of_times_and_not_of_losses() -> None:
    log = "".join(f"toy step {n} | loss={9 - n} | time={9 if n == 0 else 1}\n" for n in range(5))
    metrics = toy_receipt(log)["summary"]["metrics"]
    assert (metrics["loss"]["window"], metrics["loss"]["record_count"], metrics["loss"]["max"]) == ("all", 5, 9)
    time = metrics["step_time_s"]
    assert (time["window"], time["record_count"], time["max"], time["mean"]) == ("steady", 4, 1.0, 1.0)
    assert (time["first"], time["last"]) == (9.0, 1.0)  # as printed, whatever the window


def test_every_attempt_warms_up() -> None:
    state = toy_receipt(steps(range(20)) + steps(range(10, 30)))["summary"]["steady_state"]
    assert (state["record_count"], state["excluded_warmup"]) == (27, 1 + 2)  # 10 and 20 records stand


def test_an_mfu_above_one_excludes_itself_alone() -> None:
    log = steps(range(5), mfu="0.4") + steps([5], mfu="1.2", time="0.4") + steps([6], mfu="1.0")
    document = toy_receipt(log)
    assert document["summary"]["steady_state"]["excluded_implausible"] == 0
    mfu = document["summary"]["metrics"]["mfu_ratio"]
    assert (mfu["record_count"], mfu["max"], mfu["first"], mfu["last"]) == (5, 1.0, 0.4, 1.0)
    assert document["summary"]["metrics"]["step_time_s"]["min"] == 0.4  # the rest of the record stands
    every = toy_receipt(steps(range(10), mfu="17.9"))
    assert every["summary"]["metrics"]["mfu_ratio"]["median"] is None and every["checks"]["mfu_plausible"] is False
    assert every["summary"]["metrics"]["step_time_s"]["record_count"] == 9


@pytest.mark.parametrize(("seconds", "implausible"), [("0.004", 1), ("0.005", 0), ("50.0", 0)])
def test_a_step_time_under_a_hundredth_of_the_median_is_implausible(seconds: str, implausible: int) -> None:
    document = toy_receipt(steps(range(10)) + steps([10], time=seconds))
    assert document["summary"]["steady_state"]["excluded_implausible"] == implausible
    assert document["summary"]["metrics"]["step_time_s"]["last"] == float(seconds)
    assert document["summary"]["metrics"]["loss"]["record_count"] == 11


def test_a_printed_total_is_the_parameter_count() -> None:
    summary = toy_receipt("toy model 1234567\n" + steps(range(3)) + "toy done in 12.5 s\n")["summary"]
    assert (summary["parameter_count"], summary["training_time_s"]) == (1234567, 12.5)


def test_nothing_is_said_where_nothing_was_printed() -> None:
    summary = toy_receipt(steps(range(3)))["summary"]
    assert (summary["parameter_count"], summary["training_time_s"], summary["steps"]["planned"]) == (None, None, None)
    assert summary["derived"] == {} and summary["consistency"] == []


def shard(tensor: int, pipeline: int, count: int) -> str:
    return f" > number of parameters on (tensor, pipeline) model parallel rank ({tensor}, {pipeline}): {count}\n"


def world(tensor: int, pipeline: int) -> str:
    return f"  tensor_model_parallel_size ..... {tensor}\n  pipeline_model_parallel_size .... {pipeline}\n"


@pytest.mark.parametrize(
    ("head", "count"),
    [
        (world(1, 1) + shard(0, 0, 123456789), 123456789),
        (world(2, 1) + shard(0, 0, 500) + shard(1, 0, 500), None),  # norms stand on both: the sum is not the model
        (world(2, 1) + shard(0, 0, 500), None),
        (shard(0, 0, 123456789), None),  # how many shards there are is not known
        (world(2, 1) + shard(0, 0, 500) + " Total number of parameters in billions: 7.25\n", 7_250_000_000),
    ],
)
def test_shards_are_a_parameter_count_only_where_they_add_up(head: str, count: int | None) -> None:
    log = head + "".join(MEGATRON.format(n=n, ms="500.0", batch=8) for n in range(1, 5))
    assert receipt_of(log)["summary"]["parameter_count"] == count


def test_tokens_per_s_from_batch_and_step_time() -> None:
    summary = toy_receipt("toy batch 8 x 1024\n" + steps(range(10), tps="16384"))["summary"]
    derived = summary["derived"]["tokens_per_s"]
    assert (derived["median"], derived["record_count"], derived["window"]) == (16384.0, 9, "steady")
    assert derived["inputs"] == {"tokens_per_step": 8192.0}
    assert derived["id"] == summary["metrics"]["tokens_per_s"]["id"]
    assert summary["consistency"] == [
        {"metric": "tokens_per_s", "reported": 16384.0, "derived": 16384.0, "ratio": 1.0, "consistent": True}
    ]


@pytest.mark.parametrize(("reported", "consistent"), [("16500", True), ("8192", False), ("32768", False)])
def test_a_reported_rate_that_is_off_is_said_and_kept(reported: str, consistent: bool) -> None:
    document = toy_receipt("toy batch 8 x 1024\n" + steps(range(10), tps=reported))
    assert document["summary"]["metrics"]["tokens_per_s"]["median"] == float(reported)
    assert document["summary"]["consistency"][0]["ratio"] == float(reported) / 16384
    assert document["checks"]["throughput_consistent"] is consistent


def test_the_first_nanochat_divides_by_the_gradient_accumulation() -> None:
    head = "Total batch size 524,288 => gradient accumulation steps: 4\n"
    document = receipt_of(head + "".join(NANOCHAT.format(n=n, rate=524288 * 2 // 4) for n in range(20)))
    assert document["derivation"]["grammars"][0]["version"] == 1
    assert document["derivation"]["grammars"][0]["chosen_by"] == "evidence"
    [comparison] = document["summary"]["consistency"]
    assert comparison == {
        "metric": "tokens_per_s", "reported": 262144.0, "derived": 1048576.0, "ratio": 0.25, "consistent": False
    }  # fmt: skip


def test_the_next_nanochat_does_not() -> None:
    head = "Total batch size 524,288 => gradient accumulation steps: 4\n"
    document = receipt_of(head + "".join(NANOCHAT.format(n=n, rate=1048576) for n in range(20)))
    assert document["derivation"]["grammars"][0]["version"] > 1
    assert document["summary"]["consistency"][0]["consistent"] is True


def test_batches_that_ramp_up_are_each_steps_own() -> None:
    sizes = [16, 16, 32, 32, 64, 64]
    head = "  seq_length ...................................... 2048\n  global_batch_size ............... 64\n"
    log = head + "".join(MEGATRON.format(n=n + 1, ms="1000.0", batch=size) for n, size in enumerate(sizes))
    derived = receipt_of(log)["summary"]["derived"]["tokens_per_s"]
    assert (derived["first"], derived["last"]) == (16 * 2048, 64 * 2048)
    assert derived["mean"] == math.fsum(size * 2048 for size in sizes[1:]) / 5
    assert derived["inputs"] == {"sequence_length": 2048.0}


@pytest.mark.parametrize(("rate", "last"), [("0.0000", None), ("0.0", 0.0), ("0", 0.0), ("0.0001", 0.0001)])
def test_a_learning_rate_of_which_all_decimals_are_0_is_left_out(rate: str, last: float | None) -> None:
    document = receipt_of("".join(f"epoch {n} averaged: lr: {rate}  loss: {3 / n:.4f}\n" for n in range(1, 9)))
    found = document["summary"]["metrics"].get("learning_rate")
    assert (found and found["last"], document["derivation"]["problems"]["kinds"].get("rounded_to_zero", 0)) == (
        last,
        last is None,
    )


def test_metrics_outside_the_registry_keep_their_printed_name() -> None:
    summary = toy_receipt("".join(f"toy step {n} | loss=1 | rewards/margins={n}\n" for n in range(4)))["summary"]
    found = summary["other_metrics"]["rewards/margins"]
    assert (found["record_count"], found["mean"], found["last"]) == (4, 1.5, 3.0)
    assert "rewards/margins" not in summary["metrics"]


def test_evaluations_stand_in_the_same_map() -> None:
    metrics = toy_receipt(steps(range(3)) + "toy eval 2: 3.5\n" + steps(range(3, 6)) + "toy eval 5: 2.5\n")["summary"]["metrics"]
    val = metrics["val_loss"]
    assert (val["record_count"], val["first"], val["last"], val["window"]) == (2, 3.5, 2.5, "all")


BARE = r"""
grammar: bare
version: 1
title: Any text may be a number
trainer: bare
rules:
  train:
    event: step
    literal: 'bare step '
    pattern: 'bare step (?P<step>\d++): (?P<loss>\S++) (?P<step_time_s>\S++) (?P<tokens_per_s>\S++) (?P<global_batch_size>\S++)'
    fields:
      step: {type: integer}
      loss: {type: number}
      step_time_s: {type: number}
      tokens_per_s: {type: number}
      global_batch_size: {type: number}
  model:
    event: header
    literal: 'bare model '
    pattern: 'bare model (?P<parameter_count>\S++) (?P<samples_per_step>\S++) (?P<sequence_length>\S++)'
    fields: {parameter_count: {type: number}, samples_per_step: {type: number}, sequence_length: {type: number}}
"""
WILD = ["nan", "inf", "-inf", "-1", "0", "1e308", "1e-320", "1e400", "1"]


@pytest.mark.parametrize("head", [f"{a} {b} {a}" for a in WILD for b in ("inf", "1e308", "8")])
def test_a_number_beyond_all_sense_is_left_out(head: str) -> None:
    columns = zip(WILD, reversed(WILD), WILD[3:] + WILD[:3], strict=True)
    rows = [f"bare step {n}: {v} {w} {v} {u}\n" for n, (v, w, u) in enumerate(columns)]
    document = receipt_of(f"bare model {head}\n" + "".join(rows) * 2, BARE)  # valid, or it would not be made
    count = document["summary"]["parameter_count"]
    assert count is None or count == int(float(head.split()[0]))
    for part in (document["summary"]["metrics"], document["summary"]["derived"]):
        assert all(math.isfinite(v) for s in part.values() for v in s.values() if isinstance(v, float))


def test_a_step_that_a_float_cannot_hold_is_no_step() -> None:
    document = receipt_of("bare step 99999999999999999999999: 2.5 1 1 1\n", BARE)
    assert (document["summary"]["steps"]["record_count"], document["summary"]["steps"]["first"]) == (1, None)
    assert document["derivation"]["problems"]["first"][0]["kind"] == "unreadable_value"
