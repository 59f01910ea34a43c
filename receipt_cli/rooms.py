"""Doors of the rooms: the public names of a package, each loaded when it is first asked for (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def doors(room: str, public: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of the package ``room``; ``public`` maps each module to its public names, in one
    text with blanks between them.
    """

    def load(name: str) -> Any:
        module = next((module for module, names in public.items() if name in names.split()), None)
        if module is None:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(f"{room}.{module}"), name)

    return load, lambda: sorted(" ".join(public.values()).split())
