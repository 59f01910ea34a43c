"""Ranks of records: labels, and what has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from receipt_cli.events.ranks import rank_of
from receipt_cli.grammar.model import Rule
from receipt_cli.records.envelope import NO_RANK
from tests.tools.tables import table_of

pytestmark = pytest.mark.usefixtures("one_engine")

Receipt = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("ranks", "want"),
    [
        ([NO_RANK, 3, NO_RANK], [3, 3, 3]),
        ([NO_RANK, 3, 0, NO_RANK], [NO_RANK, 3, 0, NO_RANK]),
        ([NO_RANK], [NO_RANK]),
        ([], []),
    ],
)
def test_what_has_no_label_is_of_the_only_rank_that_is_labelled(ranks: list[int], want: list[int]) -> None:
    rule = Rule("memory", "header", (b"memory",))
    assert rank_of(table_of(*({} for _ in ranks), ranks=ranks, rule=rule)).tolist() == want


@pytest.mark.parametrize("label", ["[rank{}]: ", "{}: ", "[1,{}]<stdout>:", "2026-01-02T03:04:05Z [default{}]:"])
def test_steps_that_every_rank_prints_count_once(toy_receipt: Receipt, label: str) -> None:
    line = "toy step {step} | loss={loss} | time=0.5\n"
    log = "".join(label.format(rank) + line.format(step=n, loss=2.5 + rank) for n in range(5) for rank in (1, 0))
    steps = toy_receipt(log)["summary"]["steps"]
    assert (steps["record_count"], steps["restart_count"]) == (5, 0)


def test_a_number_in_the_text_is_no_rank(toy_receipt: Receipt) -> None:
    log = "".join(f"lora rank={8 + n % 2} alpha=16 toy step {n} | loss=2.5 | time=0.5\n" for n in range(6))
    assert toy_receipt(log)["summary"]["steps"]["record_count"] == 6
