"""The commands, assembled for typer."""

from __future__ import annotations

from typing import Annotated

import typer

from receipt_cli import __version__
from receipt_cli.cli import (
    check,
    ci,
    compare,
    export,
    grammar,
    header,
    history,
    import_,
    migrate,
    parse,
    plot,
    rederive,
    report,
    run,
    schema,
    show,
    store,
    validate,
    verify,
)

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
app.command("run", context_settings={"allow_interspersed_args": False})(run.run)
app.command("show")(show.show)
app.command("check")(check.check)
app.command("ci")(ci.ci)
app.command("compare")(compare.compare)
app.command("history")(history.history)
app.command("validate")(validate.validate)
app.command("migrate")(migrate.migrate)
app.command("rederive")(rederive.rederive)
app.command("verify")(verify.verify)
app.command("header")(header.header)
app.command("import")(import_.import_)
app.command("export")(export.export)
app.command("report")(report.report)
app.command("plot")(plot.plot)
app.add_typer(grammar.app, name="grammar")
app.add_typer(schema.app, name="schema")
app.add_typer(store.app, name="store")


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
