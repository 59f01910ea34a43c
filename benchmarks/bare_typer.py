"""A Typer application with two commands of one option each, and nothing else: the baseline for start-up times."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def hello(name: Annotated[str, typer.Option(help="Whom to greet.")] = "world") -> None:
    """Print a greeting."""
    print(f"hello, {name}")


@app.command()
def count(to: Annotated[int, typer.Option(help="The last number.")] = 3) -> None:
    """Print the numbers from 1 on."""
    print(*range(1, to + 1))


if __name__ == "__main__":
    app()
