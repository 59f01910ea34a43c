"""Keep receipts in a folder of immutable files, and answer SQL queries over them.

In: receipts, one SELECT. Out: files named by digests; rows of documented views.
Start with ``files`` (the folder), ``views`` (the columns), ``query``.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "files": "Outcome Quarantined Store",
    "fingerprints": "Known KnownLog",
    "index": "open_store",
    "kept_rows": "keep_rows",
    "listing": "list_runs",
    "marks": "mark",
    "packed_rows": "PackedRows",
    "places": "FIELDS Place place_files place_bytes write_place",
    "query": "csv_text export names records view_columns",
    "reading": "read_receipt read_receipts",
    "recipes": "RECIPES fill",
    "resolve": "NamedRun find_log find_run note_root",
    "series_files": "SeriesFiles",
    "signatures": "signature",
    "stats": "Period QUESTIONS Question ask_panel contradictions panel_document",
    "views": "MEMORY",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
