"""Write files atomically: ``path`` holds the whole new content or the untouched old one."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from receipt_cli.errors import OutputError, system_errors

written_ahead: dict[tuple[str, bytes], Callable[[], str | None]] = {}
"""(folder, content) → function that returns a temporary file already written and flushed there, or None (``batch.pool``)."""


def write_atomically(path: Path, data: bytes, scratch: Path | None = None) -> None:
    """Write ``data`` to ``path``: write and flush a temporary file beside it or in ``scratch``, then rename.

    Follows a link. Keeps the mode of a replaced file; a new one gets the umask's. A device or pipe is written directly.
    Raises ``OutputError``.
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
            target = path.resolve() if path.is_symlink() else path
            name = _temporary(scratch or target.parent, data, mode)
            with _removed_on_failure(name):
                os.replace(name, target)


def make_folder(path: Path) -> None:
    """Make the folder ``path`` and its parents if missing. Raises ``OutputError``."""
    with system_errors(OutputError, "cannot make the folder", path):
        if not path.is_dir():  # ten times faster than mkdir
            path.mkdir(parents=True, exist_ok=True)


def check_new(path: Path) -> None:
    """Raise ``OutputError`` if ``path`` exists, even as a broken link."""
    if os.path.lexists(path):
        raise OutputError("exists and is not overwritten", where=str(path), try_="name another file")


class NameTaken(OutputError):
    """A file of this name exists already."""


def write_new(path: Path, data: bytes, scratch: Path | None = None) -> None:
    """Write ``data`` to a new file, completely or not at all.

    ``scratch`` is a folder on the same file system for the temporary file; default: the folder of ``path``. Raises
    ``NameTaken`` if the file exists, ``OutputError`` if it cannot be written.
    """
    with _telling(path):
        try:
            name = _temporary(scratch or path.parent, data, None)
            try:
                os.link(name, path)  # unlike rename, link fails if the name exists
            finally:
                with contextlib.suppress(FileNotFoundError):  # another process cleared the scratch folder
                    os.unlink(name)
        except FileExistsError as error:
            raise NameTaken("exists and is not overwritten", where=str(path), try_="name another file") from error


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the name of an empty temporary file beside ``path``; after the block it replaces ``path``.

    It is flushed and renamed if the block succeeds, deleted if the block fails. Follows a link. Keeps the mode of a
    replaced file; a new one gets the umask's. Raises ``OutputError``.
    """
    with _telling(path):
        if path.exists() and not path.is_file():
            raise OutputError("is not a regular file", where=str(path))
        target = path.resolve()
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        name = _temporary(target.parent, b"", mode)
        with _removed_on_failure(name):
            yield Path(name)
            with open(name, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(name, target)


@contextlib.contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Turn system errors into ``OutputError``; ``Path.resolve`` raises ``RuntimeError`` for a loop of links."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise OutputError("cannot write", where=str(path), why=why) from error


@contextlib.contextmanager
def _removed_on_failure(name: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _temporary(folder: Path, data: bytes, mode: int | None) -> str:
    """Write ``data`` to a new file in ``folder``, flush it and return its name; leave no file on failure.

    Without ``mode`` the umask decides, and a file from ``written_ahead`` may serve.
    """
    ahead = written_ahead.pop((str(folder), data), None) if written_ahead and mode is None else None
    ready = ahead() if ahead is not None else None
    if ready is not None:
        return ready
    name, handle = open_temporary(folder, mode)
    with _removed_on_failure(name):
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(name, mode)
    return name


def open_temporary(folder: Path, mode: int | None) -> tuple[str, int]:
    """Make a file in ``folder``, private until ``chmod`` if a ``mode`` is given; return its name and descriptor.

    Importing ``tempfile`` instead would take a fiftieth of a cold start.
    """
    name = os.path.join(folder, f".receipt-{os.urandom(8).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return name, os.open(name, flags, 0o666 if mode is None else 0o600)
