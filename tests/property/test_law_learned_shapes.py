"""Law 1 for learned rules: a record is read only if it begins as those records do that the rule was made from."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.derive import Derivation
from tests.tools.examples import costly
from tests.tools.logs import derived_of

FORMS = (
    "step {n}: loss {x:.4f} lr 0.001",
    "Iteration {n} | loss={x:.4f} | acc={n}.5%",
    "loss: {x:.4f}, global_step: {n}, lr: 0.001",
    "2026-01-02 10:00:01,123 - INFO - Epoch [{e}/4] Batch [{b}/10] Loss: {x:.4f} ({x:.4f})",
    "Epoch {n}/40 - train_loss: {x:.4f} - val_loss: {x:.2f} - 12s",
    "train | epoch {e} | batch {b}/10 | loss {x:.4f} | ppl 12.5",
)
WORDS = ("Profiling ", "Dry run ", "Teacher ", "Reference model ", "autotune: ", "[calibration] ", 'old log: "', "best so far: ")
COUNT = 40


def printed(form: str) -> list[str]:
    return [form.format(n=n, e=1 + (n - 1) // 10, b=1 + (n - 1) % 10, x=4 - n / 50) for n in range(1, COUNT + 1)]


def foreign(form: str, words: str, at: int, loss: float) -> str:
    """Return a record of another model: ``words`` before what the line says, behind the logger's head."""
    line = form.format(n=at, e=1 + (at - 1) // 10, b=1 + (at - 1) % 10, x=loss)
    head = "2026-01-02 10:00:01,123 - INFO - "
    return head + words + line.removeprefix(head) if line.startswith(head) else words + line


def figures(derivation: Derivation) -> object:
    assert derivation.primary is not None
    summary = derivation.summaries[derivation.primary]
    loss = summary.metrics["loss"]
    return summary.first, summary.last, summary.record_count, summary.restart_count, loss.first, loss.last, loss.min, loss.max


@settings(max_examples=costly(60), deadline=None)
@given(
    form=st.sampled_from(FORMS),
    words=st.sampled_from(WORDS),
    places=st.lists(st.integers(1, COUNT), min_size=1, max_size=3, unique=True),
    loss=st.sampled_from([0.0001, 77.7]),
)
def test_what_other_words_precede_is_no_record(form: str, words: str, places: list[int], loss: float) -> None:
    lines = printed(form)
    wanted = figures(derived_of(lines))
    for at in sorted(places, reverse=True):
        lines.insert(at - 1, foreign(form, words, at, loss))
    derivation = derived_of(lines)
    assert figures(derivation) == wanted
    named = [problem for problem in derivation.problems[1] if problem.kind == "foreign_record"]
    assert [problem.detail.split()[0] for problem in named] in ([str(len(places))], [])  # an evaluation's is none
    assert named or words == "[calibration] "


@settings(max_examples=costly(30), deadline=None)
@given(form=st.sampled_from(FORMS), words=st.sampled_from(WORDS), count=st.integers(3, 10), behind=st.booleans())
def test_a_short_section_that_other_words_precede_is_no_stage(form: str, words: str, count: int, behind: bool) -> None:
    lines = printed(form)
    section = [foreign(form, words, at, 77.7) for at in range(1, count + 1)]
    plain = derived_of(lines)
    derivation = derived_of([*lines, *section] if behind else [*section, *lines])
    assert (figures(derivation), len(derivation.summaries)) == (figures(plain), 1)
    assert derivation.checks["completed"] in (plain.checks["completed"], None)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(
    "form", ["Epoch:[{e}/4]{w}({b}/10), loss: {x:.4f}, lr: 0.1", "Epoch {e} {w}Iteration {n}  loss = {x:.4f}"]
)
def test_a_word_between_two_counters_tells_of_another_model(form: str, before: bool) -> None:
    own, others = (
        [form.format(n=n, e=1 + (n - 1) // 10, b=1 + (n - 1) % 10, x=x or 4 - n / 50, w=word) for n in range(1, COUNT + 1)]
        for word, x in (("", 0), ("Teacher ", 0.0001))
    )
    lines = [line for pair in (zip(others, own, strict=True) if before else zip(own, others, strict=True)) for line in pair]
    assert figures(derived_of(lines)) == figures(derived_of(own))


@pytest.mark.parametrize(
    "lines",
    [
        ["epoch: {n} end, loss: {x:.4f}", "epoch: {n} validation, acc: 0.5, loss: 9.5"],
        ["epoch {n} loss {x:.4f}", "epoch {n} holdout loss 0.5"],
        ["step {n} | loss {x:.4f}", "dev step {n} | loss 0.5"],
    ],
)
def test_a_word_between_the_counter_and_the_figures_tells_of_what_they_are(lines: list[str]) -> None:
    every = [line.format(n=n, x=4 - n / 50) for n in range(COUNT) for line in lines]
    assert figures(derived_of(every)) == (0, COUNT - 1, COUNT, 0, 4.0, 3.22, 3.22, 4.0)


def test_records_of_one_kind_may_begin_in_several_ways() -> None:
    lines = [f"[{'gpu' if n % 2 else 'cpu'} 0] iter {n}: loss {4 - n / 50:.4f}" for n in range(COUNT)]
    assert figures(derived_of(lines)) == (0, COUNT - 1, COUNT, 0, 4.0, 3.22, 3.22, 4.0)
