"""Details of problems that older receipts hold in other words: the package or its vocabulary has each new text."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [*(ROOT / "receipt_cli").rglob("*.py"), ROOT / "grammars" / "generic" / "v2.yaml"]
NEW_OF_OLD = {
    "processes, or attempts of them, print their steps in turns: the one that printed last is read":
        "processes interleave their steps; kept the last to print",
    "a launch behind the run failed before its first step: its error is not the run's":
        "a later launch failed before its first step; not this run's failure",
    "it counts, but has no loss and no other metric that is known":
        "has a counter, but no loss or known metric",
    "the steps have no times that fit the stated wall time: where it went is not known":
        "no step times fit the stated wall time",
    "read as the same launch: the steps begin anew, behind an error that a program may catch or at the time of others":
        "read as the same launch: steps restart after a catchable error or with overlapping timestamps",
    "read as another launch: its records begin anew and are others, but nothing else shows a start of the program":
        "read as a new launch: steps restart with different records, but no program start is logged",
    " s before an earlier one: no wall time is taken from them": " s: they give no wall time",
}  # fmt: skip


def test_each_old_text_has_its_new_one() -> None:
    source = "".join(path.read_text("utf-8") for path in TEXTS)
    assert [new for new in NEW_OF_OLD.values() if new not in source] == []
    assert [old for old in NEW_OF_OLD if old in source] == []
