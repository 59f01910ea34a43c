"""A callback for the Trainer of Hugging Face Transformers and trainers derived from it (TRL, sentence-transformers)."""

from __future__ import annotations

import os
from typing import Any, TextIO

import transformers
from transformers import TrainerCallback

from receipt_cli.emit.callbacks.run_log import RunLog, count_parameters, harmless, torch_version

_TRAINING = {"mean_token_accuracy": "train_accuracy"}
_EVALUATION = {
    "eval_loss": "val_loss",
    "eval_accuracy": "val_accuracy",
    "eval_samples_per_second": "eval_samples_per_s",
    "eval_steps_per_second": "eval_steps_per_s",
}
_SINCE_THE_START = frozenset({"train_runtime", "train_tokens_per_second", "num_input_tokens_seen"})
"""Values that a Trainer with token counts adds to each record: totals and means since the start."""


class HuggingFaceCallback(TrainerCallback):
    """``trainer.add_callback(HuggingFaceCallback())`` prints the Trainer's logs, every ``logging_steps`` steps.

    The loss is the Trainer's mean over all ranks and the steps since its last record; the gradient norm is from before
    clipping. Tokens per second need the Trainer's ``include_num_input_tokens_seen``, or ``tokens_per_step`` (of all ranks, in
    one optimizer step).
    """

    def __init__(self, *, tokens_per_step: int | None = None, all_ranks: bool = False, stream: TextIO | None = None) -> None:
        self._log = RunLog(tokens_per_step=tokens_per_step, all_ranks=all_ranks, stream=stream)
        self._training_time_s: float | None = None

    @harmless
    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Print the facts of the run."""
        sharded = bool(args.fsdp or args.deepspeed or os.environ.get("ACCELERATE_USE_FSDP", "false").lower() == "true")
        plain = not sharded and getattr(args, "parallelism_config", None) is None
        batch = getattr(state, "train_batch_size", None) or args.train_batch_size
        named = getattr(getattr(model, "config", None), "name_or_path", "") or type(model).__name__
        self._log.begin(
            rank=args.process_index,
            planned_steps=state.max_steps,
            tokens_seen=state.num_input_tokens_seen,
            seed=args.seed,
            world_size=args.world_size,
            start_step=state.global_step or None,
            parameter_count=None if sharded or model is None else _parameters(model),
            micro_batch_size=args.per_device_train_batch_size,
            gradient_accumulation_steps=args.gradient_accumulation_steps,
            samples_per_step=batch * args.gradient_accumulation_steps * args.world_size if plain else None,
            model_name=None if model is None else named,
            optimizer=str(getattr(args.optim, "value", args.optim)),
            precision="bf16" if args.bf16 else "fp16" if args.fp16 else None,
            torch_version=torch_version(),
            trainer_version=f"transformers {transformers.__version__}",
        )

    @harmless
    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Count a step."""
        self._log.count_step()

    @harmless
    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Print a step line with the logged training values."""
        logs = logs or {}
        if "train_loss" in logs:  # the final record
            self._training_time_s = logs.get("train_runtime")
            return
        left_out = {name for name in logs if name.startswith("eval_")} | _SINCE_THE_START
        values = {_TRAINING.get(name, name): value for name, value in logs.items() if name not in left_out}
        if values.keys() - {"epoch"}:
            self._log.step(state.global_step, values, tokens_seen=state.num_input_tokens_seen or None)
            self._log.lap()

    @harmless
    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, Any] | None = None, **_: Any) -> None:
        """Print an evaluation."""
        metrics = metrics or {}
        left_out = {"epoch", "eval_runtime"} | _SINCE_THE_START
        values = {_EVALUATION.get(name, name): value for name, value in metrics.items() if name not in left_out}
        self._log.eval(state.global_step, values, duration_s=metrics.get("eval_runtime"), rank=args.process_index)
        self._log.lap()

    @harmless
    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Print a checkpoint, which was written since the last event."""
        path = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        self._log.checkpoint(state.global_step, duration_s=self._log.lap(), path=path)

    @harmless
    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Print the end."""
        self._log.end(state.global_step, training_time_s=self._training_time_s)


def _parameters(model: Any) -> int | None:
    """Return the number of parameters, with quantised weights counted as the model counts them."""
    return int(model.num_parameters()) if hasattr(model, "num_parameters") else count_parameters(model)
