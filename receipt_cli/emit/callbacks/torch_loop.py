"""Print the lines of a hand-written PyTorch training loop, without importing torch."""

from __future__ import annotations

from types import TracebackType
from typing import Any, TextIO

from receipt_cli.emit.callbacks.run_log import RunLog, by_split, count_parameters, harmless, is_due, process_rank, torch_version


class TorchLoop:
    """``loop = TorchLoop(model, optimizer)`` before the loop; ``loop.step(loss)`` after ``optimizer.step()``.

    Steps count from 1, or after ``start_step``. The first, every ``every``-th and the last are printed; only these wait for the
    device to have the loss. The learning rate is that of the optimizer's first group at its last step. As a context manager
    it prints the end unless an exception passes. ``tokens_per_step``: tokens of all ranks in one optimizer step; ``facts``:
    further facts of ``StepPrinter.header``.
    """

    def __init__(
        self,
        model: Any = None,
        optimizer: Any = None,
        *,
        planned_steps: int | None = None,
        start_step: int = 0,
        every: int = 10,
        tokens_per_step: int | None = None,
        all_ranks: bool = False,
        stream: TextIO | None = None,
        **facts: int | str,
    ) -> None:
        self._log = RunLog(tokens_per_step=tokens_per_step, all_ranks=all_ranks, stream=stream)
        self._every, self._planned, self._step = every, planned_steps, start_step
        self._learning_rate: float | None = None
        self._begin(model, optimizer, facts)

    @harmless
    def _begin(self, model: Any, optimizer: Any, facts: dict[str, int | str]) -> None:
        if optimizer is not None:
            optimizer.register_step_pre_hook(self._note_rate)
        known: dict[str, Any] = {"start_step": self._step or None, "torch_version": torch_version()}
        if model is not None:
            known |= {"parameter_count": count_parameters(model), "model_name": type(model).__name__}
        if optimizer is not None:
            known["optimizer"] = type(optimizer).__name__
        self._log.begin(rank=process_rank(), planned_steps=self._planned, **{**known, **facts})

    def _note_rate(self, optimizer: Any, *_: Any) -> None:
        self._learning_rate = optimizer.param_groups[0]["lr"]

    @harmless
    def step(self, loss: Any, **metrics: Any) -> None:
        """Count a step and print it if due; ``metrics`` such as ``grad_norm=clip_grad_norm_(…)``."""
        self._step += 1
        self._log.count_step()
        if is_due(self._step, self._every, self._planned):
            rate = {} if self._learning_rate is None else {"learning_rate": self._learning_rate}
            self._log.step(self._step, {"loss": loss, **rate, **metrics})
            self._log.lap()

    @harmless
    def eval(self, **metrics: Any) -> None:
        """Print an evaluation: ``loop.eval(val_loss=…)``. The time since the last step does not count for the next."""
        named = {name if name.startswith(("val", "eval")) else f"val_{name}": value for name, value in metrics.items()}
        self._log.eval(self._step, by_split(named)[1], rank=process_rank())
        self._log.lap()

    @harmless
    def checkpoint(self, path: str | None = None) -> None:
        """Print a checkpoint. The time since the last step does not count for the next."""
        self._log.checkpoint(self._step, path=path)
        self._log.lap()

    @harmless
    def end(self) -> None:
        """Print the end of a successful run."""
        self._log.end(self._step)

    def __enter__(self) -> TorchLoop:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if kind is None:
            self.end()
