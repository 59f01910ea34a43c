"""Open, decompress, find and write files; run DuckDB.

In: paths, standard input, bytes. Out: blocks of bytes with their digest; files written whole or not at all.
Start with ``source`` (reading), ``atomic`` (writing), ``discovery`` (which files are logs).
"""
