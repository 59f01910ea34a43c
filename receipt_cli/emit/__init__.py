"""Instrument a trainer: goodput spans, step records, ablation receipts, step lines. Imports only the standard library.

In: calls from a training script. Out: lines that ``receipt parse`` reads, and documents. ``receipt_cli.emit.push``, ``.otel`` and
``.profiling`` are optional and imported by name. Callbacks import their trainer's library at the first use of their name.
Start with ``step_printer`` (lines), ``goodput_tracker`` (spans), ``callbacks.run_log`` (callbacks).
"""

from importlib import import_module
from typing import TYPE_CHECKING

from receipt_cli.emit.ablation import AblationReceipt
from receipt_cli.emit.document import NotConforming, Problem
from receipt_cli.emit.goodput_tracker import GoodputTracker
from receipt_cli.emit.step_printer import StepPrinter
from receipt_cli.emit.temporal_performance import TemporalPerformanceTracker

if TYPE_CHECKING:
    from receipt_cli.emit.callbacks.accelerate import AccelerateTracker as AccelerateTracker
    from receipt_cli.emit.callbacks.hugging_face import HuggingFaceCallback as HuggingFaceCallback
    from receipt_cli.emit.callbacks.keras import KerasCallback as KerasCallback
    from receipt_cli.emit.callbacks.lightning import LightningCallback as LightningCallback
    from receipt_cli.emit.callbacks.torch_loop import TorchLoop as TorchLoop

__all__ = ["AblationReceipt", "GoodputTracker", "NotConforming", "Problem", "StepPrinter", "TemporalPerformanceTracker"]
CALLBACKS = {
    "AccelerateTracker": "accelerate",
    "HuggingFaceCallback": "hugging_face",
    "KerasCallback": "keras",
    "LightningCallback": "lightning",
    "TorchLoop": "torch_loop",
}
"""Trainers' callbacks and their modules. ``import *`` leaves them out, because their libraries may be missing."""

if not TYPE_CHECKING:  # type checkers refuse all names but those above

    def __getattr__(name):
        if name not in CALLBACKS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.callbacks.{CALLBACKS[name]}"), name)
