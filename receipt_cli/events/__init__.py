"""Turn the columns of a scanned log into a table of records, and this into launches, phases and series.

In: a body and its chosen grammars. Out: the table, in log order; the launches and phases that its rows form.
Start with ``table``, ``runs``, ``phases``.
"""
