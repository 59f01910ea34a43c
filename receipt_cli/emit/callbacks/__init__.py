"""Callbacks for trainers, one module each, that print the lines of ``StepPrinter`` and import only their own library.

In: what a trainer passes to its callbacks. Out: lines that ``receipt parse`` reads with the grammar ``receipt-emit``.
Start with ``run_log``, which all share.
"""
