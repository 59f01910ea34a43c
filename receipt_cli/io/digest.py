"""SHA-256 of little and of much."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash


def sha256(*, little: bool = False) -> _Hash:
    """Return the state of a digest. OpenSSL is the fastest; to load it takes longer than Python's own for ``little`` data."""
    if little and "_hashlib" not in sys.modules:
        try:
            if sys.version_info >= (3, 12):
                from _sha2 import sha256 as own  # type: ignore[import-not-found,unused-ignore]
            else:
                from _sha256 import sha256 as own  # type: ignore[import-not-found,unused-ignore]
        except ImportError:  # a Python without its own
            pass
        else:
            made: _Hash = own()
            return made
    import hashlib

    return hashlib.sha256()
