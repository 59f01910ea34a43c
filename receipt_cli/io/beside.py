"""Names of the files that belong to a log and stand beside it."""

from __future__ import annotations

from pathlib import PurePath

from receipt_cli.io.compression import unpacked


def receipt_names(log: str) -> list[str]:
    """Return the names under which a receipt may stand beside the log of this name: its stem's, and its own."""
    return list(dict.fromkeys(f"{name}.receipt.json" for name in (PurePath(unpacked(log)).stem, unpacked(log), log)))


def header_name(log: str) -> str:
    """Return the name under which a header file may stand beside the log of this name."""
    return f"{PurePath(unpacked(log)).stem}.header.json"


def running_name(log: str) -> str:
    """Return the name of the note beside the log of this name while its job runs."""
    return f"{PurePath(unpacked(log)).stem}.running.json"
