"""Assemble receipts, produce them from logs, and open what a command was given.

In: a derivation and captured parts, or paths. Out: a validated receipt document and its bytes.
Start with ``production`` (a log to a receipt), ``assembly`` (the document).
"""
