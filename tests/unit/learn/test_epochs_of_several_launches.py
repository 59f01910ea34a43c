"""A counter that begins again below a heading counts within an epoch, though launches were cut in between."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import receipt_cli

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
