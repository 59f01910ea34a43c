"""Mask secrets and control characters in text that is shown or stored.

In: text from a log, header or document. Out: the same text with ``[redacted:CLASS]`` marks, cut to its bound.
Start with ``text`` (the functions for callers), ``mask`` (the classes of secrets).
"""
