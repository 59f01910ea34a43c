"""``receipt ci``: the verdict on a run, where a CI system wants it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from receipt_cli.ci.baseline import Baseline, hold_against
from receipt_cli.ci.delivery import Targets, deliver
from receipt_cli.ci.gates import DEFAULT, Gates
from receipt_cli.ci.gates_file import read_gates
from receipt_cli.ci.log_locations import Places
from receipt_cli.ci.page import render_page
from receipt_cli.ci.verdict import rule
from receipt_cli.cli.output import note, progress, read_policy, style, write_json, write_stdout
from receipt_cli.cli.parameters import AllowTruncated, Argument, Color, FromSettings, Json, Option, Policy
from receipt_cli.comparison.contrasts import Run
from receipt_cli.comparison.load import load_runs, make_run
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.documents.schemas import find_entry, get_json_schema
from receipt_cli.errors import ExitCode, UsageError
from receipt_cli.io.file_kinds import read_file
from receipt_cli.receipts.open import read_given
from receipt_cli.receipts.production import Product


def ci(
    file: Annotated[str, Argument("FILE", "The run's receipt or log; - for stdin.")],
    baseline: Annotated[
        list[str] | None, Option(metavar="FILE", help="Receipt or log to compare with; several are repeats of one run.")
    ] = None,
    gates: Annotated[
        Path | None, Option(help="YAML: what the run must prove; without it, health."), FromSettings("gates")
    ] = None,
    policy: Policy = None,
    allow_truncated: AllowTruncated = False,
    exit_code: Annotated[int | None, Option(help="The exit code of the training command (for a log).")] = None,
    log: Annotated[
        str | None, Option(metavar="FILE", help="Path of the receipt's log, for line numbers and confidence intervals.")
    ] = None,
    output: Annotated[Path | None, Option("-o", "--output", help="Write the receipt to this file.")] = None,
    summary: Annotated[Path | None, Option(help="Markdown page; default: $GITHUB_STEP_SUMMARY if set.")] = None,
    junit: Annotated[Path | None, Option(help="JUnit XML: a test case for each check and gate.")] = None,
    sarif: Annotated[Path | None, Option(help="SARIF 2.1.0: failures and problems with their lines.")] = None,
    dotenv: Annotated[Path | None, Option(help="RECEIPT_NAME=value lines for later jobs.")] = None,
    annotations: Annotated[
        bool | None, Option("--annotations/--no-annotations", help="Print GitHub annotations; default: on GitHub.")
    ] = None,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Judge a run by its checks and by gates of your own, and report it to the CI system.

    Exits 0 when it passes, 1 when a required check or a gate fails. On GitHub the job's page, annotations and outputs are
    written by default; JUnit, SARIF and dotenv files serve other systems.

    Example: receipt ci run.log --baseline main.receipt.json --junit junit.xml
    """
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
    if path is None:
        return DEFAULT

    checks: dict[str, Any] = get_json_schema(find_entry("receipt"))["properties"]["checks"]["properties"]
    return read_gates(read_file(path), str(path), checks=list(checks), registry=load_registry())


def _read_steps(log: str, document: Mapping[str, Any], environ: dict[str, str]) -> Product | None:
    """Return what the log of a receipt gives beside it; None where it is not at hand, or gives another receipt."""
    if not Path(log).exists():
        return None
    again, product = read_given(log, environ=environ, progress=progress)
    if again["summary"] == document["summary"]:
        return product
    note([f"{log} does not give this receipt: its steps play no part in the comparison"])
    return None


def _hold(run: Run, files: Sequence[str], policy: Path | None) -> Baseline:
    baselines, notes = load_runs(files, "step", progress)
    note(notes)
    return hold_against(run, baselines, read_policy(policy), load_registry())


def _tell(commands: str) -> None:
    """Print workflow commands on stderr, which GitHub reads as it does stdout."""
    if commands and sys.stderr is not None:
        print(commands, end="", file=sys.stderr)
