"""What own scripts print between the records of training: scores of an evaluation, learning rates, parts of the loss."""

import pytest

from tests.tools.logs import receipt_of

EPOCHS, STEPS = 6, 12


def run(*after: str, record: str = "[epoch: {e}/6, iter: {i}/12] total: {x:.4f}", each: str = "") -> list[str]:
    """Return the lines of a run: of each epoch the records, with ``each`` behind every one, and ``after`` behind the last."""
    lines = []
    for e in range(1, EPOCHS + 1):
        for i in range(1, STEPS + 1):
            figures = {"e": e, "i": i, "x": 5 - e / 2 - i / 40, "s": (e - 1) * STEPS + i}
            lines.append(record.format(**figures))
            lines += [each.format(**figures)] if each else []
        ends = {"e": e, "v": 6 - e / 2, "a": 0.5 + e / 20, "r": 0.01 / e}
        lines += [line.format(**ends) for line in after]
    return lines


def read(lines: list[str]) -> dict[str, tuple[float, float, int]]:
    summary = receipt_of(lines)["summary"]
    assert summary["steps"]["record_count"] == EPOCHS * STEPS
    found = {**summary["metrics"], **summary["other_metrics"]}
    return {name: (series["first"], series["last"], series["record_count"]) for name, series in found.items()}


@pytest.mark.parametrize(
    ("line", "name", "values"),
    [
        ("Validation accuracy: {a:.3f}", "eval/Validation accuracy", (0.55, 0.8, EPOCHS)),
        ("=== valid | epoch {e} | mIoU = {a:.3f} | pixAcc = 0.9{e}", "eval/mIoU", (0.55, 0.8, EPOCHS)),
        ("Val F1: {a:.4f}, Val Acc: 0.7{e}", "eval/Val F1", (0.55, 0.8, EPOCHS)),
        ("the val dice is {a:.3f}", "eval_the_val_dice_is", (0.55, 0.8, EPOCHS)),
        ("Validation accuracy: {a:.1%}", "eval/Validation accuracy", (0.55, 0.8, EPOCHS)),
    ],
)
def test_scores_of_an_evaluation_are_read_without_a_loss(line: str, name: str, values: object) -> None:
    found = read(run("Percentage of used data: 21.25%", line, "Saving model at the end of epoch {e}"))
    assert found[name] == pytest.approx(values)


@pytest.mark.parametrize(
    "other",
    [
        "New best model saved with val_loss={v:.3f}",
        "* best val loss so far: {v:.2f}",
        "Saved new best checkpoint, validation loss {v:.4f}",
    ],
)
def test_a_notice_does_not_hide_the_loss_of_the_evaluation(other: str) -> None:
    found = read(run("Epoch {e}/6: train_loss={v:.4f}, val_loss={v:.3f}, lr={r:.6f}", other))
    assert found["val_loss"] == pytest.approx((5.5, 3.0, EPOCHS))


@pytest.mark.parametrize("tail", ["main", "ema_batch_0", "ema_{e}"])
def test_what_stands_behind_the_loss_may_change(tail: str) -> None:
    lines = run("Valid Summary | Epoch {e} | Loss={v:.4f} | Name=" + tail, "Valid Summary of {e}")
    assert read(lines)["val_loss"] == pytest.approx((5.5, 3.0, EPOCHS))


@pytest.mark.parametrize("line", ["Val Step[{i}], Avg Loss: {x:.3f}, Avg Acc: 0.{i}", "val step:0 loss: {x:.3f} top1: 0.3"])
def test_batches_of_an_evaluation_are_none(line: str) -> None:
    batches = [line.format(i=i, x=3 + i / 10) for i in range(5)]
    found = read([*run(), *batches])
    assert {"val_loss", "eval/Avg Acc", "eval/top1"}.isdisjoint(found)


def test_two_loggers_print_one_evaluation() -> None:
    record = "[ {s:6}] | gnorm 0.28 lr 0.00025 | loss {x:.2f}"
    lines = run("Eval  batches[  100]      | loss {v:.2f}", record=record)
    twice = [copy for line in lines for copy in (f"INFO:tensorflow:{line}", f"I1214 15:23:46.103303 1393 train.py:298] {line}")]
    assert read(twice)["val_loss"] == pytest.approx((5.5, 3.0, EPOCHS))


@pytest.mark.parametrize("tail", [" -> best", " (saved as the best)", ", new record!"])
def test_an_evaluation_that_is_printed_once_more_is_one(tail: str) -> None:
    lines: list[str] = []
    for line in run(
        "[ Valid | {e:03d}/006 ] loss = {v:.5f}, acc = {a:.5f}", record="[ Train | {e:03d}/006 ] loss = {x:.5f}, step = {i}"
    ):
        lines += [line, line + tail] if "Valid" in line and "002/" not in line else [line]
    summary = receipt_of([*lines, "wandb: valid_loss 3.0"])["summary"]
    assert summary["metrics"]["val_loss"]["record_count"] == EPOCHS
    assert summary["metrics"]["val_loss"]["last"] == 3.0


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("learning rate = {r:.7f}", "learning_rate"),
        ("->>lr:{r:.7f}", "learning_rate"),
        ("  current lr {r:.7f}", "learning_rate"),
        ("grad_norm: {r:.7f}", "grad_norm"),
    ],
)
def test_a_value_behind_each_epoch_is_that_of_its_last_record(line: str, name: str) -> None:
    found = read(run("End of epoch {e} / 6 \t Time Taken: 39{e}.4 sec", line))
    assert found[name] == pytest.approx((0.01, 0.01 / EPOCHS, EPOCHS), abs=1e-7)


def test_values_behind_each_record_are_of_it() -> None:
    record = "epoch:{e} || iter:{s} || Loss:{x:.4f}"
    each = "->> pal1 conf loss:{x:.4f} || pal1 loc loss:1.{s}"
    found = read(run(record=record, each=each))
    assert found["pal1_conf_loss"] == found["loss"]
    assert found["pal1_loc_loss"][2] == EPOCHS * STEPS


@pytest.mark.parametrize("line", ["best lr: {r:.7f}", "initial learning rate = 0.0{e}", "eval lr = {r:.7f}"])
def test_a_value_of_something_else_is_not_of_the_record(line: str) -> None:
    assert "learning_rate" not in read(run(line))


@pytest.mark.parametrize(
    "line",
    [
        "Now training epoch {e}. LR={r:.6f}",
        "Start epoch {e} ==========,lr={r:.6f}",
        "-- learning rate: {r:.6f}",
        "Epoch: {e:03d}/006 | Current Learning Rate: {r:.6f}",
    ],
)
def test_a_rate_before_each_epoch_is_that_of_its_first_record(line: str) -> None:
    ends = run()
    lines = []
    for e in range(1, EPOCHS + 1):
        lines += [line.format(e=e, r=0.01 / e), *ends[(e - 1) * STEPS : e * STEPS]]
    assert read(lines)["learning_rate"] == pytest.approx((0.01, 0.01 / EPOCHS, EPOCHS), abs=1e-6)


def test_a_rate_before_each_epoch_of_two_launches() -> None:
    """The last of two that were appended is told; their epochs begin again, and so do the lines before them."""
    launch = [f"epoch: {e} start, learning rate: 0.0{e + 1}\nepoch: {e} end, loss: {3 - e / 20:.3f}" for e in range(8)]
    summary = receipt_of(["Namespace(lr=0.1)", *launch, "Namespace(lr=0.1)", *launch])["summary"]
    assert summary["steps"]["record_count"] == 8
    assert (summary["metrics"]["learning_rate"]["first"], summary["metrics"]["learning_rate"]["last"]) == (0.01, 0.08)


def test_a_rate_before_an_epoch_that_never_came_is_none() -> None:
    ends = run()
    lines = []
    for e in range(1, EPOCHS + 1):
        lines += [f"Now training epoch {e}. LR=0.0{e}", *ends[(e - 1) * STEPS : e * STEPS]]
    assert read([*lines, "Now training epoch 7. LR=0.07"])["learning_rate"] == (0.01, 0.06, EPOCHS)


@pytest.mark.parametrize(
    "record", ["step {s} | g_loss {x:.4f} | d_loss 1.{i}", "step {s} reward {x:.4f}", "epoch {e} step {s} lr: {x:.4f}"]
)
def test_an_evaluation_needs_no_loss_of_training(record: str) -> None:
    found = read(run("Validation loss: {v:.4f} | si_sdr: 1.{e}", record=record))
    assert found["val_loss"] == pytest.approx((5.5, 3.0, EPOCHS))


def test_values_below_a_heading_are_of_the_record_above_them() -> None:
    lines = []
    for e in range(EPOCHS * STEPS):
        lines += [f"Epoch {e}", f"Training loss: {5 - e / 40:.4f}", f"Validation loss: {6 - e / 40:.4f}"]
        lines += [f"Training accuracy: {e / 100:.4f}", "Saving weights", f"grad_norm: 1.{e}"]
    found = read(lines)
    assert found["loss"] == (5.0, 3.225, 72)
    assert found["val_loss"] == (6.0, 4.225, 72)
    assert found["training_accuracy"] == (0.0, 0.71, 72)
    assert found["grad_norm"] == (1.0, 1.71, 72)


@pytest.mark.parametrize(
    "line",
    [
        "[Val] Epoch: {e}, Loss: {v:.4f}",
        "Epoch {e}/6 - Valid accuracy: {a:.3f}",
        "Validation - epoch={e} loss={v:.4f} acc={a:.3f}",
    ],
)
def test_the_epoch_of_an_evaluation_is_no_figure_of_it(line: str) -> None:
    found = read(run(line))
    assert not [name for name in found if "poch" in name and name != "epoch"]
    assert {"val_loss", "eval/Valid accuracy"} & found.keys()


@pytest.mark.parametrize(
    "record",
    [
        "step {s} | loss {x:.4f} | sep -2.{i} | phase_l 0.0{i} | rss 1283MB | 1.52s",
        "Epoch {e} step {s} - loss {x:.4f}, sep -2.{i}, phase_l 0.0{i}, note 17",
        "[{s}]\tloss {x:.4f}\tsep -2.{i}\tphase_l 0.0{i}",
    ],
)
def test_figures_that_no_separator_parts_from_their_names_are_kept(record: str) -> None:
    found = read(run(record=record))
    assert (found["sep"], found["phase_l"]) == ((-2.1, -2.12, 72), (0.01, 0.012, 72))
    assert {"rss", "note", "val_sep"}.isdisjoint(found)


@pytest.mark.parametrize(
    "record",
    [
        "step {s} loss {x:.4f} | val sep 2.{i}",
        "step {s} loss {x:.4f} | a 1.{i} | b 2.0 a 3.{i}",
        "step {s} loss {x:.4f} | every 2.{i}",
    ],
)
def test_figures_that_are_no_such_are_left_alone(record: str) -> None:
    assert {"val_sep", "sep", "a_2", "every"}.isdisjoint(read(run(record=record)))


def test_scores_behind_each_record_are_of_it() -> None:
    record = "epoch: {e}, iter: {s}, lr=0.1, tr_loss: {x:.3f}"
    found = read(run(record=record, each="standard acc: {i}.5%, robustness acc: 1{i}.25%"))
    assert found["standard_acc"] == pytest.approx((0.015, 0.125, 72))
    assert found["robustness_acc"] == pytest.approx((0.1125, 1.1225, 72))


def test_scores_below_a_line_that_announces_an_evaluation() -> None:
    found = read(run("  Validation measures:", "    accuracy = {a:.4f}, AUC = 0.9{e}, F1 = 0.6{e}"))
    assert found["eval/accuracy"] == (0.55, 0.8, EPOCHS)
    assert found["eval/AUC"] == (0.91, 0.96, EPOCHS)
