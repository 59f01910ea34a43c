"""Where ``grammars/`` and ``schemas/`` are: inside an installed package, or in a checkout; and our own source."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from receipt_cli.errors import DataError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Kind = Literal["grammars", "schemas"]
_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def data_root(kind: Kind) -> Traversable:
    """Return the directory that holds ``kind``: the installed copy first, the checkout second.

    Raises ``DataError`` when neither exists (a broken installation).
    """
    if (_PACKAGE / kind).is_dir():
        return _PACKAGE / kind
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / kind).is_dir():
        return checkout / kind
    packed = _packed().joinpath(kind)
    if packed.is_dir():
        return packed
    raise DataError(f"{kind}/ is missing from this installation", try_="install receipt-cli again")


def read_module(name: str) -> bytes | None:
    """Return the source of the module ``receipt_cli.NAME``, or None where only its bytecode is installed."""
    root = _PACKAGE if _PACKAGE.is_dir() else _packed()
    try:
        return root.joinpath(f"{name.replace('.', '/')}.py").read_bytes()
    except OSError:
        return None


def _packed() -> Traversable:
    """Return the package where it is no folder, such as inside a zip archive."""
    from importlib import resources  # six milliseconds that an ordinary installation does not need

    return resources.files("receipt_cli")
