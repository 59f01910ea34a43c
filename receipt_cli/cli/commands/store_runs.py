"""``receipt store show|diff|tag|note|exclude|lane|ask``: single runs of a store, and questions about all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from receipt_cli.cli.commands.show import show as show_document
from receipt_cli.cli.commands.store import answer, open_database, read_rows
from receipt_cli.cli.output import note as tell_note
from receipt_cli.cli.output import note_some, style, write_answer, write_stdout
from receipt_cli.cli.parameters import Argument, Json, Option, StoreFolder, Was
from receipt_cli.comparison.comparable import Policy
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.errors import InputError, UsageError
from receipt_cli.history.lane_history import BY, history, make_lanes
from receipt_cli.render.history import render_groups
from receipt_cli.render.store import render_answer, render_failures, render_meanings
from receipt_cli.store.answers import FAILURES, QUESTIONS, answer_question, fields_of, fill
from receipt_cli.store.documents import find_document, read_receipts
from receipt_cli.store.files import Store
from receipt_cli.store.listing import failure_groups, list_runs
from receipt_cli.store.places import mark
from receipt_cli.store.query import names, records
from receipt_cli.store.resolve import NamedRun, find_run

RunOf = Annotated[str, Argument("RUN", "First digits of its digest, its name, or a path of its log or receipt.")]
_SHOWN = 60


def show(store: StoreFolder, run: RunOf, json_output: Json = False) -> None:
    """Show a run of a store: its receipt, and the paths of its log; or another document, by digits of its digest or its name.

    `receipt store ls --kind KIND` lists the documents; evaluation:NAME names one of a kind.

    Example: receipt store show runs/ 3fa8c1
    """
    try:
        found = find_run(store, run)
    except InputError as error:
        document = find_document(store, run)
        if document is None:
            raise error
        show_document(str(document.path), json_output=json_output)
        return
    if found.paths:
        tell_note([f"{found.name or found.receipt.run_id[:12]}: {', '.join(found.paths[:5])}"])
    show_document(str(found.receipt.path), json_output=json_output)


def diff(
    store: StoreFolder,
    runs: Annotated[list[str], Argument("RUN...", "Two runs or more: digits of their digests, names or paths.")],
    json_output: Json = False,
) -> None:
    """List what varies between runs of a store: settings of the header, and figures.

    The quality of differences is a matter of `receipt compare`.

    Example: receipt store diff runs/ 3fa8c1 run-7
    """
    found = [find_run(store, run) for run in runs]
    if len(found) < 2:
        raise UsageError("a difference needs two runs", try_="receipt store diff STORE A B")
    ids = [run.receipt.run_id for run in found]
    database = open_database(store)
    own = [run.name or run.receipt.run_id[:12] for run in found]
    # repeated ones have their place among the arguments
    called = [n if own.count(n) == 1 and n != "field" else f"{n} ({place})" for place, n in enumerate(own, 1)]
    values: dict[str, dict[str, Any]] = {}
    marks = ", ".join("?" for _ in ids)
    for run_id, field, value in database.run(f"SELECT run_id, field, value FROM settings WHERE run_id IN ({marks})", ids):
        values.setdefault(field, {})[run_id] = value
    figures = f"SELECT run_id, metric, round_even(last, 12) FROM results WHERE source <> 'derived' AND run_id IN ({marks})"
    for run_id, metric, value in database.run(figures, ids):
        values.setdefault(metric, {})[run_id] = value
    columns = ["field", *called]
    rows = [
        dict(zip(columns, [field, *(by_run.get(run_id) for run_id in ids)], strict=True))
        for field, by_run in sorted(values.items())
        if len({by_run.get(run_id) for run_id in ids}) > 1
    ]
    document = {"run_ids": ids, "names": [run.name for run in found], "differences": rows}
    short = [{k: f"{v[:_SHOWN]}…" if isinstance(v, str) and len(v) > _SHOWN else v for k, v in row.items()} for row in rows]
    none = "the runs differ in no setting and no figure\n"
    write_answer(document, json_output, lambda: render_answer(columns, short, style()) or none)


def tag(
    store: StoreFolder,
    run: RunOf,
    tags: Annotated[list[str] | None, Argument("TAG...", "Tags to add.")] = None,
    remove: Annotated[list[str] | None, Option(metavar="TAG", help="A tag to remove; may be given several times.")] = None,
) -> None:
    """Add tags to a run of a store, or remove them; without any, print those that it has.

    Example: receipt store tag runs/ run-7 baseline
    """
    marks = _mark(store, run, add=tuple(tags or ()), remove=tuple(remove or ()))
    write_stdout("".join(f"{each}\n" for each in marks.tags))


def note(
    store: StoreFolder,
    run: RunOf,
    text: Annotated[str | None, Argument("TEXT", "The note; empty to remove the old one.")] = None,
) -> None:
    """Write a note on a run of a store, in place of the old one; without TEXT, print it.

    Example: receipt store note runs/ run-7 "the data was wrong"
    """
    marks = _mark(store, run, note=text)
    write_stdout(f"{marks.note}\n" if marks.note else "")


def exclude(
    store: StoreFolder,
    run: RunOf,
    undo: Annotated[bool, Option("--undo", help="Include the run again.")] = False,
) -> None:
    """Exclude a run from history and statistics; it stays in the store.

    Example: receipt store exclude runs/ run-7
    """
    marks = _mark(store, run, excluded=not undo)
    write_stdout("excluded\n" if marks.excluded else "included\n")


def lane(
    store: StoreFolder,
    name: Annotated[str | None, Argument("NAME", "Name that the group of --group gets.")] = None,
    group: Annotated[int | None, Option(least=1, metavar="N", help="Give the runs of this group the lane NAME.")] = None,
    by: Annotated[
        list[str] | None,
        Option(metavar="FIELD", help="Group by trainer, model, hardware, ranks or a JSON pointer; may be given several times."),
    ] = None,
) -> None:
    """List the groups of runs without a lane, or give one a name, by which `receipt history` knows its runs from then on.

    Runs of a group have the same trainer, model, hardware and ranks, all four known. Later runs of the group get the name if
    the command is given again. `receipt history --json` lists the same groups for programs.

    Example: receipt store lane runs/ --group 1 qwen3-14b-b200
    """
    fields = tuple(by or BY)
    if wrong := [field for field in fields if field not in BY and not field.startswith("/")]:
        raise UsageError(
            f"{wrong[0]!r} is no field", why=f"fields are {', '.join(BY)} and JSON pointers such as /header/git/branch"
        )
    if (name is None) != (group is None):
        raise UsageError("a name needs a group, and a group a name", try_=f"receipt store lane {store} --group 1 NAME")
    notes: list[str] = []
    receipts = list(read_receipts(Store(store), notes.append, excluded=False))
    note_some(notes)
    if name is None or group is None:
        found = history(receipts, Policy(()), load_registry(), by=fields)
        write_stdout(render_groups(found, style(), str(store)))
        return
    groups = [each for each in make_lanes(receipts, fields)[0] if each.lane is None]
    if group > len(groups):
        raise UsageError(f"there is no group {group}", why=f"the store has {len(groups)}", try_=f"receipt store lane {store}")
    chosen = [*groups[group - 1].runs, *groups[group - 1].undated]
    for run in chosen:
        mark(store, Store(store).scratch, run.run_id, lane=name)
    write_stdout(f"{len(chosen)} runs are in the lane {name}\n")


def ask(
    store: StoreFolder,
    question: Annotated[str | None, Argument("QUESTION", "A recipe; without one, list them.")] = None,
    metric: Annotated[str, Option(metavar="NAME", help="Metric of the recipe best.")] = "val_loss",
    limit: Annotated[int, Option("--limit", least=0, help="Most rows, if a recipe has a limit; 0 for all."), Was("last")] = 20,
    where: Annotated[str | None, Option(metavar="SQL", help="Only runs for which this holds, such as \"lane = 'a100'\".")] = None,
    sql: Annotated[bool, Option("--sql", help="Print the SQL of the recipe.")] = False,
    full: Annotated[bool, Option("--full", help="With failures: print their messages, uncut.")] = False,
    json_output: Json = False,
) -> None:
    """Answer a frequent question: what fails, best runs, slowest lanes, cost of failures, hosts that fail, what varies.

    --sql prints the question as a query, to start from with `receipt store query`; that and --where need DuckDB.

    Example: receipt store ask runs/ failures
    """
    if question is None:
        listed = [{"question": name, "answers": meaning} for name, meaning in QUESTIONS.items()]
        return write_answer(listed, json_output, lambda: render_meanings(QUESTIONS, style()))
    if question == FAILURES:
        if sql:
            raise UsageError("the question failures has no SQL", try_=f"receipt store query {store} 'FROM failures'")
        rows = _where(store, list_runs(store), where)
        groups = failure_groups(rows)
        shown = groups[:limit] if limit else groups
        return write_answer(shown, json_output, lambda: render_failures(rows, groups, style(), limit, full=full))
    asked = fill(question, metric, limit, where)
    if sql:
        return write_stdout(f"{asked.sql}\n")
    found = answer_question(_where(store, read_rows(store, fields_of(asked)), where), asked)
    told = records(found)
    write_answer(told, json_output, lambda: render_answer(names(found), told, style()) or "no run has an answer\n")


def _where(store: Path, rows: list[dict[str, Any]], condition: str | None) -> list[dict[str, Any]]:
    """Return the rows of the runs for which an SQL condition holds, which DuckDB judges."""
    if condition is None:
        return rows
    wanted = {row["run_id"] for row in records(answer(store, f"SELECT run_id FROM runs WHERE {condition}\n"))}
    return [row for row in rows if row["run_id"] in wanted]


def _mark(store: Path, run: str, **changes: Any) -> Any:
    found: NamedRun = find_run(store, run)
    return mark(store, Store(store).scratch, found.receipt.run_id, **changes)
