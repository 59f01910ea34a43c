"""Logs of trainers that nobody knows: what is learned of them, and what is left alone."""

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from receipt_cli.authoring.lint import lint_grammar
from receipt_cli.authoring.proposal import proposal_id, propose
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.derive import Derivation, Options, derive, read_log
from receipt_cli.detect.generic import WHERE, load_generic
from receipt_cli.errors import DataError
from receipt_cli.grammar.catalog import definition
from receipt_cli.io.joined_parts import Stream
from receipt_cli.io.source import Source
from receipt_cli.learn.learned import learn
from receipt_cli.learn.vocabulary import load_vocabulary
from tests.tools.logs import derived_of, learned_of

Figures = tuple[int, int | None, int | None, float | None, float | None]


def write(path: Path, lines: Iterable[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(path)


def figures(derivation: Derivation) -> Figures | None:
    """Return step records, first and last step, first and last loss."""
    if derivation.primary is None:
        return None
    summary = derivation.summaries[derivation.primary]
    loss = summary.metrics.get("loss")
    first, last = (loss.first, loss.last) if loss is not None else (None, None)
    return summary.record_count, summary.first, summary.last, first, last


def formatted(template: str, count: int, start: int = 1, stride: int = 1) -> list[str]:
    """Return ``count`` lines: ``{n}`` counts, ``{e}`` and ``{i}`` count epochs of five, ``{x}`` falls."""
    numbers = [start + k * stride for k in range(count)]
    return [template.format(n=n, e=k // 5 + 1, i=k % 5 + 1, x=4 - k / 100) for k, n in enumerate(numbers)]


STEPS: dict[str, tuple[str, Figures]] = {
    "words": ("tick it {n} train_ce {x:.2f} lr 0.1", (20, 1, 20, 4.0, 3.81)),
    "colons": ("global step: {n}, training loss: {x:.2f}", (20, 1, 20, 4.0, 3.81)),
    "equals": ("[trainer] step={n} | loss={x:.2f} | gnorm=0.5", (20, 1, 20, 4.0, 3.81)),
    "json": ('{{"step": {n}, "train": {{"loss": {x:.2f}}}, "lr": 0.1}}', (20, 1, 20, 4.0, 3.81)),
    "loss first": ("loss: {x:.2f} - step: {n}", (20, 1, 20, 4.0, 3.81)),
    "of a total": ("Update {n} of 20 --- nll {x:.2f}", (20, 1, 20, 4.0, 3.81)),
    "thousands": ("iter 1,{n:03d} loss {x:.2f}", (20, 1001, 1020, 4.0, 3.81)),
    "a bracket": ("[{n}]\ttrain loss: {x:.2f}\tlr: 0.1", (20, 1, 20, 4.0, 3.81)),
    "a mean beside it": ("step {n}: loss {x:.2f} avg_loss 9.99 lr 0.1", (20, 1, 20, 4.0, 3.81)),
    "value (average)": ("step {n} loss: {x:.2f} (9.99) lr: 0.1", (20, 1, 20, 4.0, 3.81)),
    "parts of a loss": ("step {n} total_loss: {x:.2f} loss_box: 9.9 loss_cls: 8.8", (20, 1, 20, 4.0, 3.81)),
    "epochs of iterations": ("Epoch [{e}/4][{i}/5] loss: {x:.2f}", (20, 1, 20, 4.0, 3.81)),
    "an epoch and its steps": ("[{e}, {i}/ 5] loss: {x:.2f}", (20, 1, 20, 4.0, 3.81)),
    "an epoch and steps without a total": ("[{e},  {i}000] loss: {x:.2f}", (20, None, None, 4.0, 3.81)),
    "named epochs and steps": ("Epoch [{e}/4], Step [{i}/5], Loss: {x:.2f}", (20, 1, 20, 4.0, 3.81)),
    "an epoch a line": ("Epoch {n}/20 - train loss: {x:.2f} - val loss: 9.9", (20, 1, 20, 4.0, 3.81)),
    "a counted round": ("第{n}轮, 训练损失: {x:.2f}, 准确率: 0.5", (20, 1, 20, 4.0, 3.81)),
    "a counted round without a comma": ("第{n}轮 训练损失: {x:.2f} 准确率: 0.5", (20, 1, 20, 4.0, 3.81)),
    "a counted epoch": ("第 {n} 个epoch: 训练集loss={x:.2f}, 验证集loss=9.9", (20, 1, 20, 4.0, 3.81)),
    "steps of an environment": ("Ep. {n}, Timesteps {n}00, Return = 9.9, loss = {x:.2f}", (20, 100, 2000, 4.0, 3.81)),
    "a name before the counter": ("Training average loss at step {n}: {x:.2f}", (20, 1, 20, 4.0, 3.81)),
    "a cost after iterations": ("Cost after iteration {n}: {x:.6f}", (20, 1, 20, 4.0, 3.81)),
    "numbers glued to their words": ("epoch{n} loss{x:.2f} acc0.5", (20, 1, 20, 4.0, 3.81)),
    "losses glued to their words": ("Epoch:{n} train_loss{x:.2f} val_loss9.90", (20, 1, 20, 4.0, 3.81)),
    "a loss glued to its word, in brackets": ("[{e}/4][{i}/5] loss{x:.2f}", (20, 1, 20, 4.0, 3.81)),
    "a mean so far": ("Iteration {n} of 20: avg loss so far is {x:.2f} (3.2 s)", (20, 1, 20, 4.0, 3.81)),
    "a mean so far of an epoch": ("epoch {n}: average loss so far: {x:.2f}", (20, 1, 20, 4.0, 3.81)),
    "a mean so far in brackets": ("[{e}/4][{i}/5] running loss so far = {x:.2f}", (20, 1, 20, 4.0, 3.81)),
    "the perplexity of epochs": ("epoch {n} perplexity {x:.2f} time 31.2s", (20, 1, 20, None, None)),
    "the perplexity of training": ("Epoch: {n} Train Perplexity: {x:.3f}", (20, 1, 20, None, None)),
    "an epoch's ppl": ("| end of epoch {n} | ppl {x:.2f} | lr 0.1", (20, 1, 20, None, None)),
    "a bar": ("train:  5%|#    | {n}/20 [00:01<00:09, 3.9it/s, loss={x:.2f}]", (20, 1, 20, 4.0, 3.81)),
}


@pytest.mark.parametrize("name", STEPS)
def test_records_of_training_are_read(name: str) -> None:
    template, wanted = STEPS[name]
    lines = ["loading", *formatted(template, 20), "done"]
    assert figures(learned_of(lines)) == wanted


def test_a_bar_before_each_record_counts_them() -> None:
    bars = formatted("{n}%|##  | {n}/20 [00:01<00:09, 3.9s/it]Training loss: {x:.2f}", 20, start=0)
    assert figures(learned_of(bars)) == (20, 0, 19, 4.0, 3.81)


def test_of_a_bar_that_shows_numbers_before_it_counts_on_the_steps_are_read() -> None:
    drawn = [f"[Adam] Tot:{4 - n / 100:.3f} PDE:{1 - n / 999:.3f}: 5%|#   | {n}/900 [00:01<00:09, 3.9it/s]" for n in range(40)]
    late = [line.replace(f"| {n}/", f"| {n + 1}/") for n, line in enumerate(drawn)]
    lines = [line for pair in zip(drawn, late, strict=True) for line in pair]
    assert figures(learned_of(lines)) == (40, 1, 40, None, None)


LATE = {
    "the name of a fold": "[fold_0] {e:03d}/003: {p:3d}%|##  | {n}/20 [00:01<00:09, 3.9it/s, loss={x:.4f}]",
    "an epoch of a total": "{e:03d}/003: {p:3d}%|##  | {n}/20 [00:01<00:09, 3.9it/s, loss={x:.4f}]",
    "a description with the loss": "Epoch {e} loss: {x:.4f}: {p:3d}%|##  | {n}/20 [00:01<00:09, 3.9it/s]",
    "a description of GluonCV": "Epoch {e}, training loss {x:.4f}: {p:3d}%|##  | {n}/20 [00:01<00:09,  3.9s/it]",
    "a postfix without an equals sign": "Epoch {e}: {p:3d}%|##  | {n}/20 [00:01<00:09, 3.9it/s, Loss: {x:.4f}, LR: 0.001]",
}
"""Bars of loops that show a loss before they count its step: at 0 there is the first, and a full bar repeats the last."""


@pytest.mark.parametrize("name", LATE)
def test_a_bar_that_shows_a_loss_before_it_counts_has_one_record_a_step(name: str) -> None:
    drawn = [(e, n, 4 - (20 * e + n) / 100) for e in range(3) for n in range(20)]
    bars = [LATE[name].format(e=e, n=n + done, p=5 * (n + done), x=x) for e, n, x in drawn for done in (0, 1)]
    assert figures(learned_of(["\r".join(["loading", *bars])])) == (60, 0, 59, 4.0, 3.41)


@pytest.mark.parametrize("name", STEPS)
def test_what_is_learned_proves_itself_and_reads_the_log(name: str, tmp_path: Path) -> None:
    template, wanted = STEPS[name]
    path = write(tmp_path / "log", ["loading", *formatted(template, 20), "done"])
    proposal = propose(path, "mine")
    assert lint_grammar(proposal.text, "mine.yaml") == []
    own = tmp_path / "mine.yaml"
    own.write_bytes(proposal.text)
    assert figures(derive(Source(path), Options(grammar=str(own)))) == wanted


QUIET = {
    "prose": ["step 1 is to read the loss of 3.5 units", "step 2 was shorter", "in step 3 the loss fell to 2 units"],
    "source code": [f"    for step in range({n}): loss = model(x, {n}.5)" for n in range(9)],
    "configuration": [f"layer_{n}: {{lr: 0.1, loss: 0.5, epochs: 10}}" for n in range(9)],
    "two records": formatted("step {n} loss {x:.2f}", 2),
    "evaluation": formatted("Validation step {n} loss {x:.2f}", 20),
    "evaluation in the name": formatted("step {n} val_loss {x:.2f} lr 0.1", 20),
    "losses without a total": formatted("step {n} box_loss {x:.2f}", 5),
    "tests": [f"tests/test_loss.py::test_step[{n}] PASSED [ {n}%]" for n in range(1, 30)],
    "builds": [f"Step {n}/12 : RUN make -j 8" for n in range(1, 13)],
    "downloads": [f"batch {n}/50 downloaded, 3.5 MB/s" for n in range(1, 50)],
    "a counter behind a loss": [f"Train loss {n} {4 - n / 100:.2f} Grad Norm 1.5" for n in range(20)],
    "words with numbers in them": [f"block{n} loss1 resnet50 model_epoch{n}.pth {n}.5 GB" for n in range(20)],
    "a perplexity that is a setting": formatted("epoch {n} perplexity 30.0", 20),
    "bars whose loss at 0 is no loss": [f"Epoch 0: 5%|# | {n}/20 [00:01<00:09, 3.9it/s, loss={n / 9:.2f}]" for n in range(20)],
    "epochs or launches": 3 * formatted("step {n}/5 loss {x:.2f} lr 0.1", 5),
}


@pytest.mark.parametrize("name", QUIET)
def test_what_is_no_record_of_training_is_left_alone(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "log", QUIET[name])
    derivation = learned_of(QUIET[name])
    assert not derivation.detection.chosen
    assert figures(derivation) in (None, (0, None, None, None, None))
    proposal = propose(path, "mine")
    assert proposal.questions and lint_grammar(proposal.text, "mine.yaml") == []


def test_an_evaluation_of_the_same_shape_is_not_training() -> None:
    train, test = formatted("step {n} loss {x:.2f} lr 0.1", 20), formatted("step {n} loss 9.99 lr 0.1 (eval)", 20)
    lines = [line for pair in zip(train, test, strict=True) for line in pair]
    assert figures(learned_of(lines)) == (20, 1, 20, 4.0, 3.81)


def test_the_epoch_may_stand_on_a_line_of_its_own() -> None:
    lines = [
        line
        for epoch in range(1, 7)
        for line in (f"Epoch {epoch}/6", f"14/14 - 0s - loss: {4 - epoch / 10:.2f} - accuracy: 0.5 - lr: 0.1")
    ]
    assert figures(learned_of(lines)) == (6, 1, 6, 3.9, 3.4)


def test_records_may_stand_on_several_lines(tmp_path: Path) -> None:
    lines = [line for n in range(1, 9) for line in (f"[batch={n}/8]:", "    time: 0.5", f"    train/loss: {4 - n / 10:.1f}")]
    path = write(tmp_path / "log", lines)
    assert figures(learned_of(lines)) == (8, 1, 8, 3.9, 3.2)
    assert lint_grammar(propose(path, "mine").text, "mine.yaml") == []


def test_a_later_stage_has_its_own_rule() -> None:
    lines = [*formatted("step {n}/20 | loss: {x:.2f} | lr: 0.1", 20), *formatted("Step {n} | Training loss: 1.5 | lr: 0.1", 8)]
    assert figures(learned_of(lines)) == (20, 1, 20, 4.0, 3.81)


def test_units_are_read_where_the_log_states_them() -> None:
    template = "step {n} loss {x:.2f} step time 12.5ms mfu 41.5% 1,250 tok/s | tps 99 | time 7"
    derivation = learned_of(formatted(template, 20))
    metrics = derivation.summaries[derivation.primary or 0].metrics
    assert {name: metrics[name].last for name in ("step_time_s", "mfu_ratio", "tokens_per_s")} == {
        "step_time_s": 0.0125,
        "mfu_ratio": 0.415,
        "tokens_per_s": 1250.0,
    }
    assert "tokens_per_s_per_device" not in metrics


def test_the_receipt_says_how_it_was_read() -> None:
    derivation = derived_of(formatted("tick it {n} train_ce {x:.2f} lr 0.1", 20))
    chosen = [(c.grammar.id, c.grammar.version, c.grammar.sha256) for c in derivation.detection.chosen]
    assert chosen == [("generic", 2, load_generic().sha256)]
    assert [p.kind for p in derivation.problems[1]] == ["generic_reading"]
    assert "trainer" not in derivation.facts


def test_a_known_trainer_is_never_read_generically() -> None:
    log = Path(__file__).resolve().parents[3] / "fixtures" / "logs" / "nanogpt" / "char-ok.log"
    assert [c.grammar.id for c in derive(Source(str(log))).detection.chosen] == ["nanogpt"]


@pytest.mark.parametrize(
    ("output", "log", "name"),
    [
        (None, "runs/My Run_7.log.gz", "my-run-7"),
        ("drafts/foo.yaml", "x.log", "foo"),
        (None, "-", "learned"),
        (None, "___.log", "learned"),
    ],
)
def test_a_draft_is_named_after_a_file(output: str | None, log: str, name: str) -> None:
    assert proposal_id(None, Path(output) if output else None, log) == name


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data["words"].update(loss="loss"),
        lambda data: data["metrics"].append("wit"),
        lambda data: data["thresholds"].update(records=0),
        lambda data: data.update(rules={}),
    ],
    ids=["words", "metrics", "thresholds", "top"],
)
def test_a_broken_vocabulary_is_refused(spoil: Callable[[dict[str, Any]], None]) -> None:
    data = yaml.safe_load(definition("generic"))
    spoil(data)
    with pytest.raises(DataError):
        load_vocabulary(yaml.safe_dump(data).encode(), WHERE, load_registry())


def test_spellings_of_trainers_can_be_left_out() -> None:
    whole, less = load_generic(), load_vocabulary(definition("generic"), WHERE, load_registry(), ["marian"])
    assert "l r" in whole.names and "l r" not in less.names


def test_nothing_is_learned_of_an_empty_log() -> None:
    assert learn([], load_generic()) is None


def test_an_engine_that_is_kept_reads_the_next_log_as_a_new_one_does(tmp_path: Path) -> None:
    derived = []
    for number in range(3):
        path = tmp_path / f"{number}.log"
        path.write_text("".join(f"[{10 * n + number}] my loss = {3 - n / 20:.{3 + number}f}, lr 0.001\n" for n in range(30)))
        for many in (True, False):
            with closing(Source(str(path))) as source:
                derivation = read_log([Stream((source,))], workers=1, one_of_many=many).derivation()
            derived.append((derivation.summaries, derivation.lines, derivation.detection))
    assert all(kept == fresh for kept, fresh in zip(derived[::2], derived[1::2], strict=True))
    assert all(summaries[0].record_count == 30 for summaries, _, _ in derived)
