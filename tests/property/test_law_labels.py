"""Law 9: a figure is read from every record that prints its label, whatever mark precedes it; else it is named."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.examples import costly
from tests.tools.logs import receipt_of

COUNT = 30
LOSSES = [f"{7.3846 - 0.1317 * n:.4f}" for n in range(COUNT)]
STATISTICS = ("first", "last", "min", "max", "mean", "median")
PRINTED: dict[str, Callable[[int, str, str], str]] = {
    "nanogpt": lambda n, mark, x: f"iter {n}: {mark}loss {x}, time 98.12ms, mfu 21.40%",
    "mlx-lm": lambda n, mark, x: f"Iter {n}: {mark}Train loss {x}, Learning Rate 1.000e-05, It/sec 1.236, Tokens/sec 385.375",
    "nanochat": lambda n, mark, x: f"step {n:05d}/00030 (3.75%) | {mark}loss: {x} | lrm: 0.10 | dt: 1422.01ms | tok/sec: 737,391",
    "script": lambda n, mark, x: f"update {n} | {mark}loss {x} | norm 1.25 | lr 0.0003",
    "script with colons": lambda n, mark, x: f"Step: {n}, {mark}Loss: {x}, LR: 0.0003",
}
SHIPPED, SCRIPTS = ("nanogpt", "mlx-lm", "nanochat"), ("script", "script with colons")
MARKS = ("* ", "! ", "> ", "✓ ", "✔ ", "⚠ ", "↓ ", "★ ", "🔥 ", "⠋ ", "- ", "~ ")
NO_NUMBERS = ("?", "?????", "<hidden>", "#####", "err", ".", "oops")
HEADS = ("2026-05-06 07:08:09,123 - INFO - ", "[rank0]: ", "INFO:root:")
GLYPHS = ("⠙ ", "| ")
quick = settings(max_examples=costly(20), deadline=None)
some = st.sets(st.integers(0, COUNT - 1), min_size=1, max_size=6)


def losses(document: dict[str, Any]) -> dict[str, float | None]:
    metric = document["summary"]["metrics"]["loss"]
    return {name: metric[name] for name in STATISTICS}


def named(document: dict[str, Any]) -> set[str]:
    """Return the figures that the problems of a receipt make null."""
    return {field for problem in document["derivation"]["problems"]["first"] for field in problem["fields"]}


def lines_of(form: str, change: Callable[[int], tuple[str, str]] = lambda n: ("", LOSSES[n])) -> list[str]:
    return [PRINTED[form](n + 1, *change(n)) for n in range(COUNT)]


def holds(wanted: dict[str, Any], document: dict[str, Any]) -> None:
    """Assert that each statistic of the loss is as it was, or null and named, and that no record is lost."""
    assert document["summary"]["steps"]["record_count"] == wanted["summary"]["steps"]["record_count"]
    fields, was = named(document), losses(wanted)
    for name, value in losses(document).items():
        assert value == was[name] or (value is None and f"/summary/metrics/loss/{name}" in fields), name


def withheld(document: dict[str, Any]) -> None:
    """Assert that the receipt names a loss that it could not read, and states nothing that depends on it."""
    kinds = {"figure_unread", "non_finite_unread", "number_ambiguous", "record_cut", "training_unread"}
    assert kinds & {*document["derivation"]["problems"]["kinds"]}
    found = losses(document)
    assert [found[name] for name in ("min", "max", "mean", "median")] == [None] * 4
    assert document["checks"]["finite_losses"] is not True


@pytest.mark.parametrize("form", SCRIPTS)
@quick
@given(mark=st.sampled_from(MARKS), where=some)
def test_a_mark_before_a_label_hides_no_figure(form: str, mark: str, where: set[int]) -> None:
    wanted = receipt_of(lines_of(form))
    holds(wanted, receipt_of(lines_of(form, lambda n: (mark if n in where else "", LOSSES[n]))))


@pytest.mark.parametrize("form", SHIPPED)
@pytest.mark.parametrize("mark", [mark for mark in MARKS if mark not in ("- ", "> ")])
def test_a_mark_before_a_label_hides_no_figure_of_a_known_trainer(form: str, mark: str) -> None:
    wanted = receipt_of(lines_of(form))
    assert losses(receipt_of(lines_of(form, lambda n: ("" if n else mark, LOSSES[n])))) == losses(wanted)


@pytest.mark.parametrize("form", PRINTED)
@quick
@given(data=st.data(), where=some)
def test_a_head_on_some_lines_hides_no_figure(form: str, data: st.DataObject, where: set[int]) -> None:
    head = data.draw(st.sampled_from(HEADS + (GLYPHS if form in SHIPPED else ())))
    wanted = receipt_of(lines_of(form))
    holds(wanted, receipt_of([head + line if n in where else line for n, line in enumerate(lines_of(form))]))


@pytest.mark.parametrize("form", SCRIPTS)
@pytest.mark.parametrize("head", GLYPHS)
def test_a_glyph_before_a_line_of_a_script_hides_no_figure(form: str, head: str) -> None:
    wanted = receipt_of(lines_of(form))
    holds(wanted, receipt_of([line if n else head + line for n, line in enumerate(lines_of(form))]))


@pytest.mark.parametrize("form", ["nanochat", *SCRIPTS])
@quick
@given(text=st.sampled_from(NO_NUMBERS), where=st.sets(st.integers(1, COUNT - 1), min_size=1, max_size=2))
def test_a_label_without_a_number_is_named(form: str, text: str, where: set[int]) -> None:
    withheld(receipt_of(lines_of(form, lambda n: ("", text if n in where else LOSSES[n]))))


@pytest.mark.parametrize(
    ("form", "text"),
    [*((form, text) for form in ("nanogpt", "mlx-lm") for text in ("?", "?????", "<hidden>", "err")), ("script", "e+")],
)
def test_a_label_without_a_number_is_named_of_a_strict_rule(form: str, text: str) -> None:
    withheld(receipt_of(lines_of(form, lambda n: ("", LOSSES[n] if n != 5 else text))))
