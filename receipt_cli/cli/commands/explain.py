"""``receipt explain``: the lines of a log that give a figure of its receipt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from receipt_cli.cli.output import write_json, write_stdout
from receipt_cli.cli.parameters import Argument, Grammar, Json, Option
from receipt_cli.cli.runs import InStore, log_file
from receipt_cli.errors import UsageError
from receipt_cli.receipts.production import Request, produce
from receipt_cli.receipts.reasons import at_companions, cells_of, explain_field, explain_metric, read_lines, show_line
from receipt_cli.render.scale import kind_of, measure


def explain(
    log: Annotated[str, Argument("LOG|RUN", "The log; or a run of the store whose log is on this machine.", completes="run")],
    metric: Annotated[str | None, Option(metavar="NAME", help="Explain the figures of a metric.", completes="metric")] = None,
    line: Annotated[int | None, Option(least=1, help="Show what the grammars read in a line.")] = None,
    field: Annotated[str | None, Option(metavar="POINTER", help="Explain a field of the receipt.")] = None,
    grammar: Grammar = None,
    store: InStore = None,
    json_output: Json = False,
) -> None:
    """Explain a figure: its lines, their rule and cells, and what was left out.

    Without an option, explain the loss.

    Example: receipt explain run.log --metric loss
    """
    if sum(option is not None for option in (metric, line, field)) > 1:
        raise UsageError("--metric, --line and --field exclude one another")
    if log == "-":
        raise UsageError("a log on standard input cannot be read twice", try_="receipt explain run.log")
    log = log_file(log, store)
    product = produce(Request(log, grammar=grammar))
    if line is not None:
        reasons = []
    elif field is not None:
        reasons = [explain_field(product.document, field)]
    else:
        reasons = explain_metric(product.document, metric or "loss")
    reasons = at_companions(product.derivation, log, reasons)
    numbers = sorted({line} if line is not None else {number for reason in reasons for number in reason.lines})
    found = read_lines(log, numbers)
    if line is not None and line not in found:
        raise UsageError(f"the log has no line {line}")
    cells = {number: cells_of(product.derivation, found[number]) for number in numbers if number in found}
    if json_output:
        lines = [
            {"line_number": number, "text": show_line(found[number]), "cells": [cell._asdict() for cell in read]}
            for number, read in cells.items()
        ]
        write_json({"reasons": [reason._asdict() for reason in reasons], "lines": lines})
        return
    out: list[str] = []
    for reason in reasons:
        places = ", ".join(map(str, reason.lines)) or "none"
        out.append(f"{_told(reason.pointer, reason.value)}  {reason.how}; line {places}\n")
    for number, read in cells.items():
        out.append(f"line {number}: {show_line(found[number])}\n")
        for cell in read:
            unit = f" in {cell.unit}" if cell.unit else ""
            out.append(f"  {cell.treatment:<7} {cell.key} = {cell.text!r}{unit} -> {cell.value} ({cell.rule})\n")
        if not read:
            out.append("  no rule reads it\n")
    write_stdout("".join(out).encode("utf-8"))


def _told(pointer: str, value: object) -> str:
    """Return a field and its value; for a block, one aligned line for each figure with its unit."""
    if not isinstance(value, Mapping | list | tuple) or not value:
        return f"{pointer} = {_shown(pointer, value)}\n"
    leaves = list(_leaves(value))
    width = max(len(path) for path, _ in leaves)
    rows = (f"  {path:<{width}}  {_shown(f'{pointer}/{path}', leaf, human=True)}\n" for path, leaf in leaves)
    return "".join([f"{pointer}\n", *rows])


def _leaves(value: object, at: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping | list | tuple) and value:
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _leaves(inner, f"{at}/{key}" if at else str(key))
    else:
        yield at, value


def _shown(path: str, value: object, *, human: bool = False) -> str:
    """Return a value; ``human``: with the unit at the end of a name on its path."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping | list | tuple):
        return "none"
    if not human or not isinstance(value, int | float):
        return str(value)
    unit = next((name for name in reversed(path.split("/")) if kind_of(name) != "plain"), "")
    whole = isinstance(value, int) and kind_of(unit) == "plain"
    return str(value) if whole else measure(unit, value)
