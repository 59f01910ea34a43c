"""``receipt help``, ``completion``, ``config`` and ``mcp``: for people, shells, projects and assistants."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Annotated, Literal

from receipt_cli.cli.app import complete, exit_codes, full_help, run
from receipt_cli.cli.output import style, write_answer, write_stdout
from receipt_cli.cli.parameters import Argument, FromSettings, Json, Option
from receipt_cli.cli.settings import SETTINGS, Setting, find_settings, variable
from receipt_cli.errors import UsageError
from receipt_cli.redaction.text import mask_texts
from receipt_cli.render.console import render_table

Shell = Literal["bash", "zsh", "fish", "powershell"]


def completion(shell: Annotated[Shell, Argument("SHELL", "One of bash, zsh, fish and powershell.")]) -> None:
    """Print the script by which a shell completes commands, options, grammars, metrics, lanes and runs.

    Lanes and runs are those of the store in $RECEIPT_STORE or receipt.toml. The shell runs it at its start:
    `eval "$(receipt completion bash)"` in ~/.bashrc, the same with zsh in ~/.zshrc after compinit, `receipt completion
    fish > ~/.config/fish/completions/receipt.fish`, or `receipt completion powershell >> $PROFILE`.

    Example: receipt completion bash >> ~/.bashrc
    """
    complete(f"source_{shell}")


def config(json_output: Json = False) -> None:
    """List the settings that are defaults of options, each with its value and where it comes from.

    An option of a command comes first, then a RECEIPT_* variable, then receipt.toml or [tool.receipt] of pyproject.toml in
    this folder or the nearest one above it.

    Example: receipt config
    """
    found = find_settings(os.environ).values
    rows: list[dict[str, str | None]] = []
    for name in SETTINGS:
        value, source = found.get(name, Setting("", ""))
        rows.append({"setting": name, "value": value or None, "source": source or None, "variable": variable(name)})
    rows = mask_texts(rows)
    shown = [{key: value or "-" for key, value in row.items()} for row in rows]
    write_answer(rows, json_output, lambda: render_table(shown, tuple(rows[0]), style()))


def mcp(
    root: Annotated[
        list[Path] | None,
        Option(metavar="FOLDER", help="Folder of readable files; default: the current one; may be given several times."),
    ] = None,
    store: Annotated[
        Path | None, Option(metavar="FOLDER", help="The store that questions mean; else $RECEIPT_STORE."), FromSettings("store")
    ] = None,
    rows: Annotated[int, Option(least=1, most=100_000, help="Most rows of an answer.")] = 1000,
    kib: Annotated[int, Option("--kib", least=1, most=65_536, help="Most KiB of an answer.")] = 256,
    seconds: Annotated[float, Option(least=0.1, most=3600, help="Most seconds of work for an answer.")] = 60.0,
) -> None:
    """Answer an assistant or another program by the Model Context Protocol on stdin and stdout.

    Its tools list and read the runs of a store, parse a log, compare runs, explain a figure and ask a store in SQL. They
    read files below the roots and the store only, and write nothing but the store's cache. Needs
    `pip install 'receipt-cli[mcp]'`.

    Example: receipt mcp --root logs/ --store runs/
    """
    try:
        from receipt_cli.mcp_server.server import Limits, serve
    except ImportError as error:
        why = str(error)
        raise UsageError("the server needs the MCP SDK", why=why, try_="pip install 'receipt-cli[mcp]'") from error

    gc.enable()  # a command is short-lived, a server is not
    serve(root or [Path()], store, Limits(rows, kib << 10, seconds))


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
