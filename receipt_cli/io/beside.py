"""Names of the files that belong to a log and lie beside it."""

from __future__ import annotations

from pathlib import PurePath

from receipt_cli.io.compression import unpacked


def receipt_names(log: str) -> list[str]:
    """Return the names that a receipt beside this log may have: from the log's stem, or from its full name."""
    return list(dict.fromkeys(f"{name}.receipt.json" for name in (PurePath(unpacked(log)).stem, unpacked(log), log)))


def header_name(log: str) -> str:
    """Return the name of the header file beside this log."""
    return f"{PurePath(unpacked(log)).stem}.header.json"


def running_name(log: str) -> str:
    """Return the name of the note that lies beside this log while its job runs."""
    return f"{PurePath(unpacked(log)).stem}.running.json"
