"""Ask the command line whether it would accept a command, without running it."""

from __future__ import annotations

from receipt_cli.cli.commands import GROUPS
from receipt_cli.cli.reader import read
from receipt_cli.errors import UsageError


def refuse_command(words: list[str]) -> str | None:
    """Return why ``receipt`` with ``words`` would be wrong usage, or None; nothing runs."""
    if " ".join(words) in GROUPS:
        return "a group, not a command"
    try:
        read(words)
    except UsageError as error:
        return error.render()
    return None
