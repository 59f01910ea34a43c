"""Find the compiled kernel, without importing a scan."""

from __future__ import annotations

import os
from typing import Any

VARIABLE = "RECEIPT_KERNEL"
"""The environment variable that disables the kernel if it is ``0``."""


def load_kernel() -> Any:
    """Return the compiled kernel, or None if it is absent or disabled."""
    if os.environ.get(VARIABLE) == "0":
        return None
    try:
        from receipt_cli.scan.kernel import _native
    except ImportError:
        return None
    return _native


def has_kernel() -> bool:
    """Return whether the compiled kernel is present and enabled; results do not depend on it, only speed."""
    return load_kernel() is not None
