"""``receipt schema``: the schemas of documents and definitions."""

from __future__ import annotations

from typing import Annotated

from receipt_cli.cli.output import style, write_json, write_stdout
from receipt_cli.cli.parameters import Argument, Color, Json, Option
from receipt_cli.documents.schema_fields import compare_schemas, is_compatible, list_fields
from receipt_cli.documents.schemas import find_entry, get_json_schema, list_schemas, read_entry
from receipt_cli.render.console import render_table
from receipt_cli.render.schema import render_changes, render_fields


def list_(json_output: Json = False, color: Color = "auto") -> None:
    """List the schemas that ship.

    Example: receipt schema list
    """
    columns = ("kind", "version", "status", "since", "sha256")
    rows = [{name: str(getattr(entry, name)) for name in columns} for entry in list_schemas()]
    if json_output:
        write_json(rows)
    else:
        write_stdout(render_table([{**r, "sha256": r["sha256"][:12]} for r in rows], columns, style(color)))


def show(
    kind: Annotated[str, Argument("KIND", "Kind, such as receipt or gpu_profile; or kind/1.0.")],
    version: Annotated[str | None, Option(metavar="X.Y", help="Version; the newest by default.")] = None,
    fields: Annotated[bool, Option("--fields", help="List the fields instead, with type, unit and meaning.")] = False,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Print a schema, the field reference; --fields prints a readable list.

    Example: receipt schema show receipt
    """
    entry = find_entry(kind, version)
    if not fields:
        write_stdout(read_entry(entry))
        return
    found = list_fields(get_json_schema(entry))
    if json_output:
        write_json([field.document() for field in found])
    else:
        write_stdout(render_fields(found, style(color)))


def diff(
    old: Annotated[str, Argument("A", "A schema, such as receipt/1.0.")],
    new: Annotated[str, Argument("B", "Another version of it, such as receipt/1.1.")],
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """List what changed from A to B, and whether a reader of A can read documents of B.

    Example: receipt schema diff receipt/1.0 receipt/1.1
    """
    entries = [find_entry(name) for name in (old, new)]
    changes = compare_schemas(*(get_json_schema(entry) for entry in entries))
    names = [f"{entry.kind}/{entry.version}" for entry in entries]
    if json_output:
        told = [change.document() for change in changes]
        write_json({"old": names[0], "new": names[1], "compatible": is_compatible(changes), "changes": told})
    else:
        write_stdout(render_changes(names[0], names[1], changes, style(color)))
