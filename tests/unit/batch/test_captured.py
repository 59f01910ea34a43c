"""What a new receipt takes over from an old one, and what is never overwritten."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.batch.worker import captured
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import DataError, InputError
from receipt_cli.io.compression import header_name, receipt_names
from receipt_cli.receipts.production import Request, produce
from receipt_cli.store.files import Store

LOG = Path(__file__).resolve().parents[3] / "fixtures" / "logs" / "hf-trainer" / "crash-resumed-v5.log"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return Path(shutil.copy(LOG, tmp_path / "run.log"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def receipt(log: Path, name: str) -> dict[str, Any]:
    return produce(Request(str(log), name=name, exit_code=1)).document


def digest(document: dict[str, Any]) -> str:
    return str(document["derivation"]["log"]["sha256"])


@pytest.mark.parametrize(
    ("log", "receipts", "header"),
    [
        ("run.log", ["run.receipt.json", "run.log.receipt.json"], "run.header.json"),
        ("run.log.gz", ["run.receipt.json", "run.log.receipt.json", "run.log.gz.receipt.json"], "run.header.json"),
        ("slurm-7.out.2", ["slurm-7.out.receipt.json", "slurm-7.out.2.receipt.json"], "slurm-7.out.header.json"),
        ("nohup", ["nohup.receipt.json"], "nohup.header.json"),
    ],
)
def test_names_beside_a_log(log: str, receipts: list[str], header: str) -> None:
    assert (receipt_names(log), header_name(log)) == (receipts, header)


def test_the_store_comes_before_what_stands_beside_the_log(log: Path, store: Store) -> None:
    old = receipt(log, "in the store")
    store.add(old)
    log.with_suffix(".receipt.json").write_bytes(canonical_bytes(receipt(log, "beside")))
    found = captured(store, digest(old), [str(log)])
    assert found.old is not None and found.old["run"]["name"] == "in the store"
    assert found.options.exit_code == 1


def test_of_several_paths_the_first_with_a_receipt_counts_and_any_receipt_before_a_header(log: Path, store: Store) -> None:
    old = receipt(log, "beside the second")
    paths = [log.parent / "a" / "run.log", log.parent / "b" / "run.log"]
    for path in paths:
        path.parent.mkdir()
    paths[0].with_suffix(".header.json").write_text("not even JSON")
    paths[1].with_suffix(".receipt.json").write_bytes(canonical_bytes(old))
    found = captured(store, digest(old), [str(path) for path in paths])
    assert found.old is not None and found.old["run"]["name"] == "beside the second"


def test_what_is_no_receipt_is_passed_over_and_said(log: Path, store: Store) -> None:
    log.with_suffix(".receipt.json").write_text("{}")
    found = captured(store, "ab" * 32, [str(log)])
    assert found.old is None and "not a valid receipt" in found.notes[0]


def test_a_broken_header_file_is_an_error(log: Path, store: Store) -> None:
    log.with_suffix(".header.json").write_text("{}")
    with pytest.raises(InputError):
        captured(store, "ab" * 32, [str(log)])


@pytest.mark.parametrize("version", ["receipt/1.999", "receipt/9.0"])
def test_a_receipt_of_a_newer_version_in_the_store_is_not_overwritten(log: Path, store: Store, version: str) -> None:
    old = receipt(log, "of tomorrow")
    store.add({**old, "schema_version": version})
    with pytest.raises(DataError, match="newer version"):
        captured(store, digest(old), [str(log)])
    assert json.loads(store.current(digest(old)) or b"")["schema_version"] == version
