"""The share of lines that ``make test`` runs: counted over all files, and those that slow tests alone run are named."""

import pytest

from benchmarks.test_lines import SECTION, write_section


@pytest.mark.parametrize(
    ("test", "slow", "share", "row"),
    [
        ({"a.py": {1, 2}}, {"a.py": {2}}, 1.0, None),
        ({"a.py": {1, 2, 3}}, {"a.py": {3, 4}}, 0.75, "| a.py | 1 |"),
        ({"a.py": {1}}, {"b.py": {1, 2, 3}}, 0.25, "| b.py | 3 |"),
        ({}, {}, 0.0, None),
    ],
)
def test_share(test: dict[str, set[int]], slow: dict[str, set[int]], share: float, row: str | None) -> None:
    ran = ({name: frozenset(lines) for name, lines in one.items()} for one in (test, slow))
    section, found = write_section(*ran, failed=False)
    assert found == share
    assert section.startswith(SECTION)
    assert f"**{100 * share:.2f} %**" in section
    assert [line for line in section.splitlines() if ".py |" in line] == ([row] if row else [])
