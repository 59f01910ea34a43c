"""Types of the objects in a receipt, for annotations: ``fields.pyi`` declares them, as the newest schema has them.

For a type checker ``Summary`` and ``Header`` differ; while a program runs, each is a ``View``.
"""

from __future__ import annotations

from receipt_cli.api.view import View


def __getattr__(name: str) -> type[View]:
    if name.startswith("_"):
        raise AttributeError(name)
    return View
