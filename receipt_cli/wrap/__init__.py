"""Run a command for ``receipt run`` unchanged, keep its output, and record its end.

In: a command and file names. Out: its log, exit status, wall time and peak memory.
Start with ``job`` (the run), then ``forwarder`` (the process that copies output) and ``tee``; ``orphan`` is for runs
whose wrapper was killed.
"""
