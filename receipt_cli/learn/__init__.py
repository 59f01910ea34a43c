"""Induce a grammar from the log of an unknown trainer.

In: the text of a log, a vocabulary. Out: rules that reproduce every kept sample, or none. No module here reads or writes files.
Start with ``learned``, then ``shapes``, ``reading`` and ``emit`` in this order.
"""
