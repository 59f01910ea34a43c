"""Each fixture log gives its golden receipt, byte for byte; ``make goldens`` rewrites them, the diff is reviewed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from receipt_cli.documents.canonical import canonical_bytes
from tests.tools.fixture_receipts import receipt_of

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "logs"
LOGS = sorted(FIXTURES.glob("*/*.log"))
FOLDER_MAY_READ = {"deepspeed": {"deepspeed", "deepspeed-chat", "generic"}}  # its scripts print losses of their own


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_there_are_fixtures() -> None:
    assert len(LOGS) >= 40


@pytest.mark.parametrize("path", LOGS, ids=name)
def test_golden_receipt(path: Path, check_golden: Callable[[Path, bytes], None]) -> None:
    document = receipt_of(path)
    del document["derivation"]["tool_version"]  # the one field that may differ between releases
    del document["captured_sha256"]  # follows from run, header and attachments
    grammar = document["derivation"]["grammars"][0]["id"]
    assert grammar in FOLDER_MAY_READ.get(path.parent.name, {path.parent.name})
    check_golden(path.with_suffix(".receipt.json"), canonical_bytes(document))


def test_every_log_says_where_it_comes_from() -> None:
    notes = {name(path): path.with_suffix(".md") for path in LOGS}
    assert [log for log, note in notes.items() if not note.is_file() or len(note.read_text("utf-8")) <= 100] == []


def test_every_golden_has_its_log() -> None:
    goldens = {p.with_suffix("").with_suffix(".log") for p in FIXTURES.glob("*/*.receipt.json")}
    assert goldens <= set(LOGS)
