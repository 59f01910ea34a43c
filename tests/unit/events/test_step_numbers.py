"""Records without a step number get the one that the progress bar proves, and none where it proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("one_engine")

Receipt = Callable[..., dict[str, Any]]
END = "{'train_runtime': 10.0, 'train_samples_per_second': 3.0, 'train_steps_per_second': 1.0, 'train_loss': 1.0, 'epoch': 1.0}\n"


def bar(step: int, total: int = 100) -> str:
    return f"\r {step * 100 // total:2d}%|###       | {step}/{total} [00:10<01:10,  2.01s/it]"


def record(loss: float) -> str:
    return f"\n{{'loss': {loss}, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.5}}\n"


def run(numbers: Sequence[int], total: int = 100) -> str:
    """Return a log as a terminal shows it: bars of all steps up to the record's, the record, the bar redrawn."""
    return "".join(bar(n - 1, total) + record(9 - n / 100) + bar(n, total) for n in numbers) + "\n"


def found(document: dict[str, Any]) -> tuple[int | None, int | None, int]:
    steps = document["summary"]["steps"]
    return steps["first"], steps["last"], steps["record_count"]


def test_the_bar_after_each_record_names_its_step(receipt_of: Receipt) -> None:
    document = receipt_of(run(range(10, 101, 10)) + END)
    assert found(document) == (10, 100, 10)
    assert document["summary"]["steps"]["planned"] == 100


def test_the_first_record_may_stand_apart(receipt_of: Receipt) -> None:
    assert found(receipt_of(run([1, 10, 20, 30, 40]) + END)) == (1, 40, 5)


def test_restarts_are_found_where_the_bar_proves_them(receipt_of: Receipt) -> None:
    document = receipt_of(run([10, 20, 30, 40, 30, 40, 50]) + END)
    assert found(document) == (10, 50, 5)
    assert (document["summary"]["steps"]["restart_count"], document["summary"]["steps"]["superseded_count"]) == (1, 2)


def test_the_header_says_which_bar_is_the_runs(receipt_of: Receipt) -> None:
    head = "  Total optimization steps = 100\n"
    other = "".join(bar(n, 7) for n in range(8))  # an evaluation's bar
    log = head + "".join(bar(n - 1) + record(2.5) + other + bar(n) for n in (10, 20, 30)) + "\n" + END
    assert found(receipt_of(log)) == (10, 30, 3)


@pytest.mark.parametrize(
    "log",
    [
        "".join(bar(n) for n in range(101)) + "".join(record(2.5) for _ in range(5)),  # stdout buffered to the end
        "".join(record(2.5) for _ in range(5)) + "".join(bar(n) for n in range(101)) + "\n",
        "".join(record(2.5) + bar(n) for n in (10, 25, 30, 70)) + "\n",  # no stride
        "".join(record(2.5) for _ in range(5)),  # no bar
        "".join(record(2.5) + bar(n) for n in (10, 20, 30)) + record(2.5) + record(2.5) + bar(50) + "\n",  # one has none
        "".join(record(2.5) + bar(n) for n in (10, 20)) + "\n",  # too few to prove anything
    ],
)
def test_nothing_is_invented(receipt_of: Receipt, log: str) -> None:
    document = receipt_of(log + END)
    first, last, count = found(document)
    assert (first, last) == (None, None)
    assert count == log.count("'loss'")
    assert document["summary"]["metrics"]["loss"]["record_count"] == count


def test_a_printed_number_stands_over_the_bars(receipt_of: Receipt) -> None:
    line = '{{"loss": 2.5, "learning_rate": 4.0e-05, "epoch": 0.02, "step": {n}}}\n'
    log = "".join(line.format(n=n) + bar(n // 2) + "\n" for n in range(2, 22, 2))
    assert found(receipt_of(log + END)) == (2, 20, 10)


def test_bars_are_no_records(receipt_of: Receipt) -> None:
    document = receipt_of(run([10, 20, 30]) + END)
    assert document["summary"]["steps"]["record_count"] == 3
    lines = document["derivation"]["lines"]
    assert sum(lines.values()) == document["derivation"]["log"]["record_count"]
    assert lines["unmatched"] == 0
