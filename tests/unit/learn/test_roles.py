"""What a column is, by its words and by what it does: a word with two meanings needs a second sign."""

import pytest

from receipt_cli.derive import Derivation
from tests.tools.logs import derived_of, learned_of

COUNT = 20


def metrics(derivation: Derivation) -> dict[str, tuple[float | None, float | None]]:
    assert derivation.primary is not None
    return {name: (s.first, s.last) for name, s in derivation.summaries[derivation.primary].metrics.items()}


def steps(derivation: Derivation) -> list[tuple[int, int | None, int | None]]:
    return [(s.record_count, s.first, s.last) for s in derivation.summaries if s.record_count]


def printed(template: str, count: int = COUNT) -> list[str]:
    """Return records: ``{n}`` counts, ``{x}`` falls from 4 by 0.1, ``{r}`` rises from 4250."""
    return [template.format(n=n, x=4 - n / 10, r=4250 + n) for n in range(count)]


@pytest.mark.parametrize(
    "line",
    [
        "[Epoch {n}] Training cost: {r:.3f}, RPN_Conf=0.05, lr=0.1",
        "step {n}/20 lr: 0.1 batch_cost: {x:.3f} sec",
        "step {n}/20 lr: 0.1 cost: 0.25 reader_cost: 0.1",
        "step {n}/20 lr: 0.1 loss: {x:.2f} seconds",
    ],
)
def test_a_cost_that_may_be_a_time_is_no_loss(line: str) -> None:
    derivation = learned_of(printed(line))
    assert derivation.primary is None or "loss" not in metrics(derivation)


@pytest.mark.parametrize("line", ["Pre-training, epoch {n}, cost {x:.3f}", "iter {n} cost: {x:.3f} lr: 0.1"])
def test_a_cost_that_falls_is_a_loss(line: str) -> None:
    assert metrics(learned_of(printed(line)))["loss"] == (4.0, 2.1)


def test_tokens_of_a_step_are_no_total() -> None:
    assert "tokens_total" not in metrics(learned_of(printed("step {n} num_tokens 4096 loss {x:.2f}")))
    assert metrics(learned_of(printed("step {n} num_tokens {r} loss {x:.2f}")))["tokens_total"] == (4250, 4269)


@pytest.mark.parametrize("number", ["39.000,5", "1.234.567,25"])
def test_a_number_of_two_meanings_is_not_read(number: str) -> None:
    found = metrics(learned_of(printed(f"step {{n}} loss {{x:.2f}} tok/s {number}")))
    assert found == {"loss": (4.0, 2.1)}


def test_an_evaluation_that_counts_as_training_does_is_left_out() -> None:
    lines = [*printed("step {n} loss {x:.2f}"), *printed("validation step {n} loss 7.5", 5)]
    assert steps(learned_of(lines))[-1] == (20, 0, 19)
    before = ["eval: step 0 loss 5.50 ppl 244", *printed("step {n} loss {x:.2f}"), "eval: step 20 loss 2.69 ppl 14.8"]
    assert metrics(learned_of(before))["loss"] == (4.0, 2.1)


def test_a_line_that_is_named_as_the_validation_loss_is_one() -> None:
    lines = [line for n in range(9) for line in (*printed(f"step {n}{{n}} loss {{x:.2f}}", 9)[1:], f"Validation loss: 0.{n}5")]
    assert metrics(learned_of(lines))["val_loss"] == (0.05, 0.85)


def test_a_rule_that_names_no_trainer_wins_nothing_alone() -> None:
    assert not derived_of(["Validation loss: 0.61", "Validation loss: 0.55", "Validation loss: 0.50"]).detection.chosen


def test_an_epoch_of_few_is_a_record_where_its_total_and_much_else_is_printed() -> None:
    line = "Epoch {n}/15 [255.4s] | Train: loss=0.45 acc=0.778 | Val: loss=1.47 acc=0.617"
    assert steps(learned_of([line.format(n=n) for n in (1, 2)])) == [(2, 1, 2)]
    assert learned_of([f"Epoch {n}/15 loss=0.45" for n in (1, 2)]).primary is None


def test_the_record_of_an_epoch_stands_beside_bars_that_lag() -> None:
    lines: list[str] = []
    for epoch in range(1, 7):
        bars = [f"Epoch {epoch}: 5%|#  | {i}/20 [00:01<00:09, 3.9it/s, CE=9.5]" for i in range(20)]
        lines += [f"Epoch {epoch}", *bars, f"  Train - CE: {4 - epoch / 10:.2f}", "  Val   - CE: 5.5"]
    derivation = learned_of(lines)
    assert (steps(derivation), metrics(derivation)["loss"]) == ([(6, 1, 6)], (3.9, 3.4))


def test_records_of_a_second_column_are_others() -> None:
    left, right = printed("Iteration {n} lr = 0.1 loss = {x:.2f}"), printed(" " * 88 + "Iteration {n} loss = 9.5")
    lines = [line for pair in zip(left, right, strict=True) for line in pair]
    derivation = learned_of(lines)
    assert (steps(derivation), metrics(derivation)["loss"]) == ([(20, 0, 19)], (4.0, 2.1))


def test_a_stage_with_its_own_words_is_read_by_one_rule() -> None:
    lines = [*printed("Epoch {n} | Loss: {x:.2f}"), *printed("Stage2 Epoch {n} | Loss: {x:.2f}", 30)]
    assert steps(learned_of(lines)) == [(20, 0, 19), (30, 0, 29)]


def test_a_bar_of_an_evaluation_says_nothing_of_the_record_behind_it() -> None:
    lines = printed("Validation: |          | 0/? [00:00<?, ?it/s][12/09/24 20:26:00] INFO   Epoch {n}: v_loss 1.5  loss {x:.2f}")
    assert metrics(learned_of(lines))["loss"] == (4.0, 2.1)
