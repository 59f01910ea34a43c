"""Receipts, and the records of logs, in the formats of other systems: one module a format."""
