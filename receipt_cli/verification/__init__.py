"""Derive a receipt from its log again, and compare the bytes.

In: a receipt and its log. Out: every difference, and the definitions that changed.
Start with ``verifier``.
"""
