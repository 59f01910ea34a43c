"""``receipt schema migrate``: new documents out, originals kept, and what is refused."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from receipt_cli.documents.schemas import list_schemas
from receipt_cli.receipts.versions import SCHEMA_VERSION

EXAMPLES = Path(__file__).resolve().parents[2] / "fixtures" / "receipts"
VALID = EXAMPLES / "receipt-1.0" / "valid"
NEWEST = SCHEMA_VERSION
VERSIONS = [f"receipt/{entry.version}" for entry in list_schemas() if entry.kind == "receipt"]


@pytest.fixture
def receipt(tmp_path: Path) -> Path:
    return Path(shutil.copy(VALID / "healthy.json", tmp_path / "run.json"))


def version(data: bytes) -> str:
    return str(json.loads(data)["schema_version"])


def without_version(data: bytes) -> dict[str, object]:
    return {**json.loads(data), "schema_version": None}


def test_the_new_document_goes_to_stdout(receipt: Path, invoke: Callable) -> None:
    before = receipt.read_bytes()
    done = invoke("schema", "migrate", receipt)
    assert (done.code, version(done.stdout)) == (0, NEWEST)
    assert " → ".join(VERSIONS) in done.stderr
    assert without_version(done.stdout) == without_version(before)
    assert receipt.read_bytes() == before


def test_what_is_newest_already_comes_out_byte_for_byte(tmp_path: Path, invoke: Callable) -> None:
    path = min((EXAMPLES / NEWEST.replace("/", "-") / "valid").glob("*.json"))
    done = invoke("schema", "migrate", path)
    assert (done.code, done.stdout) == (0, path.read_bytes())
    assert f"is {NEWEST} already" in done.stderr


def test_output_is_a_file_that_does_not_exist_yet(receipt: Path, tmp_path: Path, invoke: Callable) -> None:
    target = tmp_path / "new.json"
    assert invoke("schema", "migrate", receipt, "-o", target).code == 0
    assert version(target.read_bytes()) == NEWEST
    assert invoke("schema", "migrate", receipt, "-o", target).code == 0, "the same bytes are no conflict"
    target.write_bytes(b"{}")
    done = invoke("schema", "migrate", receipt, "-o", target)
    assert done.code == 6
    assert target.read_bytes() == b"{}"


def test_several_go_into_a_folder(receipt: Path, tmp_path: Path, invoke: Callable) -> None:
    other = Path(shutil.copy(VALID / "truncated.json", tmp_path / "other.json"))
    assert invoke("schema", "migrate", receipt, other).code == 2
    assert invoke("schema", "migrate", receipt, other, "-o", tmp_path / "new").code == 0
    made = sorted((tmp_path / "new").iterdir())
    assert [path.name for path in made] == ["other.json", "run.json"]
    assert {version(path.read_bytes()) for path in made} == {NEWEST}


def test_in_place_keeps_the_original_beside(receipt: Path, invoke: Callable) -> None:
    before = receipt.read_bytes()
    done = invoke("schema", "migrate", receipt, "--in-place")
    kept = receipt.with_name(f"run.{hashlib.sha256(before).hexdigest()[:12]}.json")
    assert done.code == 0
    assert kept.name in done.stderr
    assert kept.read_bytes() == before
    assert version(receipt.read_bytes()) == NEWEST
    again = receipt.read_bytes()
    assert invoke("schema", "migrate", receipt, "--in-place").code == 0
    assert receipt.read_bytes() == again
    assert len(list(receipt.parent.iterdir())) == 2, "what is new already is not kept twice"


def test_in_place_never_writes_over_what_has_the_name_of_the_original(receipt: Path, invoke: Callable) -> None:
    before = receipt.read_bytes()
    kept = receipt.with_name(f"run.{hashlib.sha256(before).hexdigest()[:12]}.json")
    kept.write_bytes(b"somebody else's")
    assert invoke("schema", "migrate", receipt, "--in-place").code == 6
    assert receipt.read_bytes() == before
    assert kept.read_bytes() == b"somebody else's"


def test_json_tells_what_would_be_done_field_by_field(receipt: Path, invoke: Callable) -> None:
    done = invoke("schema", "migrate", receipt, "--json")
    change = {"pointer": "/schema_version", "kind": "changed", "old": "receipt/1.0", "new": NEWEST}
    assert json.loads(done.stdout) == [
        {"file": str(receipt), "versions": VERSIONS, "written": None, "original_kept": None, "differences": [change]}
    ]
    assert list(receipt.parent.iterdir()) == [receipt]


REFUSED = [
    ("downgrade", "receipt-1.1/valid/import_of_values.json", "receipt/1.0", 2),
    ("other_kind", "receipt-1.0/valid/healthy.json", "header/1.0", 2),
    ("unknown_target", "receipt-1.0/valid/healthy.json", "receipt/7.0", 5),
    ("newer_than_known", "receipt-1.0/valid/newer_minor.json", None, 5),
    ("invalid", "receipt-1.0/invalid/lines_add_up.json", None, 3),
    ("no_document", "receipt-1.0/expectations.yaml", None, 3),
    ("missing", "receipt-1.0/valid/none.json", None, 3),
    ("unknown_minor", "receipt-1.0/valid/healthy.json", "receipt/1.99", 5),
    ("no_version", "receipt-1.0/valid/healthy.json", "1.1", 5),
]


@pytest.mark.parametrize(("path", "to", "code"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_refused(path: str, to: str | None, code: int, invoke: Callable) -> None:
    done = invoke("schema", "migrate", EXAMPLES / path, *([] if to is None else ["--to", to]))
    assert (done.code, done.stdout) == (code, b"")
    assert path.rpartition("/")[2] in done.stderr


def test_newer_than_known_is_told_from_unknown(invoke: Callable) -> None:
    newer = invoke("schema", "migrate", VALID / "newer_minor.json").stderr
    assert "receipt/1.7" in newer
    assert "newer than this receipt" in newer
    assert "newer than" not in invoke("schema", "migrate", VALID / "healthy.json", "--to", "receipt/0.9").stderr


def test_one_broken_document_does_not_stop_the_rest(receipt: Path, tmp_path: Path, invoke: Callable) -> None:
    done = invoke("schema", "migrate", EXAMPLES / "receipt-1.0/invalid/lines_add_up.json", receipt, "-o", tmp_path / "new")
    assert done.code == 3
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["run.json"]
