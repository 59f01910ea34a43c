"""A tracker for Hugging Face Accelerate: prints the values passed to ``accelerator.log``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

import accelerate
from accelerate.state import PartialState
from accelerate.tracking import GeneralTracker

from receipt_cli.emit.callbacks.run_log import RunLog, by_split, harmless, torch_version

_PLANNED = ("max_train_steps", "max_steps", "num_training_steps")


class AccelerateTracker(GeneralTracker):
    """``Accelerator(log_with=AccelerateTracker())`` prints the logged values; ``end_training`` prints the end.

    ``init_trackers`` begins the run and prints from its configuration the seed, planned steps, accumulation steps and model.
    Names such as ``train/loss``, ``lr`` and ``eval_loss`` become those of the metric registry; others are kept. Records
    without a ``step`` are numbered. ``tokens_per_step``: tokens of all ranks in one optimizer step.
    """

    name = "receipt"
    requires_logging_directory = False
    main_process_only = False
    """False, because each process asks the log itself, which prints on rank 0."""

    def __init__(self, *, tokens_per_step: int | None = None, all_ranks: bool = False, stream: TextIO | None = None) -> None:
        super().__init__()
        self._log = RunLog(tokens_per_step=tokens_per_step, all_ranks=all_ranks, stream=stream)
        self._begun = False
        self._step = 0

    @property
    def tracker(self) -> AccelerateTracker:
        """The tracker itself: it wraps no other object."""
        return self

    @harmless
    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        """Print the facts of the run. ``init_trackers`` calls it if it has a configuration."""
        state = PartialState()
        seed, accumulated = (values.get(name) for name in ("seed", "gradient_accumulation_steps"))
        model = values.get("model_name_or_path")
        self._begun = True
        self._log.begin(
            rank=state.process_index,
            planned_steps=next((value for name in _PLANNED if _is_count(value := values.get(name))), None),
            world_size=state.num_processes,
            seed=seed if _is_count(seed) else None,
            gradient_accumulation_steps=accumulated if _is_count(accumulated) else None,
            model_name=model if isinstance(model, str) else None,
            torch_version=torch_version(),
            trainer_version=f"accelerate {accelerate.__version__}",
        )

    @harmless
    def log(self, values: Mapping[str, Any], step: int | None = None, **_: Any) -> None:
        """Print a step, an evaluation, or both."""
        if not self._begun:
            self.store_init_configuration({})
        training, evaluation = by_split(values)
        is_step = bool(training.keys() - {"epoch", "step"})
        self._step = step if step is not None else self._step + is_step
        if is_step:
            self._log.step(self._step, training)
        self._log.eval(self._step, evaluation)

    @harmless
    def finish(self) -> None:
        """Print the end."""
        self._log.end(self._step)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
