"""Many logs → receipts in a store: on one machine or several, resumable, and the same bytes whoever does it."""

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
    "report_document": "summary",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
