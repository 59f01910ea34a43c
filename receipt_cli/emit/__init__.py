"""The API for running trainers: goodput spans, temporal performance, ablation receipts, step lines.

Uses the standard library alone. ``receipt_cli.emit.push``, ``.otel`` and ``.profiling`` must be imported explicitly.
"""

from receipt_cli.emit.ablation import AblationReceipt
from receipt_cli.emit.conformity import NotConforming, Problem
from receipt_cli.emit.goodput_tracker import GoodputTracker
from receipt_cli.emit.step_printer import StepPrinter
from receipt_cli.emit.temporal_performance import TemporalPerformanceTracker

__all__ = ["AblationReceipt", "GoodputTracker", "NotConforming", "Problem", "StepPrinter", "TemporalPerformanceTracker"]
