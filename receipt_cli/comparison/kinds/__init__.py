"""Compare two documents of a kind besides receipts, each kind by its own rule of comparability.

Start with ``compare``; ``ablations``, ``evaluations`` and ``profiles`` have the rules, and ``comparison.golden``.
"""
