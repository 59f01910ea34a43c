"""Counters wrap, epochs begin again, folds repeat, launches restart, and a counter may jump: each is told, none is made up."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.events.counters import comes_again, count_displaced, full_at_zero, jumps_at_end
from tests.tools.logs import line, receipt_of

Document = dict[str, Any]


def kinds(document: Document) -> set[str]:
    return {problem["kind"] for problem in document["derivation"]["problems"]["first"]}


@settings(max_examples=200)
@given(st.integers(3, 40), st.integers(1, 500), st.integers(0, 10**6), st.integers(1, 30), st.data())
def test_only_what_goes_on_where_it_was_is_a_block(count: int, stride: int, first: int, size: int, data: st.DataObject) -> None:
    before = [first + n * stride for n in range(count)]
    follows = [before[-1] + n * stride for n in range(1, 40)]
    behind = data.draw(st.integers(0, count - 1))
    resumed = [before[behind] + n * stride for n in range(40)]
    assert count_displaced(before, follows) == 0
    assert count_displaced(before, resumed) == 0  # a restart goes through where it was
    pasted = [first + n * stride for n in range(min(size, count - 1))]
    assert count_displaced(before, [*pasted, *follows]) == len(pasted)
    far = data.draw(st.integers(1, 3))
    jumps = [before[-1] + 100 * stride * count + n for n in range(far)]
    assert count_displaced(before, [*jumps, *follows[far:]]) == far
    assert count_displaced([first] * count, [first + far, first, first + far]) == 0  # no stride is known


@settings(max_examples=100)
@given(st.integers(4, 60), st.integers(1, 500), st.integers(11, 10**4))
def test_a_last_counter_beyond_the_stride(count: int, stride: int, strides: int) -> None:
    steps = [n * stride for n in range(count)]
    last = steps[-1] + strides * stride
    assert not jumps_at_end(steps)
    assert jumps_at_end([*steps, last])
    assert not jumps_at_end([*steps, last], last)


def zeros(places: list[tuple[int, int]]) -> list[int]:
    epochs, insides = np.array(places, np.float64).T
    return full_at_zero(epochs, insides).tolist()


@settings(max_examples=100)
@given(st.integers(2, 6), st.integers(2, 20))
def test_a_counter_modulo_the_length(epochs: int, records: int) -> None:
    wrapped = [(epoch, n % records) for epoch in range(epochs) for n in range(1, records + 1)]
    assert zeros(wrapped) == [at for at, (_, n) in enumerate(wrapped) if n == 0]
    assert zeros([(epoch, n) for epoch in range(epochs) for n in range(records)]) == []
    assert zeros([*wrapped, *wrapped[:-1]]) == [] or wrapped[-1][1] == 0


@settings(max_examples=100)
@given(st.integers(6, 60), st.sampled_from([0.004, 0.25, 1.0]))
def test_an_epoch_comes_again(count: int, stride: float) -> None:
    places = [round(n * stride, 2) for n in range(1, count + 1)]
    twice = [place for place in places for _ in range(2)]
    assert not len(comes_again(np.array(places)))
    assert bool(len(comes_again(np.array(twice)))) == (stride != 0.004)


@settings(max_examples=20)
@given(st.sampled_from([8, 30, 200]), st.sampled_from([1, 10, 500]), st.data())
def test_a_jump_is_named_and_restarts_nothing(length: int, stride: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(4, length - 1))
    lines = [line(n * stride, 4 - n / length) for n in range(length)]
    lines[at] = line(at * stride + 20_000 * stride, 4 - at / length)
    document = receipt_of(lines)
    assert "step_jump" in kinds(document)
    steps = document["summary"]["steps"]
    assert steps["restart_count"] == 0
    assert steps["last"] == (None if at == length - 1 else (length - 1) * stride)


@settings(max_examples=6)
@given(st.integers(4, 5), st.integers(8, 12))
def test_modulo_records_all_count(epochs: int, records: int) -> None:
    lines = [
        f"Epoch: {epoch}/{epochs}, iter: {10 * n % (10 * records)}/{10 * records} lr: 0.1 loss: {3 - epoch / 50 - n / 500:.4f}"
        for epoch in range(1, epochs + 1)
        for n in range(1, records + 1)
    ]
    document = receipt_of(lines)
    steps = document["summary"]["steps"]
    assert (steps["record_count"], steps["restart_count"]) == (epochs * records, 0)
    assert document["checks"]["steps_monotonic"] is True


@settings(max_examples=15)
@given(st.lists(st.integers(2, 5), min_size=2, max_size=4))
def test_launches_without_steps_are_not_added_up(launches: list[int]) -> None:
    lines = [
        f"Epoch[{epoch}] Batch [{batch}]\tSpeed: {30 + number}.00 samples/sec\tTrain-Acc=0.7{epoch}{number}"
        for number, epochs in enumerate(launches)
        for epoch in range(epochs)
        for batch in (20, 40)
    ]
    document = receipt_of(lines)
    count = document["summary"]["steps"]["record_count"]
    told = document["derivation"].get("launches", {"count": 1})["count"] + document["summary"]["steps"]["restart_count"]
    assert count is None or (count < len(lines) and told == len(launches))


@pytest.mark.parametrize("word", ["fold_{}", "Fold {}", "seed={}", "trial-{}"])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_named_folds_are_runs(word: str, count: int) -> None:
    lines = [
        f"[{word.format(fold)}] epoch {epoch}/4 step {step}/5 loss {4 - fold / 8 - epoch / 2 - step / 100:.4f}"
        for fold in range(count)
        for epoch in range(1, 5)
        for step in range(1, 6)
    ]
    document = receipt_of(lines)
    last = document["summary"]["metrics"]["loss"]["last"]
    assert last in (None, round(4 - (count - 1) / 8 - 2 - 5 / 100, 4))
    assert document["summary"]["steps"]["restart_count"] in (0, None)


def test_a_step_that_comes_again_while_the_loss_scale_halves() -> None:
    scales = [2.0**32, 2.0**31, 2.0**30, 2.0**29, 2.0**28, 2.0**28, 2.0**28, 2.0**28]
    lines = [
        f"DLL 2024-05-01 10:0{n}:00.000000 - Iteration: {max(1, n - 2)}  loss : {11.1 - n / 100:.4f}  loss_scaler : {scale:.0f} "
        for n, scale in enumerate(scales)
    ]
    document = receipt_of(lines)
    assert document["summary"]["steps"]["restart_count"] == 0
    assert document["summary"]["metrics"]["loss"]["first"] in (None, 11.1)
    assert "step_printed_twice" in kinds(document)


@settings(max_examples=15)
@given(st.sampled_from([10, 40, 200]), st.sampled_from([1, 10]))
def test_a_counter_that_begins_again_is_told(length: int, stride: int) -> None:
    steps = [n * stride for n in range(length)] * 2
    assert any(after < before for before, after in pairwise(steps))
    document = receipt_of([line(step, 4 - n / length / 3) for n, step in enumerate(steps)])
    told = document["derivation"].get("launches", {"count": 1})["count"] > 1
    assert told or document["summary"]["steps"]["restart_count"] or kinds(document)


@pytest.mark.parametrize("first", [0, 1])
def test_an_attempt_behind_one_record_may_be_another_launch(first: int) -> None:
    shown = [f"Train Epoch: 1 [{64 * n}/640 ({10 * n}%)]\tLoss: {2.3 - n / 5:.6f}" for n in range(10)]
    again = [f"Train Epoch: 1 [{64 * n}/640 ({10 * n}%)]\tLoss: {2.25 - n / 5:.6f}" for n in range(first, 10)]
    document = receipt_of([*shown, "", "time: 39.4", *again])
    assert document["summary"]["steps"]["record_count"] == 10
    assert document["summary"]["metrics"]["loss"]["first"] == (None if first else 2.25)
    assert "launch_doubtful" in kinds(document)


@settings(max_examples=15)
@given(st.integers(8, 40), st.integers(1, 40), st.sampled_from([1, 10]), st.sampled_from([0.25, 1.5]))
def test_a_start_through_all_steps_before_it_has_figures_of_its_own(count: int, more: int, stride: int, apart: float) -> None:
    before = [line(n * stride, 4 - n / 200) for n in range(count)]
    anew = [line(n * stride, 4 - apart - n / 200) for n in range(count + more)]
    alone, both = receipt_of(anew), receipt_of([*before, *anew])
    ours, theirs = (document["summary"]["metrics"]["loss"] for document in (both, alone))
    assert {**ours, "places": None} == {**theirs, "places": None}
    assert "launch_doubtful" not in kinds(both)


@settings(max_examples=20)
@given(st.integers(2, 4), st.integers(6, 20), st.integers(1, 63), st.integers(1, 3))
def test_a_smaller_last_batch_restarts_nothing(epochs: int, batches: int, last: int, every: int) -> None:
    samples = 64 * (batches * every) + last  # the last batch is printed with its number times its own size
    lines = [
        f"Train Epoch: {epoch} [{number * size}/{samples} ({6400 * number / samples:.0f}%)]\tLoss: {2.5 / epoch:.5f}{number}"
        for epoch in range(1, epochs + 1)
        for number in range(0, batches * every + 1, every)
        for size in (last if number == batches * every else 64,)
    ]
    steps = receipt_of("\n".join(lines) + "\n")["summary"]["steps"]
    assert (steps["record_count"], steps["restart_count"]) == (epochs * (batches + 1), 0)


@pytest.mark.parametrize("back", [0, 64 * 10, 64 * 30])
def test_samples_that_go_back_within_an_epoch_are_a_restart(back: int) -> None:
    counts = [*range(0, 64 * 50, 64 * 10), *range(back, 64 * 60, 64 * 10)]
    lines = [f"Train Epoch: 1 [{n}/3840 ({n / 38.4:.0f}%)]\tLoss: 2.{at:06}" for at, n in enumerate(counts)]
    lines += [f"Train Epoch: 2 [{n}/3840 ({n / 38.4:.0f}%)]\tLoss: 1.{n:06}" for n in range(0, 3840, 640)]
    assert receipt_of("\n".join(lines) + "\n")["summary"]["steps"]["restart_count"] == 1


@pytest.mark.parametrize("figures", [0, 1])
def test_a_counter_without_a_figure_is_no_step_and_names_no_trainer(figures: int) -> None:
    lines = [row for step in range(40) for row in (f"step: {step}", *[f"loss: {4 - step / 50:.3f}", "LR: 0.0003"] * figures)]
    document = receipt_of(lines)
    trainer, has_steps = document["header"]["software"]["trainer"], document["checks"]["has_steps"]
    assert (trainer, has_steps) == (("fms", True) if figures else (None, None))


def test_a_total_that_its_counter_exceeds_is_no_length_of_an_epoch() -> None:
    counts = [(epoch, n) for epoch, count in ((0, 150), (1, 70)) for n in range(count)]
    lines = [f"epoch={epoch} i={n}/50 loss={4 - epoch - n / 999:.4f}" for epoch, n in counts]
    summary = receipt_of(lines)["summary"]
    assert [summary["steps"][key] for key in ("first", "last", "record_count", "restart_count")] == [None, None, 220, 0]
    assert (summary["metrics"]["loss"]["last"], summary["metrics"]["loss"]["max"]) == (2.9309, 4.0)
