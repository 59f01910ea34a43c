"""Instrument a trainer: goodput spans, step records, ablation receipts, step lines. Imports only the standard library.

In: calls from a training script. Out: lines that ``receipt parse`` reads, and documents. ``receipt_cli.emit.push``, ``.otel`` and
``.profiling`` are optional and imported by name. Callbacks import their trainer's library at the first use of their name.
Start with ``step_printer`` (lines), ``goodput_tracker`` (spans), ``callbacks.run_log`` (callbacks).
"""

from typing import TYPE_CHECKING

from receipt_cli.emit.ablation import AblationReceipt
from receipt_cli.emit.conformity import NotConforming, Problem
from receipt_cli.emit.goodput_tracker import GoodputTracker
from receipt_cli.emit.step_printer import StepPrinter
from receipt_cli.emit.temporal_performance import TemporalPerformanceTracker
from receipt_cli.rooms import doors

if TYPE_CHECKING:
    from receipt_cli.emit.callbacks.accelerate import AccelerateTracker as AccelerateTracker
    from receipt_cli.emit.callbacks.hugging_face import HuggingFaceCallback as HuggingFaceCallback
    from receipt_cli.emit.callbacks.keras import KerasCallback as KerasCallback
    from receipt_cli.emit.callbacks.lightning import LightningCallback as LightningCallback
    from receipt_cli.emit.callbacks.torch_loop import TorchLoop as TorchLoop

__all__ = ["AblationReceipt", "GoodputTracker", "NotConforming", "Problem", "StepPrinter", "TemporalPerformanceTracker"]
CALLBACKS = {
    "callbacks.accelerate": "AccelerateTracker",
    "callbacks.hugging_face": "HuggingFaceCallback",
    "callbacks.keras": "KerasCallback",
    "callbacks.lightning": "LightningCallback",
    "callbacks.torch_loop": "TorchLoop",
}
"""Modules of the trainers' callbacks. ``import *`` leaves them out, because their libraries may be missing."""

__getattr__, _ = doors(__name__, CALLBACKS)
