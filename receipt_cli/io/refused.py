"""Turn system errors while a log is read into errors of this program."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from receipt_cli.errors import InputError


@contextmanager
def refusing(where: str, also: type[Exception] = OSError) -> Iterator[None]:
    """Turn system errors, and ``also``, into ``InputError``."""
    try:
        yield
    except IsADirectoryError as error:
        raise InputError("is a directory, not a log", where=where, try_="name one log file") from error
    except FileNotFoundError as error:
        raise no_log(where) from error
    except (OSError, also) as error:
        raise InputError("cannot read the log", where=where, why=getattr(error, "strerror", None) or str(error)) from error


def no_log(path: str) -> InputError:
    """Return the error of a path where there is no file."""
    if "://" in path:
        return InputError("a log is a file, not a URL", where=path, try_=f"curl -sL {shlex.quote(path)} | receipt parse -")
    if os.path.islink(path):
        return InputError("the link has no file", where=path, why=f"it points to {os.readlink(path)}")
    return InputError("no such log", where=path)
