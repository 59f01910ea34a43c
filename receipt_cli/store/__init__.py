"""Keep receipts in a folder of immutable files, and answer SQL over them.

In: receipts, one SELECT. Out: files named by digests; rows of documented views.
Start with ``files`` (the folder), ``views`` (the columns), ``query``.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "Outcome": "files",
    "Quarantined": "files",
    "Store": "files",
    "StoredReceipt": "files",
    "Known": "fingerprints",
    "KnownLog": "fingerprints",
    "open_store": "index",
    "csv_text": "query",
    "names": "query",
    "records": "query",
    "view_columns": "query",
    "read_receipt": "reading",
    "read_receipts": "reading",
    "SeriesFiles": "series_files",
    "export": "query",
    "Period": "stats",
    "QUESTIONS": "stats",
    "Question": "stats",
    "ask_panel": "stats",
    "contradictions": "stats",
    "panel_document": "stats",
    "MEMORY": "views",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
