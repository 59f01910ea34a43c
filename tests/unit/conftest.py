"""A log as text in, its receipt out: what the tests of the fold share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.receipts.production import Request, produce
from tests.tools.toy_trainer import GRAMMAR

Receipt = Callable[..., dict[str, Any]]


@pytest.fixture
def receipt_of(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return the receipt document of a log given as text or bytes.

    ``grammar`` names a grammar or is the YAML text of one; ``exit_code`` is what the caller knows.
    """

    def make(log: str | bytes, grammar: str | None = None, exit_code: int | None = None) -> dict[str, Any]:
        path = tmp_path / "run.log"
        path.write_bytes(log.encode() if isinstance(log, str) else log)
        if grammar is not None and "\n" in grammar:
            (tmp_path / "v1.yaml").write_text(grammar)
            grammar = str(tmp_path / "v1.yaml")
        return produce(Request(path=str(path), grammar=grammar, exit_code=exit_code, workers=1)).document

    return make


TOY = (
    GRAMMAR.replace("toy bar ", "toy gauge ").replace("toy frame ", "toy bar ").replace("peak_memory_allocated_", "peak_memory_")
)
TOY += "ignore:\n  saving: {literal: 'toy saving', pattern: 'toy saving', samples: ['toy saving']}\n"


@pytest.fixture
def toy_receipt(receipt_of: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return the receipt document of a log in the format of ``TOY``."""

    def make(log: str | bytes, exit_code: int | None = None) -> dict[str, Any]:
        return receipt_of(log, TOY, exit_code)

    return make
