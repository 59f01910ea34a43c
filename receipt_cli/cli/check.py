"""``receipt check``: is this run healthy? For scripts and CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from receipt_cli.cli.output import Json, read_bytes, write_json, write_stdout
from receipt_cli.errors import ExitCode, InputError


def check(
    file: Annotated[str, typer.Argument(help="A receipt, or a log (- for stdin).", metavar="FILE")],
    exit_code: Annotated[int | None, typer.Option(help="The exit code of the training command (for a log).")] = None,
    proven: Annotated[bool, typer.Option("--proven", help="Demand that all four core checks are proven true.")] = False,
    json_output: Json = False,
) -> None:
    """Exit 0 when the run is healthy, 1 when it is not.

    Healthy: none of finite_losses, zero_exit_code, has_steps, no_oom is false, and has_steps is true.
    """
    from receipt_cli import checks as rules

    document = _document(file, exit_code)
    checks: dict[str, Any] = document["checks"]
    failure = document.get("failure") or {}
    good = rules.proven(checks) if proven else rules.healthy(checks)
    if json_output:
        write_json(
            {"healthy": rules.healthy(checks), "proven": rules.proven(checks), "checks": checks, "reason": failure.get("reason")}
        )
    else:
        words = {True: "true", False: "false", None: "unknown"}
        told = " ".join(f"{name}={words[checks.get(name)]}" for name in rules.CORE)
        reason = f" reason={failure['reason']}" if failure else ""
        verdict = ("proven" if proven else "healthy") if good else ("not proven" if proven else "not healthy")
        write_stdout(f"{verdict}: {told}{reason}\n")
    if not good:
        raise typer.Exit(ExitCode.NO)


def _document(file: str, exit_code: int | None) -> dict[str, Any]:
    """Return the valid receipt that ``file`` is, or that its log gives."""
    from receipt_cli.produce import Request, produce
    from receipt_cli.validate import has_errors, validate_bytes

    if file != "-" and Path(file).is_file() and _is_receipt(Path(file)):
        data = read_bytes(Path(file))
        if has_errors(validate_bytes(data, file)):
            raise InputError("is not a valid receipt", where=file, try_=f"receipt validate {file}")
        import json

        found: dict[str, Any] = json.loads(data)
        return found
    return produce(Request(path=file, exit_code=exit_code, environ=dict(os.environ))).document


def _is_receipt(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b'"schema_version"' in file.read(200)
    except OSError as error:
        raise InputError("cannot read", where=str(path), why=str(error)) from error
