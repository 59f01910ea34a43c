"""Derive the receipts of many logs into a store, on one machine or on Ray.

In: paths, folders, patterns, URLs, and a store. Out: one outcome per log; the store's bytes do not depend on engine or order.
Start with ``coordinator`` (the run of a batch), ``worker`` (one log).
"""
