"""Records that begin as those of a training do, in a log that no grammar knows, and are none of its steps."""

import random
from typing import Any

from tests.tools.logs import receipt_of

HEAD = "2025-03-02 05:16:20,962 - INFO - "


def read(lines: list[str]) -> tuple[dict[str, Any], list[str]]:
    document = receipt_of(lines)
    return document["summary"], document["derivation"]["problems"]


def test_the_mean_of_each_epoch_is_no_batch() -> None:
    rng = random.Random(1)
    for epochs in (2, 3, 9):
        lines, losses = [], []
        for epoch in range(1, epochs + 1):
            lines.append(f"{HEAD}##### Epoch {epoch} #####")
            for _ in range(40):
                losses.append(round(8 / epoch + rng.random(), 4))
                lines.append(f"{HEAD}Epoch {epoch} - Batch loss: {losses[-1]:.4f}")
            lines.append(f"{HEAD}Epoch {epoch} - Average Train Loss: {sum(losses[-40:]) / 40:.4f}")
        summary, _ = read(lines)
        assert summary["steps"]["record_count"] == len(losses), epochs
        assert (summary["metrics"]["loss"]["first"], summary["metrics"]["loss"]["last"]) == (losses[0], losses[-1])


def trained(epochs: int = 6) -> tuple[list[str], list[float]]:
    """Return the lines of a training, in the form of PaddleRec, and its losses."""
    rng = random.Random(2)
    losses = [round(0.5 / (1 + at // 4) + 0.01 * rng.random(), 6) for at in range(4 * epochs)]
    lines = [
        f"{HEAD}epoch: {at // 4}, batch_id: {at % 4 * 500}, AUC:{rng.random():f}, ACC:{rng.random():f}, loss:{loss}, "
        f"avg_batch_cost: {rng.random():.5f} sec, ips: {rng.uniform(900, 999):.5f} ins/s"
        for at, loss in enumerate(losses)
    ]
    return lines, losses


def inferred(*epochs: int) -> list[str]:
    """Return the lines of an inference with the saved models, in the form of PaddleRec."""
    rng, lines = random.Random(3), []
    for epoch in epochs:
        lines += [
            f"{HEAD}load model epoch {epoch}",
            f"{HEAD}epoch: {epoch}, batch_id: 0, AUC: {rng.random():f},ACC: {rng.random():f}, "
            f"avg_batch_cost: {rng.random():.5f} sec, ips: {rng.uniform(900, 999):.5f} ins/s",
        ]
    return lines


def test_an_inference_that_prints_no_loss_is_no_restart() -> None:
    lines, losses = trained()
    for before, behind in (([], inferred(3, 4, 5)), (inferred(0, 1, 2), []), ([], inferred(0))):
        summary, _ = read([*before, *lines, *behind])
        steps, loss = summary["steps"], summary["metrics"]["loss"]
        assert (steps["record_count"], steps["restart_count"], steps["superseded_count"]) == (len(losses), 0, 0)
        assert (loss["first"], loss["last"]) == (losses[0], losses[-1])


def test_records_between_that_print_no_loss_are_steps() -> None:
    lines, losses = trained()
    bare = [line.replace(f" loss:{losses[at]},", "") if at % 4 == 2 else line for at, line in enumerate(lines)]
    summary, _ = read(bare)
    assert summary["steps"]["record_count"] == len(losses)
    assert summary["metrics"]["loss"]["record_count"] == len(losses) * 3 // 4
