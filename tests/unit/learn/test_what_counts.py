"""What counts in own scripts where it is told in an unusual way: headings, outer loops, glued bars, launches of another loss."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.tools.logs import receipt_of


def read(lines: list[str]) -> dict[str, Any]:
    """Return the steps (first, last, planned, records) and the first and the last value of each metric."""
    summary = receipt_of(lines)["summary"]
    steps = summary["steps"]
    series = {**summary["metrics"], **summary["other_metrics"]}
    found: dict[str, Any] = {name: (s["first"], s["last"]) for name, s in series.items()}
    return {**found, "steps": tuple(steps[name] for name in ("first", "last", "planned", "record_count"))}


@pytest.mark.parametrize(
    "line", ["Training Loss: {x:.4f}", "Average Training loss: {x:.10f}", "train_loss tensor({x:.4f}, device='cuda:0')"]
)
def test_a_loss_of_training_needs_no_counter(line: str) -> None:
    found = read([line.format(x=4 - k / 100) for k in range(50)])
    assert found == {"steps": (None, None, None, 50), "loss": (4.0, pytest.approx(3.51))}


@pytest.mark.parametrize(
    "line", ["Loss: {x:.4f}", "Training Loss: 0.5", "Test loss: {x:.4f}", "Trial {k}/50: lr={x:.4f} loss={x:.4f}"]
)
def test_other_losses_do(line: str) -> None:
    assert receipt_of(line.format(x=4 - k / 100, k=k) for k in range(50))["summary"] is None


def test_an_outer_loop_may_be_called_an_iteration_too() -> None:
    """The step begins again where the iteration rises; a launch resumed one of them."""
    lines, at = [], 0
    for _ in range(400):
        at += 100
        lines.append(f"iteration:{at // 1687 + 1} step:{at % 1687}/1687, NER loss:{9 - at / 20000:>9.6f}")
        at -= 1700 if len(lines) == 60 else 0
    found = read(lines)
    assert found["steps"][:2] == (100, at)
    assert found["loss"] == (pytest.approx(8.995), pytest.approx(9 - at / 20000))


def launches(*sizes: int, of: int = 10) -> Iterator[str]:
    for size in sizes:
        yield "Creating the model..."
        for e in range(1, size + 1):
            yield f"Epoch {e}/{of}"
            if e < size or size == of:
                yield f"- Train metrics: accuracy: 0.{40 + e} ; loss: {2 - e / 10:.3f}"
                yield f"- Eval metrics: accuracy: 0.{30 + e} ; loss: {3 - e / 10:.3f}"


@pytest.mark.parametrize("sizes", [(10,), (1, 1, 10), (3, 10), (10, 1, 10)])
def test_headings_of_launches_that_were_cut_have_no_record(sizes: tuple[int, ...]) -> None:
    found = read([*launches(*sizes)])
    assert (found["steps"], found["loss"], found["val_loss"]) == ((1, 10, 10, 10), (1.9, 1.0), (2.9, 2.0))


def blocks(epoch: str, batch: str, *rows: str, evaluated: str = "") -> Iterator[str]:
    for e in range(8):
        yield epoch.format(e=e)
        for i in range(10, 60, 10):
            yield batch.format(i=i)
            yield from (row.format(x=4 - e / 4 - i / 1000, a=(e * 50 + i) / 500) for row in rows)
        if evaluated:
            yield evaluated.format(e=e)
            yield f"eval mean loss: {5 - e / 4:.6f}"


@pytest.mark.parametrize(
    "form",
    [
        ("**** EPOCH {e:03d} ****", " ---- batch: {i:03d} ----", "mean loss: {x:.6f}", "accuracy: {a:.6f}"),
        ("Epoch {e}:", "step {i}", "loss = {x:.6f}", "accuracy = {a:.6f}"),
        ("===== epoch {e} =====", "iter: {i}", "train loss: {x:.6f}", "train acc: {a:.6f}"),
    ],
)
@pytest.mark.parametrize("evaluated", ["", "---- EVALUATION {e:03d} ----"])
def test_a_record_over_several_lines_is_of_the_epoch_before_it(form: tuple[str, ...], evaluated: str) -> None:
    found = read([*blocks(*form, evaluated=evaluated)])
    assert found["steps"][3] == 40
    assert (found["loss"], found["epoch"]) == ((pytest.approx(3.99), pytest.approx(2.2)), (0, 7))


@pytest.mark.parametrize("head", ["", "2025-10-07 09:19:06,331 - INFO - "])
def test_a_bar_may_be_glued_before_a_record(head: str) -> None:
    lines = []
    for e in range(1, 13):
        lines += [f"{head}Epoch {e}/20", "Training:   0%|          | 0/4 [00:00<?, ?it/s]"]
        lines.append(
            f"Training: 100%|██████████| 4/4 [00:00<00:00,  5.07it/s]{head}Train Loss: {3 - e / 10:.4f}, Train Acc: 7{e}%"
        )
        lines.append(f"Validation: 100%|████| 56/56 [00:00<00:00, 64.76it/s]{head}Val Loss: {4 - e / 10:.4f}, Val Acc: 6{e}%")
    found = read(lines)
    assert (found["steps"], found["loss"]) == ((1, 12, 20, 12), (2.9, 1.8))
    assert found["val_loss"] == (3.9, 2.8)


@pytest.mark.parametrize("bar", [" [====== {n}/{n} =====>]", "[{n}/{n}]", "{n}/{n}"])
def test_of_full_bars_in_turn_the_first_is_of_training(bar: str) -> None:
    lines = []
    for e in range(12):
        lines.append(f"\nEpoch: {e}")
        for total, loss in ((391, 3 - e / 10), (100, 4 - e / 10)):
            lines.append(bar.format(n=total) + f"  Step: 75ms | Tot: 43s169ms | Loss: {loss:.3f} | Acc: {40 + e}.5% (7671/50000)")
        lines.append("Saving..")
    found = read(lines)
    assert (found["steps"], found["loss"]) == ((0, 11, None, 12), (3.0, 1.9))


@pytest.mark.parametrize(
    ("before", "after"), [("Train MSE Loss", "Train MAE Loss"), ("loss", "Train Loss"), ("mse", "total loss")]
)
def test_a_later_launch_may_call_its_loss_otherwise(before: str, after: str) -> None:
    first = [f"Epoch {e}: {before}: {1 - e / 20:.6f}" for e in range(1, 11)]
    second = [f"Epoch {e}: {after}: {0.9 - e / 100:.6f}" for e in range(1, 41)]
    found = read([*first, "Loaded the encoder", *second])
    assert (found["steps"], found["loss"]) == ((1, 40, None, 40), (0.89, 0.5))


def test_figures_of_any_name_beside_an_epoch_are_a_record() -> None:
    lines = [f"Epoch [{e}/100] Recon: {1 / e:.4f} | KL: {40 / e:.4f} | Phys: 0.0001" for e in range(1, 61)]
    found = read(lines)
    assert (found["steps"], found["kl"]) == ((1, 60, 100, 60), (40.0, pytest.approx(0.6667)))


@pytest.mark.parametrize("name", ["Log-likelihood", "log likelihood"])
def test_a_likelihood_is_a_loss_that_rises(name: str) -> None:
    found = read([f"Finished Epoch {e}, {name}: {-67260417.5 + e * 100}" for e in range(30)])
    assert found["steps"] == (0, 29, None, 30)


@pytest.mark.parametrize(("word", "behind"), [("Train", ", "), ("train", ": "), ("Training", " | ")])
def test_what_begins_a_line_of_training_is_the_epoch(word: str, behind: str) -> None:
    lines = [f"{word} {e}{behind}loss: {3 - e / 20:.4f}, train acc: 0.4{e}" for e in range(30)]
    tests = [f"Test {e}{behind}loss: {4 - e / 20:.4f}, test acc: 0.3{e}" for e in range(30)]
    found = read([line for pair in zip(lines, tests, strict=True) for line in pair])
    assert (found["steps"], found["loss"]) == ((0, 29, None, 30), (3.0, 1.55))


def test_a_hyphen_joins_the_epoch_to_its_word() -> None:
    lines = [f"INFO:{e}-epoch ({i}/50): total loss {9 - e - i / 100:.6f}, lr 1.4e-4" for e in range(4) for i in range(4, 50, 5)]
    found = read(lines)
    assert found["epoch"] == (0, 3)
    assert (found["steps"][0], found["steps"][3], found["loss"]) == (4, 40, (8.96, pytest.approx(5.51)))


@pytest.mark.parametrize(
    "notice", ["Checkpoint saved -> ckpt_best.pt  (epoch {e}, loss {x:.4e})", "Saving model at epoch {e} with loss {x:.4e}"]
)
def test_a_notice_of_a_checkpoint_is_no_record(notice: str) -> None:
    lines = []
    for e in range(1, 101):
        lines += [notice.format(e=e, x=2 - e / 100)] if e % 4 else []
        lines += [f"epoch {e:6d} | loss {2 - e / 100:.4e} | lr 4.63e-05"] if not e % 5 else []
    found = read(lines)
    assert (found["steps"], found["loss"]) == ((5, 100, None, 20), (1.95, 1.0))


@pytest.mark.parametrize("word", ["Batch", "Step", "iter"])
def test_the_first_batch_of_an_epoch_is_not_the_epoch(word: str) -> None:
    lines = []
    for e in range(1, 21):
        lines += [
            f"Epoch {e} {word} 0 Loss {3 - e / 10:.4f} Accuracy 0.1{e}",
            f"Epoch {e} Loss {2.5 - e / 10:.4f} Accuracy 0.2{e}",
        ]
    found = read(lines)
    assert (found["steps"], found["loss"]) == ((1, 20, None, 20), (2.4, 0.5))


@pytest.mark.parametrize("epoch", ["[{e}/9]", "({e}/9)", "{e}/9 |"])
def test_a_fraction_before_the_named_counter_is_the_epoch(epoch: str) -> None:
    lines = [
        f"{epoch.format(e=e)} batch {i}/50 loss={9 - e / 2 - i / 100:.3f} lr=3.02e-04"
        for e in range(1, 10)
        for i in range(5, 51, 5)
    ]
    found = read(lines)
    assert (found["steps"], found["loss"]) == ((5, 450, 450, 90), (8.45, 4.0))


def test_an_iteration_that_begins_again_in_each_epoch_of_each_launch() -> None:
    """Launches were cut within the first epoch, or later; none prints how long an epoch is."""
    lines = []
    for launch, length in enumerate((3, 5, 2, 12, 1, 27)):
        places = [(e, i) for e in range(9) for i in range(1000, 8000, 1000)][:length]
        lines += [
            "Namespace(lr=0.1, epochs=9)",
            *(f"epoch {e}, iter {i}, avg. loss {9 - launch - e - i / 1e5:.2f}, speed 17.{e} words/sec" for e, i in places),
        ]
    found = read(lines)
    assert (found["steps"][3], found["epoch"], found["loss"]) == (27, (0, 3), (pytest.approx(3.99), pytest.approx(0.94)))


@pytest.mark.parametrize("rule", ["=====", "---- ", "### ", ""])
def test_parts_of_a_loss_below_the_line_of_an_epoch(rule: str) -> None:
    lines = []
    for e in range(1, 21):
        lines += [f"{rule}Epoch {e}", "Training...", f"Train: loss_R={20 / e:.6f}, loss_C=-{e}.493320, loss_S=1.{e}"]
        lines += [
            f"Validation: loss_R={30 / e:.6f}, loss_C=-{e}.4, loss_S=2.{e}",
            f"Test: loss_R={40 / e:.6f}, loss_C=-{e}.4, loss_S=2.{e}",
        ]
    found = read(lines)
    assert (found["steps"], found["loss_r"]) == ((1, 20, None, 20), (20.0, 1.0))


def test_short_launches_of_epochs_are_told_apart() -> None:
    lines = []
    for launch, (size, planned) in enumerate([(2, 3), (3, 3), (1, 3), (3, 3), (2, 10), (5, 10)]):
        lines.append(f"Config: {{'seed': 42, 'root': '{'x' * launch}'}}")
        for e in range(1, size + 1):
            lines.append(f"Epoch {e}/{planned}")
            if e < size or planned == 3:
                lines.append(f"Train loss: {9 - launch - e / 10:.4f}  acc: 0.{e}{launch}")
                lines.append(f"Eval  acc: 0.9{launch} ± 0.0010  loss: {launch + e / 10:.4f}")
    found = read(lines)
    assert (found["steps"], found["loss"]) == ((1, 4, 10, 4), (3.9, 3.6))


@pytest.mark.parametrize("epoch", ["{e:.2f} / 500", "{e:.4f} / 20"])
def test_a_part_of_an_epoch_before_the_step(epoch: str) -> None:
    lines = [
        f"Epoch {epoch.format(e=1 + i / 300)}, i = {i} / 6470500, lr= 0.001000, loss = {9 - i / 100:.6f}" for i in range(1, 201)
    ]
    found = read(lines)
    assert (found["steps"], found["loss"]) == ((1, 200, 6470500, 200), (8.99, 7.0))


def test_full_bars_between_a_heading_and_its_record() -> None:
    """The first record's heading was cut off: there are more bars than two of each epoch. It is of the epoch before."""
    lines = []
    for e in range(46, 90):
        lines += [f"Epoch [{e}/300]"] if e > 46 else []
        lines += [f"100%|####| {n}/{n} [00:4{e % 10}<00:00,  1.02it/s, loss={1 / e:.4f}, iou=0.{e}]" for n in (46, 11)]
        lines.append(f"loss {9 / e:.4f} - iou 0.{e} - val_loss {19 / e:.4f} - val_iou 0.0{e}")
    found = read(lines)
    assert found["steps"] == (46, 89, 300, 44)
    assert (found["loss"], found["val_loss"]) == ((0.1957, 0.1011), (0.413, 0.2135))


@pytest.mark.parametrize("heading", ["Epoch [1/10]", "Epoch 1 begins", "Epoch 0"])
def test_the_total_below_the_only_epoch_is_no_plan(heading: str) -> None:
    found = read([heading, *(f"Batch [{at}/80], loss: {2 - at / 80:.4f}" for at in range(1, 81)), "bye"])
    assert found == {"steps": (1, 80, None, 80), "loss": (pytest.approx(1.9875), 1.0)}


def test_a_total_that_the_number_of_epochs_divides_may_be_that_of_the_run() -> None:
    lines = [f"[TRAIN] epoch=1/80, iter={at}/37120, loss={9 - at / 100:.4f}, lr=0.001" for at in range(10, 300, 10)]
    assert read(lines)["steps"] == (10, 290, None, 29)
    assert read([line.replace("/37120", "/37121") for line in lines])["steps"] == (10, 290, 80 * 37121, 29)


@pytest.mark.parametrize(("first", "step"), [(0, 0), (1, 0), (10, None)])
def test_the_number_of_the_first_epoch_is_known_or_no_step_is(first: int, step: int | None) -> None:
    lines = [f"Epoch: [{first + e}] [{at}/50] loss {4 - e - at / 100:.4f}" for e in range(3) for at in range(0, 50, 10)]
    found = read(lines)
    assert (found["steps"][0], found["steps"][3], found["loss"]) == (step, 15, (4.0, pytest.approx(1.6)))


def test_a_line_that_begins_as_an_evaluation_is_one() -> None:
    lines = []
    for at in range(0, 200, 50):
        lines.append(f"iter {at:6d} | loss {2 - at / 200:.4f} | lr {at + 1:.2e}")
        lines += [f"  eval {at + n}: train {1.5 - at / 400:.4f} | val {1.6 - at / 400:.4f} | 1.71 bpc" for n in (20, 40)]
    found = read(lines)
    assert (found["steps"], found["loss"]) == ((0, 150, None, 4), (2.0, 1.25))


def test_few_records_are_not_the_training_beside_many_that_nothing_counts() -> None:
    lines = []
    for epoch in range(5):
        for at in range(50, 190, 10):
            lines.append(f"[Iter {at:03d}/187] current batch loss: {3 - epoch / 2 - at / 500:.4f}")
            lines += (
                [f"  [floor] Iter {epoch * 9 + 1}: Loss {2 - epoch / 3:.4f} but the rate is at its floor"] if at == 100 else []
            )
    assert receipt_of(lines)["summary"] is None


START = ["{at} INFO loading the data", "{at} INFO model with 4,810 parameters", "{at} INFO Starting training for 5 epoch(s)"]


def appended(counted: bool) -> list[str]:
    """Return three launches of a program that appends to its log, each shorter than the one before, and one without a step."""
    lines: list[str] = []
    for launch, records in enumerate([60, 50, 0, 40]):
        at = f"2026-03-0{launch + 2} 10:00:00"
        lines += [line.format(at=at) for line in START]
        shown = "epoch {k} " if counted else ""
        lines += [
            f"{at} INFO {shown.format(k=k + 1)}Average training loss: {3 - launch / 10 - k / 40:.4f}" for k in range(records)
        ]
    return lines


@pytest.mark.parametrize(("counted", "runs"), [(True, 4), (False, 3)])
def test_a_short_banner_that_comes_again_begins_a_run(counted: bool, runs: int) -> None:
    receipt = receipt_of(appended(counted))
    assert receipt["derivation"]["launches"]["count"] == runs
    summary = receipt["summary"]
    assert (summary["steps"]["record_count"], summary["steps"]["restart_count"]) == (40, 0)
    assert [summary["metrics"]["loss"][name] for name in ("first", "last")] == [2.7, pytest.approx(1.725)]


@pytest.mark.parametrize(("failed", "runs"), [(0, 2), (5, 7), (90, 2)])
def test_each_start_without_a_step_is_a_run_unless_there_are_too_many(failed: int, runs: int) -> None:
    lines: list[str] = []
    for launch in range(failed + 2):
        at = f"2026-03-0{1 + launch // 24} {launch % 24:02d}:00:00"
        lines += [line.format(at=at) for line in START]
        records = 40 if launch in (0, failed + 1) else 0
        lines += [f"{at} INFO epoch {k + 1} loss: {3 - bool(launch) / 10 - k / 40:.4f}" for k in range(records)]
    receipt = receipt_of(lines)
    assert (receipt["derivation"]["launches"]["count"], receipt["summary"]["steps"]["record_count"]) == (runs, 40)
    assert receipt["summary"]["metrics"]["loss"]["first"] == 2.9


@pytest.mark.parametrize("heading", ["=== my trainer v0.3 ===", "Fold {n}"])
def test_records_without_a_number_begin_anew_below_a_line_that_comes_again(heading: str) -> None:
    lines = [
        line
        for launch in range(3)
        for line in [heading.format(n=launch), *(f"train_loss={2 - launch / 50 - k / 10:.4f}" for k in range(9 + launch))]
    ]
    summary = receipt_of(lines)["summary"]
    assert (summary["steps"]["record_count"], summary["metrics"]["loss"]["first"]) == (11, 1.96)


def test_a_heading_that_counts_on_begins_no_run() -> None:
    lines = [line for turn in range(4) for line in [f"round {turn}", "sampling", *(f"loss {3 - turn / 4:.2f}" for _ in range(9))]]
    assert receipt_of(lines)["derivation"].get("launches") is None


def test_numbers_of_thousands_of_digits_count_nothing() -> None:
    """Python refuses to convert them."""
    long = 6000 * "9"
    start = ["loading the data", f"config {long}", "name x"]
    epochs = [f"epoch {at} loss {2 - at / 20:.3f}" for at in range(20)]
    log = [*start, *epochs, *start[:1], f"config {long[:-1]}8", *start[2:], *epochs]
    log += [f"Iter {long}{at} | ppl {at / 3:.3f} | loss ({at})" for at in range(5)]
    assert receipt_of(log)["summary"]["steps"]["last"] == 19
