"""Bytes → a file, atomically: the whole new content under its name, or the old one untouched."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from receipt_cli.errors import OutputError

written_ahead: dict[tuple[str, bytes], Callable[[], str | None]] = {}
"""Folder and content → what gives the name of a temporary file there that is flushed, or None (see ``batch.ahead``)."""


def write_atomically(path: Path, data: bytes, scratch: Path | None = None) -> None:
    """Write ``data`` to ``path`` through a temporary file beside it, or in ``scratch``, flushed to disk and renamed.

    A link is followed. The mode is that of the file replaced, else what the umask leaves. What is not a regular file (a
    device, a pipe) is written to as it is. Raises ``OutputError``.
    """
    with _telling(path):
        old = path.stat() if path.exists() else None
        if old is not None and stat.S_ISDIR(old.st_mode):
            raise OutputError("is a directory, not a file", where=str(path))
        if old is not None and not stat.S_ISREG(old.st_mode):
            with path.open("wb") as file:
                file.write(data)
        else:
            mode = None if old is None else stat.S_IMODE(old.st_mode)
            _replace(path.resolve() if path.is_symlink() else path, data, mode, scratch)


def make_folder(path: Path) -> None:
    """Make the folder ``path`` where there is none. Raises ``OutputError``."""
    try:
        if not path.is_dir():  # asking takes a tenth of the time of trying
            path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError("cannot make the folder", where=str(path), why=error.strerror or str(error)) from error


def check_new(path: Path) -> None:
    """Raise ``OutputError`` where ``path`` is taken."""
    if os.path.lexists(path):
        raise OutputError("exists and is not overwritten", where=str(path), try_="name another file")


class NameTaken(OutputError):
    """There is a file of this name already."""


def write_new(path: Path, data: bytes, scratch: Path | None = None) -> None:
    """Write ``data`` to a file that does not exist yet, all of it or nothing.

    ``scratch`` is a folder of the same file system for the temporary file, by default that of ``path``. Raises
    ``NameTaken`` where the file exists, ``OutputError`` where it cannot be written.
    """
    with _telling(path):
        try:
            name = _temporary(scratch or path.parent, data, None)
            try:
                os.link(name, path)  # unlike a rename, this refuses a name that is taken
            finally:
                with contextlib.suppress(FileNotFoundError):  # somebody cleared the scratch folder
                    os.unlink(name)
        except FileExistsError as error:
            raise NameTaken("exists and is not overwritten", where=str(path), try_="name another file") from error


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the name of an empty file beside ``path``, for whoever writes by name; it takes the place of ``path`` in the end.

    Flushed to disk and renamed once the block has ended, and gone where the block fails. A link is followed, and the mode is
    that of the file replaced, else what the umask leaves. Raises ``OutputError``.
    """
    with _telling(path):
        if path.exists() and not path.is_file():
            raise OutputError("is not a regular file", where=str(path))
        target = path.resolve()
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        name = _temporary(target.parent, b"", mode)
        try:
            yield Path(name)
            with open(name, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(name, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


@contextlib.contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Turn what the system refuses into ``OutputError``; a ``RuntimeError`` is of links that go round in a circle."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise OutputError("cannot write", where=str(path), why=why) from error


def _replace(target: Path, data: bytes, mode: int | None, scratch: Path | None) -> None:
    name = _temporary(scratch or target.parent, data, mode)
    try:
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _temporary(folder: Path, data: bytes, mode: int | None) -> str:
    """Return the name of a new file in ``folder`` with ``data``, flushed to disk; where that fails, there is none.

    Without a ``mode`` it has what the umask leaves, and may have been written ahead.
    """
    ahead = written_ahead.pop((str(folder), data), None) if written_ahead and mode is None else None
    ready = ahead() if ahead is not None else None
    if ready is not None:
        return ready
    name, handle = open_temporary(folder, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(name, mode)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    return name


def open_temporary(folder: Path, mode: int | None) -> tuple[str, int]:
    """Make a file in ``folder`` that nobody else may read before it has its ``mode``; return its name and its handle.

    To import ``tempfile`` takes a fiftieth of a cold start.
    """
    name = os.path.join(folder, f".receipt-{os.urandom(8).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return name, os.open(name, flags, 0o666 if mode is None else 0o600)
