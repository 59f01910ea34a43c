"""Figures that look like the loss of a log that no grammar knows, and may be something else: none is better than a wrong one."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.tools.logs import receipt_of

Line = Callable[[int, Callable[[], str]], str]

PARTS: dict[str, tuple[Line, list[str]]] = {
    "a loss in three dimensions among others": (
        lambda n, x: f"STEP {n} - EPOCH {n // 41}/9 | 3D loss: {x()} | reco loss: {x()} | rgb loss: {x()} | lr: 1.000E-04",
        ["value_3d_loss", "reco_loss", "rgb_loss"],
    ),
    "the same from step 0 on": (
        lambda n, x: f"STEP {41 * n} - EPOCH {n}/99 | 3D loss: {x()} | reco loss: {x()} | lr: {n / 9:.3E}",
        ["value_3d_loss", "reco_loss"],
    ),
    "two of different dimensions": (lambda n, x: f"step {n} 2D loss: {x()} 3D loss: {x()}", ["value_2d_loss", "value_3d_loss"]),
    "small letters": (lambda n, x: f"iter {n}, 2d loss={x()}, 3d loss={x()}, lr=0.001", ["value_2d_loss", "value_3d_loss"]),
    "errors of a count beside what may be the loss": (
        lambda n, x: f"Epoch {n} Train, reg:{x()}, stage1:{x()}, mae:9{x()[1:]}, mse:21{x()[1:]}, Cost: 675.8 sec",
        ["mae", "mse", "reg", "stage1"],
    ),
    "and in a line about the best model": (
        lambda n, x: (
            f"Epoch {n} Train, reg:{x()}, mae:9{x()[1:]}, mse:21{x()[1:]}"
            + (f"\nSave best model: MAE: 14{x()[1:]} MSE:64{x()[1:]} model epoch {n}" if n % 7 == 3 else "")
        ),
        ["mae", "mse", "reg"],
    ),
    "errors of a fit beside it": (lambda n, x: f"epoch {n} ot: {x()} tv: {x()} mse: {x()} mae: {x()}", ["mae", "mse", "ot"]),
    "errors before it": (lambda n, x: f"step {n} | rmse {x()} | mse {x()} | obj={x()}", ["mse", "obj", "rmse"]),
}
LOSSES: dict[str, tuple[Line, list[str]]] = {
    "the only loss has a dimension": (lambda n, x: f"step {n} 3D loss: {x()} lr: 0.001", []),
    "a squared error beside an absolute one": (lambda n, x: f"Epoch {n} Train, mse: {x()}, mae: {x()}", ["mae"]),
    "beside scores of a fit": (lambda n, x: f"Epoch {n} lr: 0.0010 mse: {x()}, mae: {x()}, r2: {x()}", ["mae", "r2"]),
    "a loss beside both": (lambda n, x: f"Epoch {n} Train, Loss: {x()}, reg: {x()}, mse: {x()}, mae: {x()}", ["mae", "mse"]),
}


def read(lines: list[str]) -> dict[str, Any]:
    return receipt_of(lines)["summary"]


def printed(line: Line) -> tuple[list[str], list[list[str]]]:
    """Return a log of sixty records, and the figures of each."""
    rng, lines, figures = random.Random(7), [], []
    for n in range(60):
        own: list[str] = []

        def figure(own: list[str] = own) -> str:
            own.append(f"{rng.random():.4f}")
            return own[-1]

        lines.append(line(n, figure))
        figures.append(own)
    return lines, figures


@pytest.mark.parametrize("name", PARTS)
def test_what_may_be_a_part_is_no_loss(name: str) -> None:
    line, others = PARTS[name]
    summary = read(printed(line)[0])
    assert summary["steps"]["record_count"] == 60
    assert "loss" not in summary["metrics"]
    assert set(others) <= set(summary["other_metrics"])


@pytest.mark.parametrize("name", LOSSES)
def test_what_nothing_speaks_against_is_the_loss(name: str) -> None:
    line, others = LOSSES[name]
    lines, figures = printed(line)
    summary = read(lines)
    loss = summary["metrics"]["loss"]
    assert (loss["first"], loss["last"]) == (float(figures[0][0]), float(figures[-1][0]))
    assert set(others) <= set(summary["other_metrics"])


SIBLINGS: dict[str, Line] = {
    "the only one that is read is qualified": lambda n, x: (
        f"[1, {n}/99] - Autoencoder Loss (total): {x()} - K-Means Loss: [{x()} / {x()}] - Consistency Loss: [{x()}][lr: 7.50e-05]"
    ),
    "and zero": lambda n, x: f"step {n} Autoencoder Loss (total): {x()} Consistency Loss: -0.000",
    "a kind of loss among figures of unknown names": lambda n, x: (
        f"Epoch: [0][{n:3d}/100]\trecon {x()} ({x()})\tgan_D {x()} ({x()})\tcross_entropy {x()} ({x()})\tspcl {x()} ({x()})"
    ),
}
SOLE: dict[str, tuple[Line, int]] = {
    "a qualified loss beside the best one": (lambda n, x: f"step {n} seg loss: {x()} best loss: {x()}", 0),
    "a qualified loss beside a time": (lambda n, x: f"step {n} | contrastive loss: {x()} | time: {x()}s", 0),
    "a kind of loss beside one figure": (lambda n, x: f"step {n} cross_entropy {x()} entropy_rate {x()}", 0),
    "a total beside a part that is switched off": (lambda n, x: f"step {n} loss: 0.000 total_loss: {x()}", 0),
    "a kind of loss that is called one": (lambda n, x: f"step {n} ce_loss: {x()} recon: {x()} spcl: {x()}", 0),
}


@pytest.mark.parametrize("name", SIBLINGS)
def test_a_part_among_siblings_is_named_and_not_read(name: str) -> None:
    document = receipt_of(printed(SIBLINGS[name])[0])
    assert document["summary"]["steps"]["record_count"] == 60
    loss = document["summary"]["metrics"]["loss"]
    assert {loss[key] for key in ("first", "last", "min", "max", "mean", "median")} == {None}
    named = [problem["fields"] for problem in document["derivation"]["problems"]["first"] if problem["kind"] == "loss_ambiguous"]
    assert [len(fields) for fields in named] == [6]


@pytest.mark.parametrize("name", SOLE)
def test_a_loss_without_such_siblings_is_read(name: str) -> None:
    line, place = SOLE[name]
    lines, figures = printed(line)
    loss = read(lines)["metrics"]["loss"]
    assert (loss["first"], loss["last"]) == (float(figures[0][place]), float(figures[-1][place]))


def test_a_qualified_loss_that_is_always_zero_is_no_loss() -> None:
    summary = read(printed(lambda n, x: f"step {n} Consistency Loss: -0.000 lr: {x()}")[0])
    assert "loss" not in summary["metrics"]


POSITIONS: dict[str, Line] = {
    "an epoch": lambda n, x: f"---------- Epoch: {n} ----------\nLoss on first batch after epoch {n}: {x()}",
    "an epoch that nothing else prints": lambda n, x: f"Loss on first batch after epoch {n}: {x()}",
}


@pytest.mark.parametrize("name", POSITIONS)
def test_a_number_before_a_colon_and_another_number_is_no_figure(name: str) -> None:
    lines, figures = printed(POSITIONS[name])
    summary = read(lines)
    assert (summary["metrics"]["epoch"]["first"], summary["metrics"]["epoch"]["last"]) == (0, 59)
    value = summary["other_metrics"]["loss_on_first_batch"]
    assert (value["first"], value["last"]) == (float(figures[0][0]), float(figures[-1][0]))


@pytest.mark.parametrize("label", ["loss of worker {n}", "acc of task {n}", "critic loss {n}"])
def test_nor_is_one_that_counts_nothing(label: str) -> None:
    summary = read(printed(lambda n, x: f"epoch {n} lr: {x()} {label.format(n=n % 7)}: {x()}")[0])
    assert not {"loss", "train_loss"} & {*(summary or {"metrics": {}})["metrics"]}
    assert not [
        name for name in (summary or {"other_metrics": {}})["other_metrics"] if name.startswith(("loss", "acc", "critic"))
    ]


def test_a_loss_behind_that_of_an_evaluation_is_of_the_evaluation() -> None:
    lines, _ = printed(lambda n, x: f"Epoch {n}, evaluating batch loss: {x()}; avg_loss: {x()}")
    assert "loss" not in (read(lines) or {"metrics": {}})["metrics"]


def test_the_unit_of_a_number_is_not_the_name_of_the_next() -> None:
    lines, _ = printed(lambda n, x: f"train Step {n} metrics: loss: {x()} ({x()} Img/s / 0.0{n + 10} IOs / 0.04 (Step)(s))")
    assert "img_s" not in read(lines)["other_metrics"]
