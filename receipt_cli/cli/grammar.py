"""``receipt grammar``: list, show, lint, test, explain what a log matched, and learn a new one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.options import Color, GrammarOption, Json
from receipt_cli.cli.output import print_line, progress, style, write_json, write_stdout
from receipt_cli.errors import ExitCode

app = typer.Typer(help="The grammars that read logs.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_(json_output: Json = False, color: Color = "auto") -> None:
    """List the grammars that ship."""
    from receipt_cli.detect.generic import GENERIC, load_generic
    from receipt_cli.grammar.catalog import list_grammars, shipped
    from receipt_cli.render.terminal.table import render_table

    titles = {GENERIC: load_generic().title, **{g.ref: g.title for g in shipped()}}
    rows = [
        {"grammar": e.ref, "status": e.status, "since": e.since, "sha256": e.sha256, "title": titles.get(e.ref, "")}
        for e in list_grammars()
    ]
    if json_output:
        write_json(rows)
    else:
        write_stdout(render_table(rows, ("grammar", "status", "title"), style(color)))


@app.command("matrix")
def matrix_(
    json_output: Json = False,
    markdown_output: Annotated[bool, typer.Option("--markdown", help="Print a table in Markdown.")] = False,
    color: Color = "auto",
) -> None:
    """Show what is known: trainers, versions and eras, metrics read, and the logs that stand for it.

    Evidence counts the logs kept with the grammars: of runs made for them, and written in the trainer's format.
    """
    from dataclasses import asdict

    from receipt_cli.grammar.coverage import COLUMNS, markdown, matrix
    from receipt_cli.render.terminal.table import render_table

    rows = matrix()
    if json_output:
        write_json([asdict(row) for row in rows])
    elif markdown_output:
        write_stdout(markdown(rows).encode("utf-8"))
    else:
        counted = [row.cells | {"metrics": str(len(row.metrics))} for row in rows]
        write_stdout(render_table(counted, COLUMNS, style(color)))


@app.command("show")
def show(
    grammar: Annotated[str, typer.Argument(help="ID or ID@vN.", metavar="GRAMMAR")],
) -> None:
    """Print the definition of a grammar."""
    from receipt_cli.grammar.catalog import definition

    write_stdout(definition(grammar))


@app.command("lint")
def lint(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Grammar files; all that ship by default.", metavar="[FILE]...")
    ] = None,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Let grammars prove themselves: shape, samples, counter-samples, worst-case lines.

    Exits 1 when there is any finding.
    """
    from receipt_cli.authoring.check import lint_files, lint_shipped
    from receipt_cli.render.findings import render_findings

    findings, count = lint_files(files) if files else lint_shipped()
    if json_output:
        write_json([finding._asdict() for finding in findings])
    else:
        sound = "1 definition proves itself\n" if count == 1 else f"{count} definitions prove themselves\n"
        write_stdout(render_findings(findings, style(color)) if findings else sound)
    if findings:
        raise typer.Exit(ExitCode.NO)


@app.command("test")
def test(
    grammar: Annotated[str, typer.Argument(help="A grammar file, ID or ID@vN.", metavar="GRAMMAR")],
    log: Annotated[str | None, typer.Argument(help="A log to try it on.", metavar="[LOG]")] = None,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Run a grammar's samples and, on a log, show what each rule reads.

    Exits 1 when a sample fails, or when the log has no step that the grammar reads.
    """
    from receipt_cli.authoring.check import test_grammar
    from receipt_cli.render.terminal.table import render_table

    rows, good = test_grammar(grammar, log)
    if json_output:
        write_json(rows)
    else:
        columns = ("rule", "event", "samples", "failed", *(("records", "near misses") if log else ()), "tells digits apart")
        write_stdout(render_table([{k: str(v) for k, v in row.items()} for row in rows], columns, style(color)))
    if not good:
        raise typer.Exit(ExitCode.NO)


@app.command("explain")
def explain(
    log: Annotated[str, typer.Argument(help="The log, or - for stdin.", metavar="LOG")],
    grammar: GrammarOption = None,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Say which grammar won and why, what each rule matched, and which metric-looking lines nothing matched.

    Exits 4 when no grammar recognises the log, or two do.
    """
    from receipt_cli.authoring.explain import explain_log
    from receipt_cli.receipts.production import refusal
    from receipt_cli.render.explain import render_explain

    with progress(log) as bar:
        explanation, derivation = explain_log(log, grammar, bar)
    if json_output:
        write_json(explanation)
    else:
        write_stdout(render_explain(explanation, style(color)))
    error = refusal(derivation, log)
    if error is not None:
        raise error


@app.command("learn")
def learn(
    log: Annotated[str, typer.Argument(help="The log, or - for stdin.", metavar="LOG")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the draft to this new file.")] = None,
    name: Annotated[str | None, typer.Option("--id", help="Id of the grammar; by default made of the file's name.")] = None,
    color: Color = "auto",
) -> None:
    """Propose a grammar for the log of an unknown trainer, learned from its own lines.

    Prints a draft that proves itself, or writes it to a file that does not exist yet; what it reads of the log goes to
    stderr. Exits 4 when the log shows no training that it can be sure of, 6 when the file exists.
    """
    from receipt_cli.authoring.proposal import proposal_id, propose, reading_of
    from receipt_cli.io.atomic import check_new, write_new
    from receipt_cli.render.explain import render_learned

    if output is not None:
        check_new(output)
    with progress(log) as bar:
        proposal = propose(log, proposal_id(name, output, log), bar)
    if output is not None:
        write_new(output, proposal.text)
    else:
        write_stdout(proposal.text)
    print_line(render_learned(reading_of(proposal), style(color, sys.stderr)).rstrip())
