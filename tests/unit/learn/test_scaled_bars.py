"""Bars of tqdm whose unit is scaled print ``3.00/171`` and ``88.0/171``, and are often inside a bar of epochs (tqdm.keras)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import receipt_cli


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


def read(tmp_path: Path, text: str) -> dict[str, Any]:
    path = tmp_path / "run.log"
    path.write_text(text)
    return receipt_cli.read(path).receipt["summary"]


@pytest.mark.parametrize(("epochs", "steps", "head"), [(10, 171, "2025-06-14 22:56:55 - INFO - "), (5, 120, ""), (8, 300, "")])
def test_the_epochs_of_nested_bars_are_the_records(epochs: int, steps: int, head: str, tmp_path: Path) -> None:
    text, losses = nested(epochs, steps, head)
    summary = read(tmp_path, text)
    found = summary["steps"]
    assert (found["first"], found["last"], found["planned"], found["record_count"]) == (1, epochs, epochs, epochs)
    assert (summary["metrics"]["loss"]["first"], summary["metrics"]["loss"]["last"]) == (losses[0], losses[-1])


@pytest.mark.parametrize("steps", [40, 171, 700])
def test_a_scaled_bar_counts_whole_steps(steps: int, tmp_path: Path) -> None:
    lines = [bar(scaled(n), steps, 100 * n // steps, "batch", f", loss={4 - n / steps:.4f}") for n in range(1, steps + 1)]
    summary = read(tmp_path, "\n".join(lines) + "\n")
    found = summary["steps"]
    assert (found["first"], found["last"], found["planned"], found["record_count"]) == (1, steps, steps, steps)
    assert summary["metrics"]["loss"]["last"] == 3.0
