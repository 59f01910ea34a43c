"""Logs of programs that no grammar knows, told in the tables of ``logs``: what is read of each, and what is left alone."""

from pathlib import Path
from typing import Any

import pytest

from receipt_cli.authoring.lint import lint_grammar
from receipt_cli.authoring.proposal import Proposal, propose
from tests.tools.logs import written
from tests.tools.told import check_row, lines_of, rows_of

LOGS = Path(__file__).parent / "logs"


def draft(log: Any) -> Proposal:
    found = written(lines_of(log), "run.log", lambda path: propose(path, "mine"))
    assert lint_grammar(found.text, "mine.yaml") == []
    return found


@pytest.mark.parametrize(("log", "found", "grammar"), rows_of(LOGS))
def test_a_log_is_read(log: Any, found: dict[str, Any], grammar: str | None) -> None:
    check_row(log, found, grammar)


@pytest.mark.parametrize(("log", "found", "grammar"), rows_of(LOGS, "learned"))
def test_what_is_learned_is_a_draft_that_reads_the_log(log: Any, found: dict[str, Any], grammar: str | None) -> None:
    check_row(log, found, draft(log).text.decode())


@pytest.mark.parametrize(("log", "found", "grammar"), rows_of(LOGS, "blocks"))
def test_a_block_makes_a_draft_that_lints(log: Any, found: dict[str, Any], grammar: str | None) -> None:
    draft(log)


@pytest.mark.parametrize(("log", "found", "grammar"), rows_of(LOGS, "quiet"))
def test_a_draft_for_what_is_no_record_asks(log: Any, found: dict[str, Any], grammar: str | None) -> None:
    assert draft(log).questions
