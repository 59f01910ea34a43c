"""A counter that begins again below a heading counts within an epoch, though launches were cut in between."""

import math
from pathlib import Path

import pytest

import receipt_cli
from tests.tools.logs import receipt_of

HEADINGS = ["Epoch: {e:04d}", "Epoch {e}/{E}", "===== Epoch {e} ====="]
STEPS = [
    "iter:{i:04d} loss_train: {loss:.4f} acc_train: 0.8281 time: 0.1563s",
    "  step {i} loss {loss:.4f}",
    "  Batch {i}/140 | g_loss: {loss:.4f} d_loss: 0.{i}",
    "  [{i}/140] loss {loss:.4f}",
]
LAUNCHES = [(12, 140), (7, 60), (30, 140)]
"""Epochs of each launch, and the last step of its last epoch."""


@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize("step", STEPS)
def test_epochs_below_headings(heading: str, step: str, tmp_path: Path) -> None:
    lines = []
    for epochs, last in LAUNCHES:
        lines.append("loading data")
        for epoch in range(1, epochs + 1):
            lines.append(heading.format(e=epoch, E=30))
            for at in range(20, (140 if epoch < epochs else last) + 1, 20):
                loss = 2.5 * math.exp(-(epoch * 140 + at) / 900) + 0.01 * (at * 37 % 11)
                lines.append(step.format(i=at, loss=loss))
    log = tmp_path / "run.log"
    log.write_text("\n".join([*lines, ""]))
    runs = receipt_cli.read_all(log)
    counts = [run.receipt.to_dict()["summary"]["steps"]["record_count"] for run in runs]
    assert counts == [12 * 7, 6 * 7 + 3, 30 * 7]


def test_a_launch_of_longer_epochs_that_lacks_its_first_heading() -> None:
    lines = [text for epoch in range(1, 6) for text in (f"Epoch {epoch}/5 started", *steps_of(144, epoch))]
    lines += ["", *steps_of(289, 1), "Epoch 2/5 started", *steps_of(289, 2)]
    document = receipt_of(lines)
    steps = document["summary"]["steps"]
    assert [steps[name] for name in ("first", "last", "planned", "record_count")] == [None, 569, 1445, 28]
    assert document["derivation"]["problems"]["kinds"]["launch_doubtful"] == 1


def steps_of(length: int, epoch: int) -> list[str]:
    return [f"step={at}/{length} loss={5 - epoch / 10 - at / 1000:.4f}" for at in range(20, length, 20)]


ROWS = [
    ("Epoch {e}/{E}", "Train Loss: {loss:.4f}, Train Acc: 50.00%", "Val Loss: {val:.4f}, Val Acc: 40.00%"),
    ("\nEpoch {e}/{E}\n----------", "训练损失: {loss:.4f}, 训练准确率: 50.00%", "验证损失: {val:.4f}, 验证准确率: 40.00%"),
    ("--- Epoch {e} ---", "training loss = {loss:.4f}", "validation loss = {val:.4f}"),
]


@pytest.mark.parametrize(("heading", "row", "evaluation"), ROWS)
def test_a_launch_that_was_cut_leaves_a_heading_without_its_losses(heading: str, row: str, evaluation: str) -> None:
    lines: list[str] = []
    for launch in range(1, 7):
        for epoch in range(1, 41):
            lines.append(heading.format(e=epoch, E=40))
            if epoch == 38 - launch and launch < 6:
                break
            loss = 3 / epoch + launch
            lines += [row.format(loss=loss), evaluation.format(val=loss + 0.5), "checkpoint written"]
    summary = receipt_of(lines)["summary"]
    assert summary["steps"]["record_count"] == 40
    assert [summary["metrics"][name]["last"] for name in ("loss", "val_loss")] == [6.075, 6.575]


BARS = [
    ("Epoch {e}/{E}", "", "Train Loss: {loss:.4f}  Val Loss: {val:.4f}"),
    ("Train Epoch {e}", "VAL Epoch {e}", "Train Loss:  {loss:.4f}  Val Loss:  {val:.4f}"),
    ("[Epoch {e}] training", "[Epoch {e}] validating", "loss {loss:.4f} acc 0.5\nval loss {val:.4f}"),
]


@pytest.mark.parametrize(("drawn", "evaluated", "row"), BARS)
@pytest.mark.parametrize("redrawn", [True, False])
def test_the_bar_before_a_loss_tells_its_epoch(drawn: str, evaluated: str, row: str, redrawn: bool) -> None:
    def bar(text: str, total: int) -> str:
        counts = range(total + 1) if redrawn else [total]
        return "\r".join(
            f"{text}: {100 * n // total:3d}%|{'█' * (10 * n // total):10}| {n}/{total} [00:03<00:09,  1.9it/s]" for n in counts
        )

    lines: list[str] = []
    for epoch in range(1, 13):
        names = {"e": epoch, "E": 12, "loss": 3 / epoch, "val": 3 / epoch + 0.5}
        lines += [
            bar(drawn.format(**names), 40),
            *([bar(evaluated.format(**names), 5)] if evaluated else []),
            row.format(**names),
        ]
    summary = receipt_of(lines)["summary"]
    assert [summary["steps"][name] for name in ("first", "last", "record_count")] == [1, 12, 12]
    assert [summary["metrics"][name]["last"] for name in ("loss", "val_loss")] == [0.25, 0.75]


def test_a_step_that_goes_back_inside_of_an_epoch_goes_on_from_a_checkpoint() -> None:
    at = [(epoch, batch) for epoch in range(1, 6) for batch in range(0, 200, 10)]
    printed = [*at[:16], *at[10:56], *at[50:]]  # no epoch has risen where the batch went back twice
    summary = receipt_of(f"Epoch {e} batch {b} loss: {3 - 0.3 * e - b / 1000:.4f}" for e, b in printed)["summary"]
    assert summary["steps"]["record_count"] == len(at)
    assert summary["metrics"]["loss"]["first"] == 2.7
