"""Lines of an evaluation in own scripts: its loss is the validation's, and never one of training."""

import math
from typing import Any

import pytest

from tests.tools.logs import receipt_of

EPOCHS = 20
TRAINING = "Epoch {e} train loss {loss:.4f}"
EVALUATIONS = [
    "Evaluation Epoch {e} - Average Loss: {val:.4f}, Average Accuracy: {acc:.4f}, Samples: 211",
    "Validation: loss {val:.4f} acc {acc:.4f}",
    "Val Epoch {e} Loss {val:.4f}",
    "[Val] epoch {e} loss {val:.4f}",
    "Epoch {e} [val] loss {val:.4f}",
    "Validation set: Average loss: {val:.4f}",
    "valid | epoch {e} | loss {val:.4f}",
    "Epoch {e}, val loss is {val:.4f}, val mse is {acc:.5f}.",
    "eval epoch {e}: loss={val:.4f}",
    "Validation loss after epoch {e}: {val:.4f}",
    "Validation Phase Loss: {val:.4f} Accuracy: {acc:.4f}",
    "Epoch {e} validation_loss={val:.4f}",
    "  val_loss: {val:.4f}",
    "val: loss={val:.4f}, acc={acc:.4f}",
    "dev loss {val:.4f} dev acc {acc:.4f}",
    "Validation Results - Epoch: {e} Avg accuracy: {acc:.4f} Avg loss: {val:.4f}",
    "Evaluating... loss: {val:.4f}",
    "* Val loss {val:.4f}",
    ">>> validation loss = {val:.4f}",
    "---- Evaluation on val: mean loss {val:.4f}",
    "Validation Epoch: {e}, Loss: {val:.4f}",
    "Loss on validation set: {val:.4f}",
    "loss (val): {val:.4f}",
    "Val. Loss: {val:.4f} |  Val. Acc: {acc:.2f}%",
]
PAIRS = [
    ("train | epoch {e} | loss {loss:.4f}", "valid | epoch {e} | loss {val:.4f}"),
    ("TRAIN | Epoch {e} | loss {loss:.4f} | acc {acc:.3f}", "EVAL | Epoch {e} | loss {val:.4f} | acc {acc:.3f}"),
    ("train: epoch {e} loss {loss:.4f}", "valid: epoch {e} loss {val:.4f}"),
    ("Training Epoch {e}, loss {loss:.4f}", "Validating Epoch {e}, loss {val:.4f}"),
    (">> train epoch {e} loss {loss:.4f}", ">> dev epoch {e} loss {val:.4f}"),
    ("phase=train epoch={e} loss={loss:.4f}", "phase=val epoch={e} loss={val:.4f}"),
    ("epoch: {e} mode: train loss: {loss:.4f}", "epoch: {e} mode: eval loss: {val:.4f}"),
    ("train - epoch {e} - loss {loss:.4f}", "val - epoch {e} - loss {val:.4f}"),
    ("train@epoch{e} loss {loss:.4f}", "valid@epoch{e} loss {val:.4f}"),
    ("Epoch {e}/20, Train Loss: {loss:.4f}", "Epoch {e}/20, Validation Loss: {val:.4f}"),
    ("Epoch {e} of 20, Train Loss: {loss:.4f}", "Epoch {e} of 20, Val Loss: {val:.4f}"),
    ("[Epoch: {e:02d}] Train acc: {acc:.4f} | loss: {loss:.4f}", "[Epoch: {e:02d}] Valid acc: {acc:.4f} | loss: {val:.4f}"),
]
STEPS = ["Epoch {e} [{b}/400] loss: {loss:.4f}", "Epoch [{e}/20], Step [{b}/400], Loss: {loss:.4f}"]
ONE_LINE = [
    "Epoch {e} | Train MSE: {loss:.4f} | Gate Loss: {acc:.4f} | Val MSE: {val:.4f} | Val Corr: {acc:.4f}",
    "Epoch {e}/20 train_mse={loss:.4f} val_mse={val:.4f}",
    "Epoch {e}: train CE {loss:.4f} valid CE {val:.4f}",
    "Epoch {e}: BCE {loss:.4f}, val BCE {val:.4f}",
]
SUMMARIES = [
    "Epoch {e} | train_loss {acc:.4f} | val_loss {val:.4f}",
    "Epoch: {e} | Train set loss: {acc:.4f} | Val set loss: {val:.4f}",
    "Epoch {e} Training Phase Loss: {acc:.4f} Validation Phase Loss: {val:.4f}",
]
TESTS = ["Test loss: {val:.4f}", "Test set: Average loss: {val:.4f}, Accuracy: 9832/10000 (98%)"]
BATCHES = "val --- Current batch:{b}/400  loss:{val:.4f}"


def metrics(*lines: str) -> dict[str, Any]:
    """Return the metrics of a log with these lines for each epoch, after its records were counted."""
    text = ""
    for epoch in range(1, EPOCHS + 1):
        loss = 2.5 * math.exp(-epoch / 7) + 0.01 * (epoch * 37 % 11)
        values = {"e": epoch, "loss": loss, "val": 7.6 * math.exp(-epoch / 90), "acc": 1 - math.exp(-epoch / 5)}
        for line in lines:
            text += "".join(line.format(**values, b=b) + "\n" for b in ((200, 400) if "{b}" in line else (0,)))
    summary = receipt_of(text)["summary"]
    assert summary["steps"]["record_count"] == EPOCHS * (1 + ("{b}" in lines[0]))
    found: dict[str, Any] = summary["metrics"]
    assert (found["loss"]["first"], found["loss"]["last"]) == (2.2072, 0.1736)
    return found


@pytest.mark.parametrize("line", EVALUATIONS)
def test_a_line_of_an_evaluation_beside_the_records(line: str) -> None:
    found = metrics(TRAINING, line)
    assert (found["val_loss"]["first"], found["val_loss"]["last"]) == (7.516, 6.0856)


@pytest.mark.parametrize("training, evaluation", PAIRS)
def test_a_line_of_the_same_form_for_both(training: str, evaluation: str) -> None:
    found = metrics(training, evaluation)
    assert (found["val_loss"]["first"], found["val_loss"]["last"]) == (7.516, 6.0856)


@pytest.mark.parametrize("line", ONE_LINE)
def test_the_validation_is_called_as_the_training_on_its_line(line: str) -> None:
    found = metrics(line)
    assert (found["val_loss"]["first"], found["val_loss"]["last"]) == (7.516, 6.0856)


@pytest.mark.parametrize("summary", SUMMARIES)
@pytest.mark.parametrize("step", STEPS)
def test_the_summary_of_an_epoch_behind_its_steps(step: str, summary: str) -> None:
    found = metrics(step, summary)
    assert (found["val_loss"]["first"], found["val_loss"]["last"]) == (7.516, 6.0856)


@pytest.mark.parametrize("line", TESTS)
def test_a_test_is_no_validation(line: str) -> None:
    assert "val_loss" not in metrics(TRAINING, line)


def test_the_batches_of_an_evaluation_are_none() -> None:
    assert "val_loss" not in metrics(TRAINING, BATCHES)


def test_two_evaluations_that_cannot_be_told_apart_are_left_out() -> None:
    found = metrics(TRAINING, "Validation A: loss {val:.4f}", "Validation B: loss {loss:.4f}")
    assert "val_loss" not in found


UNREAD = [
    ("it= {e}\t\tLoss/train:{loss:.3e}\tLR:1.000e-03", "it= 500\t\tLoss/test:5.224e+00\tTime/test:2.979e+00", "test_loss"),
    (TRAINING, "Test Loss: 0.169768", "test_loss"),
    ("Training epoch {e} | loss: {loss:.4f}", "Validating epoch 37 | loss: 0.47815 - accuracy: 0.8358", "val_loss"),
    (TRAINING, "Validation A: loss 0.5\nValidation B: loss 0.4", "val_loss"),
]


@pytest.mark.parametrize("line, last, metric", UNREAD)
def test_a_single_evaluation_is_named_where_it_is_not_read(line: str, last: str, metric: str) -> None:
    lines = [line.format(e=epoch, loss=3 / epoch) for epoch in range(1, EPOCHS + 1)]
    document = receipt_of([*lines, last])
    assert document["summary"]["metrics"]["loss"]["last"] == 0.15
    assert metric not in document["summary"]["metrics"]
    problems = [problem for problem in document["derivation"]["problems"]["first"] if problem["kind"] == "figure_unread"]
    assert [field for problem in problems for field in problem["fields"]] == [f"/summary/metrics/{metric}"]
    assert document["checks"]["finite_losses"] is True


def test_one_that_is_not_finite_leaves_the_check_open() -> None:
    lines = [TRAINING.format(e=epoch, loss=3 / epoch) for epoch in range(1, EPOCHS + 1)]
    document = receipt_of([*lines, "Validation epoch 7 loss 0.5", "Validation epoch 8 loss nan"])
    assert document["checks"]["finite_losses"] is not True


@pytest.mark.parametrize("last", ["Best val_loss: 0.5", "Test accuracy: 0.5", "checkpoint saved"])
def test_no_other_line_is(last: str) -> None:
    lines = [TRAINING.format(e=epoch, loss=3 / epoch) for epoch in range(1, EPOCHS + 1)]
    problems = receipt_of([*lines, last])["derivation"]["problems"]
    assert problems["kinds"] == {"generic_reading": 1}


def test_nor_is_an_evaluation_beside_one_that_is_read() -> None:
    lines = [TRAINING.format(e=e, loss=3 / e) + f"\nValidation loss: {4 / e:.4f}" for e in range(1, EPOCHS + 1)]
    problems = receipt_of([*lines, "Test Loss: 0.5"])["derivation"]["problems"]
    assert problems["kinds"] == {"generic_reading": 1}
