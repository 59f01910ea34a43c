"""Derive a receipt from its log again, and compare the bytes.

In: a receipt and its log. Out: the same, or every field that differs and which definition changed.
Start with ``verifier``.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "attestation": "attest check compare statement",
    "keyless": "Identity check_keyless sign_keyless",
    "verifier": "Verification read_receipt verify",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
