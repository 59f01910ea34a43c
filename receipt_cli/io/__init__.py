"""Open, decompress, find and write files; run DuckDB.

In: paths, standard input, bytes. Out: blocks of bytes with their digest; files written whole or not at all.
Start with ``source`` (reading), ``atomic`` (writing), ``discovery`` (which files are logs).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "atomic": "NameTaken check_new make_folder open_temporary write_atomically write_new written_ahead",
    "beside": "header_name receipt_names running_name",
    "copied_lines": "CopiedLines",
    "compression": "HEAD SUFFIXES compression_of decompress is_bomb unpacked",
    "csv": "safe_cell",
    "digest": "sha256",
    "discovery": "HEAD_BYTES arrange document_kind family_of find_logs has_log_name is_log_text is_store names_of read_head",
    "duckdb": "Answer Damaged Database check_installed quoted",
    "envelopes": "Unpacker",
    "file_kinds": "SpecialFile read_file read_regular recognise",
    "joined_parts": "Stream digest_of joined",
    "pipe": "widen",
    "protobuf": "Malformed block double fields integer parts signed single text",
    "source": "BLOCK Progress SPOOLED Source",
    "tfrecord": "Broken framed is_record_head records",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
