"""Derive a receipt from its log again, and compare the bytes.

In: a receipt and its log. Out: the same, or every field that differs and which definition changed.
Start with ``verifier``.
"""
