"""The entry point: assembles the commands and maps every error to its exit code."""

from __future__ import annotations

import gc
import os
import sys
from typing import Annotated, NoReturn

import typer

from receipt_cli import __version__
from receipt_cli.cli import check, grammar, header, parse, schema, show, validate
from receipt_cli.cli.output import abandon_stdout, fail, print_line
from receipt_cli.errors import ExitCode, OutputError, ReceiptError

app = typer.Typer(
    name="receipt",
    help="Turn the log of a training run into a small, typed record that still opens and compares years later.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("parse")(parse.parse)
app.command("show")(show.show)
app.command("check")(check.check)
app.command("validate")(validate.validate)
app.command("header")(header.header)
app.add_typer(grammar.app, name="grammar")
app.add_typer(schema.app, name="schema")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"receipt {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Turn the log of a training run into a small, typed record that still opens and compares years later."""


def main() -> None:
    """Run the command line; never returns."""
    gc.disable()  # a short life: collecting the cycles of imports is a tenth of a cold start
    try:
        app(prog_name="receipt")
    except ReceiptError as error:
        fail(error)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except OSError as error:
        if error.filename is not None:
            _bug(error)
        abandon_stdout()
        fail(OutputError("cannot write", why=error.strerror or str(error)))  # a stream: files have names
    except Exception as error:  # the only place: a bug of ours must not look like an answer
        _bug(error)


def _bug(error: Exception) -> NoReturn:
    print_line(f"receipt: error: a bug of ours: {type(error).__name__}: {error}")
    if os.environ.get("RECEIPT_DEBUG"):
        import traceback

        print_line("".join(traceback.format_exception(error)))
    print_line("  try: the same command with RECEIPT_DEBUG=1, and report it with the output")
    sys.exit(ExitCode.BUG)
