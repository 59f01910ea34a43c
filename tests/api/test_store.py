"""``Store``: a folder of receipts, asked from Python."""

import json
from pathlib import Path

import pandas as pd
import pytest

import receipt_cli
from receipt_cli.store.files import Store as Files
from tests.cli.conftest import ROOT, Invoke

LOGS = [ROOT / "fixtures" / "logs" / name for name in ("nanochat/speedrun-2025-10.log", "hf-trainer/bar-merged-v5.log")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store")
    for log in LOGS:
        Files(path).add(receipt_cli.read(log).receipt.to_dict())
    return path


def test_runs_are_the_rows_of_the_view(folder: Path, invoke: Invoke) -> None:
    rows = receipt_cli.Store(folder).runs()
    printed = invoke("store", "query", folder, "SELECT * FROM runs ORDER BY log_sha256", "--json").stdout
    assert rows == json.loads(printed) and len(rows) == 2
    assert {row["grammar_id"] for row in rows} == {"nanochat", "hf-trainer"}


def test_a_question_is_answered_in_rows_or_a_frame(folder: Path) -> None:
    store = receipt_cli.Store(str(folder))
    question = "SELECT metric, last, unit FROM metrics WHERE metric = 'loss' ORDER BY last"
    rows = store.query(question)
    assert [list(row) for row in rows] == [["metric", "last", "unit"]] * len(rows)
    frame = store.query(question, frame=True)
    assert isinstance(frame, pd.DataFrame) and frame.to_dict("records") == rows
    assert list(store.query("SELECT name FROM runs WHERE false", frame=True)) == ["name"]


def test_a_receipt_is_found_by_the_digest_of_its_log(folder: Path) -> None:
    store = receipt_cli.Store(folder)
    receipt = receipt_cli.read(LOGS[0]).receipt
    digest = receipt.derivation.log.sha256
    assert store.receipt(digest) == store.receipt(digest[:8]) == receipt


@pytest.mark.parametrize("name", ["", "00", "0000", "../../etc", "zz" * 32, "0" * 64, "a\x00b"])
def test_a_receipt_that_is_not_there_is_an_error(folder: Path, name: str) -> None:
    with pytest.raises(receipt_cli.InputError, match="no single receipt"):
        receipt_cli.Store(folder).receipt(name)


def test_a_start_that_two_logs_have_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "receipts" / "ab"
    folder.mkdir(parents=True)
    for digest in ("abcd" + "0" * 60, "abcd" + "1" * 60):
        (folder / f"{digest}.1.json").write_text("{}")
    with pytest.raises(receipt_cli.InputError) as raised:
        receipt_cli.Store(tmp_path).receipt("abcd")
    assert "2 logs" in raised.value.why
    with pytest.raises(receipt_cli.ReceiptError, match="not valid"):
        receipt_cli.Store(tmp_path).receipt("abcd0")


def test_what_cannot_be_answered_is_an_error(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(receipt_cli.InputError, match="no such store"):
        receipt_cli.Store(tmp_path / "none")
    store = receipt_cli.Store(folder)
    for question in ("DROP VIEW runs", "SELECT nonsense", "", f"SELECT * FROM '{LOGS[0]}'", "SELECT 1; SELECT 2"):
        with pytest.raises(receipt_cli.UsageError):
            store.query(question)


def test_new_receipts_are_seen(tmp_path: Path) -> None:
    Files(tmp_path).add(receipt_cli.read(LOGS[0]).receipt.to_dict())
    store = receipt_cli.Store(tmp_path)
    assert len(store.runs()) == 1
    Files(tmp_path).add(receipt_cli.read(LOGS[1]).receipt.to_dict())
    assert len(store.runs()) == 2
