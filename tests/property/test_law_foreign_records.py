"""Law 1: a record belongs to a rule only if it starts where the rule's records start; others are named and change no figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import receipt_cli
from receipt_cli.errors import ReceiptError
from tests.tools.examples import costly
from tests.tools.injections import FIXTURES, HEALTHY, HIGH, KINDS, LOW, SCRIPTS, Log, healthy_logs, read_stated, verdict_of

SHIPPED = [name for name in HEALTHY if name != "litgpt/tinyllama-2023"]
TABLES = ("script/columns",)
"""Scripts whose first line names columns between which there are only blanks: what stands below it is a row, or none is."""
WORDS = st.sampled_from(
    [
        "Profiling",
        "Teacher",
        "Rehearsal",
        "autotuner",
        "Reference-model",
        "Dummy_batch",
        "Ghost",
        "Probe-of-a-layer",
        "Baseline",
        "Smoke-test",
        "Surrogate",
    ]
)
MARKS = st.sampled_from([" ", ": ", ' "', " | ", ' said: "', " (old run) ", " runs/prev.log:12: "])
HEADS = st.sampled_from(["", "2026-05-06 07:08:09,123 - INFO - ", "[2026-05-06 07:08:09] "])
PLACES = st.sampled_from(["first", "middle", "last"])


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Log]:
    return healthy_logs([*SHIPPED, *SCRIPTS], tmp_path_factory.mktemp("laws"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=costly(120), deadline=None)
@given(st.sampled_from([*SHIPPED, *SCRIPTS]), PLACES, WORDS, MARKS, HEADS, st.sampled_from([HIGH, LOW]))
def test_a_record_behind_foreign_words_changes_no_figure_and_is_named(
    logs: dict[str, Log], tmp_path: Path, name: str, place: str, word: str, mark: str, head: str, loss: str
) -> None:
    log = logs[name]
    if place == "first" and name in TABLES:
        place = "middle"
    number = {"first": 0, "middle": log.middle, "last": len(log.records) - 1}[place]
    record = log.records[number]
    made = record.made(loss, before=word + mark)
    line = head.encode() + made[record.begin :] if head else made
    path = tmp_path / "run.log"
    path.write_bytes(b"\n".join(log.with_lines(record.at + (place == "last"), line)) + b"\n")
    verdict = verdict_of(KINDS["message"], log.stated, read_stated(path))
    assert verdict.word == "unchanged", (line, verdict)
    if name in SHIPPED:
        assert verdict.problems == ("foreign_record",), line


@pytest.mark.parametrize("all_of_them", [True, False])
@pytest.mark.parametrize("name", SHIPPED)
def test_what_precedes_most_records_is_not_foreign(logs: dict[str, Log], tmp_path: Path, name: str, all_of_them: bool) -> None:
    log = logs[name]
    path = tmp_path / "run.log"
    led = {record.at: record.made(before="Student ") for number, record in enumerate(log.records) if number % 5 or all_of_them}
    path.write_bytes(b"\n".join(log.instead(led)) + b"\n")
    verdict = verdict_of(KINDS["message"], log.stated, read_stated(path))
    assert (verdict.word, verdict.problems) == ("unchanged", ())


@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.parametrize("count", [1, 5])
def test_a_record_in_a_string_of_a_json_object_is_quoted(count: int, escaped: bool, tmp_path: Path) -> None:
    note = [f"iter {100 * n}: loss {4 - n / 9:.4f}, time 98.12ms, mfu 21.40%" for n in range(count)]
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(json.dumps({"path": "a.log", "note": f'then "{text}"' if escaped else text}) + "\n" for text in note))
    with pytest.raises(ReceiptError, match="no grammar recognises"):
        receipt_cli.read(path)


@pytest.mark.parametrize("cite", ["old/run.log:{}:", "runs/a.out:", "./notes.txt:{}: ", "../b.log-{}-"])
@pytest.mark.parametrize("name", ["nanogpt/char-ok", "script/rows"])
def test_lines_that_a_search_found_in_a_file_are_no_records_however_few_the_others_are(
    name: str, cite: str, tmp_path: Path
) -> None:
    first = SEARCHED[name].format(9000, HIGH)
    others = [SEARCHED[name].format(10 * n, f"{4 - n / 9:.4f}") for n in range(8)]
    path = tmp_path / "run.log"
    path.write_text("".join(f"{line}\n" for line in [*(cite.format(40 + n) + first for n in range(4)), *others]))
    summary = receipt_cli.read(path).receipt.to_dict()["summary"]
    assert [summary["steps"][key] for key in ("first", "last", "record_count", "restart_count")] == [0, 70, 8, 0]
    assert summary["metrics"]["loss"]["max"] == 4.0


SEARCHED = {
    "nanogpt/char-ok": "iter {}: loss {}, time 98.12ms, mfu 21.40%",
    "script/rows": "round {} of 900 | loss {} | lr 2.0e-04",
}


def test_a_log_that_a_search_made_is_read(tmp_path: Path) -> None:
    path = tmp_path / "found.txt"
    path.write_text("".join(f"run.log:{40 + n}:iter {n}: loss {4 - n / 9:.4f}, time 98.12ms, mfu 21.40%\n" for n in range(8)))
    assert receipt_cli.read(path).receipt.to_dict()["summary"]["steps"]["record_count"] == 8


@pytest.mark.parametrize("head", ["[rank0]: ", "(Worker pid=7) ", "[INFO] ", "[pod/a/b] "])
def test_a_head_before_an_indented_record_is_no_foreign_word(head: str, tmp_path: Path) -> None:
    """Some lines have another head behind it: where it is the last one its blank may be the record's."""
    lines = (FIXTURES / "ultralytics" / "detect-8.1-bars-cpu.log").read_text("utf-8").split("\n")
    found = []
    for number, lead in enumerate(["", head]):
        path = tmp_path / f"{number}.log"
        path.write_text("\n".join(f"{lead}{STAMP * bool(n % 9)}{line}" for n, line in enumerate(lines)))
        found.append(read_stated(path))
    verdict = verdict_of(KINDS["message"], *found)
    assert (verdict.word, verdict.problems) == ("unchanged", ())


STAMP = "2026-05-06 07:08:09,123 - train - INFO - "
