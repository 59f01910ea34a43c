"""Store columns of numbers and compute exact statistics of them.

In: numbers as they arrive. Out: columns that spill to disk beyond ``RECEIPT_MEMORY``; sums, medians and intervals.
Start with ``column`` (storage), ``statistics``.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "Bytes": "array_types",
    "Floats": "array_types",
    "Integers": "array_types",
    "Mask": "array_types",
    "Words": "array_types",
    "Joined": "arrays",
    "distinct_values": "arrays",
    "is_large": "arrays",
    "last_of_each": "arrays",
    "Cells": "column",
    "shifted": "column",
    "INTERVAL_RULE": "intervals",
    "MIN_VALUES": "intervals",
    "Spread": "intervals",
    "difference": "intervals",
    "drift": "intervals",
    "interval": "intervals",
    "mean_spread": "intervals",
    "median_spread": "intervals",
    "without_outliers": "intervals",
    "OrdinalSet": "ordinals",
    "count_switches": "ordinals",
    "ordinals_at": "ordinals",
    "ordinals_from": "ordinals",
    "TOLERANCE": "precision",
    "resolution": "precision",
    "scratch": "spill",
    "Statistic": "statistics",
    "Values": "statistics",
    "describe": "statistics",
    "exact_mean": "statistics",
    "exact_median": "statistics",
    "count_above": "statistics",
    "exact_sum": "statistics",
    "finite": "statistics",
    "value_range": "statistics",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
