"""Derive the receipts of many logs into a store, on one machine or on Ray.

In: paths, folders, patterns, URLs, and a store. Out: one outcome per log; the store's bytes do not depend on engine or order.
Start with ``coordinator`` (the run of a batch), ``worker`` (one log).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "Batch": "coordinator",
    "Progress": "coordinator",
    "rederive": "coordinator",
    "read_list": "discovery",
    "walk": "discovery",
    "Engine": "model",
    "Report": "model",
    "LocalPool": "pool",
    "RayEngine": "ray_engine",
    "fetched_logs": "remote",
    "is_url": "remote",
    "Tally": "summary",
    "find_causes": "summary",
    "report_document": "summary",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
