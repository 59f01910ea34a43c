"""Each folder of files of one run gives its golden receipt, byte for byte; ``make goldens`` rewrites them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.receipts.production import Request, produce

RUNS = sorted(path for path in (Path(__file__).resolve().parents[2] / "fixtures" / "runs").iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", RUNS, ids=lambda path: path.name)
def test_golden_receipt(folder: Path, check_golden: Callable[[Path, bytes], None]) -> None:
    document = produce(Request(path=str(folder))).document
    del document["derivation"]["tool_version"]  # the one field that may differ between releases
    del document["captured_sha256"]  # follows from run, header and attachments
    check_golden(folder.with_name(f"{folder.name}.receipt.json"), canonical_bytes(document))
    assert len(folder.with_name(f"{folder.name}.md").read_text("utf-8")) > 100


def test_there_are_runs() -> None:
    assert RUNS
