"""Open a tracker's SQLite database without writing to it, and choose one of its runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence, Set
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from receipt_cli.errors import InputError

MAGIC = b"SQLite format 3\0"
_SHOWN = 10


@contextmanager
def opened(path: Path, kind: str) -> Iterator[sqlite3.Connection]:
    """Open the database of ``kind``, such as MLflow's, read-only for a block. Raises ``InputError``, also in the block.

    A database in WAL mode without its journal is opened as one that nobody changes: SQLite would create files beside it.
    """
    journal = path.with_name(f"{path.name}-wal")
    how = "mode=ro" if journal.exists() else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.resolve()))}?{how}", uri=True)) as database:
            yield database
    except (sqlite3.Error, TypeError) as error:  # TypeError: a null where a value must be
        raise InputError(f"cannot be read as {kind} database", where=str(path), why=str(error)[:200]) from error


def tables_of(path: Path) -> Set[str]:
    """Return the names of the tables of a database; none for a file that is not a database."""
    try:
        with opened(path, "an SQLite") as database:
            return {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except InputError:
        return frozenset()


def choose(known: Sequence[tuple[str, str]], path: Path, wanted: str | None) -> str:
    """Return the id of the run ``wanted`` (an id, its beginning, or a name), or of the only run if it is None.

    ``known`` are (id, name) of the runs at ``path``. Raises ``InputError``.
    """
    exact = [key for key, _ in known if key == wanted]
    found = exact or [key for key, name in known if wanted is None or wanted == name or key.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    shown = ", ".join(dict.fromkeys(f"{key[:8]} {name}".strip() if key != name else key for key, name in known[:_SHOWN]))
    why = f"its {len(known)} runs: {shown}"[:300] if known else "it has no run"
    what = "has several runs" if len(found) > 1 else f"has no run {wanted!r}" if wanted else "has no run"
    session = (known[0][0][:8] if known[0][0] != known[0][1] else known[0][0]) if known else ""
    raise InputError(what, where=str(path), why=why, try_=f"receipt import {path} --session {session}" if known else "")
