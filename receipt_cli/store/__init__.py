"""Keep receipts in a folder of immutable files, and answer SQL queries over them.

In: receipts, one SELECT. Out: files named by digests; rows of documented views.
Start with ``files`` (the folder), ``views`` (the columns), ``query``.
"""
