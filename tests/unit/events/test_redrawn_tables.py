"""A table that is drawn again with each new row: its rows come again, which are no restarts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Receipt = Callable[..., dict[str, Any]]
HEAD = "Step (% Done)       Train Iter (time)    ETA (time)           Train Rays / Sec     \n"


def row(step: int, time: float) -> str:
    return f"{step} ({step / 4:.2f}%)".ljust(20) + f"{time:.3f} ms".ljust(21) + "12 m, 3 s".ljust(21) + "123.46 K             \n"


def counted(document: dict[str, Any]) -> tuple[int, int]:
    steps = document["summary"]["steps"]
    return steps["record_count"], steps["restart_count"]


def test_rows_that_come_again_with_their_times_are_copies(receipt_of: Receipt) -> None:
    rows = [row(10 * n, 31.5 + n / 8) for n in range(30)]
    log = "".join(HEAD + "".join(rows[max(0, n - 9) : n + 1]) for n in range(30))
    assert counted(receipt_of(log)) == (30, 0)


def test_a_launch_that_begins_again_prints_other_times(receipt_of: Receipt) -> None:
    first = "".join(row(10 * n, 31.5 + n / 8) for n in range(20))
    again = "".join(row(10 * n, 29.25 + n / 8) for n in range(12, 30))
    assert counted(receipt_of(HEAD + first + again)) == (30, 1)
