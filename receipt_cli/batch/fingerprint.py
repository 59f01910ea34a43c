"""Everything but the log that decides a receipt's derived bytes, in one short text."""

from __future__ import annotations

import hashlib
from functools import cache

from receipt_cli.definitions.accelerators import load_peaks
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.grammar.catalog import list_grammars, read_entry
from receipt_cli.receipts.versions import RULES, SCHEMA_VERSION


@cache
def definitions_fingerprint() -> str:
    """Return 16 hex digits of the rules, the schema version and the bytes of every definition. Raises ``DataError``."""
    parts = [f"{RULES} {SCHEMA_VERSION} {load_catalogue().sha256} {load_registry().sha256} {load_peaks().sha256}"]
    parts += [f"{e.ref} {e.status} {hashlib.sha256(read_entry(e)).hexdigest()}" for e in list_grammars()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
