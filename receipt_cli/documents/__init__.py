"""Validate, migrate, compare and serialise the documents that have a ``schema_version``.

In: documents (dicts) or their bytes. Out: findings with JSON pointers, newer documents, differences, canonical bytes.
Start with ``validate``, then ``schemas`` (shipped schemas) and ``migrate``.
"""
