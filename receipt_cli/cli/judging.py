"""What ``receipt ci`` does, once its command line is read; loads no typer."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipt_cli.cli.output import ColorChoice, note, progress, read_bytes, style, write_json, write_stdout
from receipt_cli.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from receipt_cli.ci.baseline import Baseline
    from receipt_cli.ci.gates import Gates
    from receipt_cli.comparison.contrasts import Run
    from receipt_cli.receipts.production import Product


def run_ci(
    file: str,
    *,
    baseline: Sequence[str] | None = None,
    gates: Path | None = None,
    allow_truncated: bool = False,
    policy: Path | None = None,
    exit_code: int | None = None,
    log: str | None = None,
    output: Path | None = None,
    summary: Path | None = None,
    junit: Path | None = None,
    sarif: Path | None = None,
    dotenv: Path | None = None,
    annotations: bool | None = None,
    json_output: bool = False,
    color: ColorChoice = "auto",
) -> None:
    """Judge the run of ``file`` and report it; the options are those of ``cli.ci``. Raises ``ReceiptError``."""
    from receipt_cli.ci.delivery import Targets, deliver
    from receipt_cli.ci.log_locations import Places
    from receipt_cli.ci.page import render_page
    from receipt_cli.ci.verdict import rule
    from receipt_cli.comparison.load import make_run
    from receipt_cli.receipts.open import read_given

    wanted = _read_gates(gates)
    wanted = replace(wanted, allow_truncated=True) if allow_truncated else wanted
    environ = dict(os.environ)
    document, product = read_given(file, environ=environ, exit_code=exit_code, progress=progress)
    if product is not None and log is not None:
        raise UsageError("--log goes with a receipt", why=f"{file} is a log itself")
    note(product.notes if product is not None else ())
    if baseline:
        steps = product if product is not None or log is None else _read_steps(log, document, environ)
        held = _hold(make_run(Path(file).name, document, steps), baseline, policy)
    else:
        held = None
    if held is None and wanted.changes:
        note(["the gates limit changes, and no --baseline was given: they are unknown"])
    verdict = rule(document, wanted, held)
    targets = Targets(junit, sarif, summary, dotenv, output, annotations)
    places = Places.of(document, file, file if product is not None else log, environ)
    commands = deliver(document, verdict, places, targets, environ)
    if json_output:
        _tell(commands)
        write_json(verdict.document(document))
    else:
        write_stdout(render_page(document, verdict, style(color)) + commands)
    if not verdict.passed:
        sys.exit(ExitCode.NO)


def _read_gates(path: Path | None) -> Gates:
    from receipt_cli.ci.gates import DEFAULT

    if path is None:
        return DEFAULT
    from receipt_cli.ci.gates_file import read_gates
    from receipt_cli.definitions.metrics import load_registry
    from receipt_cli.documents.schemas import find_entry, get_json_schema

    checks: dict[str, Any] = get_json_schema(find_entry("receipt"))["properties"]["checks"]["properties"]
    return read_gates(read_bytes(path), str(path), checks=list(checks), registry=load_registry())


def _read_steps(log: str, document: Mapping[str, Any], environ: dict[str, str]) -> Product | None:
    """Return what the log of a receipt gives beside it; None where it is not at hand, or gives another receipt."""
    from receipt_cli.receipts.open import read_given

    if not Path(log).exists():
        return None
    again, product = read_given(log, environ=environ, progress=progress)
    if again["summary"] == document["summary"]:
        return product
    note([f"{log} does not give this receipt: its steps play no part in the comparison"])
    return None


def _hold(run: Run, files: Sequence[str], policy: Path | None) -> Baseline:
    from receipt_cli.ci.baseline import hold_against
    from receipt_cli.comparison.load import load_runs
    from receipt_cli.comparison.policy import DEFAULT, read_policy
    from receipt_cli.definitions.metrics import load_registry

    chosen = DEFAULT if policy is None else read_policy(read_bytes(policy), str(policy))
    baselines, notes = load_runs(files, "step", progress)
    note(notes)
    return hold_against(run, baselines, chosen, load_registry())


def _tell(commands: str) -> None:
    """Print workflow commands on stderr, which GitHub reads as it does stdout."""
    if commands and sys.stderr is not None:
        print(commands, end="", file=sys.stderr)
