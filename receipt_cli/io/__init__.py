"""Open, decompress, find and write files; run DuckDB.

In: paths, standard input, bytes. Out: blocks of bytes with their digest; files that are written whole or not at all.
Start with ``source`` (reading), ``atomic`` (writing), ``discovery`` (which files are logs).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "NameTaken": "atomic",
    "check_new": "atomic",
    "make_folder": "atomic",
    "write_atomically": "atomic",
    "write_new": "atomic",
    "header_name": "beside",
    "receipt_names": "beside",
    "HEAD": "compression",
    "SUFFIXES": "compression",
    "compression_of": "compression",
    "decompress": "compression",
    "is_bomb": "compression",
    "unpacked": "compression",
    "safe_cell": "csv",
    "HEAD_BYTES": "discovery",
    "arrange": "discovery",
    "find_logs": "discovery",
    "has_log_name": "discovery",
    "is_log_text": "discovery",
    "names_of": "discovery",
    "Unpacker": "envelopes",
    "Answer": "duckdb",
    "Damaged": "duckdb",
    "Database": "duckdb",
    "check_installed": "duckdb",
    "quoted": "duckdb",
    "widen": "pipe",
    "BLOCK": "source",
    "Progress": "source",
    "SPOOLED": "source",
    "Source": "source",
    "Stream": "source",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
