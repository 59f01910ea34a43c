"""The callbacks of trainers, driven by stand-ins of the libraries.

``tests/trainers/test_callbacks.py`` lets the real libraries drive them, and holds the order of events of both against
``ORDER``.
"""

from __future__ import annotations

import io
import logging
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from runpy import run_path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from receipt_cli import emit
from receipt_cli.emit.callbacks.run_log import by_split, is_due, printable, process_rank

PROTOCOL = run_path(str(Path(__file__).resolve().parents[2] / "trainers" / "protocol.py"))
LIBRARIES = ("transformers", "lightning", "lightning.pytorch", "lightning.pytorch.callbacks", "accelerate")
LIBRARIES += ("accelerate.state", "accelerate.tracking", "keras", "keras.callbacks", "keras.backend")


class Tensor(float):
    """A number as a tensor of torch: to be detached first."""

    def detach(self) -> Tensor:
        return self


class Base:
    """The base class of a library's callbacks."""


class GeneralTracker:
    """That of Accelerate, which asks a subclass for three attributes."""

    def __init__(self) -> None:
        assert self.name and self.requires_logging_directory is False and "tracker" in dir(self)  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules in the libraries' names, with what the callbacks import of them."""
    made = {name: ModuleType(name) for name in LIBRARIES}
    for name, module in made.items():
        module.__dict__["__version__"] = "1.0"
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(made[parent], last, module)
        monkeypatch.setitem(sys.modules, name, module)
    made["transformers"].__dict__["TrainerCallback"] = Base
    made["lightning.pytorch.callbacks"].__dict__["Callback"] = Base
    made["accelerate.tracking"].__dict__["GeneralTracker"] = GeneralTracker
    made["keras.callbacks"].__dict__["Callback"] = Base
    made["keras.backend"].__dict__["backend"] = lambda: "numpy"
    rank = SimpleNamespace(process_index=0, num_processes=2)
    made["accelerate.state"].__dict__["PartialState"] = lambda: rank
    for name in emit.CALLBACKS.values():
        monkeypatch.delitem(sys.modules, f"receipt_cli.emit.callbacks.{name}", raising=False)
    yield
    for name in emit.CALLBACKS.values():
        sys.modules.pop(f"receipt_cli.emit.callbacks.{name}", None)


def model(count: int = 33) -> Any:
    return SimpleNamespace(parameters=lambda: [SimpleNamespace(numel=lambda: count)], count_params=lambda: count, name="small")


def drive_hugging_face(make: Callable[[type], Any], rank: int) -> None:
    callback = make(emit.HuggingFaceCallback)
    args = SimpleNamespace(
        process_index=rank, world_size=2, fsdp=[], deepspeed=None, train_batch_size=4, per_device_train_batch_size=4,
        gradient_accumulation_steps=2, seed=7, optim="adamw_torch", bf16=True, fp16=False, output_dir="out",
    )  # fmt: skip
    state = SimpleNamespace(global_step=0, max_steps=4, num_input_tokens_seen=0)
    callback.on_train_begin(args, state, None, model=model())
    for step in range(1, 5):
        state.global_step, state.num_input_tokens_seen = step, 64 * step
        callback.on_step_end(args, state, None)
        logs = {"loss": 4.0 / step, "grad_norm": 1.5, "learning_rate": 0.001, "epoch": step / 4, "train_runtime": 0.5}
        callback.on_log(args, state, None, logs=logs)
        if step % 2 == 0:
            metrics = {"eval_loss": 2.0, "eval_runtime": 0.25, "eval_f1": 0.5, "epoch": step / 4}
            callback.on_log(args, state, None, logs=metrics)
            callback.on_evaluate(args, state, None, metrics=metrics)
            callback.on_save(args, state, None)
    callback.on_log(args, state, None, logs={"train_runtime": 2.5, "train_loss": 2.0, "epoch": 1.0})
    callback.on_train_end(args, state, None)


def drive_lightning(make: Callable[[type], Any], rank: int) -> None:
    callback = make(emit.LightningCallback)
    optimizer = SimpleNamespace(param_groups=[{"lr": 0.001}])
    trainer = SimpleNamespace(
        estimated_stepping_batches=4, global_step=0, global_rank=rank, world_size=2, accumulate_grad_batches=2,
        optimizers=[optimizer], precision="bf16-mixed", strategy=SimpleNamespace(), current_epoch=0, sanity_checking=True,
        callback_metrics={},
    )  # fmt: skip
    callback.on_validation_start(trainer, model())
    callback.on_validation_end(trainer, model())
    trainer.sanity_checking = False
    callback.on_train_start(trainer, model())
    for batch in range(8):  # two to a step, and Lightning divides the loss of each by two
        callback.on_train_batch_start(trainer, model(), None, batch)
        if batch % 2:
            callback.on_before_optimizer_step(trainer, model(), optimizer)
            trainer.global_step += 1
        callback.on_train_batch_end(trainer, model(), {"loss": Tensor(4.0 / (batch // 2 + 1) / 2)}, None, batch)
        if batch % 4 == 3:
            callback.on_save_checkpoint(trainer, model(), {})
            trainer.callback_metrics = {"train_loss": Tensor(9.0), "val_loss": Tensor(2.0), "val_f1": Tensor(0.5)}
            callback.on_validation_start(trainer, model())
            callback.on_validation_end(trainer, model())
    callback.on_train_end(trainer, model())


def drive_accelerate(make: Callable[[type], Any], rank: int) -> None:
    sys.modules["accelerate.state"].PartialState().process_index = rank  # type: ignore[attr-defined]
    tracker = make(emit.AccelerateTracker)
    tracker.store_init_configuration({"seed": 7, "max_train_steps": 4, "model_name_or_path": "small", "lr": 0.001})
    for step in range(1, 5):
        values = {"train/loss": 4.0 / step, "lr": 0.001, "grad_norm": 1.5}
        tracker.log(values | ({"eval_loss": 2.0, "eval_f1": 0.5} if step % 2 == 0 else {}), step=step)
    tracker.finish()


def drive_keras(make: Callable[[type], Any], rank: int) -> None:
    callback = make(emit.KerasCallback)
    rate = SimpleNamespace(iterations=0, learning_rate=0.001)
    callback.model = SimpleNamespace(**vars(model()), optimizer=rate)
    callback.params = {"epochs": 2, "steps": 2, "verbose": 0}
    callback.on_train_begin()
    for epoch in range(2):
        callback.on_epoch_begin(epoch)
        for batch in range(2):
            callback.on_train_batch_begin(batch)
            callback.on_train_batch_end(batch, {"loss": 4.0 / (2 * epoch + batch + 1), "accuracy": 0.5})
        callback.on_test_begin()
        callback.on_test_end({"loss": 2.0, "f1": 0.5})
    callback.on_train_end()


def drive_torch(make: Callable[[type], Any], rank: int) -> None:
    hooks: list[Callable[..., None]] = []
    optimizer = SimpleNamespace(param_groups=[{"lr": 0.001}], register_step_pre_hook=hooks.append)
    loop = make(lambda **options: emit.TorchLoop(model(), optimizer, planned_steps=4, seed=7, **options))
    with loop:
        for step in range(1, 5):
            hooks[0](optimizer, (), {})
            optimizer.param_groups[0]["lr"] = 0.5  # a schedule sets that of the next step
            loop.step(Tensor(4.0 / step), grad_norm=Tensor(1.5))
            optimizer.param_groups[0]["lr"] = 0.001
            if step % 2 == 0:
                loop.eval(val_loss=Tensor(2.0), val_f1=0.5)
                loop.checkpoint("small.pt")


DRIVES = {
    "hugging_face": drive_hugging_face,
    "lightning": drive_lightning,
    "accelerate": drive_accelerate,
    "keras": drive_keras,
    "torch": drive_torch,
}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Drive a callback as its library does; return the lines without their times."""

    def with_options(library: str, rank: int = 0, events: str = "", **options: Any) -> list[str]:
        monkeypatch.setenv("RANK", str(rank))
        stream = io.StringIO()
        options = {"stream": stream, **({} if library in ("hugging_face", "accelerate") else {"every": 1}), **options}
        given = [events] if events else []
        DRIVES[library](lambda kind: PROTOCOL["recorded"](kind(**options), given), rank)
        return [line.partition(" ")[2] for line in stream.getvalue().splitlines()]

    return with_options


@pytest.mark.parametrize("library", DRIVES)
def test_the_lines_of_a_run(library: str, run: Callable[..., list[str]], tmp_path: Path) -> None:
    lines = run(library, events=str(tmp_path / "events"), tokens_per_step=64)
    steps = [line for line in lines if line.startswith("[receipt] step=")]
    assert [re.findall(r"step=(\d)/4 .*\bloss=(\S+)", line)[0] for line in steps] == [
        (str(step), repr(4.0 / step)) for step in range(1, 5)
    ]
    assert all(" learning_rate=0.001" in line for line in steps)
    assert all(" host_memory_bytes=" in line for line in steps) or not Path("/proc/self/statm").exists()
    timed = library != "accelerate"  # which does not pass when a step begins
    assert all((" step_time_s=" in line, " tokens_per_s=" in line) == (timed, timed) for line in steps)
    evaluations = [line for line in lines if line.startswith("[receipt] eval step=")]
    assert [line.split()[2] for line in evaluations] == ["step=2", "step=4"]
    assert all(" val_loss=2.0" in line and "_f1=0.5" in line and "train" not in line for line in evaluations)
    assert lines[-1].startswith("[receipt] end step=4")
    assert next(line for line in lines if line.startswith("[receipt] run ")).endswith(" tokens_per_step=64 planned_steps=4")
    assert re.fullmatch(PROTOCOL["ORDER"][library], " ".join((tmp_path / "events").read_text().split()))


@pytest.mark.parametrize("library", DRIVES)
def test_only_the_first_rank_prints(library: str, run: Callable[..., list[str]]) -> None:
    assert run(library, rank=1) == []
    lines = run(library, rank=1, all_ranks=True)
    assert len(lines) > 8
    assert all(line.startswith("[rank1]: [receipt] ") for line in lines)


@pytest.mark.parametrize("library", DRIVES)
def test_a_failure_is_one_warning(library: str, run: Callable[..., list[str]], caplog: pytest.LogCaptureFixture) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    with caplog.at_level(logging.WARNING, "receipt_cli.emit"):
        run(library, stream=Full())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "No space left on device" in caplog.text


def test_what_a_library_lacks_stops_no_training(run: Callable[..., list[str]], caplog: pytest.LogCaptureFixture) -> None:
    callback = emit.HuggingFaceCallback(stream=io.StringIO())
    for hook in ("on_train_begin", "on_step_end", "on_log", "on_evaluate", "on_save", "on_train_end"):
        getattr(callback, hook)(SimpleNamespace(), SimpleNamespace(), None)
    assert len(caplog.records) == 1


def test_an_exception_prints_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    stream = io.StringIO()
    with pytest.raises(FloatingPointError), emit.TorchLoop(stream=stream) as loop:
        loop.step(1.0)
        raise FloatingPointError
    assert "[receipt] step=1 " in stream.getvalue()
    assert "[receipt] end" not in stream.getvalue()


@pytest.mark.parametrize(
    ("given", "training", "evaluation"),
    [
        ({"loss": 1, "lr": 2}, {"loss": 1, "learning_rate": 2}, {}),
        ({"train/loss": 1, "train_lr": 2, "Train.Acc": 0.5}, {"loss": 1, "learning_rate": 2, "train_accuracy": 0.5}, {}),
        ({"valid/loss": 1, "eval_ppl": 3, "val_acc": 0.5}, {}, {"val_loss": 1, "val_perplexity": 3, "val_accuracy": 0.5}),
        ({"accuracy": 0.5, "perplexity": 3}, {"accuracy": 0.5, "ppl": 3}, {}),  # of whichever data
        ({"val_acc": 93.5}, {}, {"val_acc": 93.5}),  # percent
        ({"validity": 1, "evaluator": 2, "trainable": 3}, {"validity": 1, "evaluator": 2, "trainable": 3}, {}),
    ],
)
def test_names(given: dict[str, float], training: dict[str, float], evaluation: dict[str, float]) -> None:
    assert by_split(given) == (training, evaluation)


def test_only_numbers_are_printed() -> None:
    given = {"a b": 1, "step": 2, "text": "3", "flag": True, "many": [1, 2], "nan": float("nan"), "é": 1, "t": Tensor(2.5)}
    assert repr(printable(given)) == repr({"a_b": 1, "nan": float("nan"), "t": 2.5})


def test_which_steps_are_due() -> None:
    assert [step for step in range(1, 26) if is_due(step, 10, 25)] == [1, 10, 20, 25]


@pytest.mark.parametrize(("name", "value", "rank"), [("RANK", "3", 3), ("SLURM_PROCID", "2", 2), ("RANK", "none", 0)])
def test_the_rank_of_a_process(monkeypatch: pytest.MonkeyPatch, name: str, value: str, rank: int) -> None:
    for variable in import_module("receipt_cli.emit.callbacks.run_log").RANK_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, value)
    assert process_rank() == rank
