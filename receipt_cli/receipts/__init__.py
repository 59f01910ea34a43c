"""Assemble receipts, produce them from logs, and open the file argument of a command.

In: a derivation and captured parts, or paths. Out: a validated receipt document and its bytes.
Start with ``production`` (from log to receipt), ``assembly`` (the document).
"""
