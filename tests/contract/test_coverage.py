"""``docs/coverage.md`` claims nothing that is not there: each command parses, each test, file and field exists.

A row says ``yes``, ``part`` or ``no``. What shows it stands in backticks: a command line (names in capitals stand for
values), a field of the receipt (``*`` for any name or entry), a make target, a file, or a test as pytest takes it.
"""

import ast
import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from receipt_cli.documents.schema_fields import list_fields
from receipt_cli.documents.schemas import get_json_schema, list_schemas
from tests.tools.usage import refuse_command

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "coverage.md").read_text("utf-8")
SIZES = (90, 23, 36)
ANSWERS = ("yes", "part", "no")
SPAN = re.compile(r"`([^`]+)`")
TOTALS = re.compile(r"^(\d+) features: (\d+) yes, (\d+) in part, (\d+) no\.$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    number: int
    feature: str
    answer: str
    shown_by: str
    test: str
    note: str


def read_tables(page: str) -> list[list[Row]]:
    """Return the rows of each part: a part begins with ``## `` and may have several tables."""
    parts = []
    for part in page.split("\n## ")[1:]:
        cells = [[c.strip() for c in line.strip("|").split("|")] for line in part.splitlines() if re.match(r"\| *\d", line)]
        if cells:
            parts.append([Row(int(number), *rest) for number, *rest in cells])
    return parts


def refuse_row(row: Row) -> str | None:
    """Return what is missing in a row, or None."""
    if row.answer not in ANSWERS:
        return f"the answer is {row.answer!r}"
    if row.answer != "no" and not (SPAN.search(row.shown_by) and "::" in row.test):
        return "nothing shows it, or no test does"
    if row.answer != "yes" and not row.note:
        return "no reason"
    return None


@cache
def pointers() -> frozenset[str]:
    newest = [entry for entry in list_schemas() if entry.kind == "receipt"][-1]
    return frozenset(field.pointer for field in list_fields(get_json_schema(newest), again=True))


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return the tests of a file as pytest names them behind the first ``::``."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return frozenset(name for name in found if name.split("::")[-1].startswith("test_"))


def refuse_span(span: str) -> str | None:
    """Return why what stands in backticks is not there, or None."""
    if span.startswith("receipt "):
        return refuse_command(shlex.split(span)[1:])
    if span.startswith("make "):
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        return None if span.removeprefix("make ") in targets else "no such target"
    if span.startswith("/"):
        return None if span in pointers() else "no such field"
    path, _, test = span.partition("::")
    if not (ROOT / path).exists():
        return "no such file"
    return None if not test or test in names_in(ROOT / path) else "no such test"


@pytest.mark.parametrize(("rows", "size"), list(zip(read_tables(PAGE), SIZES, strict=True)), ids=map(str, SIZES))
def test_every_feature_has_its_row(rows: list[Row], size: int) -> None:
    assert [row.number for row in rows] == list(range(1, size + 1))
    assert len({row.feature for row in rows}) == size
    assert [(row.number, why) for row in rows if (why := refuse_row(row))] == []


def test_the_totals_are_those_of_the_rows() -> None:
    counted = [(len(rows), *(sum(r.answer == a for r in rows) for a in ANSWERS)) for rows in read_tables(PAGE)]
    assert [tuple(map(int, found)) for found in TOTALS.findall(PAGE)] == counted


def test_what_is_named_is_there() -> None:
    spans = sorted(set(SPAN.findall(PAGE)))
    assert len(spans) > 200
    assert {span: why for span in spans if (why := refuse_span(span)) is not None} == {}


@pytest.mark.parametrize(
    ("span", "why"),
    [
        ("receipt pars LOG", "no such command: pars"),
        ("receipt store", "a group"),
        ("receipt parse", "missing argument"),
        ("receipt parse LOG --jsn", "--jsn"),
        ("receipt export LOG --to excel", "excel"),
        ("/summary/steps/frist", "no such field"),
        ("make coffee", "no such target"),
        ("docs/none.md", "no such file"),
        ("tests/contract/test_coverage.py::test_nothing", "no such test"),
        ("tests/cli/test_compare.py::test_a_log_and_itself_are_equal", "no such test"),
    ],
)
def test_what_is_not_there_is_found(span: str, why: str) -> None:
    assert why in (refuse_span(span) or "")


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ("| 1 | a | perhaps | `x` | `t::t` | |", "the answer is"),
        ("| 1 | a | yes | | `t::t` | |", "nothing shows it"),
        ("| 1 | a | part | `x` | `t` | why |", "nothing shows it"),
        ("| 1 | a | part | `x` | `t::t` | |", "no reason"),
        ("| 1 | a | no | | | |", "no reason"),
        ("| 1 | a | yes | `x` | `t::t` | |", None),
        ("| 1 | a | no | | | why |", None),
    ],
)
def test_a_row_without_its_proof_is_found(cells: str, why: str | None) -> None:
    ((row,),) = read_tables(f"# T\n\n## P\n\n{cells}\n")
    assert (refuse_row(row) or "").startswith(why or "") and (refuse_row(row) is None) is (why is None)
