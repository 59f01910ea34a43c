"""Write a run in the formats of other systems, one module per format.

In: a receipt, and the records of its log if there is one. Out: bytes, or files at a path; nothing is sent.
Start with ``formats`` (the list), ``run`` (the run that every format exports).
"""
