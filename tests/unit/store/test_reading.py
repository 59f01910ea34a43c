"""Receipts of a store as documents, its statistics, and the series beside it."""

import json
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.errors import InputError
from receipt_cli.receipts.production import Request, produce
from receipt_cli.receipts.series_file import write_series
from receipt_cli.store.documents import Refused, read_receipt, read_receipts
from receipt_cli.store.files import Store
from receipt_cli.store.index import current_rows, open_store
from receipt_cli.store.query import csv_text, names, plain, view_columns
from receipt_cli.store.series_files import SeriesFiles
from receipt_cli.store.stats import FIELDS, ask_panel

LOG = Path(__file__).resolve().parents[3] / "fixtures" / "logs" / "nanochat" / "speedrun-2025-10.log"


@pytest.fixture(scope="module")
def product() -> Any:
    return produce(Request(path=str(LOG), workers=1))


@pytest.fixture
def store(tmp_path: Path, product: Any) -> Store:
    store = Store(tmp_path / "store")
    store.add(product.document)
    return store


def test_damaged_receipts_are_skipped_with_a_reason(store: Store, product: Any) -> None:
    skipped: list[str] = []
    assert list(read_receipts(store, skipped.append)) == [product.document]
    [path] = store.root.glob("receipts/*/*.json")
    path.write_bytes(b"{")
    assert list(read_receipts(store, skipped.append)) == []
    assert len(skipped) == 1 and path.name in skipped[0] and "is skipped" in skipped[0]


def test_a_receipt_of_another_log_is_refused(store: Store) -> None:
    [path] = store.root.glob("receipts/*/*.json")
    with pytest.raises(Refused, match="another log"):
        read_receipt(path, "0" * 64)
    with pytest.raises(Refused, match="cannot read"):
        read_receipt(store.root / "none.json", "0" * 64)
    with pytest.raises(InputError):
        list(read_receipts(Store(store.root / "none"), print))


def test_panels_are_over_the_runs(store: Store, product: Any) -> None:
    rows = current_rows(store.root, FIELDS)
    checks = ask_panel(rows, "checks", by="day", last=100)
    passed = {row["check"]: row["pass_ratio"] for row in checks["rows"]}
    assert passed["has_steps"] == 1 and checks["run_count"] == 1
    tokens = ask_panel(rows, "tokens", by="run", last=100)
    assert tokens["by"] == "run" and tokens["run_count"] == 1


def test_names_of_columns_are_distinct(store: Store) -> None:
    answer = open_store(store.root).ask("SELECT 1 AS a, 2 AS a, '=x' AS b")
    assert names(answer) == ["a", "a_2", "b"]
    assert csv_text(answer) == "a,a_2,b\n1,2,'=x\n"
    assert plain(float("nan")) is None and plain(b"\xff") == "ff"
    assert {row[0] for row in view_columns().rows} >= {"runs", "metrics", "passed_over"}


def test_series_are_found_by_their_log(tmp_path: Path, product: Any) -> None:
    write_series(product.derivation, tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    skipped: list[str] = []
    files = SeriesFiles(tmp_path, skipped.append)
    assert skipped == ["b.parquet is skipped: not the series of a log"]
    phase = files.primary(product.document)
    assert phase is not None
    found = files.values(product.document, phase, "loss")
    steps, values = product.series.curve("loss")
    assert found is not None and (found[0], found[1]) == (steps.tolist(), values.tolist())
    other = json.loads(json.dumps(product.document))
    other["derivation"]["log"]["sha256"] = "0" * 64
    assert files.primary(other) is None
    with pytest.raises(InputError, match="no such folder"):
        SeriesFiles(tmp_path / "none", skipped.append)
