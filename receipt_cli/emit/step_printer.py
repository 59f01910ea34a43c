"""Print one line per step, evaluation and checkpoint; the grammar ``receipt-emit`` reads it back exactly."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping
from operator import index
from threading import RLock
from types import TracebackType
from typing import Any, TextIO

from receipt_cli.emit.document import rfc3339

MARK = "[receipt]"
NUMBER_FACTS = (
    "seed", "parameter_count", "world_size", "data_parallel", "tensor_parallel", "pipeline_parallel", "context_parallel",
    "expert_parallel", "accelerator_count", "accelerator_memory_bytes", "tokens_per_step", "samples_per_step",
    "micro_batch_size", "sequence_length", "gradient_accumulation_steps", "flops_per_token", "peak_flops_per_s_per_device",
    "start_step", "planned_steps",
)  # fmt: skip
"""Numbers about the run, in base units."""
TEXT_FACTS = ("model_name", "accelerator_name", "precision", "optimizer", "torch_version", "cuda_version", "trainer_version")
"""Texts about the run, one line each."""
RESERVED_NAMES = frozenset({"step", "planned_steps", "path", "status"})
PRINTED_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./@%+:\-]{0,199}")
_MAX_TEXT = 200
_MAX_PATH = 1000

Number = float
"""A number, or a value that ``float`` converts to one."""


class StepPrinter:
    """Print lines such as ``[receipt] step=12/100 loss=2.5 step_time_s=0.25``; one write and one flush each.

    Names are those of the metric registry, in base units; other names are kept. Floats are printed with the fewest digits that
    read back as the same value. With ``timestamps`` each line begins with the time in UTC, from which a receipt derives the
    wall time; with ``rank`` follows ``[rankN]:``. Several processes may print into one log: a line is one write, whole on a
    pipe up to 4096 bytes. As a context manager it prints the end of a run unless an exception passes.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        planned_steps: int | None = None,
        rank: int | None = None,
        timestamps: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._stream = stream
        self._planned = "" if planned_steps is None else f"/{index(planned_steps)}"
        self._rank = "" if rank is None else f"[rank{index(rank)}]: "
        self._timestamps = timestamps
        self._clock = clock
        self._lock = RLock()
        self._names: dict[str, str] = {}

    def header(self, **facts: int | float | str | None) -> None:
        """Print the facts of the run at its start (``NUMBER_FACTS``, ``TEXT_FACTS``); None is not printed.

        Raises ``ValueError`` for another name, and for a text that is empty, over 200 characters, or has a control character or
        outer blanks.
        """
        numbers = []
        texts = []
        for name, value in facts.items():
            if name not in NUMBER_FACTS and name not in TEXT_FACTS:
                raise ValueError(f"{name!r} is not a fact of a run; use one of {', '.join((*NUMBER_FACTS, *TEXT_FACTS))}")
            if value is not None and name in NUMBER_FACTS:
                numbers.append(f" {name}={_number(value)}")
            elif value is not None:
                texts.append(f"{name}: {_text(str(value))}")
        if numbers:
            self._print("run" + "".join(numbers))
        for text in texts:
            self._print(text)

    def step(self, step: int, /, **metrics: Number | None) -> None:
        """Print one step: ``printer.step(12, loss=2.5, grad_norm=1.0)``; None is not printed. Raises as ``step_values``."""
        self.step_values(step, metrics)

    def step_values(self, step: int, metrics: Mapping[str, Number | None]) -> None:
        """Print one step with names that cannot be keywords, such as ``rewards/margin``.

        Raises ``ValueError`` for a name that cannot be printed, ``TypeError`` for a value that is not a number.
        """
        self._print(f"step={_step(step)}{self._planned}{self._cells(metrics)}")

    def eval(self, step: int, metrics: Mapping[str, Number | None], *, duration_s: float | None = None) -> None:
        """Print an evaluation after ``step`` and its duration. Raises as ``step_values``."""
        self._print(f"eval step={_step(step)}{_cell('eval_duration_s', duration_s)}{self._cells(metrics)}")

    def checkpoint(self, step: int, *, duration_s: float | None = None, path: str | None = None) -> None:
        """Print a checkpoint after ``step``; leave out a path that cannot be printed."""
        where = f" path={path}" if path and _fits(path, _MAX_PATH) else ""
        self._print(f"checkpoint step={_step(step)}{_cell('checkpoint_duration_s', duration_s)}{where}")

    def compilation(self, *, duration_s: float | None = None) -> None:
        """Print a compilation."""
        self._print(f"compile{_cell('compile_duration_s', duration_s)}")

    def end(self, step: int | None = None, *, training_time_s: float | None = None) -> None:
        """Print the end of a successful run after ``step``. A log without this line shows an unfinished run."""
        after = "" if step is None else f" step={_step(step)}"
        self._print(f"end{after}{_cell('training_time_s', training_time_s)}")

    def __enter__(self) -> StepPrinter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if kind is None:
            self.end()

    def _cells(self, metrics: Mapping[str, Number | None]) -> str:
        names = self._names
        cells = []
        for name, value in metrics.items():
            head = names.get(name)
            if head is None:
                if name in RESERVED_NAMES:
                    raise ValueError(f"{name!r} is not a metric name: it is reserved in the line")
                head = names[name] = f" {_name(name)}="
            if value is not None:
                cells.append(head + (repr(value) if type(value) is float else _number(value)))
        return "".join(cells)

    def _print(self, text: str) -> None:
        stream = sys.stdout if self._stream is None else self._stream
        with self._lock:
            when = f"{rfc3339(self._clock())} " if self._timestamps else ""
            stream.write(f"{when}{self._rank}{MARK} {text}\n")
            stream.flush()


def _name(name: str) -> str:
    if not PRINTED_NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be printed as a metric name: use a letter or _, then letters, digits and _./@%+:-")
    return name


def _step(step: int) -> int:
    whole = index(step)
    if whole < 0:
        raise ValueError(f"{whole} is not a step")
    return whole


def _cell(name: str, value: float | None) -> str:
    return "" if value is None else f" {name}={_number(value)}"


def _number(value: Any) -> str:
    """Return the fewest characters that read back as ``value``. Raises ``TypeError`` and ``ValueError``."""
    if isinstance(value, float):  # subclasses may have another repr
        return float.__repr__(value)
    try:
        whole = index(value)
    except TypeError:
        return repr(float(value))
    return str(int(whole)) if -(2**53) <= whole <= 2**53 else repr(float(whole))


def _text(text: str) -> str:
    if not _fits(text, _MAX_TEXT):
        raise ValueError(f"{text!r} cannot be printed: use 1 to {_MAX_TEXT} printable characters without outer blanks")
    return text


def _fits(text: str, most: int) -> bool:
    return 0 < len(text) <= most and text == text.strip() and text.isprintable()
