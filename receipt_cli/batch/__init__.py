"""Derive the receipts of many logs into a store, on one machine or on Ray.

In: paths, folders, patterns, URLs, and a store. Out: one outcome per log; the same store for every engine and order of work.
Start with ``coordinator`` (the run of a batch), ``worker`` (one log).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "coordinator": "Batch Progress rederive",
    "discovery": "moment read_list walk",
    "labels": "Labels read_mapping",
    "model": "Engine Manner REASONS Report",
    "pool": "LocalPool",
    "ray_engine": "RayEngine",
    "remote": "fetched_logs is_url",
    "summary": "Tally find_causes left_out_report report_document",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
