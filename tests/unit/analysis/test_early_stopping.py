"""A training that stops before its plan, since its evaluations no longer improve, has ended; a plan alone does not convict it."""

import math
from typing import Any

import pytest

from tests.tools.logs import receipt_of

STOPPED = [
    "Early stopping triggered at epoch 12. Best val RMSE: 67.271",
    "Early stopping",
    "Early stopping!",
    "EARLY STOPPING",
    "Early stop!",
    "early stopping at epoch 12",
    "Early stopping after 12 epochs",
    "[EarlyStopping] Early stopping triggered.",
    "2026-01-02 03:04:05,120 - INFO - Early stopping on epoch 12",
    "INFO:root:Early stopping triggered",
    "Early Stopping: no improvement for 10 epochs",
    "Early stopping: val_loss did not improve for 5 epochs",
    "Early stopping due to no improvement",
    "EarlyStopping triggered after 12 epochs",
    "Training stopped early at epoch 12.",
    "Stopping early at epoch 12",
    "No improvement for 5 epochs, stopping training.",
    "Validation loss did not improve for 5 epochs. Stopping training...",
    "Patience exhausted. Stopping training.",
    "Epoch 6: Early stopping.",
    "    Epoch 6: Early stopping.",
    "Epoch 00012: early stopping",
    "Epoch 12: early stopping",
    "*** Early Stopping ***",
    "Early Stopping Triggered!",
    "Early Stopping: epoch 12",
    "Early stopping criterion met",
    "Early stopping. Best val loss: 0.123",
    "Early stopping: patience 10 reached",
    "EarlyStopping: Stop training",
    "No improvement in 10 epochs. Early stopping.",
    "val loss not improved for 10 epochs, early stop.",
    "Monitored metric val_loss did not improve in the last 3 records. Best score: 0.213. Signaling Trainer to stop.",
    "Training finished after not improving. Early Stop!",
    "[EARLY STOP] Validation did not improve for 10 epochs.",
    "stopping_early: wallclock_cap train_time:600ms",
    "Stopping threshold reached: val_acc = 0.951 > 0.95. Signaling Trainer to stop.",
]
NOT_STOPPED = [
    "EarlyStopping counter: 3 out of 10",
    "early_stopping: True",
    "Early stopping patience: 10",
    "Early stopping with patience 10",
    "Using early stopping on val_loss",
    "Early stopping rounds: 50",
    "early_stopping=True",
    "Early stopping counter 3/10",
    "Early stopping in 3 epochs",
    "Epoch 12: early stopping counter 3 of 10",
    "Epoch 12: Early stopping patience 3/10",
    "No early stopping",
    "Will do early stopping after 10 epochs",
    "Early stopping not triggered",
    "EarlyStopping(monitor='val_loss', patience=3)",
    "[EARLY STOP] Validation loss improved.",
    "stopping_early: True",
    "Early stopping conditioned on metric `val_loss` which is not available.",
    "Monitored metric val_loss improved by 0.01. New best score: 0.213",
    '        print("Early stopping")',
]


def ending(*last: str) -> dict[str, Any]:
    lines = [f"Epoch {n}/40 train loss {2.5 * math.exp(-n / 7):.4f} val loss {2.6 * math.exp(-n / 9):.4f}" for n in range(1, 13)]
    return receipt_of([*lines, *last])


@pytest.mark.parametrize("line", STOPPED)
def test_a_training_that_stopped_early_has_ended(line: str) -> None:
    document = ending(line, "Best epoch: 7")
    assert document["failure"] is None
    assert document["checks"]["completed"] is True


@pytest.mark.parametrize(
    ("counter", "completed"),
    [
        ("EarlyStopping counter: {n} out of 9", True),
        ("Early stopping counter {n}/9", True),
        ("Early stopping counter {n}/8", True),
        ("Early stopping counter {n}/7", None),  # the run went on beyond the limit
        ("patience: {n}/9", None),
        ("EarlyStopping counter: {n} out of 20", False),
    ],
)
def test_a_counter_that_has_reached_its_limit_last_ends_the_run(counter: str, completed: bool | None) -> None:
    lines = [f"Epoch {n}/40 train loss {2.5 * math.exp(-n / 7):.4f}\n{counter.format(n=n)}" for n in range(1, 10)]
    document = receipt_of(lines)
    assert (document["failure"] and document["failure"]["reason"]) == ("truncated" if completed is False else None)
    assert document["checks"]["completed"] is completed


def keras() -> list[str]:
    bar = "100/100 [==============================] - 7s 70ms/step - loss: {0:.4f} - val_loss: {1:.4f}"
    return [line for n in range(1, 7) for line in (f"Epoch {n}/20", bar.format(2 / n, 2.1 / n))]


def hapi() -> list[str]:
    lines = ["The loss value printed in the log is the current step, and the metric is the average value of previous steps."]
    for n in range(1, 7):
        steps = [f"step {s:3d}/300 - loss: {1 / (n + s / 300):.4f} - acc: 0.8{n}12 - 12ms/step" for s in range(10, 301, 10)]
        evals = [f"step {s}/88 - loss: {1 / (n + 1):.4f} - acc: 0.81{n}2 - 3ms/step" for s in (30, 60, 88)]
        lines += [f"Epoch {n}/10", *steps, f"save checkpoint at save/{n - 1}", "Eval begin...", *evals, "Eval samples: 11219"]
    return lines


def lightning() -> list[str]:
    bar = "Epoch {0}: {1:3d}%|##########| {1}/100 [00:1{0}<00:00,  8.31it/s, loss={2:.3f}, v_num=0]"
    return [bar.format(n, b, 2 / (n + 1)) for n in range(6) for b in (50, 100)]


BEHIND = {
    "keras": (keras, ["Restoring model weights from the end of the best epoch: 3.", "Epoch 00006: early stopping", "AUC: 0.8"]),
    "hapi": (hapi, ["Epoch 6: Early stopping.", "Best checkpoint has been saved at best_model", "save checkpoint at save/final"]),
    "lightning": (lightning, [STOPPED[-2]]),
}


@pytest.mark.parametrize(("trainer", "indent"), [("keras", ""), ("hapi", ""), ("hapi", "    "), ("lightning", "")])
def test_the_words_of_trainers(trainer: str, indent: str) -> None:
    lines, last = BEHIND[trainer]
    document = receipt_of(f"{indent}{line}" for line in (*lines(), *last))
    assert document["failure"] is None
    assert document["checks"]["completed"] is True


@pytest.mark.parametrize(
    "words", [{6: "Early stopping\n"}, dict.fromkeys(range(1, 13), "Done!\n")], ids=["in the middle", "each epoch"]
)
def test_one_that_went_on_has_not(words: dict[int, str]) -> None:
    lines = [f"Epoch {n}/40 train loss {2.5 * math.exp(-n / 7):.4f}\n{words.get(n, '')}" for n in range(1, 13)]
    assert receipt_of("".join(lines))["failure"]["reason"] == "truncated"


def test_a_crash_behind_it_convicts() -> None:
    crash = ["Traceback (most recent call last):", '  File "a.py", line 3, in <module>', "    save()", "OSError: no space left"]
    document = ending("Early stopping at epoch 12", *crash)
    assert document["failure"]["reason"] != "truncated"
    assert document["checks"]["completed"] is False


DONE = [
    "Training complete. Best checkpoint at: results/best.pth",
    "2026-01-02 03:04:09 INFO - Experiment completed",
    "Experiment finished in 3h",
    "Optimization Finished!",
    "Finished training.",
    "Training ended",
    "Finished!",
    "All done!",
    "----- Done. -----",
]
NOT_DONE = [
    "Training completed 3 of 10 epochs",
    "Finished training epoch 12",
    "Done loading",
    "done: 3",
    "Run completed 12 epochs",
]


@pytest.mark.parametrize("line", DONE)
def test_a_script_that_says_that_it_is_done_is_not_called_truncated(line: str) -> None:
    document = ending(line)
    assert document["failure"] is None
    assert document["checks"]["completed"] is None


SAID = [
    "Training complete.",
    "[01/02 03:04:05] training UNet5 finished",
    "2026-01-02 03:04:09 INFO - === TRAINING COMPLETE ===",
    "Training complete! Best val loss: 0.0282",
    "training complete; best val loss = 1.17",
    "02:13:51.152 [main] INFO a.Train - Training is Done",
    "2026-01-02 03:04:05,120 Learner INFO Learner finished, episode: 12",
    "Training selesai.",
    "Training abgeschlossen.",
    "训练完成!",
    "Optimization Finished!",
]


def without_plan(*last: str) -> dict[str, Any]:
    return receipt_of([*(f"epoch {n} train loss {2.5 * math.exp(-n / 7):.4f}" for n in range(1, 13)), *last])


@pytest.mark.parametrize("line", SAID)
def test_a_sentence_that_training_is_done_below_the_last_record_is_an_end(line: str) -> None:
    assert without_plan(line, "Model saved to a.pt")["checks"]["completed"] is True
    far = ending(line)
    assert (far["failure"], far["checks"]["completed"]) == (None, None)
    assert far["derivation"]["problems"]["kinds"]["end_before_plan"] == 1


@pytest.mark.parametrize(
    "last",
    [
        ["Stage 2 training complete"],
        ["Epoch 12: Training finished"],
        ["Training data finished loading"],
        ["All done!"],
        ["Total training time: 21.5 s"],
        ["Training complete.", "epoch 13 train loss 0.3", "epoch 14 train loss 0.2", "Training complete."],
    ],
)
def test_a_sentence_about_a_part_or_before_records_is_none(last: list[str]) -> None:
    assert without_plan(*last)["checks"]["completed"] is None


@pytest.mark.parametrize(("stop", "completed"), [(45, None), (170, True)])
def test_an_end_line_far_before_the_plan_by_the_last_checkpoint_proves_no_end(stop: int, completed: bool | None) -> None:
    lines = ["***** Running training *****", "  Total optimization steps = 1,700"]
    for n in range(1, stop + 1):
        lines.append(f"{{'loss': {2 / n:.4f}, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': {n * 0.29:.2f}}}")
        lines += [f"Saving model checkpoint to out/checkpoint-{n * 10}"] * (n % 10 == 0)
    document = receipt_of([*lines, "Training completed. Do not forget to share your model on huggingface.co/models =)"])
    assert (document["failure"], document["checks"]["completed"]) == (None, completed)


@pytest.mark.parametrize("line", [*NOT_STOPPED, *NOT_DONE])
def test_what_ends_no_training_leaves_the_end_open(line: str) -> None:
    document = ending(line)
    assert (document["failure"], document["checks"]["completed"]) == (None, None)
