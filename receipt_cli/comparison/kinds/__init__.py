"""Compare two documents of a kind besides receipts, each kind by its own rule of comparability.

Start with ``compare``; ``ablations``, ``evaluations``, ``profiles`` and ``goldens`` have the rules.
"""
