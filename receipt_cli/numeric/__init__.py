"""numeric."""

from receipt_cli.rooms import doors

PUBLIC = {
    "Joined": "arrays",
    "distinct_values": "arrays",
    "is_large": "arrays",
    "last_of_each": "arrays",
    "Cells": "column",
    "WORTH_CALL": "column",
    "MIN_VALUES": "intervals",
    "Spread": "intervals",
    "half_width": "intervals",
    "spread": "intervals",
    "OrdinalSet": "ordinals",
    "count_switches": "ordinals",
    "ordinals_at": "ordinals",
    "ordinals_in": "ordinals",
    "TOLERANCE": "precision",
    "resolution": "precision",
    "scratch": "spill",
    "Statistic": "statistics",
    "Values": "statistics",
    "describe": "statistics",
    "exact_mean": "statistics",
    "exact_median": "statistics",
    "exact_sum": "statistics",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
