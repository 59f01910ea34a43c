"""``receipt schema``: the contracts that documents are checked against."""

from __future__ import annotations

from typing import Annotated

import typer

from receipt_cli.cli.options import Color, Json
from receipt_cli.cli.output import style, write_json, write_stdout

app = typer.Typer(help="The schemas of documents and definitions.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_(json_output: Json = False, color: Color = "auto") -> None:
    """List the schemas that ship."""
    from receipt_cli.render.table import render_table
    from receipt_cli.schemas import list_schemas

    columns = ("kind", "version", "status", "since", "sha256")
    rows = [{name: str(getattr(entry, name)) for name in columns} for entry in list_schemas()]
    if json_output:
        write_json(rows)
    else:
        write_stdout(render_table([{**r, "sha256": r["sha256"][:12]} for r in rows], columns, style(color)))


@app.command("show")
def show(
    kind: Annotated[str, typer.Argument(help="receipt, header, grammar or markers; or kind/1.0.", metavar="KIND")],
    version: Annotated[str | None, typer.Option(help="Version; the newest by default.")] = None,
) -> None:
    """Print a schema; its descriptions are the field reference."""
    from receipt_cli.schemas import get_schema, list_schemas

    name, _, stated = kind.partition("/")
    versions = [entry.version for entry in list_schemas() if entry.kind == name]
    data, _ = get_schema(name, version or stated or (versions[-1] if versions else ""))
    write_stdout(data)
