"""One position has one value: what depends on the choice between two is null and named, and all else is read."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.logs import learned_of, line, receipt_of

FOREIGN = 77.5
STATISTICS = ("first", "last", "min", "max", "mean", "median")
Document = dict[str, Any]


def printed(losses: list[float], epochs: list[str]) -> list[str]:
    tail = "'grad_norm': 1.5, 'learning_rate': 1e-05"
    return [f"{{'loss': {loss:.4f}, {tail}, 'epoch': {epoch}}}" for loss, epoch in zip(losses, epochs, strict=True)]


def told(document: Document, kind: str) -> list[Document]:
    return [problem for problem in document["derivation"]["problems"]["first"] if problem["kind"] == kind]


def assert_only_nulls(plain: Document, document: Document) -> None:
    """Assert that no figure of the loss is another one, and that each null is named."""
    before, after = plain["summary"]["metrics"]["loss"], document["summary"]["metrics"]["loss"]
    fields = [field for problem in document["derivation"]["problems"]["first"] for field in problem["fields"]]
    for name in STATISTICS:
        assert after[name] == before[name] or (after[name] is None and f"/phases/0/summary/metrics/loss/{name}" in fields), name


lengths, strides = st.sampled_from([8, 9, 30, 150, 400]), st.sampled_from([1, 10, 250])


@settings(max_examples=16)
@given(lengths, strides, st.data())
def test_a_record_that_comes_again_with_another_loss(length: int, stride: int, data: st.DataObject) -> None:
    at, count = data.draw(st.integers(0, length - 1)), data.draw(st.integers(1, 3))
    before = data.draw(st.booleans())
    lines = [line(n * stride, 4 - n / length) for n in range(length)]
    plain = receipt_of(lines)
    place = at if before else at + 1
    document = receipt_of([*lines[:place], *[line(at * stride, FOREIGN + n) for n in range(count)], *lines[place:]])
    [problem] = told(document, "step_printed_twice")
    assert len(problem["lines"]) == min(4, 2 * count)
    assert f"{FOREIGN}" in problem["values"]
    steps, wanted = document["summary"]["steps"], plain["summary"]["steps"]
    assert [steps[k] for k in ("first", "last", "restart_count")] == [wanted[k] for k in ("first", "last", "restart_count")]
    assert steps["record_count"] == wanted["record_count"]
    assert_only_nulls(plain, document)
    loss = document["summary"]["metrics"]["loss"]
    assert loss["max"] is None
    assert (loss["first"] is None) == (at == 0)
    assert (loss["last"] is None) == (at == length - 1)


BATCHES = {
    "script": "epoch {epoch} batch {batch} loss: {loss:.4f} lr: 0.001",
    "ijepa": "INFO:root:[{epoch},  {batch:4d}] loss: {loss:.3f} masks: 93.6 30.0 [wd: 4.00e-02] [lr: 2.00e-04] [mem: 1.21e+04]"
    " (514.1 ms)",
    "wenet": "2025-05-06 11:00:03,503 DEBUG TRAIN Batch {epoch}/{batch} loss {loss:.6f} loss_att 1.5 lr 0.00000400 rank 0",
}


@pytest.mark.parametrize("form", BATCHES)
@settings(max_examples=8)
@given(data=st.data())
def test_a_place_inside_an_epoch_that_comes_again_with_another_loss(form: str, data: st.DataObject) -> None:
    """Of records without a step the epoch and the count inside of it are the position."""
    epochs = data.draw(st.integers(2, 5))
    places = [(epoch, 10 * batch) for epoch in range(1, epochs + 1) for batch in range(1, 6)]
    lines = [BATCHES[form].format(epoch=e, batch=b, loss=4 - n / 50) for n, (e, b) in enumerate(places)]
    at = data.draw(st.integers(0, len(places) - 1))
    other = BATCHES[form].format(epoch=places[at][0], batch=places[at][1], loss=FOREIGN)
    place = at + data.draw(st.integers(0, 1))
    plain, document = receipt_of(lines), receipt_of([*lines[:place], other, *lines[place:]])
    fields = [field for problem in document["derivation"]["problems"]["first"] for field in problem["fields"]]
    count = document["summary"]["steps"]["record_count"]
    assert count == len(places) or (count is None and "/phases/0/summary/steps/record_count" in fields)
    assert_only_nulls(plain, document)
    assert document["summary"]["metrics"]["loss"]["max"] != FOREIGN


@settings(max_examples=8)
@given(lengths, strides)
def test_a_second_series_leaves_nothing(length: int, stride: int) -> None:
    lines = [text for n in range(length) for text in (line(n * stride, 4 - n / length), line(n * stride, FOREIGN))]
    document = receipt_of(lines)
    assert document["summary"]["steps"]["record_count"] == length
    assert all(document["summary"]["metrics"]["loss"][name] is None for name in STATISTICS)
    assert told(document, "step_printed_twice")


@pytest.mark.parametrize("launches", [[(0, 9)], [(0, 9), (0, 3)], [(0, 1), (0, 1)], [(0, 9), (4, 8), (0, 1), (0, 1)]])
@pytest.mark.parametrize("names", [("Acc", "ObjectAcc", "SmoothL1"), ("Acc", "SmoothL1")])
def test_lines_with_other_figures_of_one_place_are_one_record(launches: list[tuple[int, int]], names: tuple[str, ...]) -> None:
    lines = []
    for turn, (begin, end) in enumerate(launches):
        lines += [f"start training, attempt {turn}", "the parameters are read"]
        head = "Epoch[{}] Batch [{}]\tSpeed: 36.{}{} samples/sec\tTrain-{}={:.6f}"
        lines += [
            head.format(at // 3, 20 * (at % 3 + 1), turn, at, name, turn + at / 10 + n)
            for at in range(begin, end)
            for n, name in enumerate(names)
        ]
    summary = receipt_of(lines)["summary"]
    end = launches[-1][1]
    kept = end - min(begin for begin, _ in launches)
    assert (summary["steps"]["record_count"], summary["steps"]["restart_count"]) == (kept, len(launches) - 1)
    assert summary["other_metrics"]["Train-Acc"]["record_count"] == kept
    assert summary["other_metrics"]["Train-Acc"]["last"] == pytest.approx(len(launches) - 1 + (end - 1) / 10)


@settings(max_examples=6)
@given(st.lists(st.integers(1, 5), min_size=30, max_size=60).filter(lambda times: sum(times) > 2.5 * len(times)))
def test_a_counter_that_most_records_repeat_counts_no_records(times: list[int]) -> None:
    places = [n for n, count in enumerate(times) for _ in range(count)]
    clock = "2024-11-28 21:{:02}:{:02} Learner INFO value loss: {:.5f}, policy loss: {:.5f}, episode: {}"
    lines = [clock.format(at // 60, at % 60, 9 - at / 50, 3 - at / 70, n) for at, n in enumerate(places)]
    document = receipt_of(lines)
    summary = document["summary"]
    assert (summary["steps"]["last"], summary["steps"]["record_count"]) == (len(times) - 1, None)
    assert summary["step_times"] is summary["realised"] is document["goodput"] is None


@pytest.mark.parametrize("end", ["\n", "\r"])
@pytest.mark.parametrize("again", [[4], [0], [29], [*range(30)]])
def test_a_full_bar_that_comes_again_on_a_line_of_its_own(end: str, again: list[int]) -> None:
    bars = [f"Epoch {n}: 100%|█████| 50/50 [00:10<00:00,  4.9{n % 10}it/s, loss={4 - n / 30:.4f}]" for n in range(30)]
    plain = receipt_of(bars)
    other = [f"{bar}{end}{bar.partition('loss')[0]}loss={FOREIGN}]" if n in again else bar for n, bar in enumerate(bars)]
    document = receipt_of(other)
    assert len(told(document, "step_printed_twice")) == (end == "\n")
    if end == "\n":
        assert_only_nulls(plain, document)
        assert document["summary"]["metrics"]["loss"]["max"] is None
    else:  # the last frame of a line counts
        assert document["summary"]["metrics"]["loss"]["max"] == FOREIGN


def test_times_of_two_lines_about_one_step_are_no_contradiction() -> None:
    lines = [
        text
        for n in range(30)
        for text in (
            f"Epoch: {n} loss_tgt: {4 - n / 30:.3f} time: {n}.27s",
            f"Epoch: {n} loss_src: {9 - n / 30:.3f} time: {n}.28s",
        )
    ]
    assert not told(receipt_of(lines), "step_printed_twice")


@settings(max_examples=8)
@given(lengths, strides, st.integers(2, 4))
def test_copies_are_no_contradiction(length: int, stride: int, copies: int) -> None:
    lines = [line(n * stride, 4 - n / length) for n in range(length)]
    plain, document = receipt_of(lines), receipt_of([text for text in lines for _ in range(copies)])
    assert not told(document, "step_printed_twice")
    before, after = (each["summary"]["metrics"]["loss"] for each in (plain, document))
    assert [after[name] for name in STATISTICS] == [before[name] for name in STATISTICS]


@settings(max_examples=12)
@given(st.sampled_from([14, 40, 300]), strides, st.data())
def test_a_block_of_another_run_in_the_middle(length: int, stride: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 5))
    at = data.draw(st.integers(size + 2, length - 2))
    lines = [line(n * stride, 4 - n / length) for n in range(length)]
    plain = receipt_of(lines)
    document = receipt_of([*lines[:at], *[line(n * stride, FOREIGN) for n in range(size)], *lines[at:]])
    assert told(document, "step_printed_twice")
    assert document["summary"]["steps"]["restart_count"] == 0
    assert "launches" not in document["derivation"]
    assert_only_nulls(plain, document)


@settings(max_examples=8)
@given(st.sampled_from([14, 40, 300]), strides, st.data())
def test_a_label_beside_records_without_one(length: int, stride: int, data: st.DataObject) -> None:
    at, count = data.draw(st.integers(1, length - 6)), data.draw(st.integers(1, 4))
    lines = [line(n * stride, 4 - n / length) for n in range(length)]
    plain = receipt_of(lines)
    others = {at + n: f"[rank3]: {line((at + n) * stride, FOREIGN)}" for n in range(count)}
    document = receipt_of([text for n, own in enumerate(lines) for text in ([others[n]] if n in others else []) + [own]])
    assert document["summary"]["metrics"]["loss"] | {"places": None} == plain["summary"]["metrics"]["loss"] | {"places": None}
    assert document["summary"]["steps"]["restart_count"] == 0


@pytest.mark.parametrize("at", [0, 11, 19])
def test_a_label_beside_epochs_that_another_line_numbers(at: int) -> None:
    epochs = [
        [f"Epoch {n + 1}/20", f"16/16 - 1s - loss: {4 - n / 30:.4f} - accuracy: 0.67 - 569ms/epoch - 36ms/step"]
        for n in range(20)
    ]
    plain = receipt_of([text for epoch in epochs for text in epoch])
    other = f"[rank3]: 16/16 - 0s - loss: {FOREIGN} - accuracy: 0.67 - 569ms/epoch - 36ms/step"
    document = receipt_of(
        [text for n, (head, own) in enumerate(epochs) for text in ([head, other, own] if n == at else [head, own])]
    )
    lines = {"first_line": 0, "last_line": 0}
    assert document["summary"]["steps"] | lines == plain["summary"]["steps"] | lines
    assert_only_nulls(plain, document)


@pytest.mark.parametrize("epoch", ["0.25", "0.125"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_that_print_an_epoch_and_no_step(epoch: str, ranks: int) -> None:
    epochs = [f"{n * float(epoch):.{len(epoch) - 2}f}" for n in range(1, 9)]
    of_each = [printed([3 - n / 10 + rank / 100 for n in range(1, 9)], epochs) for rank in range(ranks)]
    lines = [f"[1,{rank}]<stdout>: {text}" for texts in zip(*of_each, strict=True) for rank, text in enumerate(texts)]
    summary = receipt_of(lines)["summary"]
    assert summary["steps"]["record_count"] == 8
    assert summary["metrics"]["loss"]["first"] == 2.9


def test_a_dictionary_that_comes_again_with_another_loss() -> None:
    lines = [
        f"{{'loss': {3 - n / 20:.4f}, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': {n / 20:.2f}}}" for n in range(1, 21)
    ]
    plain = receipt_of(lines)
    document = receipt_of([*lines[:9], lines[9], lines[9].replace("2.5000", str(FOREIGN)), *lines[10:]])
    assert told(document, "step_printed_twice")
    assert_only_nulls(plain, document)
    again = receipt_of([*lines[:9], lines[9], lines[9], *lines[10:]])
    assert again["summary"]["steps"]["record_count"] == 20
    assert not told(again, "step_printed_twice")


def counted(number: int, loss: float, rank: str) -> str:
    """Return a record of a benchmark that counts samples, and nothing else."""
    event = {"namespace": "", "time_ms": 1_700_000_000_000 + number, "event_type": "POINT_IN_TIME", "key": "train_loss"}
    return f"{rank}:::MLLOG {json.dumps({**event, 'value': loss, 'metadata': {'file': 'a.py', 'samples_count': 320 * number}})}"


@settings(max_examples=16)
@given(st.integers(8, 40), st.sampled_from([("",), ("0: ",), ("0: ", "1: ")]), st.data())
def test_a_count_of_samples_that_comes_again_with_another_loss(count: int, ranks: tuple[str, ...], data: st.DataObject) -> None:
    losses = [3.5 - number / 64 for number in range(count)]
    lines = [counted(number, loss, rank) for number, loss in enumerate(losses, 1) for rank in ranks]
    plain = receipt_of(lines)
    assert plain["summary"]["steps"]["record_count"] == count
    assert not told(plain, "step_printed_twice")
    at = data.draw(st.integers(1, count))
    lines.insert(at * len(ranks), counted(at, FOREIGN, ranks[0]))
    document = receipt_of(lines)
    assert told(document, "step_printed_twice")
    assert_only_nulls(plain, document)


def test_an_epoch_that_is_rounded_tells_no_records_apart() -> None:
    lines = [
        f"{{'loss': {3 - n / 50:.4f}, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': {n * 0.004:.2f}}}" for n in range(1, 51)
    ]
    document = receipt_of(lines)
    assert document["summary"]["steps"]["record_count"] == 50
    assert not told(document, "step_printed_twice")


@settings(max_examples=16)
@given(st.integers(12, 60), st.integers(2, 5), st.data())
def test_two_lines_about_each_step_are_one_record(count: int, alone: int, data: st.DataObject) -> None:
    single = data.draw(st.sets(st.integers(1, count - 1), min_size=alone, max_size=alone))
    lines = list[str]()
    for n in range(count):
        head = f"I0401 08:{n // 60:02d}:{n % 60:02d}."
        shown = f"{head}118290  5674 solver.cpp:218] Iteration {20 * n} (2.95 iter/s), loss = {3 - n / 500:.4f}"
        between = f"{head}118345  5674 solver.cpp:237]     Train net output #0: loss_bbox = {n / 9000:.6f}"
        second = f"{head}118367  5674 sgd_solver.cpp:105] Iteration {20 * n}, lr = 1e-05"
        lines += [second] if n in single else [shown, between, second]
    [summary] = learned_of(lines).summaries
    assert (summary.record_count, summary.restart_count, summary.superseded_count) == (count, 0, 0)
    assert summary.metrics["loss"].first == 3.0


@pytest.mark.parametrize(
    ("names", "expected"), [(["accuracy", "accuracy"], None), (["accuracy", "loss"], 0.75), (["accuracy"], 0.75)]
)
def test_several_outputs_of_one_name_are_not_one_metric(names: list[str], expected: float | None) -> None:
    head = "I1017 12:34:{n:02d}.922708 14169 solver.cpp:299] "
    lines: list[str] = []
    for n in range(4):
        outputs = (f"    Test net output #{at}: {name} = {(0.75, 0.5)[at]}" for at, name in enumerate(names))
        lines += [head.format(n=n) + text for text in (*outputs, f"Iteration {n}, loss = {3.5 - n / 4}")]
    document = receipt_of("".join(f"{line}\n" for line in lines))
    accuracy = document["summary"]["metrics"]["test_accuracy"]
    assert {accuracy[key] for key in ("first", "last", "min", "max", "mean", "median")} == {expected}
    assert ("several_figures" in document["derivation"]["problems"]["kinds"]) is (expected is None)


@pytest.mark.parametrize(("each", "lost"), [(1, []), (3, ["record_count"]), (20, ["first", "last", "record_count"])])
def test_a_counter_that_stands_still_in_most_records_counts_something_else(each: int, lost: list[str]) -> None:
    lines = [line(step, 4 - step / 50 - n / 999) for step in range(12) for n in range(each)]
    steps = receipt_of(lines)["summary"]["steps"]
    assert [name for name in ("first", "last", "record_count") if steps[name] is None] == lost
