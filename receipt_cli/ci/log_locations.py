"""Map line numbers of a receipt to files of its log, relative to the workspace of the CI system."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

WORKSPACES = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "WORKSPACE")
"""Variables with the path of the checkout on GitHub, GitLab and Jenkins."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file and a line in it, from 1; None if the finding is about the whole file.

    ``path`` is relative to the workspace, with slashes, if the file is inside; else absolute.
    """

    path: str
    line: int | None = None

    @property
    def uri(self) -> str:
        """The path as a URI reference (RFC 3986)."""
        return f"file://{quote(self.path)}" if self.path.startswith("/") else quote(self.path.replace("\\", "/"))


@dataclass(frozen=True, slots=True)
class Places:
    """Locations of a receipt's log. ``log`` is None if only the receipt is given; ``given`` is "-" for stdin."""

    given: str
    log: str | None
    files: tuple[tuple[str, int], ...]
    workspace: Path

    @classmethod
    def of(cls, document: Mapping[str, Any], given: str, log: str | None, environ: Mapping[str, str]) -> Places:
        """Return the places of ``document``, given as ``given``, whose log (a file, or a folder of files) is ``log``."""
        named = document["derivation"]["log"].get("files") or ()
        workspace = next((environ[name] for name in WORKSPACES if environ.get(name)), None)
        return cls(given, log, tuple((f["name"], f["line_count"]) for f in named), Path(workspace or os.getcwd()))

    def locate(self, line: int | None) -> Place | None:
        """Return the place of ``line`` in the log; without a log, that of the receipt; None for stdin."""
        if self.log is None:
            return None if self.given == "-" else Place(self._shown(Path(self.given)))
        if self.log == "-":
            return None
        path = Path(self.log)
        if not self.files:
            return Place(self._shown(path), line)
        folder = path if path.is_dir() else path.parent
        before = 0
        for name, count in self.files:
            if line is not None and before < line <= before + count:
                return Place(self._shown(folder / name), line - before)
            before += count
        return Place(self._shown(path))

    def _shown(self, path: Path) -> str:
        whole, base = Path(os.path.abspath(path)), Path(os.path.abspath(self.workspace))
        return (whole.relative_to(base) if whole.is_relative_to(base) else whole).as_posix()
