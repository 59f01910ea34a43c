"""Derive the receipts of many logs into a store, on one machine or on Ray.

In: paths, folders, patterns, URLs, and a store. Out: one outcome per log; the same store for every engine and order of work.
Start with ``coordinator`` (the run of a batch), ``worker`` (one log).
"""
