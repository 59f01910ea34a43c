"""Define arguments and options for the signatures of commands, and those that several commands share.

A shell completes them: the values that exist, each with a word of help.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from receipt_cli.cli.commands import summaries
from receipt_cli.cli.settings import find_settings
from receipt_cli.errors import ReceiptError, UsageError


def _grammars() -> Iterable[tuple[str, str]]:
    from receipt_cli.authoring.site_search import find_site
    from receipt_cli.grammar.catalog import shipped

    found = {grammar.id: grammar.title for grammar in (*shipped(), *find_site().grammars)}
    return sorted(found.items())


def _metrics() -> Iterable[tuple[str, str]]:
    from receipt_cli.definitions.metrics import load_registry

    return [(metric.name, metric.description) for metric in load_registry().metrics]


def _stored() -> list[dict[str, Any]]:
    """List the runs of the store that the settings name; none without a store."""
    from receipt_cli.store.listing import list_runs

    try:
        store = find_settings(os.environ).values.get("store")
        return list_runs(Path(store.value), None) if store is not None else []
    except ReceiptError:  # a key press is no time for errors
        return []


def _runs() -> Iterable[tuple[str, str]]:
    for row in _stored():
        yield from ((text, row["log_path"] or "run") for text in (row["name"], row["run_id"][:12]) if text)


VALUES: dict[str, Callable[[], Iterable[tuple[str, str]]]] = {
    "grammar": _grammars,
    "metric": _metrics,
    "lane": lambda: [(lane, "lane") for lane in sorted({row["lane"] for row in _stored() if row["lane"]})],
    "run": _runs,
    "command": lambda: summaries().items(),
}
"""Kind of an argument or option → function that lists its values."""


def completer(kind: str) -> Callable[[str], list[tuple[str, str]]] | None:
    """Return a function that lists the values of a kind with a given beginning; None without a kind."""
    if not kind:
        return None

    def complete(incomplete: str) -> list[tuple[str, str]]:
        if kind == "run" and not incomplete:
            return []  # without values the shell completes files, and a run may be a file
        return [(value, about) for value, about in VALUES[kind]() if value.startswith(incomplete)]

    return complete


class FromSettings(NamedTuple):
    """Marks an option whose default is a setting: its ``name`` in ``settings.SETTINGS``."""

    name: str


class Was(NamedTuple):
    """Marks an option that had another ``name`` (without dashes), which is accepted and not shown."""

    name: str


class PassedOn(NamedTuple):
    """Marks an argument that takes all later words, which are options of another program."""


def Argument(metavar: str, help: str, *, completes: str = "") -> Any:
    """Return a positional argument; ``completes`` is the kind of its values for a shell (``VALUES``)."""
    return typer.Argument(metavar=metavar, help=help, readable=False, autocompletion=completer(completes))


def Option(
    *names: str, help: str, metavar: str | None = None, least: float | None = None, most: float | None = None, completes: str = ""
) -> Any:
    """Return an option, named as its parameter unless ``names`` are given; ``least`` and ``most`` bound a number.

    ``completes`` is the kind of its values for a shell (``VALUES``).
    """
    return typer.Option(
        *names, metavar=metavar, help=help, min=least, max=most, readable=False, autocompletion=completer(completes)
    )


def Output(help: str, *, dash: Literal["stdout", "kept", "refused"] = "refused") -> Any:
    """Return the option that names what a command writes.

    ``dash`` says what ``-o -`` is: ``stdout``, None for a command that prints without ``-o``; ``kept``, the path ``-``, which
    the command knows; else a ``UsageError``, not a file of that name.
    """

    def checked(path: Path | None) -> Path | None:
        if str(path) != "-" or dash == "kept":
            return path
        if dash == "stdout":
            return None
        raise UsageError("-o - is no file", why="this command does not write that to stdout", try_="-o FILE")

    return typer.Option("-o", "--output", help=help, readable=False, callback=checked)


Json = Annotated[bool, Option("--json", help="Print JSON for machines on stdout.")]
Full = Annotated[bool, Option("--full", help="Print the whole summary: error, metrics, time, memory, checks and doubts.")]
JobExit = Annotated[
    int | None, Option("--job-exit", metavar="N", help="The exit code of the training command."), Was("exit-code")
]
Color = Annotated[Literal["auto", "always", "never"], Option(help="Colour the output: auto is on a terminal without NO_COLOR.")]
Grammar = Annotated[
    str | None,
    Option("-g", "--grammar", metavar="ID@vN", help="Parse the log with this grammar (or YAML file) only.", completes="grammar"),
]
Markdown = Annotated[Path | None, Option("--markdown", help="Write the answer as Markdown to this file; - prints it.")]
Quiet = Annotated[bool, Option("-q", "--quiet", help="Print no notes and no progress.")]
RunName = Annotated[str | None, Option(metavar="NAME", help="Name of the run."), FromSettings("name")]
Lane = Annotated[
    str | None,
    Option(metavar="NAME", help="Series of comparable runs (hardware and recipe).", completes="lane"),
    FromSettings("lane"),
]
Preset = Annotated[str | None, Option(metavar="NAME", help="Name of the recipe."), FromSettings("preset")]
Attach = Annotated[
    list[str] | None, Option(metavar="KIND=URI", help="An artefact, stored by reference; may be given several times.")
]
Evidence = Annotated[
    list[Path] | None,
    Option(
        metavar="FILE",
        help="What a scheduler records of the job: sacct --json, scontrol show job, condor_history, a pod's JSON, SageMaker, "
        "SkyPilot; may be given several times.",
    ),
]
Fact = Annotated[
    list[str] | None,
    Option(metavar="NAME=VALUE", help="A fact that the log lacks, such as devices=8 or peak_flops=989e12; docs/derived.md."),
]
Policy = Annotated[
    Path | None, Option(help="YAML: which fields block a comparison, warn or are ignored."), FromSettings("policy")
]
AllowTruncated = Annotated[
    bool, Option("--allow-truncated", help="Pass a log that stops before its run ends: the run may go on.")
]
StoreFolder = Annotated[Path, Argument("STORE", "Folder of the receipts.")]
Documents = Annotated[list[Path], Argument("FILE...", "Receipts and other documents.")]
OnFailure = Annotated[
    str | None,
    Option("--on-failure", metavar="CMD", help="Run this command once the job has failed; its receipt is $RECEIPT_FILE."),
]
OnEnd = Annotated[str | None, Option("--on-end", metavar="CMD", help="Run this command once the job is over.")]
OnStall = Annotated[
    str | None, Option("--on-stall", metavar="CMD", help="Run this command once nothing was printed for --stall seconds.")
]
Stall = Annotated[int | None, Option(least=1, metavar="SECONDS", help="Silence that is a stall; default: 600.")]


def everywhere(color: Color = "auto", quiet: Quiet = False) -> None:
    """Take the options of every command."""
