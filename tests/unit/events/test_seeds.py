"""Seeds in the lines before the first record, of programs whose grammar reads none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("one_engine")

Receipt = Callable[..., dict[str, Any]]
STEPS = "".join(
    f"step {n:05d}/00040 ({n / 0.4:.2f}%) | loss: {11 - n / 10:.6f} | lrm: 1.00 | dt: 510.00ms | tok/sec: 257,003 | mfu: 18.0 | "
    f"total time: 0.00m\n"
    for n in range(20)
)
LOOP = "".join(f"Epoch {n} loss {3 - n / 10:.4f} acc {n / 20:.3f}\n" for n in range(1, 12))


def seeds(document: dict[str, Any]) -> tuple[dict[str, int] | None, str | None]:
    return document["header"]["seeds"], document["header"]["sources"].get("/seeds/seed")


@pytest.mark.parametrize("records", [STEPS, LOOP], ids=["nanochat", "own"])
@pytest.mark.parametrize(
    ("line", "seed"),
    [
        ("seed: 42", 42),
        ("Random seed: 42", 42),
        ("Seed:                 7", 7),
        ("[rank: 0] Seed set to 1234", 1234),
        ("Set random seed to 0", 0),
        ("2024-02-23 00:07:39,561 - INFO - Set random seed to 5", 5),
        ("Using seed = 7", 7),
        ("Namespace(batch_size=16, dataset='coco', seed=233, wd=0.0001)", 233),
        ("INFO:root:06:31:48 Namespace(accumulate=None, seed=33, task_name='RTE')", 33),
        ('{"epochs": 20, "seed": 1111, "data": {"seed": 3}}', 1111),
    ],
)
def test_a_seed_is_read_with_its_line(receipt_of: Receipt, records: str, line: str, seed: int) -> None:
    assert seeds(receipt_of(f"starting\n{line}\n{records}")) == ({"seed": seed}, "log:2")


@pytest.mark.parametrize(
    "before",
    [
        "    seed=43,\n",  # of an object that is printed over several lines
        "config = DatasetArgs(\n    path=data,\n    seed=43,\n)\n",
        "data_efficiency_config ....... {'enabled': False, 'seed': 1234, 'data_sampling': {}}\n",
        '{"data": {"seed": 3}, "epochs": 20}\n',
        "Namespace(data=DatasetArgs(seed=3), epochs=4)\n",
        "+ SEED=13379\n",
        "train 3 seeds: 42\n",
        "seed: -1\n",
        "seed: None\n",
        "seed: 42\nseed: 43\n",
        "model parallel seed: 3952 and data parallel seed: 1234\n",
        f"seed: {2**64}\n",
    ],
)
def test_what_is_no_seed_of_the_run(receipt_of: Receipt, before: str) -> None:
    assert seeds(receipt_of(before + STEPS)) == (None, None)


def test_a_seed_behind_the_first_record_is_not_that_of_its_run(receipt_of: Receipt) -> None:
    assert seeds(receipt_of(STEPS + "seed: 42\n")) == (None, None)
