"""A folder of receipts, queried in SQL."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal, overload

from receipt_cli.api.frames import make_frame
from receipt_cli.api.receipt import Receipt
from receipt_cli.errors import InputError
from receipt_cli.store.documents import read_receipt
from receipt_cli.store.files import Store as Files
from receipt_cli.store.index import open_store
from receipt_cli.store.query import names, records

_ID = re.compile(r"[0-9a-f]{4,64}\Z")


class Store:
    """The receipts that ``receipt store build`` and ``receipt store add`` keep in a folder.

    Raises ``InputError`` if the folder does not exist. Queries need DuckDB: ``pip install 'receipt-cli[store]'``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.fsdecode(path))
        self._files = Files(self.path)
        self._files.check_exists()

    def runs(self) -> list[dict[str, Any]]:
        """Return the rows of the view ``runs``: one for the current receipt of each log, ordered by ``log_sha256``."""
        return self.query("SELECT * FROM runs ORDER BY log_sha256")

    @overload
    def query(self, sql: str, *, frame: Literal[False] = False) -> list[dict[str, Any]]: ...
    @overload
    def query(self, sql: str, *, frame: Literal[True]) -> Any: ...
    def query(self, sql: str, *, frame: bool = False) -> Any:
        """Return the rows of one SELECT over the views, as ``receipt store query --json`` prints them.

        With ``frame`` a ``pandas.DataFrame``, or without pandas a ``pyarrow.Table``. Raises ``UsageError`` for anything but one
        valid SELECT, and if DuckDB is not installed.
        """
        database = open_store(self.path)
        database.seal()
        answer = database.ask(sql)
        if not frame:
            return records(answer)

        keys = names(answer)
        return make_frame({key: [row[number] for row in answer.rows] for number, key in enumerate(keys)})

    def receipt(self, id: str) -> Receipt:
        """Return the current receipt of the log with the digest ``id`` (``log_sha256``), or the only one that starts with it.

        Raises ``InputError`` if there is none, there are several, or it is damaged.
        """
        found = self._files.history(id) if _ID.match(id) else []
        logs = {receipt.log_sha256 for receipt in found}
        if len(logs) != 1:
            why = f"{len(logs)} logs have such a digest" if logs else "an id is log_sha256 of runs, or its first digits"
            raise InputError(f"the store has no single receipt {id!r}", where=str(self.path), why=why)
        return Receipt(read_receipt(found[-1].path, found[-1].log_sha256))
