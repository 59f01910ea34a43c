"""``docs/systems.md`` claims nothing that is not there: what shows a statement parses or exists, its test exists."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.test_systems import CASES
from tests.contract.test_coverage import SPAN, refuse_span

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "systems.md").read_text("utf-8")
CASE = re.compile(r"`tests/cli/test_systems\.py::test_log\[([^`\]]+)\]`")
GOLDEN = re.compile(r"`tests/golden/test_logs\.py::test_golden_receipt\[([^`\]]+)\]`")
TOTALS = re.compile(r"^(\d+) statements: (\d+) work, (\d+) need the producer, (\d+) open\.$", re.MULTILINE)


def rows(page: str) -> list[list[str]]:
    """Return the cells of each statement: number, statement, shown by, test, state."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if re.match(r"\| *\d", line)]


def refuse(row: list[str]) -> str | None:
    """Return what is wrong with a row, or None."""
    state, _, why = row[4].partition(": ")
    if state not in ("works", "producer", "open"):
        return "no such state"
    if (state == "works") is bool(why):
        return "only what does not work has a reason"
    if state == "works" and not (SPAN.search(row[2]) and "::" in row[3]):
        return "nothing shows it, or no test does"
    named = CASE.fullmatch(row[3])
    if named is not None:
        return None if named[1] in CASES else "no such case"
    golden = GOLDEN.fullmatch(row[3])
    if golden is not None:
        return None if (ROOT / "fixtures" / "logs" / f"{golden[1]}.receipt.json").exists() else "no such golden"
    return next((why for span in SPAN.findall(row[2] + row[3]) if (why := refuse_span(span)) is not None), None)


def test_every_statement_names_what_shows_it() -> None:
    found = rows(PAGE)
    assert [int(row[0]) for row in found] == list(range(1, len(found) + 1))
    assert len({row[1] for row in found}) == len(found)
    assert [(row[0], why) for row in found if (why := refuse(row)) is not None] == []


def test_the_totals_are_those_of_the_rows() -> None:
    states = Counter(row[4].partition(": ")[0] for row in rows(PAGE))
    (totals,) = TOTALS.findall(PAGE)
    assert tuple(map(int, totals)) == (states.total(), states["works"], states["producer"], states["open"])


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("| 1 | a | `receipt parse LOG` | `tests/cli/test_systems.py::test_log[none]` | works |", "no such case"),
        ("| 1 | a | `receipt parse LOG` | `tests/golden/test_logs.py::test_golden_receipt[no/log]` | works |", "no such golden"),
        ("| 1 | a | `/summary/none` | `tests/cli/test_systems.py::test_log` | works |", "no such field"),
        ("| 1 | a | `receipt parse LOG` | `tests/cli/test_systems.py::test_none` | works |", "no such test"),
        ("| 1 | a | `receipt parse LOG` | – | works |", "no test does"),
        ("| 1 | a | – | – | open |", "has a reason"),
        ("| 1 | a | – | – | perhaps |", "no such state"),
        ("| 1 | a | – | – | producer: nobody prints it |", None),
    ],
)
def test_a_row_without_its_proof_is_found(row: str, why: str | None) -> None:
    (cells,) = rows(row)
    assert (refuse(cells) is None) is (why is None)
    assert (why or "") in (refuse(cells) or "")
