"""``receipt check``: does a run pass? For people, scripts and CI systems."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from receipt_cli.analysis.checks import CORE, healthy, outcome, too_short
from receipt_cli.ci.findings import Places
from receipt_cli.ci.gates import DEFAULT, read_gates
from receipt_cli.ci.page import Targets, deliver, render_page
from receipt_cli.ci.verdict import HEALTH, Verdict, hold_against, rule
from receipt_cli.cli.output import note, note_some, progress, read_policy, style, write_json, write_stdout
from receipt_cli.cli.parameters import AllowTruncated, Argument, FromSettings, JobExit, Json, Lane, Option, Output, Policy, Was
from receipt_cli.cli.runs import InStore
from receipt_cli.comparison.golden import hold, read_golden
from receipt_cli.comparison.load import load_runs, make_run
from receipt_cli.comparison.measured import Measured
from receipt_cli.comparison.streams import read_streams
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.documents.schemas import find_entry, get_json_schema
from receipt_cli.errors import ExitCode, GrammarChoiceError, UsageError
from receipt_cli.history.lane_history import make_lanes
from receipt_cli.io.file_kinds import read_file
from receipt_cli.receipts.production import Product, read_given
from receipt_cli.render.receipt import render_receipt
from receipt_cli.store.documents import read_receipts
from receipt_cli.store.files import Store


def check(
    file: Annotated[str, Argument("FILE", "The run's receipt or log; - for stdin.")],
    exit_code: JobExit = None,
    gates: Annotated[
        Path | None, Option(help="YAML: what the run must prove; without it, health."), FromSettings("gates")
    ] = None,
    baseline: Annotated[
        list[str] | None, Option(metavar="FILE", help="Receipt or log to compare with; several are repeats of one run.")
    ] = None,
    golden: Annotated[
        Path | None, Option(metavar="FILE", help="Golden curves that the run must print again: receipt golden make.")
    ] = None,
    policy: Policy = None,
    proven: Annotated[bool, Option("--proven", help="Require all four core checks to be proven.")] = False,
    allow_unknown: Annotated[
        bool, Option("--allow-unknown", help="Pass a log in which no step line was recognised and nothing failed.")
    ] = False,
    allow_truncated: AllowTruncated = False,
    store: InStore = None,
    lane: Lane = None,
    log: Annotated[
        str | None, Option(metavar="FILE", help="Path of the receipt's log, for line numbers and confidence intervals.")
    ] = None,
    output: Annotated[Path | None, Output("Write the receipt to this file.")] = None,
    markdown: Annotated[
        Path | None, Option("--markdown", help="Markdown page; default: $GITHUB_STEP_SUMMARY if set."), Was("summary")
    ] = None,
    junit: Annotated[Path | None, Option(help="JUnit XML: a test case for each check and gate.")] = None,
    sarif: Annotated[Path | None, Option(help="SARIF 2.1.0: failures and problems with their lines.")] = None,
    dotenv: Annotated[Path | None, Option(help="RECEIPT_NAME=value lines for later jobs.")] = None,
    annotations: Annotated[
        bool | None, Option("--annotations/--no-annotations", help="Print GitHub annotations; default: on GitHub.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Exit 0 if a run passes, 1 if a required check or a gate fails, 4 if no step line was recognised and nothing failed.

    Without --gates a run has to be healthy: none of finite_losses, zero_exit_code, has_steps, no_oom is false, has_steps is
    true, and nothing says that the run failed, was stopped or is cut off. If steps were read and the log does not
    show how the run ended, the outcome is unknown, and the exit code 0; so it is for a run that exited with 0 after one or
    two records of an unknown trainer. On GitHub the job's page, annotations and outputs are written by default; JUnit, SARIF
    and dotenv files serve other systems.

    Example: receipt check run.log --baseline main.receipt.json --junit junit.xml
    """
    wanted = DEFAULT
    if gates is not None:
        known_checks = get_json_schema(find_entry("receipt"))["properties"]["checks"]["properties"]
        wanted = read_gates(read_file(gates), str(gates), checks=list(known_checks), registry=load_registry())
    environ = dict(os.environ)
    document, product = read_given(file, environ=environ, exit_code=exit_code, progress=progress)
    allow_unknown = allow_unknown or too_short(document)
    wanted = replace(
        wanted,
        require=(*wanted.require, "proven") if proven else wanted.require,
        allow_truncated=allow_truncated or wanted.allow_truncated,
        allow_unknown=allow_unknown,
    )
    if product is not None and log is not None:
        raise UsageError("--log goes with a receipt", why=f"{file} is a log itself")
    note(product.notes if product is not None else ())
    steps = product if product is not None or log is None else _read_steps(log, document, environ)
    held = None
    if baseline:
        baselines, notes = load_runs(baseline, "step", progress)
        note(notes)
        held = hold_against(make_run(Path(file).name, document, steps), baselines, read_policy(policy), load_registry())
    if held is None and any(change.lane_last is None for change in wanted.every_change):
        note(["the gates limit changes, which are unknown without --baseline"])
    source = file if product is not None else log
    known = document if lane is None else {**document, "run": {**document["run"], "lane": lane}}
    curves = None
    if golden is not None:
        streams = None if steps is None else read_streams(steps, source)
        curves = hold(read_golden(read_file(golden), str(golden)), known, streams)
    measured = None if steps is None else Measured(steps, source)
    asked = any(change.lane_last is not None for change in wanted.every_change)
    ruled = rule(known, wanted, held, curves, measured, _lane_of(known, store) if asked else None)
    targets = Targets(junit, sarif, markdown, dotenv, output, annotations)
    places = Places.of(document, file, source, environ)
    commands = deliver(document, ruled, places, targets, environ)
    if json_output:
        if commands and sys.stderr is not None:  # GitHub reads them there as it does on stdout
            print(commands, end="", file=sys.stderr)
        failure = document["failure"]
        more = {"checks": document["checks"], "reason": failure and failure["reason"]}
        write_json({"healthy": ruled.healthy, **ruled.document(document), **more})
    elif gates is None and not baseline and golden is None:
        last = ("check", _answer(document, ruled, proven, allow_unknown))
        write_stdout(render_receipt(document, style=style(), log=file, last=last) + commands)
    else:
        write_stdout(render_page(document, ruled, style()) + commands)
    if "healthy" in wanted.require and not allow_unknown and healthy(document["checks"], document["failure"]) is None:
        why = "without a step line the log shows neither that the run is healthy nor that it is not"
        try_ = "receipt parse shows what was not read; --allow-unknown passes such a log"
        raise GrammarChoiceError("cannot judge the run: no step line was recognised", where=file, why=why, try_=try_)
    if not ruled.passed:
        sys.exit(ExitCode.NO)


def _answer(document: Mapping[str, Any], ruled: Verdict, proven: bool, allow_unknown: bool) -> str:
    checks, fine = document["checks"], healthy(document["checks"], document["failure"])
    if fine is None and not allow_unknown:
        return f"cannot judge (exit {ExitCode.GRAMMAR}): no step line was recognised"
    lacking = [name for name in CORE if checks.get(name) is not True] if proven and fine and not ruled.passed else []
    wrong = [words for name, (words, _) in HEALTH.items() if checks.get(name) is False]
    word: str = "finished, too short to judge" if too_short(document) else outcome(document)
    if lacking:
        why = f"not proven: {', '.join(lacking)}"
    else:
        why = f"{word}, {', '.join(wrong)}" if wrong and word not in ("failed", "stopped") else word
    return f"{'yes' if ruled.passed else 'no'} (exit {ExitCode.OK if ruled.passed else ExitCode.NO}): {why}"


def _lane_of(document: Mapping[str, Any], store: Path | None) -> list[Mapping[str, Any]] | None:
    """Return the receipts of the other dated runs of the lane and preset in a store, oldest first; None if there is no lane."""
    lane = document["run"]["lane"]
    if store is None or lane is None:
        return None
    notes: list[str] = []
    receipts = read_receipts(Store(store), notes.append, excluded=False)
    named = ("lane", "preset")
    mine = [
        one
        for one in receipts
        if all(one["run"][key] == document["run"][key] for key in named)
        and one["derivation"]["log"] != document["derivation"]["log"]
    ]
    note_some(notes)
    return [run.document for found in make_lanes(mine)[0] for run in found.runs]


def _read_steps(log: str, document: Mapping[str, Any], environ: dict[str, str]) -> Product | None:
    """Read the log of a receipt for its steps; None if it is missing or gives another receipt."""
    if not Path(log).exists():
        return None
    again, product = read_given(log, environ=environ, progress=progress)
    if again["summary"] == document["summary"]:
        return product
    note([f"{log} does not give this receipt: its steps are not compared"])
    return None
