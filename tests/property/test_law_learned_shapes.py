"""Law 1 for learned rules: a record is read only if it begins as those records do that the rule was made from."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.derive import Derivation
from tests.tools.examples import costly
from tests.tools.logs import derived_of, receipt_of
from tests.unit.learn.test_own_scripts import TABLE
from tests.unit.learn.test_own_scripts import printed as own_script

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


@settings(max_examples=costly(30), deadline=None)
@given(form=st.sampled_from((FORMS[0], FORMS[1], FORMS[4])), at=st.integers(3, COUNT - 3))
def test_a_record_torn_by_another_is_not_read_with_the_other_one_s_loss(form: str, at: int) -> None:
    lines = printed(form)
    torn, whole = lines[at], lines[at + 1]
    cut = torn.index(".", torn.lower().index("loss"))
    derivation = derived_of([*lines[:at], torn[:cut] + whole, torn[cut:], *lines[at + 2 :]])
    assert derivation.primary is not None
    loss = derivation.summaries[derivation.primary].metrics["loss"]
    named = {field for problem in derivation.problems[1] for field in problem.fields}
    assert loss.record_count < COUNT
    assert (loss.first, loss.last) == (3.98, 3.2)
    assert named & {"/summary/steps/record_count", "/summary/metrics/loss/min"}


LOGS = [name for name, row in TABLE.items() if "{loss" in row.get("step", "") and row["epochs"] * row["steps"] > 8]


@settings(max_examples=costly(40), deadline=None)
@given(name=st.sampled_from(LOGS), words=st.sampled_from(WORDS), share=st.floats(0.1, 0.9))
def test_a_rule_reads_its_templates_and_no_record_with_words_before_one(name: str, words: str, share: float) -> None:
    text, losses = own_script(TABLE[name])
    lines = text.splitlines()
    spelled = f"{losses[int(share * len(losses))]:.3g}"[:5]
    at = next((at for at, line in enumerate(lines) if at > share * len(lines) and spelled in line), None)
    if at is None:
        return
    lines.insert(at, words + lines[at].lstrip().replace(spelled, "77777.5"))
    derivation = derived_of(lines)
    summary = derivation.summaries[derivation.primary] if derivation.primary is not None else None
    loss = summary.metrics.get("loss") if summary is not None else None
    assert loss is None or loss.max is None or loss.max < 77777


def test_an_unread_record_behind_the_last_step_leaves_open_how_many_there_are() -> None:
    form = "Training Epoch: 0 Training Iteration: {n}  average_loss : {x:.4f}  learning_rate : 0.001"
    lines = [form.format(n=n, x=9 - n / 10) for n in range(1, 20)]
    derivation = derived_of([*lines, "Training Epoch: 0 Training Iteration: 20  final_loss : 7.1 None"])
    problem = next(problem for problem in derivation.problems[1] if problem.kind == "training_unread")
    assert problem.line_number == 20
    assert {"/summary/steps/record_count", "/summary/steps/last", "/summary/metrics/loss/last"} <= {*problem.fields}
    again = derived_of([*lines, "Training Epoch: 0 Training Iteration: 19  final_loss : 7.1 None"])
    assert not any(problem.kind == "training_unread" for problem in again.problems[1])


def test_a_record_glued_behind_a_bar_is_read_as_the_others_are() -> None:
    lines = [f"{{'loss': '{3 - n / 100:.3f}', 'grad_norm': '{5 + n % 7}.5', 'learning_rate': '1e-06'}}" for n in range(60)]
    lines[2] = "Train:   3%|▎         | 3/60 [04:37<7:07:39, 88.18s/it]" + lines[2]
    derivation = derived_of(lines)
    assert derivation.primary is not None
    assert derivation.summaries[derivation.primary].record_count == 60


def test_losses_beside_a_counter_that_begins_again_are_of_several_launches() -> None:
    lines = list[str]()
    for launch in range(3):
        for n in range(100, 1100, 100):
            x = 9 - n / 500 - launch / 7
            lines += [f"[worker] progress: 1/1 step: {n}, speed: {16 + n / 1000} steps/s"]
            lines += [f"\tlm_loss: {x:.4f}, ppl: {math.exp(x):.4f}, loss: {x:.4f}"]
    assert derived_of(lines[:20]).primary is not None
    assert derived_of(lines).primary is None


@pytest.mark.parametrize(("scale", "factor"), [("K", 1e3), ("M", 1e6), ("B", 1e9)])
def test_a_letter_between_a_number_and_its_rate_says_its_magnitude(scale: str, factor: float) -> None:
    derivation = derived_of([f"step {n} | loss {4 - n / 50:.4f} | 1.{20 + n}{scale} tok/s" for n in range(COUNT)])
    assert derivation.primary is not None
    rate = derivation.summaries[derivation.primary].metrics["tokens_per_s"]
    assert (rate.first, rate.last) == (1.2 * factor, 1.59 * factor)


def test_a_letter_before_three_names_tells_the_validation_s() -> None:
    form = "Epoch {n}: v_recons {v:.4f}  recons {x:.4f}  v_loss {v:.4f}  loss {x:.4f}  v_kl {v:.4f}  kl {x:.4f}"
    derivation = derived_of([form.format(n=n, x=4 - n / 50, v=5 - n / 60) for n in range(COUNT)])
    assert derivation.primary is not None
    metrics = derivation.summaries[derivation.primary].metrics
    assert (metrics["loss"].first, metrics["val_loss"].first) == (4.0, 5.0)
    players = [f"Epoch {n}: p_loss {n / 7:.4f}  v_loss {3 - n / 60:.4f}  loss {4 - n / 50:.4f}" for n in range(COUNT)]
    again = derived_of(players)
    assert again.primary is None or "val_loss" not in again.summaries[again.primary].metrics


def test_grad_beside_a_loss_and_a_learning_rate_is_the_gradient_norm() -> None:
    form = "Epoch 1 | Step {n}/99 | Loss: {x:.4f} | LR: 1.00e-06 | Grad: {g:.3f}"
    for least, wanted in ((0.2, 0.2), (-0.3, None)):
        derivation = derived_of([form.format(n=n, x=4 - n / 50, g=least + n / 30) for n in range(COUNT)])
        assert derivation.primary is not None
        norm = derivation.summaries[derivation.primary].metrics.get("grad_norm")
        assert (norm.first if norm is not None else None) == wanted


@pytest.mark.parametrize(
    ("labels", "ambiguous"),
    [("loss {x} total_loss {y}", True), ("nll {x} ce {y}", True), ("loss {x} ce {y}", False), ("loss {x} total_loss {x}", False)],
)
def test_two_labels_that_may_be_the_loss_s_are_named(labels: str, ambiguous: bool) -> None:
    lines = [f"step {n} " + labels.format(x=f"{4 - n / 50:.4f}", y=f"{5 - n / 60:.4f}") for n in range(COUNT)]
    problems = [problem for problem in derived_of(lines).problems[1] if problem.kind == "loss_ambiguous"]
    assert [len(problem.fields) for problem in problems] == ([6] if ambiguous else [])


NAMES = {
    "worker0{k} sent update {n}: local mae {x:.4f}": [(k, n) for n in range(1, 13) for k in range(4)],
    "task_{k} Epoch {n}/12 | L {x:.4f} | Train Acc {x:.2f}": [(k, n) for k in range(4) for n in range(1, 13)],
    "{h} fit {k}/3, Epoch {n}/12, Objective (NL): {x:.4f}{t}": [(k, n) for k in range(1, 4) for n in range(1, 13)],
}


@pytest.mark.parametrize("form", NAMES)
@pytest.mark.parametrize("turned", [False, True])
def test_records_of_another_name_that_are_unread_leave_no_figure_of_the_run(form: str, turned: bool) -> None:
    heads = ("north", "south", "west", "east") if "{h}" in form else ("",)
    rows = [(h, k, n, 4 - n / 50 - k / 7) for h in heads for k, n in NAMES[form]]
    lines = [form.format(h=h, k=k, n=n, x=x, t="" if k > 1 else f", Training RMSE: {x / 7:.4f}") for h, k, n, x in rows]
    document = receipt_of(lines[len(lines) // 2 :] + lines[: len(lines) // 2] if turned else lines)
    summary, problems = document["summary"], document["derivation"]["problems"]["first"]
    assert "training_unread" in {problem["kind"] for problem in problems}
    assert {summary["steps"][key] for key in ("first", "last", "record_count")} == {None}
    figures = [*summary["metrics"].values(), *summary["other_metrics"].values()]
    assert {figure[key] for figure in figures for key in ("first", "last", "min", "max", "mean", "median")} == {None}
    assert document["checks"]["completed"] is None


def test_a_number_glued_to_a_name_before_the_epochs_counts_runs() -> None:
    lines = [f"T{k} Ep {n}/12 | L {4 - n / 50 - k / 7:.4f} | Train Acc 0.{n:02}" for k in range(4) for n in range(1, 13)]
    document = receipt_of(lines)
    steps, others = document["summary"]["steps"], document["summary"]["other_metrics"]
    assert (steps["record_count"], steps["last"], steps["last_line"]) == (12, 12, 48)
    assert (others["l"]["first"], document["derivation"]["launches"]["count"]) == (3.5514, 4)


def test_more_records_of_a_training_behind_those_that_are_read_leave_the_end_open() -> None:
    read = [f"Epoch {n}/12 - loss: {4 - n / 50:.4f}" for n in range(1, 13)]
    places = [(k, n) for k in range(9) for n in range(1, 6)]
    unread = [f"Task {k} Epoch {n}/5 | L {4 - n / 50 - k / 7:.3f} | Train Acc 0.{k}{n} | F1 0.{n}{k}" for k, n in places]
    document = receipt_of([*read, *unread])
    assert document["checks"]["completed"] is None
    assert "training_unread" in {problem["kind"] for problem in document["derivation"]["problems"]["first"]}


def test_numbers_in_turn_before_the_epochs_are_writers() -> None:
    lines = [f"c{k} epoch {n} loss {4 - n / 50 - k / 7:.4f}" for n in range(1, 13) for k in range(3)]
    assert receipt_of(lines)["summary"] is None
