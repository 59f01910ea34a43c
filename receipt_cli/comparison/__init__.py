"""Compare runs: first whether they are comparable, then metrics, curves and outcome.

In: receipts or logs, a policy. Out: a comparison document with intervals; or the answer whether B is a rerun of A.
Start with ``contrasts`` (a comparison), ``comparable`` (the header), ``rerun`` (reproducibility).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "comparable": "Verdict describe_run judge",
    "contrasts": "Axis Contrast Run comparison_document compare_runs contrast",
    "load": "load_runs load_side make_run places_along short_names",
    "policy": "DEFAULT Policy read_policy",
    "rerun": "Question STEPS reproducibility",
    "targets": "reach read_target",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
