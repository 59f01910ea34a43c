"""Which columns are long enough for numpy: small logs never import it, and either way the results are the same."""

from __future__ import annotations

import sys

WORTH_IMPORT = 16_384
"""Entries from which on numpy saves more time than its import takes (about a tenth of a second)."""
WORTH_CALL = 2048
"""Entries from which on it is faster once it is loaded."""


def is_large(count: int) -> bool:
    """True when ``count`` entries are worth numpy."""
    return count >= (WORTH_CALL if "numpy" in sys.modules else WORTH_IMPORT)
