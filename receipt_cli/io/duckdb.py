"""An isolated DuckDB: an empty database in memory that reads no other file, extension or Python variable.

Only this module imports DuckDB, which is an extra and slow to load.
"""

from __future__ import annotations

import atexit
import gc
import glob
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipt_cli.errors import OutputError, UsageError
from receipt_cli.io.atomic import replacing

if TYPE_CHECKING:
    import duckdb

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # else a table name may read a Python variable
    "temp_directory": "",  # else large queries spill into the current folder
}
ASK_S = 300.0
"""Seconds allowed for a query; a recursive one may never end."""
_ZONED = "TIMESTAMP WITH TIME ZONE"
_ZONED_INSIDE = "times with a zone inside lists or structures cannot be returned: cast them to TIMESTAMP"
_PARQUET = "FORMAT parquet, COMPRESSION zstd"


@dataclass(frozen=True, slots=True)
class Answer:
    """A table: column names, and rows of Python values."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]


def check_installed() -> None:
    """Raise ``UsageError`` if DuckDB is missing."""
    try:
        import duckdb  # noqa: F401
    except ImportError as error:
        why, help_text = str(error), "pip install 'receipt-cli[store]'"
        raise UsageError("store queries and Parquet files need DuckDB", why=why, try_=help_text) from error
    atexit.register(gc.unfreeze)  # DuckDB reports frozen objects as leaks on stderr


class Damaged(Exception):
    """A Parquet file or row cannot be read."""


class Database:
    """An empty database. Raises ``UsageError`` if DuckDB is not installed."""

    def __init__(self) -> None:
        check_installed()
        import duckdb

        self._errors: type[Exception] = duckdb.Error
        self._interrupted: type[Exception] = duckdb.InterruptException
        self._connection: duckdb.DuckDBPyConnection = duckdb.connect(":memory:", config=_SETTINGS)
        self._connection.execute("SET TimeZone = 'UTC'")

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one of our own statements and return its rows."""
        return self._execute(statement, values)[1]

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> tuple[Sequence[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Run a statement; return its column descriptions and rows."""
        try:
            found = self._connection.execute(statement, list(values))
            return found.description or (), found.fetchall()
        except (RuntimeError, self._interrupted) as error:  # the type depends on DuckDB's version
            if "interrupted" not in str(error).lower():
                raise
            raise KeyboardInterrupt from error

    def read_parquet(self, statement: str, path: Path) -> list[tuple[Any, ...]]:
        """Run one of our own statements, with ``?`` for the Parquet file ``path``. Raises ``Damaged``."""
        try:
            return self.run(statement, [glob.escape(str(path))])
        except (self._errors, UnicodeEncodeError) as error:
            raise Damaged(str(error)) from error

    def write_parquet(self, select: str, path: Path, footer: Mapping[str, str]) -> None:
        """Write the rows of ``select`` to ``path`` atomically, with the metadata ``footer``. Raises ``OutputError``."""
        pairs = ", ".join(f"{key}: {quoted(value)}" for key, value in footer.items())
        try:
            with replacing(path) as new:
                str(new).encode("utf-8")
                self.run(f"COPY ({select}) TO {quoted(str(new))} ({_PARQUET}, KV_METADATA {{{pairs}}})")
        except UnicodeEncodeError as error:
            raise OutputError("cannot write", where=str(path), why="DuckDB requires file names in UTF-8") from error
        except self._errors as error:
            raise OutputError("cannot write", where=str(path), why=_told(error)) from error

    @contextmanager
    def columns(self, name: str, arrays: Mapping[str, Any]) -> Iterator[None]:
        """Register numpy ``arrays`` of equal length as the table ``name``; NaN may become NULL, by DuckDB's version."""
        self._connection.register(name, dict(arrays))
        try:
            yield
        finally:
            self._connection.unregister(name)

    def fill(self, table: str, structure: object, rows: Iterable[str]) -> None:
        """Add ``rows`` (JSON objects as text) to ``table``, all or none; ``structure`` is the row type for ``from_json``.

        Raises ``Damaged`` for text that is no such object.
        """
        statement = f"INSERT INTO {table} BY NAME SELECT r.* FROM (SELECT unnest(from_json(?, ?)) AS r)"
        try:
            self.run(statement, [f"[{','.join(rows)}]", json.dumps([structure])])
        except self._errors as error:
            raise Damaged(str(error)) from error

    def seal(self) -> None:
        """Block all access outside the database, permanently."""
        self.run("SET enable_external_access = false")
        self.run("SET lock_configuration = true")

    def ask(self, question: str) -> Answer:
        """Return the answer to one SELECT of the user, within ``ASK_S`` seconds. Raises ``UsageError``."""
        import duckdb

        late = threading.Event()

        def stop() -> None:
            late.set()
            self._connection.interrupt()

        limit = threading.Timer(ASK_S, stop)
        limit.daemon = True
        limit.start()
        try:
            statements = self._connection.extract_statements(question)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise UsageError("query must be a single SELECT", try_='receipt store query STORE "SELECT name FROM runs"')
            return self._answer(statements[0].query.strip().rstrip(";"))
        except KeyboardInterrupt as error:
            if not late.is_set():
                raise
            raise UsageError("cannot answer", why=f"the query took more than {ASK_S:g} seconds") from error
        except self._errors as error:
            raise UsageError("cannot answer", why=_told(error), try_="receipt store query STORE shows the columns") from error
        finally:
            limit.cancel()
            limit.join()  # a thread alive at interpreter exit can crash the process

    def _answer(self, select: str) -> Answer:
        asked = [(str(name), str(kind)) for name, kind, *_ in self._described(select)]
        if any(_ZONED in kind and kind != _ZONED for _, kind in asked):  # some versions fail to convert them
            raise UsageError("cannot answer", why=_ZONED_INSIDE, try_="receipt store query STORE shows the columns")
        if _ZONED in (kind for _, kind in asked):  # converting these needs another package
            names = [f"c{number}" for number in range(len(asked))]
            plain = ", ".join(f"{n}::TIMESTAMP" if kind == _ZONED else n for n, (_, kind) in zip(names, asked, strict=True))
            _, rows = self._execute(f"SELECT {plain} FROM (\n{select}\n) AS t({', '.join(names)})")
            return Answer(tuple(name for name, _ in asked), rows)
        described, rows = self._execute(select)
        return Answer(tuple(str(name) for name, *_ in described), rows)

    def _described(self, select: str) -> Sequence[tuple[Any, ...]]:
        """Return name and type of each column, or () if the query cannot be described."""
        try:
            return self.run(f"DESCRIBE {select}")
        except self._errors:
            return ()


def quoted(text: str) -> str:
    """Return ``text`` as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _told(error: Exception) -> str:
    """Return DuckDB's message without its kind and blank lines; the caret stays below its position."""
    if "pytz" in str(error):
        return _ZONED_INSIDE
    kind, colon, rest = str(error).partition(" Error: ")
    lines = (rest if colon and "\n" not in kind else str(error)).expandtabs(2).split("\n")
    return "\n       ".join(line.rstrip() for line in lines if line.strip())
