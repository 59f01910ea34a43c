"""The folders that a client may read: any path outside them is refused, also through links."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from receipt_cli.errors import InputError


class Roots:
    """Folders that may be read. Raises ``InputError`` if one is not a folder."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = [Path(os.path.realpath(folder)) for folder in folders]
        for folder in self.folders:
            if not folder.is_dir():
                raise InputError("no such folder", where=str(folder), try_="receipt mcp --root FOLDER")

    def file(self, given: str) -> Path:
        """Return a file of a root by its path, absolute or below a root. Raises ``InputError``."""
        found = self._find(given)
        if not found.is_file():
            raise InputError("is not a file", where=given)
        return found

    def folder(self, given: str) -> Path:
        """Return a root or a folder of it by its path, absolute or below a root. Raises ``InputError``."""
        found = self._find(given)
        if not found.is_dir():
            raise InputError("is not a folder", where=given)
        return found

    def _find(self, given: str) -> Path:
        """Resolve ``given`` with links; do not reveal whether a path outside the roots exists."""
        for root in self.folders:
            try:
                found = Path(os.path.realpath(root / given, strict=True))
            except (OSError, ValueError):  # ValueError: a name with a zero byte
                continue
            if any(found.is_relative_to(folder) for folder in self.folders):
                return found
        why = f"the roots are {', '.join(map(str, self.folders))}"
        raise InputError("is not below a root of this server", where=given[:200], why=why)
