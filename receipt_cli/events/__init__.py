"""Turn the columns of a scanned log into events, launches, phases and series.

In: a body and its chosen grammars. Out: events in log order; the launches and phases that they form; tables of their records.
Start with ``build`` (events), ``launches``, ``phases``, ``table``.
"""
