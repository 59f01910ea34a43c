"""List the commands of ``receipt``: names and summaries in the order of the help, and functions."""

from __future__ import annotations

import os
from collections.abc import Callable
from pkgutil import resolve_name

from receipt_cli.errors import UsageError

SECTIONS = {
    "Read a log": {
        "parse": "Card of a log; -o writes its receipt",
        "show": "Card of a receipt, or of a run in a store",
        "explain": "Log lines and rule behind a figure or a verdict",
        "plot": "Curves in the terminal",
    },
    "Record a job": {
        "run": "Run a command, keep its log, write its receipt",
        "tee": "Keep the output that comes through a pipe, and its times",
        "watch": "Many growing logs on one screen",
    },
    "Judge": {
        "check": "Exit 1 unless a run passes; gates, baseline, JUnit, SARIF",
        "compare": "Are runs comparable, and what differs?",
    },
    "Keep many runs": {
        "store": "build, add, ls, ask, query, show, tag, note ...",
        "history": "When a group of comparable runs changed, and what else did",
        "report": "One HTML file of all runs",
    },
    "Exchange": {
        "import": "W&B, MLflow, TensorBoard, trainer_state.json ... to receipts",
        "export": "Receipts to W&B, MLflow, Parquet, CSV ...",
        "grammar": "list, explain, learn, test: how logs are read",
    },
    "More": {
        "schema": "check, migrate, list, show, diff: the forms of documents",
        "golden": "make: golden curves of good runs, for receipt check --golden",
        "verify": "Derive a receipt from its log once more, and compare",
        "attest": "Sign what a receipt states about its log",
        "header": "Record git, GPUs, packages and host when a job starts",
        "mcp": "Answer an assistant by the Model Context Protocol",
        "config": "Settings that are defaults of options, and their sources",
        "completion": "Script by which a shell completes words",
        "help": "Help of a command, of all commands, or on exit codes",
    },
}
"""Section → command → summary; the last section is shown by ``help --all`` only."""
GROUPS = {
    "store": {
        "build": "Receipts of every log of an archive, kept up to date",
        "add": "Receipts and other documents into the store",
        "ls": "Its runs by time",
        "ask": "Frequent questions: best, slowest, failures, what varies ...",
        "query": "One SELECT of SQL",
        "stats": "Throughput, time in steps, memory and checks over time",
        "export": "Its views as Parquet files",
        "show": "Card of a run",
        "diff": "What varies between runs",
        "tag": "Add or remove tags of a run",
        "note": "Write a note on a run",
        "exclude": "Leave a run out of history and statistics",
        "lane": "Groups of runs without a lane; a name for one",
    },
    "grammar": {
        "list": "Grammars that ship, and those of the search path",
        "explain": "Which grammar was chosen for a log, and what each rule read",
        "learn": "Draft a grammar for the log of an unknown trainer",
        "test": "Samples of a grammar, and what each rule reads in a log",
        "show": "Definition of a grammar",
        "lint": "Exit 1 if a grammar is not sound",
        "matrix": "Trainers, versions and metrics that are read",
    },
    "golden": {
        "make": "Golden curves of good runs: values by step, and tolerances",
    },
    "schema": {
        "check": "Exit 1 unless documents keep their schema and its rules",
        "migrate": "Documents to a newer version of their schema",
        "list": "Schemas that ship",
        "show": "A schema, or its fields",
        "diff": "What changed between two versions",
    },
}
"""Group → command → summary."""
ALIASES = {"ci": "check", "rederive": "store build", "validate": "schema check", "migrate": "schema migrate"}
"""Name of an earlier release → command; help does not show these."""
COMMANDS = tuple(
    f"{name} {member}".rstrip() for section in SECTIONS.values() for name in section for member in GROUPS.get(name, [""])
)
"""Each command is a function of its name: its parameters are the options, the docstring is the help, the last paragraph of
which is an example. The function is in the module of the group, else in one of the same name."""
_ELSEWHERE = {
    "attest": "verify:attest",
    "history": "compare:history",
    "store build": "store_build:build",
    "import": "import_:import_",
    "help": "integration:help_",
    **{name: f"integration:{name}" for name in ("completion", "config", "mcp")},
    **{f"{group} list": f"{group}:list_" for group in ("grammar", "schema")},
    **{f"store {name}": f"store_runs:{name}" for name in ("show", "diff", "ask", "tag", "note", "exclude", "lane")},
}


def load(name: str) -> Callable[..., None]:
    """Import and return the function of a command. Raises ``UsageError``."""
    if name in ("run", "tee") and os.name == "nt":
        raise UsageError(f"receipt {name} needs the signals and terminals of POSIX", try_="receipt parse LOG --here")
    group, _, command = name.rpartition(" ")
    found: Callable[..., None] = resolve_name(f"{__name__}.{_ELSEWHERE.get(name, f'{group or command}:{command}')}")
    return found


def summaries(group: str = "") -> dict[str, str]:
    """Return command → summary of a group; without one, of the commands and groups at the top."""
    return GROUPS[group] if group else {name: about for section in SECTIONS.values() for name, about in section.items()}
