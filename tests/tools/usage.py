"""Ask the command line whether it would accept a command, without running it."""

from __future__ import annotations

from typer.main import get_command

from receipt_cli.cli.app import app


def refuse_command(words: list[str]) -> str | None:
    """Return why ``receipt`` with ``words`` would be wrong usage, or None; nothing runs."""
    command = get_command(app)
    while words and hasattr(command, "commands"):
        name, *words = words
        if name not in command.commands:
            return f"no command {name}"
        command = command.commands[name]
    if hasattr(command, "commands"):
        return "a group, not a command"
    try:
        command.make_context("receipt", words)
    except Exception as error:  # typer's own copy of click has no public name
        return str(error) or type(error).__name__
    return None
