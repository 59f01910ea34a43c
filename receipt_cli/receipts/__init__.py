"""Assemble receipts, produce them from logs, and open what a command was given.

In: a derivation and captured parts, or paths. Out: a validated receipt document and its bytes.
Start with ``production`` (a log to a receipt), ``assembly`` (the document).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "reasons": "Reason at_companions cells_of explain_field explain_metric read_lines show_line",
    "assembly": "DERIVED Document assemble derived_bytes",
    "open": "MAX_DOCUMENT read_given",
    "production": (
        "Declared InvalidReceipt Product Request UNDECLARED capture_header declare find_paths open_streams produce produce_all "
        "produce_from read_attachment refusal require_valid rfc3339_now split_attachment"
    ),
    "series_file": "SeriesRows write_series",
    "stated": "header_facts read_facts",
    "versions": "RULES SCHEMA_VERSION",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
