"""Options that several commands share, as typer declares them."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines on stdout.")]
Color = Annotated[
    Literal["auto", "always", "never"],
    typer.Option("--color", help="Colour the output: auto is on a terminal without NO_COLOR."),
]
GrammarOption = Annotated[
    str | None,
    typer.Option("--grammar", "-g", metavar="ID@vN", help="Read the log with this grammar (or YAML file) only."),
]
