"""The argument of a command: a receipt is opened as it is, a log is derived."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.errors import InputError, UsageError
from receipt_cli.receipts.production import read_given

ROOT = Path(__file__).resolve().parents[3]
RECEIPT = min((ROOT / "fixtures" / "receipts" / "receipt-1.2" / "valid").glob("*.json"))
LOG = min((ROOT / "fixtures" / "logs" / "nanochat").glob("*.log"))


def given(path: Path, **options: Any) -> tuple[dict[str, Any], Any]:
    return read_given(str(path), environ={}, progress=lambda name: nullcontext(), **options)


def test_a_receipt_is_returned_with_its_secrets_masked(tmp_path: Path) -> None:
    document = json.loads(RECEIPT.read_text())
    document["run"]["name"] = "password=Tr0ub4dor3xy"
    (tmp_path / "r.json").write_text(json.dumps(document))
    assert given(tmp_path / "r.json", masked=False) == (document, None)
    assert given(tmp_path / "r.json")[0]["run"]["name"] == "password=[redacted:named]"


def test_a_log_is_derived() -> None:
    document, product = given(LOG)
    assert document["derivation"]["log"]["size_bytes"] == LOG.stat().st_size
    assert product.document == document


def test_what_is_neither_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"schema_version": "receipt/1.0"}')
    with pytest.raises(InputError, match="not a valid receipt"):
        given(tmp_path / "r.json")
    with pytest.raises(UsageError, match="needs a log"):
        given(RECEIPT, exit_code=1)
