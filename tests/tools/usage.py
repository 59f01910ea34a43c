"""Ask the command line what it would do with some words, without doing it."""

import contextlib
import io
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any
from unittest.mock import patch

from receipt_cli.cli import app
from receipt_cli.cli.commands import GROUPS, load
from receipt_cli.errors import UsageError

Call = tuple[Callable[..., None], dict[str, Any]]


def read(words: Sequence[str]) -> Call | None:
    """Return the function that a command line calls, with its arguments; None for one that asks for help or the version.

    Nothing runs. Raises ``UsageError``.
    """
    calls: list[Call] = []

    def recorded(name: str) -> Callable[..., None]:
        function = load(name)

        @wraps(function)
        def record(**values: Any) -> None:
            calls.append((function, values))

        return record

    with patch.object(app, "load", recorded), contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        app.run(words)
    return calls[0] if calls else None


def refuse_command(words: list[str]) -> str | None:
    """Return why ``receipt`` with ``words`` would be wrong usage, or None; nothing runs."""
    if " ".join(words) in GROUPS:
        return "a group, not a command"
    try:
        read(words)
    except UsageError as error:
        return error.render()
    return None
