"""Instrument a trainer: goodput spans, step records, ablation receipts, step lines. Imports only the standard library.

In: calls from a training script. Out: lines that ``receipt parse`` reads, and documents. ``receipt_cli.emit.push``, ``.otel`` and
``.profiling`` are optional and imported by name.
Start with ``step_printer`` (lines), ``goodput_tracker`` (spans).
"""

from receipt_cli.emit.ablation import AblationReceipt
from receipt_cli.emit.conformity import NotConforming, Problem
from receipt_cli.emit.goodput_tracker import GoodputTracker
from receipt_cli.emit.step_printer import StepPrinter
from receipt_cli.emit.temporal_performance import TemporalPerformanceTracker

__all__ = ["AblationReceipt", "GoodputTracker", "NotConforming", "Problem", "StepPrinter", "TemporalPerformanceTracker"]
