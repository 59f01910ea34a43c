"""verify."""

from receipt_cli.rooms import doors

PUBLIC = {
    "read_receipt": "verifier",
    "Verification": "verifier",
    "verify": "verifier",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
