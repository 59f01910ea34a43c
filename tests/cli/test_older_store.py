"""A store that an older version made opens, answers, takes new receipts, and keeps the old ones."""

import json
import shutil
from pathlib import Path

import pytest

from receipt_cli.receipts.versions import RULES
from receipt_cli.store.answers import QUESTIONS

from .conftest import ROOT, Invoke, query

pytest.importorskip("duckdb")

OLD = ROOT / "fixtures" / "stores" / "0.2.0"
LOGS = ("nanogpt/char-nan.log", "hf-trainer/nohup-two-runs-v5.log")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD, tmp_path / "store"))


def test_an_older_store_opens_and_answers(invoke: Invoke, store: Path) -> None:
    found = query(invoke, store, "SELECT schema_version, rules, name, failure_reason, loss_last FROM runs ORDER BY loss_last")
    assert [(row["schema_version"], row["rules"], row["name"]) for row in found] == [("receipt/1.2", "derive/2", None)] * 2
    assert {row["failure_reason"] for row in found} == {None, "nan_loss"}
    assert query(invoke, store, "SELECT * FROM passed_over") == []
    for question in QUESTIONS:
        assert invoke("store", "ask", store, question, "--metric", "loss").code == 0
    assert invoke("store", "ls", store).stdout.startswith(b"2 runs: ")


def test_an_older_store_takes_new_receipts_and_keeps_its_history(invoke: Invoke, store: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in (store / "receipts").rglob("*.json")}
    logs = tmp_path / "logs"
    logs.mkdir()
    for log in LOGS:
        shutil.copy(ROOT / "fixtures" / "logs" / log, logs)
    assert invoke("store", "build", logs, "--store", store, "--workers", "1").code == 0
    found = query(invoke, store, "SELECT name, generation, rules, log_path, is_current FROM history ORDER BY ALL")
    old, new = ([row for row in found if row["is_current"] == current] for current in (False, True))
    assert [(row["name"], row["generation"], row["rules"]) for row in old] == [
        ("char-nan", 1, "derive/2"),
        ("nohup-two-runs-v5", 1, "derive/2"),
    ]
    assert [(row["name"], row["rules"]) for row in new] == [
        ("char-nan", RULES),
        ("nohup-two-runs-v5", RULES),
        ("nohup-two-runs-v5.run1", RULES),
    ]
    assert all(row["log_path"] for row in found)
    assert {path: path.read_bytes() for path in before} == before
    again = invoke("store", "build", logs, "--store", store, "--workers", "1", "--json")
    assert {json.loads(line)["outcome"] for line in again.stdout.splitlines()} == {"unchanged"}
