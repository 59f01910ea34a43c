"""Make receipts: derive a log, add the captured facts of its job, assemble, validate.

In: a ``Request`` (paths and options). Out: a ``Product``: the receipt document, its derivation, and notes for the user.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "DERIVED": "assembly",
    "Document": "assembly",
    "assemble": "assembly",
    "derived_bytes": "assembly",
    "MAX_DOCUMENT": "open",
    "read_given": "open",
    "InvalidReceipt": "production",
    "Product": "production",
    "Request": "production",
    "capture_header": "production",
    "find_paths": "production",
    "open_streams": "production",
    "produce": "production",
    "produce_all": "production",
    "produce_from": "production",
    "read_attachment": "production",
    "refusal": "production",
    "require_valid": "production",
    "rfc3339_now": "production",
    "run_texts": "production",
    "split_attachment": "production",
    "SeriesRows": "series_file",
    "write_series": "series_file",
    "RULES": "versions",
    "SCHEMA_VERSION": "versions",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
