"""Validate, migrate, compare and serialise the documents that carry a ``schema_version``.

In: documents (dicts) or their bytes. Out: findings with JSON pointers, newer documents, differences, canonical bytes.
Start with ``validate``, then ``schemas`` (what ships) and ``migrate``.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "canonical_bytes": "canonical",
    "canonical_line": "canonical",
    "captured_digest": "captured",
    "is_touched": "captured",
    "Difference": "diff",
    "differences": "diff",
    "pointer": "invariants.rule",
    "pointer_parts": "invariants.rule",
    "migrate_bytes": "migrate_file",
    "replace_original": "migrate_file",
    "write_beside": "migrate_file",
    "Change": "schema_diff",
    "compare_schemas": "schema_diff",
    "is_compatible": "schema_diff",
    "Field": "schema_fields",
    "list_fields": "schema_fields",
    "find_entry": "schemas",
    "get_json_schema": "schemas",
    "keep_known": "schemas",
    "list_schemas": "schemas",
    "read_entry": "schemas",
    "Finding": "validate",
    "has_errors": "validate",
    "validate_bytes": "validate",
    "validate_document": "validate",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
