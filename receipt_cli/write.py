"""Bytes → a file, atomically: the whole new content under its name, or the old one untouched."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from receipt_cli.errors import OutputError


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` through a temporary file beside it, flushed to disk and renamed.

    A link is followed. The mode is that of the file replaced, else what the umask leaves. What is no regular file (a
    device, a pipe) is written to as it is. Raises ``OutputError``.
    """
    try:
        old = path.stat() if path.exists() else None
        if old is not None and stat.S_ISDIR(old.st_mode):
            raise OutputError("is a directory, not a file", where=str(path))
        if old is not None and not stat.S_ISREG(old.st_mode):
            with path.open("wb") as file:
                file.write(data)
        else:
            _replace(path.resolve(), data, 0o666 & ~_umask() if old is None else stat.S_IMODE(old.st_mode))
    except (OSError, RuntimeError) as error:  # RuntimeError: links that go round in a circle
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise OutputError("cannot write", where=str(path), why=why) from error


def _replace(target: Path, data: bytes, mode: int) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".receipt-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
