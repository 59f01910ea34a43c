"""``receipt completion``: what a shell needs to complete commands, options and their values."""

from __future__ import annotations

from typing import Annotated, Literal

from receipt_cli.cli.parameters import Argument

Shell = Literal["bash", "zsh", "fish", "powershell"]


def completion(shell: Annotated[Shell, Argument("SHELL", "One of bash, zsh, fish and powershell.")]) -> None:
    """Print the script by which a shell completes commands, options, grammars and metrics.

    The shell runs it at its start: `eval "$(receipt completion bash)"` in ~/.bashrc, the same with zsh in ~/.zshrc after
    compinit, `receipt completion fish > ~/.config/fish/completions/receipt.fish`, or
    `receipt completion powershell >> $PROFILE`.

    Example: receipt completion bash >> ~/.bashrc
    """
    from receipt_cli.cli.typer_view import complete

    complete(f"source_{shell}")
