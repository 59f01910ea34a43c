"""Build the HTML report of a store or of one run.

In: receipts and curves. Out: one HTML file that loads nothing; its script and style are in ``assets``.
Start with ``data`` (the content of the page and its file), ``row`` (one run).
"""
