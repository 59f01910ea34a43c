"""Compare runs: first whether they are comparable, then metrics, curves and outcome.

In: receipts or logs, a policy. Out: a comparison document with intervals; or whether B is a rerun of A.
Start with ``contrasts`` (a comparison), ``comparable`` (the headers), ``rerun`` (reproducibility).
"""
