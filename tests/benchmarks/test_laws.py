"""The benches of the laws print a table of what they found, and keep what is written beside it."""

from pathlib import Path

import pytest

from benchmarks import inject, laws

STEPS = [f"iter {n}: loss {3 - n / 100:.4f}, time {100 + n:.2f}ms, mfu 40.00%\n" for n in range(20)]


def test_a_table_of_the_laws_replaces_only_the_older_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs, results = tmp_path / "logs", tmp_path / "laws.md"
    logs.mkdir()
    (logs / "plain.log").write_text("".join(STEPS))
    (logs / "teacher.log").write_text("".join([*STEPS[:9], "Teacher " + STEPS[3], *STEPS[9:]]))
    assert laws.main([str(logs), "--results", str(results)]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "foreign_record" in line]
    assert row == "| 1 | `foreign_record` | 1 | 50.0 % | 1 | 0 | teacher.log |"
    results.write_text(results.read_text() + "\nWhat was read.\n")
    assert laws.main([str(logs), "--results", str(results)]) == 0
    assert results.read_text().endswith("\nWhat was read.\n") and results.read_text().count(row) == 1


def test_a_verdict_that_became_worse_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "now.jsonl"
    arguments = ["--logs", "nanogpt/char-ok", "--kinds", "message,other_model"]
    assert inject.main([*arguments, "--json", str(results)]) == 0
    assert "2 injections; restart, WRONG and WRONG!: 0 (0.0 %)" in capsys.readouterr().out
    now, before = ({"log": "a", "kind": "message", "word": word} for word in ("WRONG", "null"))
    assert inject.worse([now], [before]) == ["a message: null became WRONG"]
    assert inject.worse([before], [now]) == []
    assert inject.main([*arguments, "--against", str(results)]) == 0
