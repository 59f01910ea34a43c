"""Versions that a receipt names: of its schema, and of the rules in code that decide its derived bytes."""

from __future__ import annotations

SCHEMA_VERSION = "receipt/1.4"
RULES = "derive/4"
"""Version of everything in code that decides derived bytes."""
