"""``load``, and receipts as objects."""

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import receipt_cli
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.schemas import keep_known
from tests.cli.conftest import ROOT

GOLDEN = ROOT / "fixtures" / "logs" / "nanochat" / "speedrun-2025-10.log"


@pytest.fixture
def document() -> dict[str, Any]:
    return receipt_cli.read(GOLDEN).receipt.to_dict()


@pytest.fixture
def written(document: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "a.json"
    path.write_bytes(canonical_bytes(document))
    return path


def test_a_file_is_loaded_as_it_is(document: dict[str, Any], written: Path) -> None:
    receipt = receipt_cli.load(written)
    assert isinstance(receipt, receipt_cli.Receipt) and receipt.to_dict() == document == receipt
    assert receipt == receipt_cli.load(str(written)) == receipt_cli.read(GOLDEN).receipt
    assert receipt.summary.metrics["loss"].last == document["summary"]["metrics"]["loss"]["last"]


def test_a_receipt_is_a_mapping_and_has_attributes(document: dict[str, Any], written: Path) -> None:
    receipt = receipt_cli.load(written)
    assert list(receipt) == list(document) and len(receipt) == len(document)
    assert receipt["derivation"]["grammars"][0]["id"] == receipt.derivation.grammars[0].id == "nanochat"
    assert "launches" not in receipt.derivation and receipt.derivation.launches is None
    assert {"summary", "to_dict"} <= set(dir(receipt)) and "launches" in dir(receipt.derivation)
    with pytest.raises(AttributeError, match="no field 'lunches'"):
        receipt.derivation.lunches  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(KeyError):
        receipt.derivation["launches"]


def test_a_receipt_does_not_change(document: dict[str, Any], written: Path) -> None:
    receipt = receipt_cli.load(written)
    with pytest.raises(AttributeError):
        receipt.summary = None  # type: ignore[misc]
    with pytest.raises(TypeError):
        receipt["summary"] = None  # type: ignore[index]
    receipt.to_dict()["summary"]["metrics"].clear()
    assert receipt.to_dict() == document
    for again in (copy.deepcopy(receipt), copy.copy(receipt), pickle.loads(pickle.dumps(receipt))):
        assert again == receipt and again.run.name is None and type(again) is receipt_cli.Receipt


def test_a_copy_has_no_part_in_two_places() -> None:
    """The summary of a receipt is that of its primary phase; a change of one is none of the other."""
    made = receipt_cli.read(GOLDEN).receipt.to_dict()
    assert made["summary"] == made["phases"][0]["summary"]
    made["summary"]["metrics"].clear()
    assert made["phases"][0]["summary"]["metrics"]


def test_an_older_version_is_as_it_was_written(document: dict[str, Any], written: Path) -> None:
    old = {**document, "schema_version": "receipt/1.0", "run": {**document["run"]}}
    del old["run"]["wall_time_s"], old["run"]["peak_rss_bytes"]
    old = keep_known(old, "receipt/1.0")
    written.write_bytes(canonical_bytes(old))
    receipt = receipt_cli.load(written)
    assert receipt.to_dict() == old and receipt.schema_version == "receipt/1.0"
    assert receipt.run.wall_time_s is None and "wall_time_s" not in receipt.run
    migrated = receipt_cli.migrate(written)
    assert migrated.versions[0] == "receipt/1.0" and len(migrated.versions) > 1
    assert {**json.loads(migrated.data), "schema_version": "receipt/1.0"} == old


def test_fields_of_a_newer_version_are_kept(document: dict[str, Any], written: Path) -> None:
    document["schema_version"] = "receipt/1.99"
    document["weather"] = {"sky": "blue"}
    written.write_bytes(canonical_bytes(document))
    receipt: Any = receipt_cli.load(written)
    assert receipt.weather.sky == receipt["weather"]["sky"] == "blue"
    assert receipt.to_dict() == document


def test_a_secret_that_somebody_left_is_masked(document: dict[str, Any], written: Path) -> None:
    document["run"]["name"] = "token ghp_" + "a1B2" * 9
    written.write_bytes(canonical_bytes(document))
    assert "a1B2a1B2" not in str(receipt_cli.load(written).to_dict())


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, receipt_cli.InputError),
        (b"", receipt_cli.InputError),
        (b"\xff\xfe", receipt_cli.InputError),
        (b'{"schema_version": "receipt/1.2"}', receipt_cli.InputError),
        (b'{"schema_version": "receipt/7.0"}', receipt_cli.DataError),
        (b"[" * 100_000, receipt_cli.InputError),
    ],
)
def test_what_is_no_receipt_is_an_error(content: bytes | None, error: type[Exception], tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error) as raised:
        receipt_cli.load(path)
    assert isinstance(raised.value, receipt_cli.ReceiptError)


def test_other_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = ROOT / "fixtures"
    for path in (header, GOLDEN, "a\x00b"):
        with pytest.raises(receipt_cli.InputError):
            receipt_cli.load(path)
    monkeypatch.setattr("receipt_cli.api.receipt.MAX_DOCUMENT", 100)
    with pytest.raises(receipt_cli.InputError, match="too large"):
        receipt_cli.load(GOLDEN)


def test_a_document_of_another_kind_is_refused(tmp_path: Path, document: dict[str, Any]) -> None:
    from receipt_cli.receipts.production import capture_header

    header, _ = capture_header({}, tmp_path, {}, "2026-01-01T00:00:00Z")
    path = tmp_path / "header.json"
    path.write_bytes(json.dumps(header).encode())
    with pytest.raises(receipt_cli.InputError, match="of another kind"):
        receipt_cli.load(path)
