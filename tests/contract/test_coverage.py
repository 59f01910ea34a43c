"""``docs/coverage.md`` is written from ``features.yaml`` and claims nothing that is not there.

What shows a feature is a command line (names in capitals stand for values), a field of the receipt (``*`` for any name or
entry), a make target or a file; what proves it is a test as pytest takes it, which must exist and must not be skipped.
"""

import ast
import re
import shlex
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from receipt_cli.documents.schema_fields import list_fields
from receipt_cli.documents.schemas import get_json_schema, list_schemas
from tests.tools import features
from tests.tools.features import Part, Row
from tests.tools.usage import refuse_command

ROOT = Path(__file__).resolve().parents[2]
PARTS = features.parts()
SPAN = re.compile(r"`([^`]+)`")
SKIPPED = {"skip", "xfail"}


def refuse_row(row: Row) -> str | None:
    """Return what is missing in a row, or None."""
    if not row.tests or any("::" not in test for test in row.tests):
        return "no test proves it"
    if not row.shown_by:
        return "nothing shows it"
    return "no reason" if row.lacks and not row.note else None


@cache
def pointers() -> frozenset[str]:
    newest = [entry for entry in list_schemas() if entry.kind == "receipt"][-1]
    return frozenset(field.pointer for field in list_fields(get_json_schema(newest), again=True))


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return the tests of a file that may run, as pytest names them behind the first ``::``."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and not is_skipped(node):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef) and not is_skipped(node):
            tests = [inner for inner in node.body if isinstance(inner, ast.FunctionDef) and not is_skipped(inner)]
            found |= {f"{node.name}::{inner.name}" for inner in tests}
    return frozenset(name for name in found if name.split("::")[-1].startswith("test_"))


def is_skipped(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Return whether a mark keeps a test from running, whatever the machine."""
    marks = (mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list)
    return any(isinstance(mark, ast.Attribute) and mark.attr in SKIPPED for mark in marks)


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


def test_the_page_is_written_from_the_features(check_golden: Callable[[Path, bytes], None]) -> None:
    check_golden(ROOT / features.PATH, features.page().encode())


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.title)
def test_every_feature_has_its_row_and_its_test(part: Part) -> None:
    assert len({row.feature for row in part.rows}) == len(part.rows) > 10
    assert [(row.number, why) for row in part.rows if (why := refuse_row(row))] == []


def test_what_is_named_is_there() -> None:
    spans = sorted({span for part in PARTS for row in part.rows for span in (*row.shown_by, *row.tests)})
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
    ("row", "why"),
    [
        (Row(1, "a", ("x",), (), "", False), "no test proves it"),
        (Row(1, "a", ("x",), ("t",), "", False), "no test proves it"),
        (Row(1, "a", (), ("t::t",), "", False), "nothing shows it"),
        (Row(1, "a", ("x",), ("t::t",), "", True), "no reason"),
        (Row(1, "a", ("x",), ("t::t",), "why", True), None),
        (Row(1, "a", ("x",), ("t::t",), "", False), None),
    ],
)
def test_a_row_without_its_proof_is_found(row: Row, why: str | None) -> None:
    assert refuse_row(row) == why
    assert (row.answer == "no") is (not row.tests)


@pytest.mark.parametrize(
    ("mark", "counts"),
    [("pytest.mark.skip", False), ("pytest.mark.xfail(strict=True)", False), ("pytest.mark.skipif(os.name == 'nt')", True)],
)
def test_a_test_that_never_runs_proves_nothing(mark: str, counts: bool, tmp_path: Path) -> None:
    path = tmp_path / "test_one.py"
    path.write_text(f"@{mark}\ndef test_a(): pass\n")
    assert ("test_a" in names_in(path)) is counts
