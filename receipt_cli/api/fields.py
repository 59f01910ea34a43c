"""Types of the objects in a receipt, for annotations: ``fields.pyi`` declares them by the newest schema.

For a type checker ``Summary`` and ``Header`` differ; at run time each is a ``View``.
"""

from __future__ import annotations

from receipt_cli.api.view import View


def __getattr__(name: str) -> type[View]:
    if name.startswith("_"):
        raise AttributeError(name)
    return View
