"""Find and read shipped files: ``grammars/`` and ``schemas/`` in an installed package or a checkout, and the package."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from zlib import crc32

from receipt_cli.errors import DataError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Kind = Literal["grammars", "schemas"]
_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def data_root(kind: Kind) -> Traversable:
    """Return the directory of ``kind``: the installed copy, else the checkout's.

    Raises ``DataError`` if neither exists (a broken installation).
    """
    if is_installed(kind):
        return _PACKAGE / kind
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / kind).is_dir():
        return checkout / kind
    packed = package_root().joinpath(kind)
    if packed.is_dir():
        return packed
    raise DataError(f"{kind}/ is missing from this installation", try_="install receipt-cli again")


def is_installed(kind: Kind) -> bool:
    """Return whether ``kind`` is part of the package on disk, as a wheel installs it."""
    return (_PACKAGE / kind).is_dir()


def package_root() -> Traversable:
    """Return the folder of the package ``receipt_cli``, which may be inside a zip archive."""
    if _PACKAGE.is_dir():
        return _PACKAGE
    from importlib import resources  # takes six milliseconds; an ordinary installation does not need it

    return resources.files("receipt_cli")


def read_shipped(where: str) -> bytes:
    """Return the bytes of a shipped file such as ``schemas/index.yaml``. Raises ``DataError``."""
    try:
        return _shipped(where).read_bytes()
    except FileNotFoundError as error:
        raise DataError("a file of this installation is missing", where=where, try_="install receipt-cli again") from error
    except OSError as error:
        raise DataError("a file of this installation cannot be read", where=where, why=error.strerror or str(error)) from error


def is_unchanged(where: str, size: int, checksum: int) -> bool:
    """Return whether the shipped file ``where`` still has this ``size`` in bytes and this CRC-32.

    In an installed package only the size is compared: its files come from one wheel.
    """
    kind, _, rest = where.partition("/")
    root = data_root("grammars" if kind == "grammars" else "schemas")
    if not isinstance(root, Path):
        return True  # inside an archive
    path = f"{root}{os.sep}{rest}"  # called a hundred times at each start: pathlib would take a millisecond
    try:
        if path.startswith(f"{_PACKAGE}{os.sep}"):
            return os.stat(path).st_size == size
        with open(path, "rb") as file:
            return crc32(file.read()) == checksum
    except OSError:
        return False


def _shipped(where: str) -> Traversable:
    kind, *parts = where.split("/")
    return data_root("grammars" if kind == "grammars" else "schemas").joinpath(*parts)
