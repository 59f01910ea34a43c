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


def make_folder(path: Path) -> None:
    """Make the folder ``path`` where there is none. Raises ``OutputError``."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError("cannot make the folder", where=str(path), why=error.strerror or str(error)) from error


def check_new(path: Path) -> None:
    """Raise ``OutputError`` where ``path`` is taken."""
    if os.path.lexists(path):
        raise OutputError("exists and is not overwritten", where=str(path), try_="name another file")


def write_new(path: Path, data: bytes) -> None:
    """Write ``data`` to a file that does not exist yet, all of it or nothing. Raises ``OutputError``, also where it does."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".receipt-", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())
            os.link(name, path)  # unlike a rename, this refuses a name that is taken
        finally:
            os.unlink(name)
    except FileExistsError as error:
        raise OutputError("exists and is not overwritten", where=str(path), try_="name another file") from error
    except (OSError, RuntimeError) as error:
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
