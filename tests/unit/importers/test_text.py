"""The text of a foreign document: decompressed, bounded, and with the digest of its text."""

import gzip
import hashlib
from pathlib import Path

import pytest

from receipt_cli.errors import InputError
from receipt_cli.importers import text as module
from receipt_cli.importers.text import read_beside, read_document


def test_a_compressed_document_has_the_digest_of_its_text(tmp_path: Path) -> None:
    path = tmp_path / "state.json.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf{}\nx"))
    document = read_document(str(path))
    assert (document.text, document.size_bytes, document.line_count) == ("{}\nx", 7, 2)
    assert document.sha256 == hashlib.sha256(b"\xef\xbb\xbf{}\nx").hexdigest()


@pytest.mark.parametrize(("data", "why"), [(b" \n", "empty"), (b"\xff{}", "UTF-8"), (b"x" * 101, "too large")])
def test_what_cannot_be_a_document_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, why: str) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(InputError, match=why):
        read_document(str(tmp_path / "x.json"))


def test_files_beside_a_document_are_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.yaml").write_text("a: 1\n")
    here = str(tmp_path / "wandb-summary.json")
    found = read_beside(here, "config.yaml")
    assert found.text == "a: 1\n"
    assert read_beside(here, "missing.json") is read_beside("-", "config.yaml") is None
    monkeypatch.setattr(module, "MAX_SIDECAR", 3)
    assert read_beside(here, "config.yaml") is None
