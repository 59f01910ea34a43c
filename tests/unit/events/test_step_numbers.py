"""Records without a step number get the one that the progress bar proves, and none where it proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("one_engine")

Receipt = Callable[..., dict[str, Any]]
END = "{'train_runtime': 10.0, 'train_samples_per_second': 3.0, 'train_steps_per_second': 1.0, 'train_loss': 1.0, 'epoch': 1.0}\n"


def bar(step: int, total: int = 100) -> str:
    return f"\r {step * 100 // total:2d}%|###       | {step}/{total} [00:10<01:10,  2.01s/it]"


def record(loss: float, epoch: float | str = 0.5) -> str:
    return f"\n{{'loss': {loss}, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': {epoch}}}\n"


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


def bars(numbers: Iterable[int], again: Iterable[int], total: int = 100) -> str:
    """Return the bars of some steps; at those of ``again`` the bar is cleared and drawn a second time."""
    twice = {*again}
    return "".join(bar(n, total) + ("\r" + " " * 40 + "\r\n" + bar(n, total)) * (n in twice) for n in numbers) + "\n"


def records(numbers: Iterable[int], length: float, decimals: int = 2) -> str:
    """Return the records of some steps, with the epochs that have a ``length`` in steps."""
    return "".join(record(9 - n / 200, round(n / length, decimals)) for n in numbers)


def stamped(text: str, seconds: int) -> str:
    return f"[INFO|2026-01-02 03:{seconds // 60:02d}:{seconds % 60:02d}] trainer.py:10 >> {text.strip()}\n"


EVAL = "{'eval_loss': 1.5, 'eval_runtime': 2.5, 'epoch': 0.2}\n"
TENS = range(10, 101, 10)
SAVED = stamped("Saving model checkpoint to out/checkpoint-500", 501)
STAMPED = "".join(stamped(record(1.5, round(n / 17.05, 2)), n) + SAVED * (n == 500) for n in range(5, 605, 5))


@pytest.mark.parametrize(
    ("log", "steps"),
    [
        (bars(range(101), TENS) + records(TENS, 100) + END, (10, 100, 10)),  # the records come late, all at once
        (bars(range(56), TENS) + records(TENS[:3], 50) + bars(range(56, 96), TENS) + records(TENS[3:9], 50), (10, 90, 9)),
        (records(TENS, 100) + END + bars(range(101), TENS), (10, 100, 10)),  # one stream below the other
        (bars(range(48), TENS) + records(TENS[:3], 25) + "Killed\n", (10, 30, 3)),  # the last records are lost
        ("".join(bar(n - n % 3) + records([n], 23.3, 5) for n in range(4, 97, 4)), (4, 96, 24)),  # the bar is drawn rarely
        (bars([0, *range(55, 101)], TENS[6:]) + records(TENS[5:], 50), (60, 100, 5)),  # resumed
        (bars(range(101), [1, *TENS]) + records([1, *TENS], 50), (1, 100, 11)),
        (bars(range(101), TENS) + "".join(record(1.5, round(n // 20 + n % 20 / 19.3, 3)) for n in TENS), (10, 100, 10)),
        ("  Total optimization steps = 17,000\n" + STAMPED, (5, 600, 120)),  # without bars, a checkpoint tells the stride
    ],
)
def test_epochs_and_bars_prove_the_stride(receipt_of: Receipt, log: str, steps: tuple[int, int, int]) -> None:
    assert found(receipt_of(log)) == steps


@pytest.mark.parametrize(
    "log",
    [
        "".join(bar(n) for n in range(101)) + "".join(record(2.5) for _ in range(5)),  # stdout buffered to the end
        "".join(record(2.5) for _ in range(5)) + "".join(bar(n) for n in range(101)) + "\n",
        "".join(record(2.5) + bar(n) for n in (10, 25, 30, 70)) + "\n",  # no stride
        "".join(record(2.5) for _ in range(5)),  # no bar
        "".join(record(2.5) + bar(n) for n in (10, 20, 30)) + record(2.5) + record(2.5) + bar(50) + "\n",  # one has none
        "".join(record(2.5) + bar(n) for n in (10, 20)) + "\n",  # too few to prove anything
        bars(range(101), ()) + records(TENS, 100),  # the bar is drawn once: which steps had a record?
        bars(range(101), range(101)) + records(TENS[:4], 100),  # it is drawn twice at all of them
        bars(range(101), TENS) + records(TENS[:4], 100) + "Killed\n",  # records of 10 steps or of 20
        bars(range(101), TENS) + records([*TENS[:4], *TENS[5:]], 100),  # one record is missing
        bars(range(101), TENS) + records(TENS, 50),  # by the last line, the steps are of one epoch
        STAMPED,  # no plan
        bars(range(47), [*TENS, *range(8, 100, 8)])
        + records(TENS[:3], 100)
        + EVAL * 2
        + "Killed\n",  # of records, or evaluations?
        bars(range(31), TENS[:2]) + records(TENS[:3], 100) + "Killed\n",  # the bar of the last record is not read
        bars(range(101), TENS) * 2 + records(TENS, 100),  # an evaluation's, again and again
    ],
)
def test_nothing_is_invented(receipt_of: Receipt, log: str) -> None:
    document = receipt_of(log if "Killed" in log else log + END)
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
