"""Return whether the kernel is available, without importing a scan."""

from __future__ import annotations

from receipt_cli.scan.kernel.loading import load_kernel


def has_kernel() -> bool:
    """Return whether the compiled kernel is present and enabled; results do not depend on it, only speed."""
    return load_kernel() is not None
