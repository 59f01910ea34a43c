"""Callbacks of trainers, one module each, which print the lines of ``StepPrinter``. Each module imports its own library alone.

In: what a trainer passes to its callbacks. Out: lines that ``receipt parse`` reads with the grammar ``receipt-emit``.
Start with ``run_log``, which all of them share.
"""
