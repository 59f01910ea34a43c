"""A callback for Lightning's Trainer, under either name: ``lightning`` or ``pytorch_lightning``."""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO

from receipt_cli.emit.callbacks.run_log import RunLog, by_split, count_parameters, harmless, is_due, torch_version

PACKAGE = "pytorch_lightning" if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules else "lightning"
_WHOLE = frozenset({"SingleDeviceStrategy", "DDPStrategy"})
"""Strategies in which each rank has all parameters and, at the optimizer's step, the gradients of all ranks."""

if PACKAGE == "lightning":
    from lightning import __version__
    from lightning.pytorch.callbacks import Callback
else:
    from pytorch_lightning import __version__
    from pytorch_lightning.callbacks import Callback


class LightningCallback(Callback):
    """``Trainer(callbacks=[LightningCallback()])`` prints the first, every ``every``-th and the last step.

    The loss is of the step's batches on rank 0. The gradient norm is from before clipping, and missing under sharding
    strategies. Evaluations contain values logged under names such as ``val_loss`` and ``valid/acc``. ``tokens_per_step``:
    tokens of all ranks in one optimizer step.
    """

    def __init__(
        self, *, every: int = 10, tokens_per_step: int | None = None, all_ranks: bool = False, stream: TextIO | None = None
    ) -> None:
        self._log = RunLog(tokens_per_step=tokens_per_step, all_ranks=all_ranks, stream=stream)
        self._every = every
        self._planned: float | None = None
        self._seen = 0
        self._losses: list[Any] = []
        self._optimizer: dict[str, float] = {}
        self._saved = False

    @harmless
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Print the facts of the run."""
        self._planned = trainer.estimated_stepping_batches
        self._seen = trainer.global_step
        self._log.begin(
            rank=trainer.global_rank,
            planned_steps=self._planned,
            seed=_whole(os.environ.get("PL_GLOBAL_SEED")),
            world_size=trainer.world_size,
            start_step=trainer.global_step or None,
            parameter_count=count_parameters(pl_module) if _is_whole(trainer) else None,
            gradient_accumulation_steps=trainer.accumulate_grad_batches,
            model_name=type(pl_module).__name__,
            optimizer=type(trainer.optimizers[0]).__name__ if trainer.optimizers else None,
            precision=str(trainer.precision),
            torch_version=torch_version(),
            trainer_version=f"{PACKAGE} {__version__}",
        )

    @harmless
    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Exclude the time of writing a checkpoint from the next step."""
        if self._saved:
            self._saved = False
            self._log.lap()

    @harmless
    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Note the learning rate and the gradient norm if the step will be printed."""
        if self._optimizer or not is_due(trainer.global_step + 1, self._every, self._planned):
            return
        self._optimizer["learning_rate"] = optimizer.param_groups[0]["lr"]
        if _is_whole(trainer):
            self._optimizer["grad_norm"] = _norm(pl_module)

    @harmless
    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Print a step if it is complete and due."""
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if loss is not None:
            self._losses.append(loss.detach())
        if trainer.global_step == self._seen:
            return  # gradients are accumulated
        self._seen = step = trainer.global_step
        self._log.count_step()
        losses, values = self._losses, self._optimizer
        self._losses, self._optimizer = [], {}
        if is_due(step, self._every, self._planned):
            if losses:  # Lightning divided each by the number of batches
                values = {"loss": float(sum(losses)) / len(losses) * trainer.accumulate_grad_batches, **values}
            self._log.step(step, {**values, "epoch": trainer.current_epoch})
            self._log.lap()

    @harmless
    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Start timing an evaluation."""
        self._log.lap()

    @harmless
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Print an evaluation, except Lightning's sanity check before the first step."""
        took = self._log.lap()
        if not trainer.sanity_checking:
            _, values = by_split(dict(trainer.callback_metrics))
            self._log.eval(trainer.global_step, values, duration_s=took, rank=trainer.global_rank)

    @harmless
    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        """Print a checkpoint that is about to be written; Lightning does not pass its path and duration."""
        self._log.checkpoint(trainer.global_step)
        self._saved = True

    @harmless
    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Print the end."""
        self._log.end(trainer.global_step)


def _is_whole(trainer: Any) -> bool:
    return type(trainer.strategy).__name__ in _WHOLE


def _norm(module: Any) -> float:
    """Return the global 2-norm of the gradients."""
    import torch

    norms = [torch.linalg.vector_norm(each.grad) for each in module.parameters() if each.grad is not None]
    return float(torch.linalg.vector_norm(torch.stack([each.to(norms[0].device) for each in norms])))


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
