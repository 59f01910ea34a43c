"""Say whether the kernel is there, without what a scan needs."""

from __future__ import annotations

from receipt_cli.scan.kernel.loading import load_kernel


def has_kernel() -> bool:
    """Return whether the compiled kernel is there and not left out: results do not depend on it, speed does."""
    return load_kernel() is not None
