"""``receipt help``: the help of a command, of all, or on exit codes."""

from __future__ import annotations

from typing import Annotated

from receipt_cli.cli.app import run
from receipt_cli.cli.help import exit_codes, full_help
from receipt_cli.cli.output import write_stdout
from receipt_cli.cli.parameters import Argument, Option


def help_(
    topic: Annotated[list[str] | None, Argument("COMMAND", "A command or a group; or exit-codes.", completes="command")] = None,
    every: Annotated[bool, Option("--all", help="List every command.")] = False,
) -> None:
    """Print the help of a command, as its --help does; without one, that of receipt.

    With --all, list every command in one line each; of exit-codes, what each means.

    Example: receipt help store build
    """
    if every:
        write_stdout(full_help())
    elif topic == ["exit-codes"]:
        write_stdout(exit_codes())
    else:
        run([*(topic or ()), "--help"])
