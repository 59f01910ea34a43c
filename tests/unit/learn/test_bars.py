"""Bars of tqdm in logs that no grammar knows: with scaled units, without a total, beyond it, and those of a validation.

A bar whose unit is scaled prints ``3.00/171`` and ``88.0/171``, and is often inside a bar of epochs (tqdm.keras). One that
does not know its total prints ``15it``, as does one that goes on behind it.
"""

from typing import Any

import pytest

from tests.tools.logs import receipt_of


def scaled(count: int) -> str:
    """Return a count below 1,000 as tqdm's ``format_sizeof`` prints it."""
    return f"{count:.2f}" if count < 10 else f"{count:.1f}" if count < 100 else str(count)


def bar(count: str, total: int, share: int, unit: str, figures: str) -> str:
    return f"{share:3d}%|{'#' * (share // 10):10}| {count}/{total} [00:{share % 60:02d}<00:25, 6.58{unit}/s{figures}]"


def nested(epochs: int, steps: int, head: str = "") -> tuple[str, list[float]]:
    """Return a log of a bar of epochs around bars of steps, and the loss of each epoch."""
    lines, losses = [head + bar("0", epochs, 0, "epoch", "")], []
    for epoch in range(epochs):
        for step in range(steps + 1):
            loss = 5 - epoch / 2 - step / steps / 4
            figures = f", accuracy={1 - loss / 6:.3g}, loss={loss:.3g}" if step or epoch else ""
            lines.append(head + bar(scaled(step), steps, 100 * step // steps, "batch", figures))
        losses.append(float(f"{loss:.3g}"))
        done = f", accuracy={1 - loss / 6:.3g}, loss={loss:.3g}, val_accuracy={0.9 - loss / 6:.3g}, val_loss={loss + 0.3:.3g}"
        lines += [f"{head}Epoch {epoch + 1}: ", head + bar(str(epoch + 1), epochs, 100 * (epoch + 1) // epochs, "epoch", done)]
    return "\n".join(lines) + "\n", losses


def read(text: str) -> dict[str, Any]:
    return receipt_of(text)["summary"]


@pytest.mark.parametrize(("epochs", "steps", "head"), [(10, 171, "2025-06-14 22:56:55 - INFO - "), (5, 120, ""), (8, 300, "")])
def test_the_epochs_of_nested_bars_are_the_records(epochs: int, steps: int, head: str) -> None:
    text, losses = nested(epochs, steps, head)
    summary = read(text)
    found = summary["steps"]
    assert (found["first"], found["last"], found["planned"], found["record_count"]) == (1, epochs, epochs, epochs)
    assert (summary["metrics"]["loss"]["first"], summary["metrics"]["loss"]["last"]) == (losses[0], losses[-1])


@pytest.mark.parametrize("steps", [40, 171, 700])
def test_a_scaled_bar_counts_whole_steps(steps: int) -> None:
    lines = [bar(scaled(n), steps, 100 * n // steps, "batch", f", loss={4 - n / steps:.4f}") for n in range(1, steps + 1)]
    summary = read("\n".join(lines) + "\n")
    found = summary["steps"]
    assert (found["first"], found["last"], found["planned"], found["record_count"]) == (1, steps, steps, steps)
    assert summary["metrics"]["loss"]["last"] == 3.0


def open_bar(name: str, count: int, loss: float) -> str:
    return f"{name}{count}it [00:{count % 60:02d}, 1.52it/s, loss={loss:.2f}, lr=0.001]"


@pytest.mark.parametrize("name", ["", "Training: ", "Pretraining the decoder: "])
def test_a_bar_without_a_total_counts(name: str) -> None:
    frames = [open_bar(name, n, 90 - n - again / 10) for n in range(1, 51) for again in (0, 1)]
    summary = read("\n".join(frames) + "\n")
    found = summary["steps"]
    assert (found["first"], found["last"], found["planned"], found["record_count"]) == (1, 50, None, 50)
    assert (summary["metrics"]["loss"]["first"], summary["metrics"]["loss"]["last"]) == (88.9, 39.9)


@pytest.mark.parametrize("name", ["Epoch {}: ", "Epoch {}/3: ", "train | epoch {} | "])
def test_its_records_are_those_of_numbered_epochs(name: str) -> None:
    lines = [open_bar(name.format(epoch), n, 99 - 20 * epoch - n / 9) for epoch in (1, 2, 3) for n in range(1, 31)]
    summary = read("\n".join(lines) + "\n")
    assert (summary["steps"]["last"], summary["steps"]["record_count"]) == (None, 90)
    assert (summary["metrics"]["epoch"]["last"], summary["metrics"]["loss"]["last"]) == (3, 35.67)


@pytest.mark.parametrize("name", ["Epoch {}: ", "Epoch {}/3: ", "train | epoch {} | "])
def test_they_are_not_counted_where_a_step_has_several_frames(name: str) -> None:
    pairs = [(epoch, n, again) for epoch in (1, 2, 3) for n in range(1, 31) for again in (0, 1)]
    lines = [open_bar(name.format(epoch), n, 99 - 20 * epoch - n / 9 - again) for epoch, n, again in pairs]
    assert receipt_of(lines)["summary"] is None


@pytest.mark.parametrize("name", ["Validation: ", "Testing: ", "Evaluating: "])
@pytest.mark.parametrize("total", [None, 50])
def test_a_bar_of_a_validation_is_no_training(name: str, total: int | None) -> None:
    losses = [(n, 90 - n) for n in range(1, 51)]
    frames = [
        name + bar(str(n), total, 2 * n, "it", f", loss={loss:.2f}") if total is not None else open_bar(name, n, loss)
        for n, loss in losses
    ]
    assert receipt_of(frames)["summary"] is None


@pytest.mark.parametrize("name", ["[fold_1] {}/10: ", "[run 3] {}/10: ", "cell 7 [{}/10] "])
def test_bars_that_go_on_behind_their_total_are_not_read_up_to_it(name: str) -> None:
    lines = []
    for epoch in range(1, 11):
        head = name.format(epoch)
        for n in range(20):
            frame = bar(str(n), 14, 100 * n // 14, "it", f", loss={99 - 5 * epoch - n / 10:.2f}") if n <= 14 else ""
            lines.append(head + frame if frame else open_bar(head, n, 99 - 5 * epoch - n / 10))
        lines.append(f"Epoch {epoch} Loss: {95 - 5 * epoch:.4f}")
    summary = read("\n".join(lines) + "\n")
    assert (summary["steps"]["last"], summary["steps"]["record_count"], summary["metrics"]["loss"]["last"]) == (10, 10, 45)
