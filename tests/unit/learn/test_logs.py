"""Logs of programs that no grammar knows, told in the tables of ``logs``: what is read of each, and what is left alone."""

from pathlib import Path
from typing import Any

import pytest

from tests.tools.told import check_row, rows_of


@pytest.mark.parametrize(("log", "found", "grammar"), rows_of(Path(__file__).parent / "logs"))
def test_a_log_is_read(log: Any, found: dict[str, Any], grammar: str | None) -> None:
    check_row(log, found, grammar)
