"""SHA-256 state for small and large data."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash


def sha256(*, little: bool = False) -> _Hash:
    """Return an empty SHA-256 state: OpenSSL's, which is fastest; Python's own for ``little`` data, which loads faster."""
    if little and "_hashlib" not in sys.modules:
        try:
            if sys.version_info >= (3, 12):
                from _sha2 import sha256 as own  # type: ignore[import-not-found,unused-ignore]
            else:
                from _sha256 import sha256 as own  # type: ignore[import-not-found,unused-ignore]
        except ImportError:  # this Python has no own SHA-256
            pass
        else:
            made: _Hash = own()
            return made
    import hashlib

    return hashlib.sha256()
