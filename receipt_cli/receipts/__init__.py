"""Assemble receipts, produce them from logs, and open what a command was given.

In: a derivation and captured parts, or paths. Out: a validated receipt document and its bytes.
Start with ``production`` (a log to a receipt), ``assembly`` (the document).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "Reason": "reasons",
    "cells_of": "reasons",
    "explain_field": "reasons",
    "explain_metric": "reasons",
    "read_lines": "reasons",
    "show_line": "reasons",
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
