"""A bar has the name of the next epoch before it is reset: its full frame is no record of that epoch, and no restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.tools.logs import receipt_of as read

Receipt = Callable[..., dict[str, Any]]


def frame(epoch: int, step: int, steps: int, loss: float, more: str) -> str:
    share = 100 * step // steps
    bar = f"{share:3d}%|{'#' * (share // 10):10}| {step}/{steps} [02:36<00:00,  1.26it/s"
    return f"Epoch {epoch}: {bar}, loss={loss:.3f}, v_num=14{more}]"


def log(epochs: int, steps: int, every: int, *, stale: int, more: str = "", end: str = "\n") -> str:
    lines = []
    for epoch in range(epochs):
        before = 4 - epoch / 100
        lines += [frame(epoch, steps, steps, before, more)] * stale if epoch else []
        lines += [frame(epoch, n, steps, before - n / steps / 100, more) for n in range(every, steps + 1, every)]
        lines += [lines[-1]] * (epoch % 3)  # drawn again behind the evaluation
    return end.join(lines) + "\n"


@pytest.mark.parametrize("more", ["", ", val_loss=0.913"])
@pytest.mark.parametrize(("epochs", "steps", "every"), [(2, 198, 99), (10, 200, 100), (12, 400, 10), (3, 900, 3), (100, 40, 20)])
def test_a_frame_of_the_epoch_before_is_none_of_the_next(
    receipt_of: Receipt, epochs: int, steps: int, every: int, more: str
) -> None:
    plain = receipt_of(log(epochs, steps, every, stale=0, more=more))
    found = receipt_of(log(epochs, steps, every, stale=1, more=more))
    figures = [
        (
            s["steps"]["first"],
            s["steps"]["last"],
            s["steps"]["record_count"],
            s["steps"]["restart_count"],
            s["steps"]["superseded_count"],
        )
        for s in (plain["summary"], found["summary"])
    ]
    assert figures[0] == figures[1] == (every, epochs * steps, epochs * (steps // every), 0, 0)
    assert found["summary"]["metrics"]["loss"]["first"] == plain["summary"]["metrics"]["loss"]["first"]
    assert found["summary"]["metrics"]["loss"]["last"] == plain["summary"]["metrics"]["loss"]["last"]
    assert found["checks"]["steps_monotonic"] is True


def test_an_epoch_that_begins_again_is_a_restart(receipt_of: Receipt) -> None:
    """Its bar was full twice: the second time in a launch of its own."""
    text = log(3, 100, 10, stale=0)
    again = "\n".join(frame(2, n, 100, 3, "") for n in range(10, 101, 10))
    assert receipt_of(f"{text}{again}\n")["summary"]["steps"]["restart_count"] == 1


def _bar(count: int, loss: float) -> str:
    return f"Training progress: {count:3}%|##   | {count}/100 [00:0{count % 7}<00:09, 9.0{count % 7}it/s, Loss={loss:.5f}]\r"


@pytest.mark.parametrize(
    ("early", "first", "last"), [(True, 0.99, 0.9), (False, 0.99, 0.9)], ids=["before it counts", "after it counted"]
)
def test_a_bar_shows_a_loss_before_or_after_it_counts_the_step(early: bool, first: float, last: float) -> None:
    """A loop that sets the loss and then counts draws it at the step before, and again at its own."""
    losses = {count: 1 - count / 1000 for count in range(10, 110, 10)}
    drawn = [_bar(0, losses[10])] if early else []
    for count, loss in losses.items():
        drawn.append(_bar(count, loss if early else losses.get(count - 10, loss)))
        drawn.append(_bar(count, losses.get(count + 10, loss) if early else loss))
    summary = read("".join(drawn) + "\n", "gaussian-splatting")["summary"]
    found = summary["metrics"]["loss"]
    assert (found["first"], found["last"], found["record_count"]) == (first, last, 10)
    assert (summary["steps"]["first"], summary["steps"]["last"]) == (10, 100)
