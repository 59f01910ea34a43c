"""Drafts: readable rules that read what was learned, questions where nothing is proven, and answers that settle them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from receipt_cli.authoring.lint import lint_grammar
from receipt_cli.authoring.proposal import Proposal, propose
from receipt_cli.authoring.roles import read_answers
from receipt_cli.errors import InputError, UsageError

Figures = dict[str, Any]


@pytest.fixture
def draft(tmp_path: Path) -> Callable[..., Proposal]:
    def make(lines: Sequence[str], *answers: str) -> Proposal:
        path = tmp_path / "run.log"
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        proposal = propose(str(path), "own", answers=read_answers(answers))
        assert lint_grammar(proposal.text, "own.yaml") == []
        return proposal

    return make


def rules(proposal: Proposal) -> dict[str, Any]:
    return yaml.safe_load(proposal.text)["rules"]


def last(proposal: Proposal) -> Figures:
    """Return the steps, and the last value of each metric."""
    derivation = proposal.derivation
    assert derivation.primary is not None
    summary = derivation.summaries[derivation.primary]
    metrics = {**summary.metrics, **summary.other_metrics}
    return {"steps": (summary.record_count, summary.first, summary.last), **{name: s.last for name, s in metrics.items()}}


def lines(template: str, count: int = 12) -> list[str]:
    return [template.format(n=n, x=4 - n / 10, e=(n - 1) // 4 + 1, i=(n - 1) % 4 + 1) for n in range(1, count + 1)]


READABLE = {
    "pairs": ("step {n} | loss={x:.1f} | lr=0.1", "pairs", {"steps": (12, 1, 12), "loss": 2.8, "learning_rate": 0.1}),
    "commas": ("Epoch [{e}/3][{i}/4], loss: {x:.1f}, lr: 0.1, gnorm: 1.5", "pairs", {"steps": (12, 1, 12), "grad_norm": 1.5}),
    "blanks": ("iter {n:5d}  loss={x:.1f} lr=0.1", "pairs", {"steps": (12, 1, 12), "loss": 2.8}),
    "words": ("update {n}/12 :: mse {x:.1f} :: step time 0.5ms", "pattern", {"steps": (12, 1, 12), "step_time_s": 0.0005}),
    "value first": ("loss: {x:.1f} - step: {n}", "pattern", {"steps": (12, 1, 12), "loss": 2.8}),
}


@pytest.mark.parametrize("name", READABLE)
def test_a_draft_is_readable_and_reads_what_was_learned(name: str, draft: Callable[..., Proposal]) -> None:
    template, kind, wanted = READABLE[name]
    proposal = draft(["loading", *lines(template), "done"])
    assert kind in rules(proposal)["train_step"]
    assert wanted.items() <= last(proposal).items()
    assert max(map(len, proposal.text.decode().splitlines())) < 250


def test_a_rule_is_explained_by_one_of_its_records(draft: Callable[..., Proposal]) -> None:
    text = draft(lines("step {n} | loss={x:.1f} | lr=0.1")).text.decode()
    assert "  # 12 records such as: step 1 | loss=3.9 | lr=0.1\n" in text
    assert "  # in which it reads step 1, loss 3.9, learning_rate 0.1\n" in text


def test_records_of_two_lengths_are_one_rule(draft: Callable[..., Proposal]) -> None:
    more = [f"{line} val 9.5" if n % 2 else line for n, line in enumerate(lines("tick {n}/12 train_ce {x:.1f} lr 0.1"))]
    assert last(draft(more))["steps"] == (12, 1, 12)


OPEN = {
    "no counter": ("loss: {x:.1f}", (12, None, None), "no number counts up"),
    "no metric": ("epoch {n}/12 took 3.5 minutes", (12, 1, 12), "'took' (3.5, 3.5, 3.5) is kept under its own name"),
    "foreign words": ("schritt={n} kosten={x:.1f}", (12, 1, 12), "'kosten' (3.9, 3.8, 3.7) is kept under its own name"),
    "an indented row": ("      {n}/12   14.5G   {x:.1f}", (12, 1, 12), "is kept under its own name"),
    "numbers alone": ("{n} {x:.1f} 0.5", (12, 1, 12), "'#2' (3.9, 3.8, 3.7) is kept under its own name"),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_is_not_proven_is_a_question_in_the_draft(name: str, draft: Callable[..., Proposal]) -> None:
    template, steps, question = OPEN[name]
    proposal = draft(["loading", *lines(template), "done"])
    assert last(proposal)["steps"] == steps
    assert any(question in each.text for each in proposal.questions)
    assert f"#   ? {proposal.questions[0].text}" in proposal.text.decode()


ANSWERS = {
    "a time with its unit": ("step {n} loss {x:.1f} cost {n}", ["cost=time:ms"], {"step_time_s": 0.012, "loss": 2.8}),
    "a printed unit": ("epoch {n}/12 took 3.5 minutes", ["took=time"], {"step_time_s": 210.0}),
    "the step is another number": ("run 7 mark {n} loss {x:.1f}", ["step=mark"], {"steps": (12, 1, 12)}),
    "foreign words": ("schritt={n} kosten={x:.1f}", ["kosten=loss"], {"steps": (12, 1, 12), "loss": 2.8}),
    "two numbers at once": ("{n} {x:.1f} 0.5", ["#2=loss,#3=lr"], {"loss": 2.8, "learning_rate": 0.5}),
    "a step inside an epoch that another line announces": ("{x:.2f}, {i}00", ["#1=loss,#2=epoch_step"], {"loss": 2.8}),
    "no step": ("schritt={n} kosten={x:.1f}", ["schritt=skip"], {"steps": (12, None, None)}),
    "a number that the rule leaves out keeps its label": (
        "schritt={n} kosten={x:.1f} tempo=3.5",
        ["tempo=skip,kosten=loss"],
        {"loss": 2.8, "tempo": 3.5},
    ),
    "training after all": ("Validation step {n} loss {x:.1f}", ["record=train,loss=loss"], {"loss": 2.8}),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_settles_a_question(name: str, draft: Callable[..., Proposal]) -> None:
    template, answers, wanted = ANSWERS[name]
    read = last(draft(["loading", *lines(template), "done"], *answers))
    assert wanted.items() <= read.items()


WRONG = {
    "kosten": "--answer needs NAME=ROLE",
    "kosten=lose": "did you mean 'loss'",
    "kostne=loss": "did you mean 'kosten'",
    "kosten=time:sekunden": "units are",
    "record=training": "must be one of train, epoch, eval",
}


@pytest.mark.parametrize("answer", WRONG)
def test_an_answer_that_fits_nothing_says_what_would(answer: str, draft: Callable[..., Proposal]) -> None:
    with pytest.raises(UsageError) as found:
        draft(lines("schritt={n} kosten={x:.1f}"), answer)
    assert WRONG[answer] in found.value.render()


def test_a_log_without_a_number_gives_a_draft_to_fill_in(draft: Callable[..., Proposal]) -> None:
    proposal = draft(["hello", "world"])
    assert not proposal.steps and "step 10, loss: 2.5" in proposal.text.decode()


def test_an_empty_log_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"")
    with pytest.raises(InputError):
        propose(str(path), "own")


def test_a_counter_inside_epochs_comes_with_the_line_that_announces_them(draft: Callable[..., Proposal]) -> None:
    log = [text for e in range(4) for text in (f"Epoch: {e}", *(f"{3 - e / 2 - i / 1000:.3f}, {i}" for i in range(0, 400, 100)))]
    proposal = draft(log, "#1=loss", "#2=epoch_step")
    assert set(rules(proposal)) == {"epoch_begins", "train_step"} and not proposal.questions
    assert last(proposal) == {"steps": (16, None, None), "loss": 1.2, "epoch": 3}
