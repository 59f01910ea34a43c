"""The counter of records: by step, by step inside an epoch, by epoch, or none."""

from collections.abc import Iterable
from typing import cast

import pytest

from receipt_cli.detect.generic import load_generic
from receipt_cli.learn.counting import ABSENT, EPOCHS, GLOBAL, PER_EPOCH
from receipt_cli.learn.reading import Reading
from receipt_cli.learn.readings import read_shape
from receipt_cli.learn.series import Group
from receipt_cli.learn.shapes import Miner
from tests.tools.logs import receipt_of

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
        ([f"epoch {n} loss: {x}" for n, x in enumerate(LOSSES, 1)], (EPOCHS, None, 0)),
        ([f"loss: {x}" for x in LOSSES], (ABSENT, None, None)),
    ],
    ids=["step", "step of an epoch", "epoch", "none"],
)
def test_records_are_counted_by_the_column_that_rises(lines: list[str], want: tuple[str, int | None, int | None]) -> None:
    assert mode(lines) == want


def test_the_main_reading_of_many_is_not_asked_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Group] = []
    main = vars(Group)["main"]

    def counted(group: Group) -> Reading:
        asked.append(group)
        return cast(Reading, main.fget(group))

    monkeypatch.setattr(Group, "main", property(counted))
    words = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot")
    log = [f"step {n} loss {5 - n / 100} of {' '.join(words[n // 6**k % 6] for k in range(4))}" for n in range(300)]
    assert receipt_of(log)["summary"]["steps"]["record_count"] == 300
    assert len(asked) < 40
