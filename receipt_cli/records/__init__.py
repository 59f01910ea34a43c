"""Split bytes into records, strip envelopes, and find the literals of rules.

In: blocks of bytes. Out: records of at most 64 KiB, their rank and time, and which of them may match a rule.
Start with ``split``, then ``envelope`` and ``heuristics``.
"""
