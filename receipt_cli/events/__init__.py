"""Turn the columns of a scanned log into a table of records, and split it into launches, phases and series.

In: the scanned log and its chosen grammars. Out: the table, in log order, and the launches and phases of its records.
Start with ``table``, ``runs``, ``phases``.
"""
