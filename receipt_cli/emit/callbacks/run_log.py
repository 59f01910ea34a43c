"""Print the lines of a training for a callback: on one rank, with step times and memory, without ever raising."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TextIO, TypeVar, cast

from receipt_cli.emit.step_printer import PRINTED_NAME, RESERVED_NAMES, TEXT_FACTS, StepPrinter

_SPLIT = re.compile(r"(?P<split>train|training|val|valid|validation|eval|evaluation)[/_.\-](?P<rest>.+)", re.IGNORECASE)
_TRAINING = {
    "loss": "loss",
    "lr": "learning_rate",
    "learning_rate": "learning_rate",
    "grad_norm": "grad_norm",
    "gradient_norm": "grad_norm",
    "tokens_per_second": "tokens_per_s",
    "tokens_per_sec": "tokens_per_s",
}
_EVALUATION = {"loss": "val_loss", "perplexity": "val_perplexity", "ppl": "val_perplexity"}
_SHARES = frozenset({"acc", "accuracy"})
_AMBIGUOUS = {"perplexity": "ppl"}
"""Registry names that scripts also use for another quantity (of validation data) → the name printed instead."""


def by_split(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (training values, evaluation values), split by the first word of each name; a bare name is a training value.

    Unambiguous names get their registry name (``train/lr`` → ``learning_rate``, ``valid_loss`` → ``val_loss``); an accuracy only
    if it has a split and is between 0 and 1. Other names are kept.
    """
    training: dict[str, Any] = {}
    evaluation: dict[str, Any] = {}
    for name, value in values.items():
        found = _SPLIT.fullmatch(name)
        rest = (found["rest"] if found else name).lower()
        if found and not found["split"].lower().startswith("train"):
            known = "val_accuracy" if rest in _SHARES and _is_share(value) else _EVALUATION.get(rest)
            evaluation.setdefault(known or name, value)
        elif found and rest in _SHARES and _is_share(value):
            training.setdefault("train_accuracy", value)
        else:
            training.setdefault(_TRAINING.get(rest) or _AMBIGUOUS.get(name, name), value)
    return training, evaluation


def printable(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers in ``values`` under printable names; a tensor with one element is a number."""
    found = {}
    for name, value in values.items():
        number = _number(value)
        fitting = re.sub(r"[^A-Za-z0-9_./@%+:\-]+", "_", name)[:200]
        if number is not None and fitting.strip("_") and PRINTED_NAME.fullmatch(fitting) and fitting not in RESERVED_NAMES:
            found[fitting] = number
    return found


def _number(value: Any) -> float | None:
    if isinstance(value, (bool, str, bytes)):
        return None
    if isinstance(value, int):
        return value
    try:
        return float(value.detach() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError):  # a text, a picture, a tensor of several elements
        return None


def _is_share(value: Any) -> bool:
    number = _number(value)
    return number is not None and 0 <= number <= 1


RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
"""Variables in which launchers (torchrun, Open MPI, MPICH, Slurm) put a process's rank; the first that is set counts."""
_MAX_TEXT = 200

Hook = TypeVar("Hook", bound=Callable[..., None])


class RunLog:
    """The lines of one training. Only rank 0 prints, unless ``all_ranks`` is true: then each line contains its rank.

    ``tokens_per_step`` is the number of tokens of all ranks in one optimizer step; it is printed at the start, and gives
    ``tokens_per_s``. A step lasts from one lap to the next; time taken by other calls of ``lap`` (an evaluation, a checkpoint)
    does not count.
    """

    def __init__(self, *, tokens_per_step: int | None = None, all_ranks: bool = False, stream: TextIO | None = None) -> None:
        self._tokens_per_step = tokens_per_step
        self._all_ranks = all_ranks
        self._stream = stream
        self._printer: StepPrinter | None = None
        self._is_open = False
        self._warned = False
        self._start_window(0)
        self._mark = 0.0

    def begin(self, *, rank: int, planned_steps: float | None = None, tokens_seen: int = 0, **facts: int | str | None) -> None:
        """Start a run and print its facts (``NUMBER_FACTS``, ``TEXT_FACTS``); None and empty values are left out.

        ``planned_steps`` is left out unless it is a positive finite number (trainers write -1 or infinity for "no limit").
        ``tokens_seen`` are the tokens of earlier runs that this one continues.
        """
        planned = int(planned_steps) if planned_steps is not None and 0 < planned_steps < 2**53 else None
        self._open(rank, planned)
        self._start_window(tokens_seen)
        self.lap()
        if self._printer is not None:
            facts |= {"tokens_per_step": self._tokens_per_step, "planned_steps": planned}
            self._printer.header(**{name: _fact(name, value) for name, value in facts.items() if value not in (None, "")})

    def lap(self) -> float:
        """Return the seconds since the last lap, and start the next."""
        now = time.perf_counter()
        took, self._mark = now - self._mark, now
        return took

    def count_step(self) -> None:
        """Count an optimizer step from the last lap until now."""
        self._seconds += self.lap()
        self._steps += 1

    def step(self, step: int, values: Mapping[str, Any], *, tokens_seen: int | None = None) -> None:
        """Print a step: ``values``, mean time of the steps since the last printed one, tokens per second, memory.

        ``tokens_seen`` are the tokens of all ranks so far, if the trainer counts them.
        """
        steps, seconds = self._steps, self._seconds
        tokens = None if self._tokens_per_step is None else self._tokens_per_step * steps
        if tokens_seen:
            tokens = tokens_seen - self._tokens_seen
        self._start_window(tokens_seen or 0)
        if self._printer is None:
            return
        measured: dict[str, float] = {"tokens_total": tokens_seen} if tokens_seen else {}
        if steps and seconds > 0:
            measured["step_time_s"] = seconds / steps
            if tokens:
                measured["tokens_per_s"] = tokens / seconds
        self._printer.step_values(step, printable({**measured, **memory(), **values}))

    def eval(self, step: int, values: Mapping[str, Any], *, duration_s: float | None = None, rank: int = 0) -> None:
        """Print an evaluation after ``step``; before training has begun, open the log for ``rank`` first."""
        if not self._is_open:
            self._open(rank, None)
        numbers = printable(values)
        if self._printer is not None and numbers:
            self._printer.eval(step, numbers, duration_s=duration_s)

    def checkpoint(self, step: int, *, duration_s: float | None = None, path: str | None = None) -> None:
        """Print a checkpoint after ``step``."""
        if self._printer is not None:
            self._printer.checkpoint(step, duration_s=duration_s, path=path)

    def end(self, step: int, *, training_time_s: float | None = None) -> None:
        """Print the end of a successful run."""
        if self._printer is not None:
            self._printer.end(step, training_time_s=training_time_s)

    def warn(self, error: Exception) -> None:
        """Log a warning about the first failure to the logger ``receipt_cli.emit``; ignore later ones."""
        if not self._warned:
            self._warned = True
            import logging  # 10 ms, for nothing in most runs

            text = "a line of the receipt was not printed, and no further warning follows: %s: %s"
            logging.getLogger("receipt_cli.emit").warning(text, type(error).__name__, error)

    def _open(self, rank: int, planned: int | None) -> None:
        self._is_open, self._printer = True, None
        if rank == 0 or self._all_ranks:
            self._printer = StepPrinter(self._stream, planned_steps=planned, rank=rank if self._all_ranks else None)

    def _start_window(self, tokens_seen: int) -> None:
        self._steps, self._seconds, self._tokens_seen = 0, 0.0, tokens_seen


def harmless(hook: Hook) -> Hook:
    """Decorate a callback method to warn through ``self._log`` instead of raising."""

    @wraps(hook)
    def called(self: Any, *given: Any, **named: Any) -> None:
        try:
            hook(self, *given, **named)
        except Exception as error:  # any error: a line is worth less than a training
            self._log.warn(error)

    return cast(Hook, called)


def is_due(step: int, every: int, planned_steps: float | None) -> bool:
    """Return whether to print a step, counted from 1: the first, the last planned, and every ``every``-th."""
    return step == 1 or step % every == 0 or step == planned_steps


def process_rank() -> int:
    """Return the rank of this process from torch.distributed, else from the launcher, else 0."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    for name in RANK_VARIABLES:
        if (value := os.environ.get(name, "")).isdecimal():
            return int(value)
    return 0


def torch_version() -> str | None:
    """Return the version of torch if it is loaded."""
    torch = sys.modules.get("torch")
    return None if torch is None else str(torch.__version__)


def memory() -> dict[str, int]:
    """Return torch's memory on this process's GPU and the resident memory of this process, in bytes."""
    found: dict[str, int] = {}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        found["memory_allocated_bytes"] = torch.cuda.memory_allocated()
        found["peak_memory_allocated_bytes"] = torch.cuda.max_memory_allocated()
        found["peak_memory_reserved_bytes"] = torch.cuda.max_memory_reserved()
    try:
        with open("/proc/self/statm", "rb") as file:  # in pages: size, resident, …
            found["host_memory_bytes"] = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):  # not on Linux
        pass
    return found


def count_parameters(model: Any) -> int | None:
    """Return the number of parameters of a torch module, or None if it is sharded."""
    parameters = list(model.parameters())
    if any(type(each).__name__ == "FlatParameter" or hasattr(each, "ds_numel") for each in parameters):
        return None
    return sum(each.numel() for each in parameters) or None


def _fact(name: str, value: Any) -> int | str:
    return " ".join(str(value).split())[:_MAX_TEXT] if name in TEXT_FACTS else int(value)
