"""Records that stand on several lines: an epoch's line, a rule, a line a split; words of other languages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from receipt_cli.authoring.lint import lint_grammar
from receipt_cli.authoring.proposal import propose
from receipt_cli.derive import Derivation
from tests.tools.logs import learned_of

EPOCHS = 9


def epochs(*templates: str, first: int = 1) -> list[str]:
    """Return the lines of each epoch: ``{e}`` counts, ``{x}`` falls, ``{v}`` is a loss of an evaluation."""
    return [t.format(e=first + k, x=4 - k / 10, v=5 - k / 10, n=EPOCHS) for k in range(EPOCHS) for t in templates]


def read(lines: list[str]) -> Derivation:
    return learned_of(["loading", *lines, "done"])


def figures(derivation: Derivation) -> dict[str, object]:
    assert derivation.primary is not None
    summary = derivation.summaries[derivation.primary]
    metrics = {**summary.metrics, **summary.other_metrics}
    ends = {name: (s.first, s.last) for name, s in metrics.items() if name != "epoch"}
    return {"steps": (summary.record_count, summary.first, summary.last, summary.planned), **ends}


LOSS = (4.0, 3.2)
VALIDATION = (5.0, 4.2)
BLOCKS: dict[str, tuple[list[str], dict[str, object]]] = {
    "a line a split": (
        epochs("Epoch {e}/{n}:", "Train - Loss: {x:.2f} | Acc: 0.5", "Val - Loss: {v:.2f} | Acc: 0.4"),
        {"steps": (9, 1, 9, 9), "loss": LOSS, "val_loss": VALIDATION, "acc": (0.5, 0.5)},
    ),
    "the tutorial": (
        epochs("Epoch {e}/8", "----------", "train Loss: {x:.4f} Acc: 0.5", "val Loss: {v:.4f} Acc: 0.4", first=0),
        {"steps": (9, 0, 8, 8), "loss": LOSS, "val_loss": VALIDATION, "acc": (0.5, 0.5)},
    ),
    "one line for both": (
        epochs("Epoch {e}/{n}", "-----", "Loss is: {x:.2f}, Training Accuracy: 73.5%, Test Accuracy: 87.9"),
        {"steps": (9, 1, 9, 9), "loss": LOSS, "training_accuracy": (0.735, 0.735)},
    ),
    "a test": (
        epochs("Epoch {e}", "train loss = {x:.2f}", "test loss = {v:.2f}"),
        {"steps": (9, 1, 9, None), "loss": LOSS, "test_loss": VALIDATION},
    ),
    "a number in a rule": (
        epochs("-----{e}------", "train_mean loss: {x:.2f}", "test_mean loss: {v:.2f}", first=0),
        {"steps": (9, 0, 8, None), "loss": LOSS},
    ),
    "two lines": (epochs("iter = {e}", "loss = {x:.2f}"), {"steps": (9, 1, 9, None), "loss": LOSS}),
    "a score alone": (
        epochs("REPORT", "  Batch = {e}00", "  alpha = 0.0009", "  Correct = {e}4.5%", ""),
        {"steps": (9, 100, 900, None), "correct": (0.145, 0.945)},
    ),
    "Chinese": (
        epochs("Epoch {e}/{n} | 课程深度: 2", "训练损失: {x:.2f}", "Epoch {e} 完成 | 成功率: 15.0%"),
        {"steps": (9, 1, 9, 9), "loss": LOSS},
    ),
    "Chinese alone": (
        epochs("第 轮次 {e}/{n}", "训练损失: {x:.2f} 准确率: 50%", "验证损失: {v:.2f}"),
        {"steps": (9, 1, 9, 9), "loss": LOSS, "val_loss": VALIDATION},
    ),
    "Japanese": (
        epochs("エポック: {e}/{n}", "訓練損失: {x:.2f}", "検証損失: {v:.2f}"),
        {"steps": (9, 1, 9, 9), "loss": LOSS, "val_loss": VALIDATION},
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_a_record(name: str) -> None:
    lines, wanted = BLOCKS[name]
    found = figures(read(lines))
    assert {key: found.get(key) for key in wanted} == wanted
    assert "val_loss" in wanted or "val_loss" not in found


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_makes_a_draft_that_lints(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text("".join(f"{line}\n" for line in ["loading", *BLOCKS[name][0], "done"]), "utf-8")
    assert lint_grammar(propose(str(path), "mine").text, "mine.yaml") == []


@pytest.mark.parametrize(
    ("line", "loss"),
    [
        ("Эпоха {e} потери: {x:.2f}", LOSS),
        ("Época {e}/{n} - pérdida: {x:.2f} - precisión: 0.5", LOSS),
        ("Epoche {e}: Verlust={x:.2f}", LOSS),
        ("轮次: {e}/{n}, 平均损失: {x:.2f}", LOSS),
        ("에포크 {e} 손실: {x:.2f}", LOSS),
        ("INFO:Epoch {e}: Train Loss={x:.2f}, Val Loss={v:.2f}", LOSS),
        ("INFO:__main__:Epoch {e}: loss={x:.2f}", LOSS),
        ("WARNING:root:Epoch {e} loss {x:.2f}", LOSS),
    ],
)
def test_words_of_other_languages_and_heads_that_no_blank_ends(line: str, loss: object) -> None:
    found = figures(read(epochs(line)))
    assert found["loss"] == loss
    assert found["steps"] in {(9, 1, 9, 9), (9, 1, 9, None)}


def out_of_turn() -> Iterator[str]:
    yield from (f"Epoch {e}/9" for e in range(1, 10))
    yield from (f"train loss: {4 - e / 10}" for e in range(9))


def several_a_heading() -> Iterator[str]:
    for e in range(1, 10):
        yield f"Epoch {e}/9"
        yield from ("train loss: 3.5", "train loss: 3.4", "train loss: 3.3")


def test_the_summary_of_an_epoch_is_no_record() -> None:
    steps = [f"[{{e}}, {i}/3] - box_loss: 0.5 lr: {i}.0" for i in range(1, 4)]
    found = figures(read(epochs("Epoch {e}", *steps, "avg. train_loss {x:.2f}")))
    assert found["steps"] == (27, 1, 27, None)
    assert "loss" not in found


def test_lines_of_no_single_epoch_have_no_step() -> None:
    found = figures(read([*out_of_turn()]))
    assert (found["steps"], found["loss"]) == ((9, None, None, None), (4.0, 3.2))


def test_the_only_loss_of_a_record_is_that_of_training() -> None:
    found = figures(read(epochs("Epoch {e} @ 10:27 PM : {x:.2f} C.E. Loss, 94.5% Accuracy")))
    assert (found["loss"], found["accuracy"]) == (LOSS, (0.945, 0.945))


@pytest.mark.parametrize(
    ("line", "others"),
    [
        (
            "Epoch {e}/{n} - Loss Discriminator: {x:.2f}, Loss Encoder: -0.5",
            {"loss_discriminator": LOSS, "loss_encoder": (-0.5, -0.5)},
        ),
        ("Epoch: {e} avg_loss_tgt: {x:.2f} time: 42.3s", {"avg_loss_tgt": LOSS}),
        ("Episode {e}, Reward: {x:.2f}", {"reward": LOSS}),
        ("[ep] episode={e} | return={x:.2f} | length=200", {"return": LOSS}),
        ("epoch {e} box_loss={x:.2f} cls_loss=0.5", {"box_loss": LOSS, "cls_loss": (0.5, 0.5)}),
    ],
)
def test_losses_without_a_total_and_scores_are_other_metrics(line: str, others: dict[str, object]) -> None:
    found = figures(read(epochs(line)))
    assert {key: found.get(key) for key in others} == others
    assert found["steps"] in {(9, 1, 9, 9), (9, 1, 9, None)}
    assert "loss" not in found


def test_records_without_a_counter_are_counted_where_a_loop_prints_its_time() -> None:
    found = figures(read(epochs("rl_loss: {x:.2f}, time: 10{e}.5, reward: 0.5")))
    assert found == {"steps": (9, None, None, None), "rl_loss": LOSS, "time": (101.5, 109.5), "reward": (0.5, 0.5)}


@pytest.mark.parametrize(
    "lines",
    [
        [*several_a_heading()],  # losses that hardly vary
        epochs("aux_loss: 0.5, time: 10.5, reward: 0.5"),  # a setting beside a time
        epochs("Epoch {e}/{n} - loss weight: {x:.2f}, loss scale: 1024"),  # a weight of a loss
    ],
    ids=["hardly varies", "setting", "weight"],
)
def test_what_is_no_record(lines: list[str]) -> None:
    assert not read(lines).detection.chosen
