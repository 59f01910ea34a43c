"""Every broken definition is refused for the reason that it states, at the line that it states."""

import re
from pathlib import Path

import pytest

from receipt_cli.authoring.lint import lint_grammar

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "bad_grammars"
FILES = sorted(FOLDER.glob("*.yaml"))


def test_there_are_broken_definitions() -> None:
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_broken_definition_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("receipt_cli.scan.extraction.model.TIME_BOX_S", 0.2)  # which a search without end takes whole
    text = path.read_bytes()
    lines = text.decode().splitlines()
    expected = lines[0].removeprefix("# expect: ")
    assert expected != lines[0], "the first line says what to expect"
    at = re.fullmatch(r"# at: (\d+)", lines[1])
    where = f"small/v1.yaml:{at.group(1)}" if at else "small/v1.yaml"
    found = lint_grammar(text, "small/v1.yaml")
    hits = [finding for finding in found if expected in finding.reason]
    assert hits, f"instead: {[finding.reason for finding in found]}"
    assert all(finding.severity == "error" for finding in found)
    assert hits[0].where.startswith(where) and (not at or hits[0].where == where)
