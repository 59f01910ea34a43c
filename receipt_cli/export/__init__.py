"""Receipts, and the records of logs, in the formats of other systems: one module a format."""

from receipt_cli.rooms import doors

PUBLIC = {
    "FORMATS": "formats",
    "export": "formats",
    "Name": "names",
    "gather": "run",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
