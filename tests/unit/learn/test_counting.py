"""The counter of records: by step, by step inside an epoch, by epoch, or none."""

from collections.abc import Iterable

import pytest

from receipt_cli.detect.generic import load_generic
from receipt_cli.learn.counting import ABSENT, EPOCHS, GLOBAL, PER_EPOCH, UNNUMBERED
from receipt_cli.learn.readings import read_shape
from receipt_cli.learn.shapes import Miner

LOSSES = [f"{3 - n / 50:.4f}" for n in range(60)]


def mode(lines: Iterable[str]) -> tuple[str, int | None, int | None]:
    miner = Miner(frozenset({b"loss"})).mine(["".join(f"{line}\n" for line in lines).encode()])
    (shape,) = miner.shapes.values()
    counter = read_shape(shape, load_generic()).counter
    return counter.mode, counter.step, counter.epoch


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        ([f"step {n} loss: {x}" for n, x in enumerate(LOSSES, 1)], (GLOBAL, 0, None)),
        ([f"epoch {n // 20 + 1} step {n % 20 + 1}/20 loss: {x}" for n, x in enumerate(LOSSES)], (PER_EPOCH, 1, 0)),
        ([f"epoch {n // 20 + 1} [{n % 20 * 80 + 8}/1597] loss: {x}" for n, x in enumerate(LOSSES)], (UNNUMBERED, 1, 0)),
        ([f"epoch {n // 20 + 1} [{n % 20 * 80 + 80}/1600] loss: {x}" for n, x in enumerate(LOSSES)], (PER_EPOCH, 1, 0)),
        ([f"epoch {n} loss: {x}" for n, x in enumerate(LOSSES, 1)], (EPOCHS, None, 0)),
        ([f"loss: {x}" for x in LOSSES], (ABSENT, None, None)),
        ([f"{n // 20 + 1:03}  {n + 1:05} |Loss: {x}" for n, x in enumerate(LOSSES)], (GLOBAL, 1, 0)),
        ([f"T{n // 20}: Ep {n % 20 + 1} loss: {x}" for n, x in enumerate(LOSSES)], (EPOCHS, None, 1)),
    ],
    ids=[
        "step",
        "step of an epoch",
        "samples of an epoch",
        "every 80th step",
        "epoch",
        "none",
        "epoch and step without names",
        "epoch of a task",
    ],
)
def test_records_are_counted_by_the_column_that_rises(lines: list[str], want: tuple[str, int | None, int | None]) -> None:
    assert mode(lines) == want
