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
