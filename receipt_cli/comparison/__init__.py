"""Compare runs: first whether they are comparable, then metrics, curves and outcome.

In: receipts or logs, a policy. Out: a comparison document with intervals; or the answer whether B is a rerun of A.
Start with ``contrasts`` (a comparison), ``comparable`` (the header), ``rerun`` (reproducibility).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "Verdict": "comparable",
    "describe_run": "comparable",
    "judge": "comparable",
    "Contrast": "contrasts",
    "Run": "contrasts",
    "comparison_document": "contrasts",
    "compare_runs": "contrasts",
    "contrast": "contrasts",
    "load_runs": "load",
    "load_side": "load",
    "make_run": "load",
    "short_names": "load",
    "DEFAULT": "policy",
    "Policy": "policy",
    "read_policy": "policy",
    "STEPS": "rerun",
    "reproducibility": "rerun",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
