"""Collect the facts of a job at its start: git, packages, hardware, flags.

In: environment variables, a header file, the log's own lines, the local machine. Out: a header with a source for every value.
Start with ``collect`` (all sources in order of priority).
"""
