"""What stands around a log, what happens to it on its way, and words that mention failures change no figure and no verdict."""

from pathlib import Path

import pytest

from benchmarks.metamorphic.sameness import differences
from benchmarks.metamorphic.table import FIXTURES, main, receipts, relations, whole_lines
from tests.tools.slow import one_in

LOGS = ("nanogpt/char-sigint-resumed.log", "keras/bar-callbacks-v3.log")
RELATIONS = [relation for relation in relations() if not relation.name.startswith("folded")]


@pytest.mark.parametrize("number", one_in(3, range(len(RELATIONS))), ids=lambda number: RELATIONS[number].name)
def test_a_relation_holds(number: int, tmp_path: Path) -> None:
    path = FIXTURES / LOGS[number % len(LOGS)]
    assert RELATIONS[number].check(whole_lines(path.read_bytes()), receipts([path]), tmp_path).differing == []


def test_a_difference_is_found(tmp_path: Path) -> None:
    whole = (FIXTURES / LOGS[0]).read_bytes()
    documents = []
    for name, data in (("a.log", whole), ("b.log", whole[: len(whole) // 2])):
        (tmp_path / name).write_bytes(data)
        documents.append(receipts([tmp_path / name]))
    assert any("/summary/steps/last" in one for one in differences(*documents))
    assert differences(documents[0], documents[0]) == []


def test_the_table_counts_violations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.log").write_bytes((FIXTURES / LOGS[0]).read_bytes())
    assert main([str(tmp_path), "--only", "docker", "--write", str(tmp_path / "table.md")]) == 0
    table = (tmp_path / "table.md").read_text()
    assert capsys.readouterr().out.startswith(table)
    assert "| docker json-file | 0 | " in table


def test_a_log_of_two_trainers_in_parts(tmp_path: Path) -> None:
    """Each launch is read as a log of its own, wherever one file ends and the next begins."""
    lines = [line for name in LOGS for line in whole_lines((FIXTURES / name).read_bytes())]
    (tmp_path / "whole.log").write_bytes(b"".join(lines))
    whole = receipts([tmp_path / "whole.log"])
    assert len(whole) == 2
    [split] = [relation for relation in RELATIONS if relation.name == "split into parts"]
    assert split.check(lines, whole, tmp_path).differing == []
