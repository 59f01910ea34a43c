"""Where ``grammars/`` and ``schemas/`` are: inside an installed package, or in a checkout."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

from receipt_cli.errors import DataError

Kind = Literal["grammars", "schemas"]


def data_root(kind: Kind) -> Traversable:
    """Return the directory that holds ``kind``: the installed copy first, the checkout second.

    Raises ``DataError`` when neither exists (a broken installation).
    """
    installed = resources.files("receipt_cli").joinpath(kind)
    if installed.is_dir():
        return installed
    checkout = Path(__file__).resolve().parents[1]
    if (checkout / "pyproject.toml").is_file() and (checkout / kind).is_dir():
        return checkout / kind
    raise DataError(f"{kind}/ is missing from this installation", try_="install receipt-cli again")
