"""Store columns of numbers and compute exact statistics of them.

In: numbers as they arrive. Out: columns that spill to disk beyond ``RECEIPT_MEMORY``; sums, medians and intervals.
Start with ``column`` (storage), ``statistics``.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "array_types": "Array Floats Integers Mask",
    "arrays": "Joined distinct_values is_large last_of_each",
    "column": "Cells shifted",
    "intervals": "INTERVAL_RULE MIN_VALUES Spread difference drift interval mean_spread median_spread without_outliers",
    "lazy_numpy": "np",
    "ordinals": "OrdinalSet count_switches ordinals_at ordinals_from ordinals_in",
    "precision": "TOLERANCE printed_unit resolution",
    "spill": "ascends gathered joined picked pieces rises scratch show slices take",
    "statistics": "Statistic Values describe exact_mean exact_median count_above exact_sum finite quantiles value_range",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
