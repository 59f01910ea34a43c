"""Helpers for readers of definitions: errors that name the file, the line and the key, and lists of strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from receipt_cli.errors import DataError


class Fail(Protocol):
    """Makes an error from a reason and its place: the steps (keys and list indices) to it, and a ``key`` there."""

    def __call__(self, reason: str, *steps: str | int, key: str | None = None) -> DataError:
        """Return the error."""


def failing(read: Callable[[], bytes], where: str, hidden: str = "") -> Fail:
    """Return a ``Fail`` for the file ``where``, whose text ``read`` returns; a first step ``hidden`` is not shown."""

    def fail(reason: str, *steps: str | int, key: str | None = None) -> DataError:
        from receipt_cli.definitions.strict_yaml import locate

        visible = steps[1:] if len(steps) > 1 and steps[0] == hidden else steps
        shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in visible).removeprefix(".")
        line = locate(read(), (*steps, key) if key is not None else steps)
        return DataError(f"{shown}: {reason}" if shown else reason, where=f"{where}:{line}")

    return fail


def listed(texts: str | Iterable[str] | None) -> list[str]:
    """Return ``texts`` as a list; a string becomes a list of one, None an empty list."""
    return [texts] if isinstance(texts, str) else list(texts or ())


def similar(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "did you mean …?" with the names of ``known`` similar to ``word``, or ``otherwise`` if there are none."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else otherwise


def below(fail: Fail, *steps: str | int) -> Fail:
    """Return a ``Fail`` for places below ``steps``."""
    return lambda reason, *inner, key=None: fail(reason, *steps, *inner, key=key)
