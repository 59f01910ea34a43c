"""Texts of a document that go to terminals: no control character in them, so that nothing they hold can steer one."""

from __future__ import annotations

from collections.abc import Iterable

from receipt_cli.documents.invariants.rule import Broken
from receipt_cli.lazy_pattern import compile_later

_CONTROL = compile_later(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
"""C0 but for the tab, DEL and C1."""


def check_texts(texts: Iterable[tuple[str, str | None]]) -> Broken:
    """Yield the pointers of the texts that hold a control character."""
    for at, text in texts:
        if text is not None and _CONTROL.search(text):
            yield at, "holds a control character"
