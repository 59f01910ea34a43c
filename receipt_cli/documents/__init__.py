"""Validate, migrate, compare and serialise the documents that carry a ``schema_version``.

In: documents (dicts) or their bytes. Out: findings with JSON pointers, newer documents, differences, canonical bytes.
Start with ``validate``, then ``schemas`` (what ships) and ``migrate``.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "canonical": "canonical_bytes canonical_line captured_digest is_touched",
    "diff": "Difference differences",
    "identity": "run_id run_time",
    "invariants.evidence": "contradictions",
    "invariants.figures": "column_figures",
    "invariants.rule": "pointer pointer_parts",
    "invariants.stated": "count_devices",
    "migrate": "migrate_bytes replace_original write_beside",
    "schema_diff": "Change compare_schemas is_compatible",
    "schema_fields": "Field list_fields",
    "schemas": "find_entry get_json_schema keep_known list_schemas read_entry",
    "validate": "Finding has_errors validate_bytes validate_document",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
