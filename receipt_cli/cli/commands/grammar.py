"""``receipt grammar``: list, print, lint and test grammars, explain what a log matched, and learn a new one."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from receipt_cli.authoring.explain import explain_log, lint_files, lint_shipped, test_grammar
from receipt_cli.authoring.proposal import proposal_id, propose, reading_of
from receipt_cli.authoring.roles import Question, read_answers
from receipt_cli.authoring.site_search import find_site
from receipt_cli.cli.output import note, print_line, progress, style, write_answer, write_stdout
from receipt_cli.cli.parameters import Argument, Grammar, Json, Markdown, Option, Output
from receipt_cli.detect.generic import GENERIC, load_generic
from receipt_cli.errors import ExitCode, GrammarChoiceError, UsageError
from receipt_cli.grammar.catalog import list_grammars, shipped
from receipt_cli.grammar.coverage import COLUMNS
from receipt_cli.grammar.coverage import markdown as render_markdown
from receipt_cli.grammar.coverage import matrix as find_rows
from receipt_cli.io.atomic import check_new, write_new
from receipt_cli.receipts.production import refusal
from receipt_cli.render.console import render_table
from receipt_cli.render.explain import render_explain, render_first_records, render_learned
from receipt_cli.render.scale import many
from receipt_cli.render.schema import render_findings

SHIPPED = "receipt-cli"
"""Source of the grammars that ship."""


def list_(json_output: Json = False) -> None:
    """List the grammars that ship, and those of the search path, each with its source.

    The search path: folders of RECEIPT_PATH, .receipt here and above, that of the user's configuration, and installed packages.

    Example: receipt grammar list
    """
    titles = {GENERIC: load_generic().title, **{g.ref: g.title for g in shipped()}}
    site = find_site()
    note(site.notes)
    rows = [
        {"grammar": e.ref, "status": e.status, "since": e.since, "sha256": e.sha256, "title": titles[e.ref], "source": SHIPPED}
        for e in list_grammars()
        if e.ref in titles
    ]
    rows += [
        {"grammar": g.ref, "status": "site", "since": "", "sha256": g.sha256, "title": g.title, "source": site.sources[g.ref]}
        for g in site.grammars
    ]
    columns = ("grammar", "status", "title", *(("source",) if site.grammars else ()))
    write_answer(rows, json_output, lambda: render_table(rows, columns, style()))


def matrix(json_output: Json = False, markdown: Markdown = None) -> None:
    """List supported trainers with versions, metrics and test logs.

    Evidence counts the logs that ship with the grammars: of runs made for them, and written in the trainer's format.

    Example: receipt grammar matrix --markdown trainers.md
    """
    rows = find_rows()
    counted = [row.cells | {"metrics": str(len(row.metrics))} for row in rows]
    plain = [asdict(row) for row in rows]
    write_answer(plain, json_output, lambda: render_table(counted, COLUMNS, style()), markdown, lambda: render_markdown(rows))


def show(grammar: Annotated[str, Argument("GRAMMAR", "ID or ID@vN.", completes="grammar")]) -> None:
    """Print the definition of a grammar.

    Example: receipt grammar show nanogpt
    """
    write_stdout(find_site().definition(grammar))


def lint(
    files: Annotated[list[Path] | None, Argument("FILE...", "Grammar files; all that ship by default.")] = None,
    json_output: Json = False,
) -> None:
    """Lint grammars: schema, samples, counter-samples, worst-case matching time.

    Exits 1 when there is any finding.

    Example: receipt grammar lint mine.yaml
    """
    findings, count = lint_files(files) if files else lint_shipped()
    sound = f"{many(count, 'definition')}: every sample is read as stated\n"
    write_answer([finding._asdict() for finding in findings], json_output, lambda: render_findings(findings, style()) or sound)
    if findings:
        sys.exit(ExitCode.NO)


def test(
    grammar: Annotated[str, Argument("GRAMMAR", "A grammar file, ID or ID@vN.", completes="grammar")],
    log: Annotated[str | None, Argument("LOG", "A log to parse with it.")] = None,
    json_output: Json = False,
) -> None:
    """Run a grammar's samples and, on a log, show what each rule reads: how many records, and the first of them.

    Exits 1 when a sample fails, or when the grammar matches no step of the log.

    Example: receipt grammar test mine.yaml run.log
    """
    rows, good = test_grammar(grammar, log)
    columns = ("rule", "event", "samples", "failed", *(("records", "almost read") if log else ()), "tells digits apart")
    shown = [{"almost read" if k == "near misses" else k: str(v) for k, v in row.items()} for row in rows]
    first = render_first_records(rows, style()) if log else ""
    write_answer(rows, json_output, lambda: render_table(shown, columns, style()) + first)
    if not good:
        sys.exit(ExitCode.NO)


def explain(
    log: Annotated[str, Argument("LOG", "The log, or - for stdin.")],
    grammar: Grammar = None,
    json_output: Json = False,
) -> None:
    """Explain which grammar was chosen and why, what each rule matched, and which lines with metrics were not matched.

    Exits 4 when no grammar recognises the log, or two do.

    Example: receipt grammar explain run.log
    """
    with progress(log) as bar:
        explanation, derivation = explain_log(log, grammar, bar)
    write_answer(explanation, json_output, lambda: render_explain(explanation, style()))
    error = refusal(derivation, log)
    if error is not None:
        raise error


def learn(
    log: Annotated[str, Argument("LOG", "The log, or - for stdin.")],
    output: Annotated[Path | None, Output("Write the draft to this new file.", dash="stdout")] = None,
    name: Annotated[
        str | None, Option("--id", metavar="ID", help="Id of the grammar; by default made from the file's name.")
    ] = None,
    answer: Annotated[
        list[str] | None, Option(metavar="NAME=ROLE", help="Settle questions of the draft: step=epoch,cost=time:ms.")
    ] = None,
    line: Annotated[int | None, Option(metavar="N", help="Draft the records of the kind of line N.")] = None,
    ask: Annotated[bool, Option("--ask", help="Ask the questions of the draft on this terminal.")] = False,
) -> None:
    """Draft a grammar for the log of an unknown trainer, learned from its own lines.

    Prints a draft that passes the lint, or writes it to a file that does not exist yet; what it parses from the log, and what
    it cannot settle, goes to stderr. NAME is printed beside a number (#2 is the second on its line), ROLE is step, epoch,
    epoch_step, loss, time, lr, any metric, other or skip, with :UNIT if the log prints none. Exits 4 if the draft reads no
    step of the log, 6 when the file exists.

    Example: receipt grammar learn run.log -o mine.yaml
    """
    if ask and (log == "-" or not sys.stdin.isatty()):
        raise UsageError("--ask needs a terminal", why="stdin is not a terminal", try_="--answer NAME=ROLE")
    if output is not None:
        check_new(output)
    name, answers = proposal_id(name, output, log), read_answers(answer or ())
    with progress(log) as bar:
        proposal = propose(log, name, bar, answers=answers, line=line)
    if ask and proposal.questions:
        answers += read_answers([text for question in proposal.questions if question.answers and (text := _asked(question))])
        proposal = propose(log, name, answers=answers, line=line)
    if output is not None:
        write_new(output, proposal.text)
    else:
        write_stdout(proposal.text)
    print_line(render_learned(reading_of(proposal), style(sys.stderr)).rstrip())
    if not proposal.steps:
        place = shlex.quote(str(output)) if output is not None else "FILE"
        again = f"receipt grammar learn {'LOG' if log == '-' else shlex.quote(log)} --answer NAME=ROLE"
        why = "the questions at its top have to be answered first"
        raise GrammarChoiceError("the draft reads no step of the log", where=log, why=why, try_=f"{again}; or edit {place}")


def _asked(question: Question) -> str:
    """Ask the user a question about a drafted grammar; an empty answer keeps the draft."""
    print_line(question.text)
    numbered = [f"{number}) {answer}" for number, answer in enumerate(question.answers, start=1)]
    print_line(f"  {'  '.join(numbered)}  NAME=ROLE, or nothing to leave it")
    text = sys.stdin.readline().strip()
    chosen = int(text) if text.isdecimal() else 0
    return question.answers[chosen - 1] if 0 < chosen <= len(question.answers) else text
