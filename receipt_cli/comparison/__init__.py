"""Two runs and more: whether they are comparable, and then what differs."""

from receipt_cli.rooms import doors

PUBLIC = {
    "Verdict": "comparable",
    "describe_run": "comparable",
    "judge": "comparable",
    "Contrast": "contrasts",
    "Run": "contrasts",
    "SCHEMA_VERSION": "contrasts",
    "compare_runs": "contrasts",
    "contrast": "contrasts",
    "load_runs": "load",
    "load_side": "load",
    "make_run": "load",
    "short_names": "load",
    "LEVEL": "metrics",
    "DEFAULT": "policy",
    "Policy": "policy",
    "read_policy": "policy",
    "STEPS": "rerun",
    "reproducibility": "rerun",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
