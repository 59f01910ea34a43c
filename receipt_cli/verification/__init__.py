"""Derive a receipt's log again and compare the derived parts.

In: a receipt and its log. Out: a ``Verification``: whether the derived parts are the same bytes, and the differences.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "read_receipt": "verifier",
    "Verification": "verifier",
    "verify": "verifier",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
