"""Lines around the records: what announces an evaluation, and what begins another launch."""

import pytest

from receipt_cli.derive import Derivation
from tests.tools.logs import learned_of

Figures = tuple[int, float | None, float | None]


def figures(derivation: Derivation) -> Figures:
    """Return step records, first and last loss."""
    assert derivation.primary is not None
    summary = derivation.summaries[derivation.primary]
    loss = summary.metrics.get("loss")
    return summary.record_count, loss.first if loss else None, loss.last if loss else None


ANNOUNCED = {
    "the tutorial's test": ("Test Error: ", " Accuracy: 4{e}.5%, Avg loss: 9.{e}"),
    "a rule of stars": ("***** Running Evaluation *****", "loss = 9.{e}, acc = 0.5{e}"),
    "with the epoch": ("--- validating epoch {e} ---", "mean loss 9.{e}, accuracy 0.5{e}"),
    "in Chinese": ("开始验证", "平均 loss: 9.{e}, accuracy: 0.5{e}"),
}


@pytest.mark.parametrize("name", ANNOUNCED)
def test_what_a_line_announces_as_an_evaluation_is_no_training(name: str) -> None:
    heading, result = ANNOUNCED[name]
    lines: list[str] = []
    for epoch in range(1, 6):
        lines += [f"Epoch {epoch}", "-" * 31]
        lines += [f"loss: {4 - epoch / 10 - i / 100:.4f}  [{64 + 640 * i:5d}/ 6400]" for i in range(10)]
        lines += [heading.format(e=epoch), result.format(e=epoch), ""]
    assert figures(learned_of(lines)) == (50, 3.9, 3.41)


ALIKE = "epoch: {e},  loss is: {x:.3f}, acc is: 0.4{e}"


@pytest.mark.parametrize("before", [[], ["testing in eval mode……", ALIKE.format(e=0, x=9.5)]])
def test_what_only_the_line_before_it_tells_from_training_is_an_evaluation(before: list[str]) -> None:
    lines: list[str] = [*before]
    for epoch in range(9):
        lines += [ALIKE.format(e=epoch, x=2 - epoch / 10), "testing in eval mode……"]
        lines += [ALIKE.format(e=epoch, x=3 - epoch / 10), "Now continue training……"]
    found = learned_of(lines)
    assert figures(found) == (9, 2.0, 1.2)
    validation = found.summaries[found.primary or 0].metrics["val_loss"]
    assert (validation.record_count, validation.last) == (9 + len(before) // 2, 2.2)


def test_where_two_records_follow_the_line_neither_is_read() -> None:
    lines: list[str] = []
    for epoch in range(9):
        lines += [ALIKE.format(e=epoch, x=2 - epoch / 10), "testing in eval mode……"]
        lines += [ALIKE.format(e=epoch, x=value - epoch / 10) for value in (3, 4)]
    assert learned_of(lines).primary is None


@pytest.mark.parametrize(
    "lines",
    [("epoch {e} loss {x:.2f}", "Evaluating ..."), ("Start training", "epoch {e} loss {x:.2f}")],
    ids=["no result", "banner"],
)
def test_lines_around_each_epoch_leave_its_record_alone(lines: tuple[str, str]) -> None:
    log = [line.format(e=epoch, x=3 - epoch / 10) for epoch in range(1, 9) for line in lines]
    assert figures(learned_of(log)) == (8, 2.9, 2.2)


@pytest.mark.parametrize(
    "banner", ["start training", "2026-01-02 03:04:05 - INFO - Begin training from scratch", "args: Namespace(lr=0.1, seed=1)"]
)
def test_of_launches_that_introduce_themselves_the_last_is_read(banner: str) -> None:
    first = [f"epoch: {n} end, loss: {5 - n / 10:.2f}" for n in range(4)]
    second = [f"epoch: {n} end, loss: {4 - n / 10:.2f}" for n in range(12)]
    assert figures(learned_of([banner, *first, "Killed", banner, *second])) == (12, 4.0, 2.9)


def test_a_word_behind_a_counter_belongs_to_what_follows() -> None:
    lines = [f"Epoch {n // 5} batch {n % 5 * 20} train Loss {4 - n / 10:.2f} test AUC 0.5{n}" for n in range(20)]
    assert figures(learned_of(lines)) == (20, 4.0, 2.1)


def test_the_tokens_of_a_step_are_no_step() -> None:
    lines = [f"{{'loss': {3 - n / 100:.2f}, 'lr': 0.1, 'tokens_this_step': {1000 + n * 7}}}" for n in range(20)]
    derivation = learned_of(lines)
    assert derivation.primary is not None
    assert derivation.summaries[derivation.primary].first is None


def test_a_step_that_does_not_count_up_is_in_doubt() -> None:
    numbers = [1, 2, 1, 2, 1, 2, 1, 1, 2, 1, 2, 1, 1, 2, 1, 2, 1, 2]
    lines = [f" step:  {n}  loss:  {3 - at / 100:.2f}  grad_norm: 0.1" for at, n in enumerate(numbers)]
    assert learned_of(lines).primary is None


def test_epochs_inside_of_rounds_are_no_records_of_the_run() -> None:
    lines: list[str] = []
    for turn in range(1, 11):
        lines += [f"Update Epoch: {inner} [{inner * 10}/600 ({inner}%)]\tLoss: 9.{turn}{inner}" for inner in range(3)]
        lines += [f"Round {turn:3d}, Average loss {4 - turn / 10:.3f}"]
    assert figures(learned_of(lines)) == (10, 3.9, 3.0)


def test_an_epoch_s_line_may_have_its_learning_rate() -> None:
    lines: list[str] = []
    for epoch in range(8):
        lines += [f"[Epoch {epoch}] lr: 0.001", f"  train: loss={4 - epoch / 10}, acc=0.5{epoch}"]
        lines += [f"  valid: loss=9.{epoch}, acc=0.4"]
    assert figures(learned_of(lines)) == (8, 4.0, 3.3)


def test_an_evaluation_that_counts_for_itself_is_no_training() -> None:
    """Behind each announcement a counter of its own; the training has two lines a record."""
    lines: list[str] = []
    for epoch in range(4):
        for n in range(5):
            step = 5 * epoch + n + 1
            losses = f"lm_loss: {4 - step / 10:.4f}, ppl: 5{n}.5, loss: {5 - step / 10:.4f}"
            lines += [f"[run][1] update: {step}, time: 3.2{n}", f"\t{losses}"]
        lines += ["=" * 40, "Evaluation:"]
        lines += [f"\tstep {100 * (n + 1)}:lm_loss: 8.{n}{epoch}, ppl: 4{n}.5, loss: 9.{n}{epoch}" for n in range(12)]
        lines.insert(-3, "a worker of the training is slow")
    summaries = learned_of(lines).summaries
    assert not any("loss" in s.metrics and s.metrics["loss"].max > 9 for s in summaries)


CHECKOUT = ["git:", "  sha: N/A, status: clean, branch: N/A", ""]


def test_a_program_that_names_its_checkout_again_is_another_launch() -> None:
    """Two scripts in one log, with lines of other words: the last one is told."""
    first = [f"Epoch: [{e}/3]  [{i}/40]  loss: {9 - e - i / 100:.3f}  wd: 0.04{i}" for e in range(3) for i in range(0, 40, 4)]
    second = [f"Epoch: [{e}]  [{i}/20]  lr: 0.01  loss: {3 - e - i / 100:.3f}" for e in range(2) for i in range(0, 20, 4)]
    assert figures(learned_of([*CHECKOUT, *first, *CHECKOUT, *second])) == (10, 3.0, 1.84)


def test_epochs_that_lines_announce_are_counted_in_each_launch() -> None:
    lines: list[str] = []
    for launch in range(2):
        lines += [f"Namespace(lr=0.{launch + 1}, epochs=3)", "start training"]
        for epoch in range(1, 4):
            bar = "450/450 [==============================] - 4s 8ms/step"
            lines += [f"Epoch {epoch}/3", f"{bar} - loss: {3 - epoch / 2 - launch:.4f}"]
    derivation = learned_of(lines)
    assert [(s.record_count, s.first, s.last) for s in derivation.summaries][-1] == (3, 1, 3)
