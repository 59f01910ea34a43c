"""Read tables of metrics: CSV of Lightning, Keras's CSVLogger, TensorBoard, Neptune and our own export, JSON lines, History."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice

from receipt_cli.definitions.units import read_number
from receipt_cli.errors import InputError
from receipt_cli.importers.model import FIGURES, DeclaredStatistic, ForeignRun
from receipt_cli.importers.text import JsonText, NotJson, Number, Value
from receipt_cli.importers.trackers.curves import Curves, is_known
from receipt_cli.importers.values import as_number, number_in, spelled_number, whole_step

CSV, LINES, HISTORY = "metrics-csv", "metrics-jsonl", "keras-history"
_STEPS = ("global_step", "trainer/global_step", "train/global_step", "step", "iteration", "iter", "steps", "epoch")
"""Lower-case names of the step column, likeliest first; the epoch is used only without a step."""
_TIMES = ("timestamp", "_timestamp", "time", "ts", "wall_time", "wall time")
_RUNS = ("run", "run_id", "run_name", "experiment", "experiment_name")
"""Lower-case names of a column that tells runs apart, as in the tables of neptune-query."""
_ONE_SERIES = ({"wall time", "step", "value"}, {"step", "value", "timestamp"}, {"step", "value"})
"""Lower-case columns of a table of one metric: TensorBoard's download; Neptune's ``fetch_values``, with times and without."""
_TAG = re.compile(r"run-(.*?)-tag-(.+?)(?: \(\d+\))?\.csv\Z")
"""Run and metric in the name that TensorBoard gives a downloaded file; browsers write ``_`` for each slash."""
_OF_EVALUATION = re.compile(r"(?i)(?:.*[-_./])?(validation|valid|val|eval|test)\Z")
"""Name of a run that holds the evaluations of another, as Keras writes it."""
_OWN, _OWN_FIGURES = ("phase_index", "phase", "step"), ("phase_index", "phase", "metric", "source", "unit")
_SNIFFED = 8
_MAX_COLUMNS = 4096
_EARLIEST = 946_684_800.0
"""Year 2000 in seconds since 1970; a smaller time is counted from the start of the run."""


def is_csv(text: str) -> bool:
    """Return whether ``text`` has a header with a step or epoch column, and numbers below it."""
    try:
        rows = list(csv.reader(islice(io.StringIO(text), _SNIFFED)))
    except csv.Error:
        return False
    if rows and (tuple(rows[0][:5]) == _OWN_FIGURES or tuple(rows[0][:3]) == _OWN):
        return True
    if len(rows) < 2 or len(rows[0]) < 2 or any(read_number(name) is not None for name in rows[0]):
        return False
    at = _step_column(rows[0])
    return at is not None and all(len(row) == len(rows[0]) and whole_step(row[at]) is not None for row in rows[1:-1] or rows[1:])


def read_csv(text: str, name: str = "", session: str | None = None) -> ForeignRun:
    """Return the run in a table with one or more rows for each step; ``name`` is the file's.

    ``session`` chooses one of several runs. Raises ``InputError`` for a table of several runs, or without figures.
    """
    foreign = ForeignRun(CSV)
    rows = csv.reader(io.StringIO(text))
    header = next(rows)[:_MAX_COLUMNS]
    own = tuple(header[:3]) == _OWN
    figures = tuple(header[:5]) == _OWN_FIGURES
    curves = Curves(foreign, own=own or figures)
    names = [column.strip() for column in header]
    foreign.producer = "receipt" if own or figures else _producer(names)
    curves.keras = foreign.producer == "Keras CSVLogger"
    at = 2 if own else _step_column(names) or 0
    times = [number for number, column in enumerate(names) if column.lower() in _TIMES]
    run = None if own or figures else next((n for n, column in enumerate(names) if column.lower() in _RUNS), None)
    runs: dict[str, None] = {}
    found = 0
    if not own and {column.lower() for column in names if column} in _ONE_SERIES:
        names = _named(foreign, names, name)
    try:
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                foreign.unmatched += 1
                foreign.problems.add("row_of_other_width", rows.line_num, f"{len(row)} cells, but the header has {len(header)}")
            elif figures:
                _read_figures(curves, dict(zip(names, row, strict=True)))
            else:
                if run is not None:
                    runs[row[run]] = None
                if run is None or session is None or row[run] == session:
                    found += _read_row(foreign, curves, names, row, at, times, rows.line_num, own, run)
    except csv.Error as error:
        foreign.problems.add("row_unreadable", rows.line_num, str(error))
    _require_one(runs, names[run] if run is not None else "", session, name)
    foreign.run["name"] = session or next(iter(runs), None)
    if not found and not own and not figures:
        why = f"beside {names[at]}, no column has a number: {', '.join(column for column in names if column != names[at])}"
        raise InputError(
            "is a table without figures", where=name, why=why[:300], try_="export the table with the columns of the metrics"
        )
    return curves.finish()


def _named(foreign: ForeignRun, names: Sequence[str], file: str) -> list[str]:
    """Return the columns of a table of one metric with the metric's name, which the name of the file may have."""
    tag = _TAG.search(file)
    if tag is None:
        detail = "the table does not name its metric, and TensorBoard's name of the file (run-…-tag-METRIC.csv) is gone"
        foreign.problems.add("metric_unnamed", 1, detail)
        return list(names)
    run = _OF_EVALUATION.match(tag[1])
    start = f"{run[1].lower()}/" if run is not None else ""
    places = [place for place, letter in enumerate(tag[2]) if letter == "_"]
    spellings = [f"{start}{tag[2]}", *(f"{start}{tag[2][:place]}/{tag[2][place + 1 :]}" for place in places)]
    metric = next((spelling for spelling in spellings if is_known(spelling)), spellings[0])
    return [metric if column.lower() == "value" else column for column in names]


def _require_one(runs: Mapping[str, None], column: str, session: str | None, name: str) -> None:
    """Raise ``InputError`` for a table of several runs of which none is chosen, or without the chosen one."""
    if session is not None and session not in runs:
        why = f"its runs: {', '.join(runs)}" if runs else "no column names its run"
        raise InputError(f"has no run {session!r}", where=name, why=why[:300])
    if session is None and len(runs) > 1:
        first = next(iter(runs))
        why = f"column {column}: {', '.join(runs)}"
        raise InputError("has several runs", where=name, why=why[:300], try_=f"receipt import {name} --session {first}")


def refuse_csv(text: str) -> str | None:
    """Return why a table cannot be read as a run; None for a text that is no table."""
    try:
        rows = list(csv.reader(islice(io.StringIO(text), _SNIFFED)))
    except csv.Error:
        return None
    if len(rows) < 2 or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows[:-1]):
        return None
    names = [column.strip() for column in rows[0]]
    at = _step_column(names)
    if at is None:
        return f"no column is a step ({', '.join(_STEPS[3:])}): {', '.join(names)}"
    return f"column {names[at]} has no whole numbers: {', '.join(row[at] for row in rows[1:4])}"


def _producer(names: Sequence[str]) -> str | None:
    """Return the program that writes tables with these columns, or None if unknown."""
    if {column.lower() for column in names} == _ONE_SERIES[0]:
        return "TensorBoard"
    if names[0] == "epoch" and "step" not in names and list(names[1:]) == sorted(names[1:]) and {"loss", "val_loss"} & {*names}:
        return "Keras CSVLogger"
    return "Lightning CSVLogger" if {"epoch", "step"} <= {*names} else None


def _step_column(names: Sequence[str]) -> int | None:
    lowered = [name.strip().lower() for name in names]
    return next((lowered.index(name) for name in _STEPS if name in lowered), None)


def _read_row(
    foreign: ForeignRun,
    curves: Curves,
    names: Sequence[str],
    row: Sequence[str],
    at: int,
    times: Sequence[int],
    line: int,
    own: bool,
    run: int | None = None,
) -> int:
    """Add a row; return its number of figures."""
    step = whole_step(row[at])
    if step is None:
        foreign.unmatched += 1
        foreign.problems.add("record_without_step", line, f"{names[at]}: not a step", row[at])
        return 0
    found = 0
    clock = next((time for number in times if (time := read_number(row[number])) is not None and time >= _EARLIEST), math.nan)
    label = _label(row) if own else ""
    for number, (name, cell) in enumerate(zip(names, row, strict=True)):
        if cell.strip() and name and number not in times and number != run and (number > 2 if own else number != at):
            text = spelled_number(cell)
            value = read_number(text)
            if value is not None:
                found += 1
                curves.add(step, name, text if math.isfinite(value) else value, line=line, clock=clock, label=label)
    if not own and names[at].lower() == "epoch":
        curves.add(step, "epoch", row[at].strip(), line=line, clock=clock)
    return found


def _label(row: Sequence[str]) -> str:
    """Return the label of a row's phase in our own table: its name, else its number; "" for the first."""
    return row[1] or (f"phase{row[0]}" if row[0] != "0" else "")


def _read_figures(curves: Curves, row: Mapping[str, str]) -> None:
    """Add a row of our own table of statistics, unless it was recomputed. Metrics outside the registry have no unit."""
    figures = {name: read_number(row[name]) for name in FIGURES if row.get(name)}
    known = {name: value for name, value in figures.items() if value is not None}
    if row["source"] != "reported" or not known:
        return
    count = row.get("record_count") or ""
    statistic = DeclaredStatistic(
        known, int(count) if count.isdecimal() else None, row.get("window") or "all", row.get("scope") or None,
        row.get("definition") or None,
    )  # fmt: skip
    name = row["metric"] if row["unit"] else f"other/{row['metric']}"
    curves.declare(name, statistic, _label([row["phase_index"], row["phase"]]))


def records_of(text: str) -> list[tuple[int, Value]] | None:
    """Return (line number, object) of each line of a file of JSON lines with steps; None for any other text.

    The value of a line that is not an object, such as a truncated last line, is None.
    """
    found: list[tuple[int, Value]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = JsonText(line).value()
        except NotJson:
            value = None
        if not isinstance(value, dict) and not found:
            return None
        found.append((number, value if isinstance(value, dict) else None))
    steps = [value for _, value in found[:64] if isinstance(value, dict) and _step_of(value) is not None]
    return found if len(found) > 1 and 2 * len(steps) >= min(len(found), 64) else None


def read_lines(records: Sequence[tuple[int, Value]]) -> ForeignRun:
    """Return the run in a file of JSON lines, one object for each record."""
    foreign = ForeignRun(LINES)
    curves = Curves(foreign)
    for line, record in records:
        if not isinstance(record, dict):
            foreign.unmatched += 1
            if line == records[-1][0]:
                foreign.cut = "the last line breaks off: the run ended while it was written, or goes on"
            foreign.problems.add("record_is_no_object", line, "not a JSON object")
            continue
        found = _step_of(record)
        if found is None:
            foreign.ignored += 1
            continue
        name, step = found
        clock = next((time for key in _TIMES if (time := number_in(record.get(key))) is not None and time >= _EARLIEST), math.nan)
        for key, value in _flat(record):
            if (key != name or key.lower() == "epoch") and key.lower() not in _TIMES:
                curves.add(step, key, value, line=line, clock=clock)
    return curves.finish()


def _step_of(record: Mapping[str, Value]) -> tuple[str, int] | None:
    """Return (name, value) of a record's step, or None."""
    lowered = {key.lower(): key for key in record}
    for name in _STEPS:
        value = record.get(lowered.get(name, ""))
        step = whole_step(value) if isinstance(value, Number) else None
        if step is not None:
            return lowered[name], step
    return None


def _flat(record: Mapping[str, Value]) -> list[tuple[str, str]]:
    """Return (name, text) of the numbers of a record, with those of a nested object as ``key/name``."""
    found: list[tuple[str, str]] = []
    for key, value in record.items():
        inner = {f"{key}/{name}": inner for name, inner in value.items()} if isinstance(value, dict) else {key: value}
        found += [(name, str(number)) for name, value in inner.items() if (number := as_number(value)) is not None]
    return found


def is_history(document: Value) -> bool:
    """Return whether ``document`` is an object of equally long lists of numbers, including a loss."""
    if not isinstance(document, dict) or not {"loss", "val_loss"} & document.keys():
        return False
    lists = [value for value in document.values() if isinstance(value, list)]
    numbers = all(isinstance(value, Number) for values in lists for value in values)
    return len(lists) == len(document) and numbers and len({len(values) for values in lists}) == 1


def read_history(json_text: JsonText, document: Value) -> ForeignRun:
    """Return the run in Keras's ``History.history``: metric → list with a value for each epoch, from 0."""
    curves = Curves(ForeignRun(HISTORY, producer="Keras", trainer="keras"))
    curves.keras = True
    for name, values in document.items() if isinstance(document, dict) else ():
        for epoch, value in enumerate(values if isinstance(values, list) else ()):
            curves.add(epoch, name, str(value))
    return curves.finish()
