"""A checkpoint is of the step that its own line names, and one of the last planned step proves that the run got there."""

from typing import Any

import pytest

from tests.tools.logs import receipt_of

NEWER = (
    "Snapshotting to binary proto file ./output/poly_iter_{0}.caffemodel",
    "binary proto file ./output/poly_iter_{0}.solverstate",
)
HDF5 = (
    "Snapshotting to HDF5 file snap/v2_iter_1/net_iter_{0}.caffemodel.h5",
    "HDF5 file snap/v2_iter_1/net_iter_{0}.solverstate.h5",
)
OLDER = ("Snapshotting to lenet_iter_{0}", "lenet_iter_{0}.solverstate")


def caffe(forms: tuple[str, str], saved: tuple[int, ...], last: int, *end: str) -> str:
    """Return a log of Caffe: a record each 500 iterations up to ``last`` of 4,000, snapshots before the records of ``saved``."""
    head = "I0614 05:05:{0:02d}.569707  1860 "
    lines = ["max_iter: 4000", "Solving begins ..."]
    for at in range(0, 4001, 500):
        second = at // 100
        if at in saved:
            lines.append(f"{head.format(second)}solver.cpp:454] {forms[0].format(at)}")
            lines.append(f"{head.format(second)}sgd_solver.cpp:273] Snapshotting solver state to {forms[1].format(at)}")
        if at <= last:
            lines.append(f"{head.format(second)}solver.cpp:228] Iteration {at}, loss = {3 - at / 2000:.5f}")
            lines.append(f"{head.format(second)}sgd_solver.cpp:106] Iteration {at}, lr = 0.001")
    return "\n".join([*lines, *end, ""])


@pytest.mark.parametrize("forms", [NEWER, HDF5, OLDER], ids=["newer", "HDF5", "older"])
def test_a_snapshot_of_caffe_is_of_the_iteration_in_its_name(forms: tuple[str, str]) -> None:
    saved = receipt_of(caffe(forms, (1000, 2000, 3000), 3500))["summary"]["checkpoints"]
    assert [one["step"] for one in saved["latest"]] == [1000, 2000, 3000]
    assert saved["count"] == 3
    assert saved["unsaved_step_count"] == 500


@pytest.mark.parametrize("forms", [NEWER, HDF5, OLDER], ids=["newer", "HDF5", "older"])
def test_a_checkpoint_of_the_last_planned_step_is_the_end(forms: tuple[str, str]) -> None:
    document = receipt_of(caffe(forms, (2000, 4000), 3500, "Solving done ..."))
    assert document["summary"]["checkpoints"]["last_step"] == 4000
    assert document["checks"]["completed"] is True
    assert document["failure"] is None


def test_one_of_a_step_before_it_is_not() -> None:
    document = receipt_of(caffe(NEWER, (2000, 3500), 3000))
    assert document["failure"]["reason"] == "truncated"


def test_records_behind_it_count() -> None:
    resumed = caffe(NEWER, (4000,), 3500) + "I0615 05:05:01.569707  1860 solver.cpp:228] Iteration 500, loss = 2.70000\n"
    assert receipt_of(resumed)["checks"]["completed"] is not True


D2 = (
    "[03/05 09:12:{0:02d} d2.utils.events]:  eta: 0:00:50  iter: {1}  total_loss: 2.483  loss_cls: 1.041  time: 0.2135  lr: 0.002"
)
MM = "2026-11-21 07:37:{0:02d},569 - mmdet - INFO - Iter [{1}/400]\tlr: 4.123e-02, eta: 0:00:00, time: 0.001, loss: 0.4480"
MME = "11/21 07:28:{0:02d} - mmengine - INFO - Iter(train) [{1}/400]  lr: 1.0000e-01  eta: 0:00:02  time: 0.0007  loss: 0.5059"
JOEY = (
    "2026-11-21 07:52:{0:02d},131 - INFO - joeynmt.training - Epoch   1, Step: {1:8d}, Batch Loss: 2.861, "
    "Batch Acc: 0.161, Tokens per Sec: 900, Lr: 0.0003"
)
SWIFT = (
    "{{'loss': 1.71, 'grad_norm': 2.8, 'learning_rate': 4.75e-05, 'epoch': 0.1, 'global_step/max_steps': '{1}/400', "
    "'elapsed_time': '1m 4s', 'remaining_time': '1m 0s', 'memory(GiB)': 20.1, 'train_speed(s/it)': 3.0}}"
)
HF = "{{'loss': 2.5, 'learning_rate': 4.9e-05, 'epoch': 0.5}}\n {1}%|##   | {1}/400 [00:{0:02d}<00:01, 67.17it/s]"
BAR = "Steps:  {1}%|#####     | {1}/400 [00:{0:02d}<00:00, 42.34it/s, lr=0.001, step_loss=1.2]"
NAMED = [
    ("detectron2", D2, "[03/05 09:12:51 fvcore.common.checkpoint]: Saving checkpoint to ./output/model_0000099.pth", 99),
    ("detectron2", D2, "[03/05 09:12:51 fvcore.common.checkpoint]: Saving checkpoint to ./output/model_best.pth", 80),
    ("mmcv", MM, "2026-11-21 07:37:51,581 - mmdet - INFO - Saving checkpoint at 100 iterations", 100),
    ("mmengine", MME, "11/21 07:28:51 - mmengine - INFO - Saving checkpoint at 100 iterations", 100),
    ("joeynmt", JOEY, "2026-11-21 07:52:51,142 - INFO - joeynmt.training - Checkpoint saved in models/tiny/96.ckpt.", 96),
    ("ms-swift", SWIFT, "[INFO:swift] Saving model checkpoint to /data/out/v0-20251103-091155/checkpoint-96", 96),
    ("hf-trainer", HF, "[INFO|trainer.py:3410] 2024-05-05 10:00:51,100 >> Saving model checkpoint to out/checkpoint-96", 96),
    ("hf-trainer", HF, "Saving model checkpoint to base/checkpoint-5000/out", 80),
    ("diffusers", BAR, "11/21/2026 07:28:57 - INFO - __main__ - [RANK 0] Saved state to sd-out/checkpoint-96", 96),
]


@pytest.mark.parametrize(("grammar", "record", "line", "want"), NAMED)
def test_a_checkpoint_between_two_records(grammar: str, record: str, line: str, want: int) -> None:
    lines = [record.format(at // 20, at) for at in range(20, 401, 20)]
    document = receipt_of("\n".join([*lines[:4], line, *lines[4:], ""]), grammar=f"{grammar}@v2")
    assert document["summary"]["checkpoints"]["last_step"] == want


def test_a_last_line_without_a_step_is_of_the_checkpoint_before_it() -> None:
    lines = [HF.format(at // 20, at) for at in range(20, 401, 20)]
    saved = ["Saving model checkpoint to out/checkpoint-412", "Saving model checkpoint to out"]
    checkpoints = receipt_of("\n".join([*lines, *saved, ""]), grammar="hf-trainer@v2")["summary"]["checkpoints"]
    assert (checkpoints["count"], checkpoints["last_step"]) == (1, 412)


def fields_of(document: dict[str, Any], kind: str) -> set[str]:
    problems = document["derivation"]["problems"]["first"]
    return {field.rpartition("/summary/")[2] for problem in problems if problem["kind"] == kind for field in problem["fields"]}


def test_what_is_unsaved_is_unknown_where_another_checkpoint_begins() -> None:
    lines = [MM.format(at // 20, at) for at in range(20, 301, 20)]
    lines.insert(5, "2026-11-21 07:37:51,581 - mmdet - INFO - Saving checkpoint at 100 iterations")
    document = receipt_of("\n".join([*lines, "writing checkpoint shards of the optimizer", ""]), grammar="mmcv@v2")
    assert document["summary"]["checkpoints"]["unsaved_step_count"] is None
    assert fields_of(document, "checkpoint_begun") == {"checkpoints/unsaved_step_count", "checkpoints/unsaved_time_s"}


def test_a_checkpoint_of_a_step_far_ahead_is_of_no_known_step() -> None:
    lines = [*(D2.format(at // 20, at) for at in range(20, 301, 20)), D2.format(16, 90_000)]
    line = "[03/05 09:12:51 fvcore.common.checkpoint]: Saving checkpoint to ./output/model_best.pth"
    document = receipt_of("\n".join([*lines, line, ""]), grammar="detectron2@v2")
    saved = document["summary"]["checkpoints"]
    assert (saved["last_step"], saved["latest"][-1]["step"]) == (None, None)
    assert {"steps/last", "checkpoints/last_step", "checkpoints/latest/0/step"} <= fields_of(document, "step_jump")
