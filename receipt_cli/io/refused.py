"""Turn system errors while a log is read into errors of this program."""

from __future__ import annotations

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
        raise InputError("no such log", where=where) from error
    except (OSError, also) as error:
        raise InputError("cannot read the log", where=where, why=getattr(error, "strerror", None) or str(error)) from error
