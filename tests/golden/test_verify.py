"""Every golden receipt is what its log gives, read by the definitions that the receipt names."""

import json
from pathlib import Path
from typing import Any

import pytest

from receipt_cli import __version__
from receipt_cli.verification.verifier import read_receipt, verify
from tests.tools.slow import one_in

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
GOLDENS = sorted([*FIXTURES.glob("logs/*/*.receipt.json"), *FIXTURES.glob("runs/*.receipt.json")])


def whole(golden: Path) -> dict[str, Any]:
    """Return the golden receipt with the field that it is kept without."""
    document: dict[str, Any] = json.loads(golden.read_bytes())
    document["derivation"]["tool_version"] = __version__
    return document


@pytest.mark.parametrize(
    "golden", one_in(4, GOLDENS), ids=lambda path: f"{path.parent.name}/{path.name.removesuffix('.receipt.json')}"
)
def test_verified(golden: Path) -> None:
    name = golden.name.removesuffix(".receipt.json")
    log = golden.with_name(name if golden.parent.name == "runs" else f"{name}.log")
    document, invalid = read_receipt(json.dumps(whole(golden)).encode(), golden.name)
    found = verify(document, [str(log)], invalid=invalid)
    assert found.verified, [difference.pointer for difference in found.differences][:9]
    assert list(found.refs) == [f"{g['id']}@v{g['version']}" for g in document["derivation"]["grammars"]]


def test_there_are_goldens() -> None:
    assert len(GOLDENS) > 200
