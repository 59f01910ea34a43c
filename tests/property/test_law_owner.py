"""Law 3: the reading that explains the training owns the log; a line of another trainer takes over nothing."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.examples import costly
from tests.tools.logs import receipt_of

TITAN = "grad_norm: 1.5  memory: 1.00GiB(1.00%)  tps: 100  mfu: 42.44%"
TRAINERS = {
    "nanogpt": "iter {n}: loss {x:.4f}, time 10.00ms, mfu 1.00%",
    "torchtitan": f"step: {{n}}  loss:  {{x:.4f}}  {TITAN}",
    "hf-trainer": "{{'loss': {x:.4f}, 'grad_norm': 2.8125, 'learning_rate': 4.75e-05, 'epoch': 0.{n}}}",
    "jsonl": '{{"step": {n}, "loss": {x:.4f}, "lr": 0.001}}',
    "maxtext": "completed step: {n}, seconds: 1.234, TFLOP/s/device: 9.1, Tokens/s/device: 9.5, total_weights: 9, loss: {x:.4f}",
}
OWN = {
    "own steps": "step {n}: loss {x:.4f} lr 0.001",
    "own epochs": "Epoch {n}/30 - train_loss: {x:.4f} - val_loss: 2.5 - 12s",
    "own batches": "train | epoch 1 | batch {n}/30 | loss {x:.4f} | ppl 9.5",
    "own table": "| {n} | {x:.4f} | 0.001 |",
}
COUNT = 30


def printed(form: str) -> list[str]:
    head = ["| step | loss | lr |", "|---|---|---|"] if form.startswith("| ") else []
    return [*head, *(form.format(n=n, x=4 - n / 50) for n in range(1, COUNT + 1))]


def figures(document: dict[str, Any]) -> object:
    summary = document["summary"]
    loss = summary["metrics"]["loss"]
    return summary["steps"] | {"first_line": 0, "last_line": 0}, {key: loss[key] for key in ("first", "last", "min", "max")}


@settings(max_examples=costly(60), deadline=None)
@given(
    name=st.sampled_from([*TRAINERS, *OWN]), other=st.sampled_from([*TRAINERS]), at=st.integers(0, COUNT), count=st.integers(1, 6)
)
def test_quoted_lines_of_another_trainer_change_nothing(name: str, other: str, at: int, count: int) -> None:
    own = {**TRAINERS, **OWN}[name]
    lines = printed(own)
    inside = 0 < at < COUNT
    if other == name or (count > 1 and not inside):
        return  # several before or behind the run may be a run of their own
    wanted = figures(receipt_of(lines))
    quoted = [TRAINERS[other].format(n=1000 + n, x=0.0001) for n in range(count if inside else 1)]
    place = at + len(lines) - COUNT if at else 0
    assert figures(receipt_of([*lines[:place], *quoted, *lines[place:]])) == wanted


@pytest.mark.parametrize("known", [1, 2])
def test_more_unread_steps_than_read_ones_own_the_log(known: int) -> None:
    lines = [*printed(TRAINERS["nanogpt"])[:known], *printed(OWN["own steps"])]
    document = receipt_of(lines)
    assert (document["summary"]["steps"]["record_count"], document["derivation"]["grammars"][0]["id"]) == (COUNT, "generic")
    competed = [(one["grammar"], one["record_count"]) for one in document["derivation"]["candidates"]]
    assert competed == [("generic", COUNT), ("nanogpt", known)]


def test_steps_that_count_on_around_others_are_one_phase() -> None:
    steps, others = printed(TRAINERS["torchtitan"]), printed(TRAINERS["nanogpt"])[:9]
    document = receipt_of([*steps[:12], *others, *steps[12:]])
    assert [(phase["name"], phase["summary"]["steps"]["record_count"]) for phase in document["phases"]] == [(None, COUNT)]


LOSSES = "step {n}, avg loss: {x:.6f}, normalized loss: {y:.6f}, ppl: {p:.4f}"


def test_of_several_losses_the_one_whose_power_the_perplexity_is_stands() -> None:
    lines = [LOSSES.format(n=n, x=9 - n / 10, y=7.6 - n / 10, p=2.718281828459045 ** (9 - n / 10)) for n in range(20)]
    loss = receipt_of(lines)["summary"]["metrics"]["loss"]
    assert (loss["first"], loss["last"]) == (9, 7.1)


def test_means_of_epochs_do_not_own_the_steps_between_them() -> None:
    epochs = [f"Epoch {n} completed. Average loss: {4.7 - n / 10:.4f}" for n in range(1, 6)]
    lines = [epochs[0], "Step 50, Loss: 4.8445", *epochs[1:3], "Step 100, Loss: 6.0545", *epochs[3:]]
    summary = receipt_of(lines)["summary"]
    assert (summary["steps"]["last"], summary["metrics"]["loss"]["last"]) == (100, 6.0545)


@settings(max_examples=costly(30), deadline=None)
@given(name=st.sampled_from(["nanogpt", "torchtitan"]), count=st.integers(0, 9), word=st.sampled_from(["finetune", "val", "B"]))
def test_unread_records_behind_the_last_step_leave_the_end_open(name: str, count: int, word: str) -> None:
    lines = printed(TRAINERS[name])
    whole = receipt_of(lines)["checks"]["completed"]
    others = [f"{word} pass: step {n}/200 my_loss {3 - n / 50:.4f} lr 0.1 {n}.5ms" for n in range(count)]
    document = receipt_of([*lines, *others])
    unread = [p for p in document["derivation"]["problems"]["first"] if p["kind"] == "training_unread"]
    named = count >= 3 and word != "val"
    assert (document["checks"]["completed"], len(unread)) == ((None, 1) if named else (whole, 0))
    assert not unread or (unread[0]["fields"], unread[0]["line_number"]) == (["/checks/completed"], COUNT + 1)


@pytest.mark.parametrize(("stage", "count", "known"), [("train", 40, False), ("train", 2, True), ("sample", 40, True)])
def test_a_training_without_a_loss_behind_another_stage_leaves_its_steps_unknown(stage: str, count: int, known: bool) -> None:
    before = [f"I | pretrain | step={n}, loss={3 / (n + 1):.4f}" for n in range(30)]
    behind = [f"I | {stage} | step={n}, pmove=0.5{n % 7}, energy={-80 - n / 9:.4f}" for n in range(count)]
    document = receipt_of([*before, "the wave function has 12 parts", *behind])
    steps = document["summary"]["steps"]
    assert (steps["last"], steps["record_count"]) == ((29, 30) if known else (None, None))
    assert document["summary"]["metrics"]["loss"]["last"] == 0.1


OTHER = "Epoch {n}/10 | train loss {x:.4f} | val loss {y:.4f}"


@pytest.mark.parametrize("count", [1, 2, 9])
@pytest.mark.parametrize("name", ["nanogpt", "torchtitan"])
def test_records_of_another_program_that_are_unread_leave_no_figure_of_the_run_before(name: str, count: int) -> None:
    others = [OTHER.format(n=n, x=3 - n / 50, y=3.1 - n / 50) for n in range(1, count + 1)]
    document = receipt_of([*printed(TRAINERS[name]), "$ python other.py", *others])
    unread = [p for p in document["derivation"]["problems"]["first"] if p["kind"] == "training_unread"]
    assert [p["line_number"] for p in unread] == [COUNT + 2]
    steps, loss = document["summary"]["steps"], document["summary"]["metrics"]["loss"]
    assert {steps["last"], steps["record_count"], loss["first"], loss["last"], document["checks"]["completed"]} == {None}


def test_launches_of_two_forms_in_turn_are_all_read() -> None:
    plain = [OTHER.format(n=n, x=3 - n / 50, y=3.1 - n / 50) for n in range(1, 11)]
    tabbed = [f"[{n:03d}] loss={2 - n / 50:.4f} acc=0.{n:03d}" for n in range(1, 11)]
    document = receipt_of([*plain, "loading", *tabbed, "loading", *plain])
    assert document["derivation"]["lines"]["matched"] == 30
    assert (document["summary"]["metrics"]["loss"]["first"], document["summary"]["steps"]["first_line"]) == (2.98, 23)


@pytest.mark.parametrize("end", ["\r", "\n"])
@pytest.mark.parametrize("done", [0, 1, 2, 3])
def test_a_bar_that_is_cut_behind_a_full_one_leaves_the_end_open(end: str, done: int) -> None:
    bars = [bar("pretrain", n, 20, 6 - (n + more) / 100) for n in range(20) for more in (0, 1)]
    cut = [bar("finetune", n, 20, 0.9 - (n + more) / 100) for n in range(done) for more in (0, 1)]
    document = receipt_of([end.join(["\r".join(bars), "\r".join(cut)])])
    unread = [p["fields"] for p in document["derivation"]["problems"]["first"] if p["kind"] == "training_unread"]
    told = document["checks"]["completed"], document["summary"]["steps"]["last"]
    assert told == ((True, 19) if done < 2 else (None, None) if unread else (False, done - 1))
    assert unread == ([["/checks/completed", "/summary/steps/last"]] if done == 2 else [])


def bar(name: str, done: int, total: int, loss: float) -> str:
    share = f"{100 * done // total:3d}%|{'█' * (done // 2):10}| {done}/{total}"
    return f"{name}: {share} [00:{done:02d}<00:40, 1.0s/it, loss={loss:.2f}]"
