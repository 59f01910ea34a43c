"""Records that look like those of a training, in a log that no grammar knows: which of them are of its series."""

import random
from typing import Any

import pytest

from tests.tools.logs import receipt_of

HEAD = "2025-03-02 05:16:20,962 - INFO - "


def read(lines: list[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    document = receipt_of(lines)
    return document["summary"], document["derivation"]["problems"]["first"]


def test_the_mean_of_each_epoch_is_no_batch() -> None:
    rng = random.Random(1)
    for epochs in (2, 3, 9):
        lines, losses = [], []
        for epoch in range(1, epochs + 1):
            lines.append(f"{HEAD}##### Epoch {epoch} #####")
            for _ in range(40):
                losses.append(round(8 / epoch + rng.random(), 4))
                lines.append(f"{HEAD}Epoch {epoch} - Batch loss: {losses[-1]:.4f}")
            lines.append(f"{HEAD}Epoch {epoch} - Average Train Loss: {sum(losses[-40:]) / 40:.4f}")
        summary, _ = read(lines)
        assert summary["steps"]["record_count"] == len(losses), epochs
        assert (summary["metrics"]["loss"]["first"], summary["metrics"]["loss"]["last"]) == (losses[0], losses[-1])


def trained(epochs: int = 6) -> tuple[list[str], list[float]]:
    """Return the lines of a training, in the form of PaddleRec, and its losses."""
    rng = random.Random(2)
    losses = [round(0.5 / (1 + at // 4) + 0.01 * rng.random(), 6) for at in range(4 * epochs)]
    lines = [
        f"{HEAD}epoch: {at // 4}, batch_id: {at % 4 * 500}, AUC:{rng.random():f}, ACC:{rng.random():f}, loss:{loss}, "
        f"avg_batch_cost: {rng.random():.5f} sec, ips: {rng.uniform(900, 999):.5f} ins/s"
        for at, loss in enumerate(losses)
    ]
    return lines, losses


def inferred(*epochs: int) -> list[str]:
    """Return the lines of an inference with the saved models, in the form of PaddleRec."""
    rng, lines = random.Random(3), []
    for epoch in epochs:
        lines += [
            f"{HEAD}load model epoch {epoch}",
            f"{HEAD}epoch: {epoch}, batch_id: 0, AUC: {rng.random():f},ACC: {rng.random():f}, "
            f"avg_batch_cost: {rng.random():.5f} sec, ips: {rng.uniform(900, 999):.5f} ins/s",
        ]
    return lines


def test_an_inference_that_prints_no_loss_is_no_restart() -> None:
    lines, losses = trained()
    for before, behind in (([], inferred(3, 4, 5)), (inferred(0, 1, 2), []), ([], inferred(0))):
        summary, _ = read([*before, *lines, *behind])
        steps, loss = summary["steps"], summary["metrics"]["loss"]
        assert (steps["record_count"], steps["restart_count"], steps["superseded_count"]) == (len(losses), 0, 0)
        assert (loss["first"], loss["last"]) == (losses[0], losses[-1])


def test_records_between_that_print_no_loss_are_steps() -> None:
    lines, losses = trained()
    bare = [line.replace(f" loss:{losses[at]},", "") if at % 4 == 2 else line for at, line in enumerate(lines)]
    summary, _ = read(bare)
    assert summary["steps"]["record_count"] == len(losses)
    assert summary["metrics"]["loss"]["record_count"] == len(losses) * 3 // 4


def by_epochs(marks: dict[int, str], form: str = "Epoch #{n}: train_loss={x:f}, val_loss={x:f}, time=0.3s") -> list[str]:
    """Return the lines of a hundred epochs, with a mark before some."""
    return [marks.get(n, "") + form.format(n=n, x=5 - n / 25) for n in range(100)]


MARKS: dict[str, dict[int, str]] = {
    "from the first on": dict.fromkeys((*range(8), 9, 10, 40, 98), "[NEW BEST] "),
    "one": {50: "[NEW BEST] "},
    "the last": dict.fromkeys((3, 5, 99), "** best so far ** "),
    "most": {n: "* " for n in range(100) if n % 7},
    "two": {n: "[BEST] " if n % 2 else "[SAVED] " for n in range(0, 100, 3)},
}


@pytest.mark.parametrize("name", MARKS)
def test_records_with_a_mark_before_them_are_of_the_series(name: str) -> None:
    summary, _ = read(by_epochs(MARKS[name]))
    steps, loss = summary["steps"], summary["metrics"]["loss"]
    assert (steps["first"], steps["last"], steps["record_count"]) == (0, 99, 100)
    assert (loss["first"], loss["last"], loss["min"]) == (5, 1.04, 1.04)


def test_records_with_a_mark_that_repeat_a_step_are_not() -> None:
    lines = by_epochs({})
    for n in (70, 30, 31):
        lines.insert(n + 1, f"[EMA] Epoch #{n}: train_loss=0.01, val_loss=0.01, time=0.3s")
    summary, problems = read(lines)
    assert (summary["steps"]["record_count"], summary["metrics"]["loss"]["min"]) == (100, 1.04)
    assert [problem["fields"] for problem in problems if problem["kind"] == "foreign_record"] == [[]]


def test_records_with_a_mark_that_may_be_of_the_series_leave_their_figures_unknown() -> None:
    lines = by_epochs(dict.fromkeys((0, 1, 2, 50), "[NEW BEST] "))
    del lines[50:55]  # a gap: whose the marked records are is unknown
    summary, problems = read([*lines, "[NEW BEST] Epoch #100: train_loss=0.5, val_loss=0.5, time=0.3s"])
    assert [summary["steps"][key] for key in ("first", "last", "record_count")] == [None, None, None]
    assert [summary["metrics"]["loss"][key] for key in ("first", "last", "min")] == [None, None, None]
    assert [len(problem["fields"]) > 0 for problem in problems if problem["kind"] == "foreign_record"] == [True]


def test_what_a_trainer_prints_when_it_is_done_is_no_step() -> None:
    lines = []
    for n in range(1, 5):
        done = f"{{'train_runtime': {9 + n / 10:.4f}, 'train_samples_per_second': 0.713, 'train_steps_per_second': 0.713, "
        lines += [f"Training adapter{n}", f"{done}'train_loss': {1.5 + n / 100:.9f}, 'epoch': 1.0}}"]
    assert receipt_of(lines)["summary"] is None


@pytest.mark.parametrize("color", ["", "\x1b[36m"])
def test_losses_without_a_counter_of_several_processes_are_no_series(color: str) -> None:
    rng = random.Random(4)
    end = "\x1b[0m" if color else ""

    def lines(*writers: int) -> list[str]:
        heads = (f"{color}(run_training pid={writer}){end} " for writer in writers)
        return [f"{head}Epoch_train_loss: {90 - n + rng.random():.9f}" for n, head in enumerate(heads)]

    alone = receipt_of(lines(*[3147459] * 40))["summary"]
    assert (alone["steps"]["record_count"], alone["metrics"]["loss"]["record_count"]) == (40, 40)
    assert receipt_of(lines(*[3147459, 3147460, 3147454, 3147459] * 10))["summary"] is None
    assert receipt_of(lines(*[3147459] * 20, *[3147460] * 20))["summary"] is None


@pytest.mark.parametrize("name", ["train.old.log:{n}:", "runs/a/out.txt-", "../log.jsonl:"])
def test_records_that_a_search_found_in_a_file_are_no_stage(name: str) -> None:
    own = [f"[train] epoch:{n // 18} iter:{n % 18}/18 0.00% lr:0.001000 loss:{4 - n / 50:.6f} ETA:0.0min" for n in range(90)]
    found = [f"{name.format(n=n)}{line}" for n, line in enumerate(own[:6], start=12)]
    wanted = receipt_of(own)
    for lines in (["+ grep loss", *found, *own], [*own, *found]):
        document = receipt_of(lines)
        assert document["summary"]["metrics"]["loss"]["record_count"] == 90
        assert [document["summary"]["steps"][key] for key in ("first", "last", "record_count", "restart_count")] == [
            wanted["summary"]["steps"][key] for key in ("first", "last", "record_count", "restart_count")
        ]
        assert len(document["phases"]) == len(wanted["phases"])
