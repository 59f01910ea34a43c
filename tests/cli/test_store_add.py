"""``receipt store add`` and ``receipt store ls``."""

import json
from pathlib import Path

import pytest

from .conftest import ROOT, Invoke

LOG = ROOT / "fixtures" / "logs" / "hf-trainer" / "crash-resumed-v5.log"


@pytest.fixture
def receipt(invoke: Invoke, tmp_path: Path) -> Path:
    assert invoke("parse", LOG, "-o", tmp_path / "r.json", "--name", "first").code == 0
    return tmp_path / "r.json"


def test_documents_are_added_and_listed(invoke: Invoke, receipt: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    done = invoke("store", "add", store, receipt, receipt, "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.code, [line["outcome"] for line in lines]) == (0, ["written", "unchanged"])
    (row,) = map(json.loads, invoke("store", "ls", store, "--json").stdout.splitlines())
    log = json.loads(receipt.read_bytes())["derivation"]["log"]["sha256"]
    assert (row["log_sha256"], row["generation"], row["name"], row["path"]) == (log, 1, "first", lines[0]["path"])
    assert (store / row["path"]).read_bytes() == receipt.read_bytes()
    shown = invoke("store", "ls", store).stdout.decode()
    assert log[:8] in shown and "first" in shown and shown.startswith("1 run: ")


def test_what_is_no_document_is_refused_and_the_others_are_added(invoke: Invoke, receipt: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_bytes(receipt.read_bytes().replace(b'"checks"', b'"cheques"'))
    header = tmp_path / "h.json"
    assert invoke("header", "-o", header).code == 0
    done = invoke("store", "add", tmp_path / "store", broken, header, tmp_path / "nothing.json", receipt)
    assert done.code == 3
    assert done.stdout.count(b"\n") == 1 and done.stdout.startswith(b"written")
    assert "is not a valid document" in done.stderr and "does not take" in done.stderr and "cannot read" in done.stderr
    assert invoke("store", "add", tmp_path / "store", broken).code == 1


def test_a_damaged_receipt_is_listed_without_its_figures(invoke: Invoke, receipt: Path, tmp_path: Path) -> None:
    invoke("store", "add", tmp_path / "store", receipt)
    next((tmp_path / "store").rglob("*.1.json")).write_text("{")
    done = invoke("store", "ls", tmp_path / "store", "--json")
    assert (done.code, json.loads(done.stdout)["grammar"]) == (0, None)
    assert "is damaged" in done.stderr
