"""Versions in a receipt: of its schema, and of the code that decides its derived bytes."""

from __future__ import annotations

SCHEMA_VERSION = "receipt/1.4"
RULES = "derive/4"
"""Version of all code that decides derived bytes."""
