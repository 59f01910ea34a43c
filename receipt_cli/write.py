"""Bytes → a file, atomically: the whole new content under its name, or the old one untouched."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from receipt_cli.errors import OutputError


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` through a temporary file beside it, flushed to disk and renamed.

    The mode is that of the file replaced, else what the umask leaves. Raises ``OutputError``.
    """
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        if path.is_dir():
            raise OutputError("is a directory, not a file", where=str(path))
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except OSError as error:
        raise OutputError("cannot write", where=str(path), why=str(error)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except OSError as error:
        raise OutputError("cannot write", where=str(path), why=str(error)) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
