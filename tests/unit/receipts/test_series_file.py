"""``receipt parse --series``: the records that the statistics are over, in columns."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.derive import Derivation
from receipt_cli.receipts.production import Product, Request, produce, produce_all
from receipt_cli.receipts.series_file import write_series
from tests.tools.slow import one_in

duckdb = pytest.importorskip("duckdb")

LOGS = Path(__file__).resolve().parents[3] / "fixtures" / "logs"
SOME = (
    "nanochat/speedrun-2025-10.log", "hf-trainer/crash-resumed-v5.log", "megatron-lm/*.log", "nemo/*.log", "keras/*.log",
    "forgather/*.log", "verl/*.log", "torchtitan/*.log",
)  # fmt: skip


def written(derivation: Derivation, path: Path) -> list[dict[str, Any]]:
    """Return the rows of the file, in order."""
    count = write_series(derivation, path)
    source = f"read_parquet('{path}', file_row_number = true)"
    found = duckdb.connect().execute(f"select * exclude file_row_number from {source} order by file_row_number")
    names = [name for name, *_ in found.description]
    rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    assert len(rows) == count
    return rows


def product(log: Path) -> Product:
    return produce(Request(path=str(log)))


def logs() -> list[Path]:
    return sorted(path for pattern in SOME for path in LOGS.glob(pattern))


def hold_against(receipt: dict[str, Any], rows: list[dict[str, Any]]) -> int:
    """Assert that the records give the receipt's figures; return how many statistics were held against them."""
    checked = 0
    for number, phase in enumerate(receipt["phases"]):
        mine = [row for row in rows if row["phase_index"] == number]
        assert {row["phase"] for row in mine} <= {phase["name"]}
        steps = [row for row in mine if row["event"] == "step"]
        numbered = [row["step"] for row in steps if row["step"] is not None]
        told = phase["summary"]["steps"]
        assert len(steps) == told["record_count"] or (not steps and told["record_count"] is None)
        assert (numbered[:1], numbered[-1:]) == ([], []) if told["first"] is None else ([told["first"]], [told["last"]])
        for block, prefix in (("metrics", ""), ("other_metrics", "other.")):
            for name, statistic in phase["summary"][block].items():
                values = [row[prefix + name] for row in mine if row[prefix + name] is not None]
                bad = sum(prefix + name in row["nonfinite"] for row in mine)
                if statistic["window"] == "all":
                    assert (len(values) + bad, bad) == (statistic["record_count"], statistic["nonfinite_count"]), name
                    assert (min(values, default=None), max(values, default=None)) == (statistic["min"], statistic["max"]), name
                    assert (math.fsum(values) / len(values) if values else None) == statistic["mean"], name
                    checked += 1
                elif not bad:
                    assert (values[0], values[-1]) == (statistic["first"], statistic["last"]), name
                    checked += 1
    return checked


@pytest.mark.parametrize("log", one_in(3, logs()), ids=lambda log: f"{log.parent.name}-{log.stem}")
def test_the_records_give_the_receipt(log: Path, tmp_path: Path) -> None:
    made = product(log)
    hold_against(made.document, written(made.derivation, tmp_path / "s.parquet"))


def test_a_long_log_gives_the_receipt(tmp_path: Path) -> None:
    """Its records stand in runs, not in events of their own."""
    log = tmp_path / "long.log"
    bad = range(7, 40_000, 1000)
    row = "{{'loss': {:.4f}, 'grad_norm': {}, 'learning_rate': 1e-05, 'epoch': {:.4f}}}"
    lines = [row.format(9 - n / 9000, "nan" if n in bad else "1.5", n / 100) for n in range(40_000)]
    log.write_text("\n".join(lines) + "\n")
    made = product(log)
    rows = written(made.derivation, tmp_path / "s.parquet")
    assert len(rows) == 40_000 and hold_against(made.document, rows) >= 4
    assert [row["line_number"] for row in rows] == list(range(1, 40_001))
    assert [number for number, row in enumerate(rows) if row["nonfinite"]] == list(bad)
    assert rows[7]["nonfinite"] == ["grad_norm"] and rows[7]["grad_norm"] is None and rows[8]["grad_norm"] == 1.5


def test_ranks_steps_and_lines_are_those_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    head = "[rank1]: "
    log.write_text("".join(f"{head}step {n}: train loss {5 - n / 10}, val loss {6 - n / 10}\n" for n in range(5)))
    made = product(log)
    rows = written(made.derivation, tmp_path / "s.parquet")
    assert rows, made.derivation.detection
    assert {row["rank"] for row in rows} <= {1, None}
    assert sorted({row["line_number"] for row in rows}) == [1, 2, 3, 4, 5]


def test_names_that_differ_in_case_alone_are_two_columns(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    row = "{'loss': 1.%d, 'learning_rate': 1e-05, 'epoch': 0.%d, 'rewards/Mean': %d, 'rewards/mean': %d}\n"
    log.write_text("".join(row % (n, n, n, n + 100) for n in range(9)))
    made = product(log)
    rows = written(made.derivation, tmp_path / "s.parquet")
    others = [name for name in rows[0] if name.startswith("other.")]
    assert others == ["other.rewards/Mean", "other.rewards/mean_2"]
    assert [rows[3][name] for name in others] == [3.0, 103.0]
    found = duckdb.connect().execute(
        f"select value from parquet_kv_metadata('{tmp_path}/s.parquet') where key = 'receipt_series'"
    )
    footer = json.loads(found.fetchone()[0])
    assert footer["others"] == dict(zip(others, ["rewards/Mean", "rewards/mean"], strict=True))
    assert footer["metrics"]["loss"] == {"id": 1, "unit": "1"}
    assert footer["log_sha256"] == made.document["derivation"]["log"]["sha256"]


def test_a_log_without_records_gives_an_empty_file(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("nothing to see\n")
    assert written(product(log).derivation, tmp_path / "s.parquet") == []


def test_the_same_log_gives_the_same_bytes(tmp_path: Path) -> None:
    made = product(LOGS / "nanochat" / "speedrun-2025-10.log")
    for name in ("a", "b"):
        write_series(made.derivation, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_every_run_of_a_log_has_its_own_records(tmp_path: Path) -> None:
    log = LOGS / "nanochat" / "speedrun-2025-10.log"
    made = list(produce_all(Request(path=str(log))))
    for number, run in enumerate(made):
        hold_against(run.document, written(run.derivation, tmp_path / f"{number}.parquet"))
