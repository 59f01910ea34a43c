"""Read Trackio's databases: one SQLite file for each project, with a row for each call of ``log``.

Tables: trackio/sqlite_storage.py. Older releases know a run by its name alone. A row's time is that at which its batch was
sent, so it does not date the step.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from receipt_cli.importers.model import ForeignRun
from receipt_cli.importers.text import Document, JsonText, NotJson, Number, Value
from receipt_cli.importers.trackers.curves import MAX_RECORDS, Curves
from receipt_cli.importers.trackers.database import opened
from receipt_cli.importers.values import python_value, rfc3339, words
from receipt_cli.importers.wandb_summary import read_config

FORMAT = "trackio"
TABLES = frozenset({"metrics", "configs", "system_metrics"})
_CREATED = "_Created"
"""Setting with the time at which the run began."""


def keys(path: Path) -> list[tuple[str, str]]:
    """Return (id, name) of each run with metrics, the first logged first. Raises ``InputError``."""
    with opened(path, "Trackio's") as database:
        key = _key(database, "metrics")
        query = f"SELECT {key}, max(run_name) FROM metrics GROUP BY {key} ORDER BY min(id)"
        return [(str(run), str(name)) for run, name in database.execute(query)]


def read(foreign: ForeignRun, path: Path, key: str) -> tuple[ForeignRun, Document]:
    """Return a run of the database, and its document, whose digest covers only the run's own rows. Raises ``InputError``."""
    with opened(path, "Trackio's") as database:
        column = _key(database, "metrics")
        query = f"SELECT timestamp, step, metrics, run_name FROM metrics WHERE {column} = ? ORDER BY id LIMIT ?"
        calls = database.execute(query, (key, MAX_RECORDS + 1)).fetchall()
        settings = database.execute(
            f"SELECT config FROM configs WHERE {_key(database, 'configs')} = ? ORDER BY id DESC LIMIT 1", (key,)
        ).fetchall()
    foreign.producer = "Trackio"
    curves = Curves(foreign)
    rows: list[dict[str, Value]] = []
    for number, (_, step, metrics, _) in enumerate(calls, 1):
        row = _object(foreign, metrics, f"record {number}")
        rows.append({**row, "_step": Number(str(step))})
    curves.add_calls(rows, "Trackio")
    curves.finish()
    config = _object(foreign, settings[0][0], "the configuration") if settings else {}
    foreign.run["name"] = words(calls[-1][3]) if calls else None
    with suppress(ValueError, OverflowError):
        created = datetime.fromisoformat(words(config.get(_CREATED)) or "")
        if created.tzinfo is not None:  # else it is local to a machine that nobody knows
            foreign.run["started_at"] = rfc3339(created.timestamp())
    read_config(foreign, {name: {"value": python_value(value)} for name, value in config.items()}, "import:/config")
    data = "".join(f"{row!r}\n" for row in [*calls, *settings]).encode("utf-8", "replace")
    return foreign, Document(key, "", hashlib.sha256(data).hexdigest(), len(data))


def _key(database: sqlite3.Connection, table: str) -> str:
    """Return the column that identifies a run."""
    columns = {name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")}
    return "run_id" if "run_id" in columns else "run_name"


def _object(foreign: ForeignRun, cell: object, where: str) -> dict[str, Value]:
    """Return the JSON object in a cell of the database, text or bytes; {} with a problem for anything else."""
    text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell if isinstance(cell, str) else ""
    try:
        value = JsonText(text).value()
    except NotJson:
        value = None
    if isinstance(value, dict):
        return value
    foreign.problems.add("record_is_no_object", None, f"{where}: not a JSON object")
    return {}
