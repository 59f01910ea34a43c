"""Compute the contents of a receipt: summary, checks, failure, goodput, flags, bottleneck and memory.

In: phases with their events, marker hits, the metric registry. Out: ``Summary``, ``Checks``, ``Ending``, ``Goodput``, all pure
functions of their arguments. Start with ``summary`` (one phase), then ``checks``, ``failure`` and ``goodput.account`` (a whole
run).
"""
