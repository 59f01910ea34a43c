"""What every command prints: documents to stdout, messages to stderr, and the options that commands share."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from receipt_cli.errors import ExitCode, ReceiptError

if TYPE_CHECKING:
    from receipt_cli.render.style import Style

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines on stdout.")]
Color = Annotated[
    Literal["auto", "always", "never"],
    typer.Option("--color", help="Colour the output: auto is on a terminal without NO_COLOR."),
]


def fail(error: ReceiptError) -> NoReturn:
    """Print an error and exit with its code."""
    print(error.render(), file=sys.stderr)
    sys.exit(error.exit_code)


def note(lines: Iterable[str]) -> None:
    """Print notes on stderr."""
    for line in lines:
        print(f"receipt: note: {line}", file=sys.stderr)


def style(color: Literal["auto", "always", "never"]) -> Style:
    """Return what stdout can show."""
    from receipt_cli.render.style import Style

    return Style.detect(sys.stdout, color=color)


def write_stdout(data: bytes | str) -> None:
    """Write to stdout as UTF-8 and flush; a reader that has gone away is no error."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data if isinstance(data, bytes) else data.encode(sys.stdout.encoding, "replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(ExitCode.OK) from None
    except OSError as error:
        from receipt_cli.errors import OutputError

        raise OutputError("cannot write to stdout", why=str(error)) from error


def write_json(value: Any) -> None:
    """Write ``value`` as JSON on stdout."""
    write_stdout((json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8"))


def load_document(path: Path) -> Any:
    """Return the JSON document in a file. Raises ``InputError`` for a file that is missing or not JSON."""
    from receipt_cli.errors import InputError

    data = read_bytes(path)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError("is not a JSON document", where=str(path), why=str(error)[:200]) from error


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file. Raises ``InputError``."""
    from receipt_cli.errors import InputError

    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError("cannot read", where=str(path), why=error.strerror or str(error)) from error
