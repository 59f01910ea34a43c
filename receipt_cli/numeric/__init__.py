"""Store columns of numbers and compute exact statistics of them.

In: numbers as they arrive. Out: columns that spill to disk beyond ``RECEIPT_MEMORY``; sums, medians and intervals.
Start with ``column`` (storage), ``statistics``.
"""
