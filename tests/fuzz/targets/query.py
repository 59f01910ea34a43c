"""A question to a store, whatever its text: an answer or a refusal, and neither files nor the data are touched."""

import os
import tempfile
from functools import cache
from pathlib import Path

from receipt_cli.errors import UsageError
from receipt_cli.io.duckdb import Database
from receipt_cli.receipts.production import Request, produce
from receipt_cli.render.store import render_answer
from receipt_cli.render.style import Style
from receipt_cli.store.files import Store
from receipt_cli.store.index import open_store
from receipt_cli.store.query import csv_text, names, records
from tests.fuzz.harness import ROOT

_FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))
_SECRET = "planted-text-in-a-file"
_LOUD = ("range", "generate_series", "repeat", "recursive", "pad", "sequence", "cross", "join", ",", "sleep", "unnest", "list")
"""What an answer of any size can be made with: that a question may be large is its author's own business."""


@cache
def _database() -> Database:
    store = Store(_FOLDER / "store")
    for log in ("nanochat/speedrun-2025-10", "nanochat/base-2026-03-oom"):
        store.add(produce(Request(path=str(ROOT / "fixtures" / "logs" / f"{log}.log"))).document)
    (_FOLDER / "secret.txt").write_text(_SECRET + "\n", "utf-8")
    (_FOLDER / "secret.csv").write_text(f"a\n{_SECRET}\n", "utf-8")
    os.chdir(_FOLDER)
    database = open_store(_FOLDER / "store")
    database.run("SET threads = 1")
    database.run("SET memory_limit = '256MB'")
    database.seal()
    return database


def target(data: bytes) -> None:
    question = data.decode("utf-8", "replace")
    database = _database()
    before = sorted(str(path) for path in _FOLDER.rglob("*"))
    if sum(question.lower().count(word) for word in _LOUD) > 3 or "9" * 5 in question:
        return
    try:
        answer = database.ask(question)
    except UsageError as error:
        assert error.render()
    else:
        text = csv_text(answer) + render_answer(names(answer), records(answer), Style(width=80, color=False, unicode=True))
        assert _SECRET not in text or _SECRET in question
        assert "\x1b" not in render_answer(names(answer), records(answer), Style(width=80, color=False, unicode=True))
    assert sorted(str(path) for path in _FOLDER.rglob("*")) == before
    assert database.run("SELECT count(*) FROM runs") == [(2,)]


def seeds() -> list[bytes]:
    return [
        text.encode()
        for text in (
            "SELECT name FROM runs",
            "SELECT * FROM runs",
            "SELECT phase, tokens_per_s FROM runs WHERE healthy ORDER BY 1 DESC LIMIT 3;",
            "SELECT * FROM read_text('secret.txt')",
            "SELECT * FROM 'secret.csv'",
            "COPY runs TO 'out.csv'",
            "ATTACH 'x.db'",
            "INSTALL httpfs",
            "SELECT * FROM glob('*')",
            "SET enable_external_access = true",
            "PRAGMA database_list",
            "SELECT 1; SELECT 2",
            "DROP TABLE files",
            "SELECT getenv('HOME')",
            "SELECT chr(27) || '[2J' AS x",
            "SELECT current_setting('secret_directory')",
            "EXPLAIN ANALYZE SELECT 1",
            "WITH a AS (SELECT 1 AS x) SELECT * FROM a",
            "SELECT now(), [now()], {'a': now()}",
            "SELECT 'x' AS \"a\nb\", 1/0, 'NaN'::DOUBLE",
            "SELECT * FROM duckdb_settings()",
            "CREATE TABLE t AS SELECT 1",
            "SELECT '\\xFF'::BLOB, INTERVAL 1 DAY, 1::HUGEINT",
            "VALUES (1), (2)",
            "FROM metrics SELECT name, median",
            "DESCRIBE runs",
            "SHOW TABLES",
            "CALL pragma_version()",
            "EXECUTE x",
            "SELECT $1",
            "SELECT ?",
            "",
        )
    ]
