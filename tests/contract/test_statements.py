"""``docs/statements.md`` claims nothing that is not there: each statement has its tests, or says what is missing."""

import re
from pathlib import Path
from typing import NamedTuple

from tests.contract.test_coverage import SPAN, refuse_span

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "statements.md").read_text("utf-8")
STATES = ("works", "part", "missing")
COUNT = 113


class Row(NamedTuple):
    number: int
    statement: str
    state: str
    tests: str
    note: str


def rows() -> list[Row]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if re.match(r"\| *\d", line)]
    return [Row(int(number), *rest) for number, *rest in cells]


def test_every_statement_has_its_row() -> None:
    found = rows()
    assert [row.number for row in found] == list(range(1, COUNT + 1))
    assert len({row.statement for row in found}) == COUNT
    assert {row.state for row in found} <= set(STATES)


def test_what_works_has_tests_and_what_does_not_a_reason() -> None:
    assert [row.number for row in rows() if row.state == "works" and "::" not in row.tests] == []
    assert [row.number for row in rows() if row.state != "works" and not row.note] == []


def test_the_tests_are_there() -> None:
    spans = {span for row in rows() for span in SPAN.findall(row.tests)}
    assert {span: why for span in sorted(spans) if (why := refuse_span(span)) is not None} == {}


def test_the_totals_are_those_of_the_rows() -> None:
    counted = [sum(row.state == state for row in rows()) for state in STATES]
    assert f"{COUNT} statements: {counted[0]} work, {counted[1]} in part, {counted[2]} missing." in PAGE
