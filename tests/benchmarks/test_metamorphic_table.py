"""What stands around a log, what happens to it on its way, and words that mention failures change no figure and no verdict."""

from pathlib import Path

import pytest

from benchmarks.metamorphic.table import FIXTURES, receipts, relations, whole_lines
from tests.tools.slow import one_in

LOGS = ("nanogpt/char-sigint-resumed.log", "keras/bar-callbacks-v3.log")
RELATIONS = [relation for relation in relations() if not relation.name.startswith("folded")]


@pytest.mark.parametrize("number", one_in(3, range(len(RELATIONS))), ids=lambda number: RELATIONS[number].name)
def test_a_relation_holds(number: int, tmp_path: Path) -> None:
    path = FIXTURES / LOGS[number % len(LOGS)]
    assert RELATIONS[number].check(whole_lines(path.read_bytes()), receipts([path]), tmp_path).differing == []


def test_a_log_of_two_trainers_in_parts(tmp_path: Path) -> None:
    """Each launch is read as a log of its own, wherever one file ends and the next begins."""
    lines = [line for name in LOGS for line in whole_lines((FIXTURES / name).read_bytes())]
    (tmp_path / "whole.log").write_bytes(b"".join(lines))
    whole = receipts([tmp_path / "whole.log"])
    assert len(whole) == 2
    [split] = [relation for relation in RELATIONS if relation.name == "split into parts"]
    assert split.check(lines, whole, tmp_path).differing == []
