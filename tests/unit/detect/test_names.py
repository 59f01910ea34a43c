"""Runs side by side in one log whose records begin with a name: each has the receipt of its own lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.detect.parts import NAMED, _name_of, has_name
from receipt_cli.receipts.production import Request, produce_all

FORMS = {
    "run": ("2026-05-06 07:08:09,123 - INFO - Run: {name} | ", "Epoch: {n} | Train Loss: {loss:.4f} | Val Loss: {other:.4f}"),
    "trial": ("[trial {name}] ", "step {n} loss {loss:.4f} lr 0.001"),
    "fold": ("Fold {name}: ", "epoch {n}, loss = {loss:.5f}"),
}
NAMES = ["blobs all 1", "moons_2", "xor-3"]


def lines_of(form: str, name: str, number: int, count: int = 12) -> list[str]:
    head, record = FORMS[form]
    losses = [3 + number - n / 10 for n in range(count)]
    return [head.format(name=name) + record.format(n=n + 1, loss=loss, other=loss + 1) for n, loss in enumerate(losses)]


def receipts(tmp_path: Path, lines: Sequence[str]) -> list[dict[str, Any]]:
    path = tmp_path / "sweep.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return [product.document for product in produce_all(Request(path=str(path), workers=1))]


def figures(document: dict[str, Any]) -> tuple[int, float, float]:
    loss = document["summary"]["metrics"]["loss"]
    return document["summary"]["steps"]["record_count"], loss["first"], loss["last"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", ["in turn", "in pairs", "one longer"])
def test_each_name_is_a_run(form: str, order: str, tmp_path: Path) -> None:
    counts = [12, 12, 20] if order == "one longer" else [12, 12, 12]
    runs = [lines_of(form, name, number, counts[number]) for number, name in enumerate(NAMES)]
    size = 2 if order == "in pairs" else 1
    mixed = [line for at in range(0, max(counts), size) for lines in runs for line in lines[at : at + size]]
    found = receipts(tmp_path, ["starting the sweep", *mixed, "the sweep is done"])
    assert [figures(document) for document in found] == [figures(receipts(tmp_path, lines)[0]) for lines in runs]
    for document in found:
        lines, log = document["derivation"]["lines"], document["derivation"]["log"]
        assert sum(lines.values()) == log["record_count"] == sum(counts) + 2
    assert [problem["kind"] for document in found for problem in document["derivation"]["problems"]["first"]] == [
        "generic_reading"
    ] * 3


def test_folds_one_behind_the_other_are_not_side_by_side(tmp_path: Path) -> None:
    runs = [lines_of("fold", str(number), number) for number in range(3)]
    found = receipts(tmp_path, [line for lines in runs for line in lines])
    first_lines = [document["derivation"]["launches"]["first_line"] for document in found]
    assert first_lines == sorted(first_lines), "launches in the order of the log, as without names"


def test_the_roles_of_one_run_are_no_names(tmp_path: Path) -> None:
    train, test = (lines_of("run", name, number) for number, name in enumerate(("train", "test")))
    assert len(receipts(tmp_path, [line for pair in zip(train, test, strict=True) for line in pair])) == 1


def test_an_error_is_that_of_the_run_that_printed_last(tmp_path: Path) -> None:
    runs = [lines_of("run", name, number) for number, name in enumerate(NAMES)]
    error = ["Traceback (most recent call last):", '  File "sweep.py", line 3, in main', "ValueError: no data"]
    *others, last = receipts(tmp_path, [*(line for lines in zip(*runs, strict=True) for line in lines), *error])
    assert last["failure"]["reason"] == "traceback"
    assert all((document["failure"] or {"reason": None})["reason"] in (None, "truncated") for document in others)


@pytest.mark.parametrize("word", ["run", "Run", "RUN", "trial", "Trial", "TRIAL", "Fold", "FOLD", "exp", "Exp", "experiment"])
def test_a_name_is_found_behind_each_word_that_announces_one(word: str) -> None:
    line = f"2026-05-06 07:08:09,123 - INFO - {word}: moons_2 | Epoch: 1".encode()
    assert has_name(b"a run of three trials\n" + line) and NAMED.search(line) is not None
    assert not has_name(line.partition(b": moons")[0])


def test_the_word_name_is_no_name() -> None:
    assert not has_name(b"2026/11/21 07:27:51 - mmengine - INFO - Exp name: tiny_epoch_20261121_072750\n")
    lines = (b"Exp name: tiny | step 1", b"run id: a7 - step 2")
    assert [name for line in lines for _, name, _ in _name_of(1, line)] == [b"tiny", b"a7"]
