"""A callback for ``Model.fit`` of Keras 3, on any of its backends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

import keras

from receipt_cli.emit.callbacks.run_log import RunLog, harmless, is_due, process_rank

_TRAINING = {"accuracy": "train_accuracy"}


class KerasCallback(keras.callbacks.Callback):
    """``model.fit(..., callbacks=[KerasCallback()])`` prints the first, every ``every``-th and the last step of an epoch.

    Loss and metrics are Keras' means since the start of the epoch. Keras does not pass gradients, so their norm is missing.
    ``tokens_per_step``: tokens of all ranks in one step.
    """

    def __init__(
        self, *, every: int = 10, tokens_per_step: int | None = None, all_ranks: bool = False, stream: TextIO | None = None
    ) -> None:
        super().__init__()
        self._log = RunLog(tokens_per_step=tokens_per_step, all_ranks=all_ranks, stream=stream)
        self._every = every
        self._begun = False
        self._step = self._first = 0
        self._epoch = 0
        self._learning_rate: float | None = None

    @harmless
    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Note the step at which training begins."""
        self._begun = False
        self._step = int(self.model.optimizer.iterations)

    @harmless
    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Print the facts of the run before its first epoch."""
        self._epoch, self._first = epoch, self._step
        if self._begun:
            self._log.lap()
            return
        self._begun = True
        steps = self.params.get("steps")
        self._log.begin(
            rank=process_rank(),
            planned_steps=None if steps is None else self._step + steps * (self.params["epochs"] - epoch),
            start_step=self._step or None,
            parameter_count=self.model.count_params(),
            model_name=self.model.name,
            optimizer=type(self.model.optimizer).__name__,
            trainer_version=f"keras {keras.__version__} ({keras.backend.backend()})",
        )

    @harmless
    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Note the learning rate of a step that will be printed."""
        if self._is_due(batch):
            self._learning_rate = float(self.model.optimizer.learning_rate)

    @harmless
    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Print a step if it is due."""
        ended = self._first + batch + 1
        while self._step < ended:  # Keras may skip batches (steps_per_execution)
            self._step += 1
            self._log.count_step()
        if self._is_due(batch):
            values = {_TRAINING.get(name, name): value for name, value in (logs or {}).items()}
            self._log.step(self._step, {**values, "learning_rate": self._learning_rate, "epoch": self._epoch})
            self._log.lap()

    @harmless
    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Start timing an evaluation."""
        self._log.lap()

    @harmless
    def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Print an evaluation; its ``loss`` is the validation loss."""
        values = {f"val_{name}": value for name, value in (logs or {}).items()}
        self._log.eval(self._step, values, duration_s=self._log.lap(), rank=process_rank())

    @harmless
    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Print the end."""
        self._log.end(self._step)

    def _is_due(self, batch: int) -> bool:
        return is_due(batch + 1, self._every, self.params.get("steps"))
