"""Read W&B's run files (``run-ID.wandb``): history, configuration and exit code of an offline or online run.

Messages: wandb/proto/wandb_internal.proto; framing: LevelDB's log format with W&B's header and zlib's CRC-32.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from receipt_cli.importers.model import FIGURES, ForeignRun
from receipt_cli.importers.text import Document, JsonText, NotJson, Number, Value, read_beside
from receipt_cli.importers.trackers.curves import Curves
from receipt_cli.importers.values import number_in, python_value, rfc3339
from receipt_cli.importers.wandb_summary import METADATA, add_metadata, read_config
from receipt_cli.io.protobuf import Malformed, fields, parts, signed, text

FORMAT = "wandb-run"
MAGIC = b":W&B"
SUFFIX = ".wandb"
_HEADER_BYTES = 7
_BLOCK = 32768
_FIRST, _LAST = (1, 2), (1, 4)
"""Kinds of the parts that begin a record, and of the parts that end one."""
_HISTORY, _SUMMARY, _CONFIG, _RUN, _EXIT, _VERSION = 2, 3, 5, 17, 18, 21
"""Field numbers of the message Record."""
_UNFINISHED = "no exit of the run is recorded: the run ended before that was written, or goes on"


class _Cut(Exception):
    """The file ends within a record."""


def runs(folder: Path) -> list[Path]:
    """Return the run file of each run at and below ``folder``."""
    return list({file.resolve(): file for file in sorted(folder.glob(f"**/run-*{SUFFIX}"))}.values())  # latest-run is a link


def read(foreign: ForeignRun, documents: Sequence[Document], paths: Sequence[Path]) -> ForeignRun:
    """Return the run of its run file, the only one of ``paths``."""
    [path] = paths
    reading = _Reading(foreign)
    ended = False
    try:
        with path.open("rb") as file:
            for record in _records(file):
                ended |= reading.add(record)
    except _Cut:
        foreign.problems.add("file_breaks_off", None, f"{foreign.name}: ends within a record")
    except Malformed as error:
        foreign.problems.add("file_damaged", None, f"{foreign.name}: {error}")
    if not ended:
        foreign.cut = _UNFINISHED
    reading.finish()
    add_metadata(foreign, read_beside(str(path.parent / "files" / METADATA), METADATA))
    return foreign


class _Reading:
    def __init__(self, foreign: ForeignRun) -> None:
        self.foreign = foreign
        self.curves = Curves(foreign)
        self.rows: list[dict[str, Value]] = []
        self.config: dict[str, Value] = {}
        self.summary: dict[str, Value] = {}

    def add(self, record: bytes) -> bool:
        """Add a record; return whether it is the exit record."""
        for number, content in fields(record):
            if not isinstance(content, bytes):
                continue
            if number == _VERSION:
                version = "".join(text(part, 1) for part in parts(content, 1))
                self.curves.own = version.startswith("receipt ")
                self.foreign.producer = (version if self.curves.own else f"wandb {version}")[:200]
            elif number == _HISTORY:
                self.rows.append(self._items(content))
            elif number == _SUMMARY:
                self.summary.update(self._items(content))
            elif number == _CONFIG:
                self.config.update(self._items(content))
            elif number == _RUN:
                self._run(content)
            elif number == _EXIT:
                self._exit(content)
                return True
        return False

    def _items(self, content: bytes) -> dict[str, Value]:
        """Return the items of a message, with nested keys joined by slashes."""
        items: dict[str, Value] = {}
        for item in parts(content, 1):
            key = text(item, 1) or "/".join(part.decode("utf-8", "replace") for part in parts(item, 2))
            try:
                items[key] = JsonText(text(item, 16)).value()
            except NotJson:
                self.foreign.problems.add("unreadable_value", None, f"/{key[:64]}: is not JSON")
        return items

    def _run(self, content: bytes) -> None:
        for part in parts(content, 4):
            self.config.update(self._items(part))
        run, foreign = self.foreign.run, self.foreign
        run["name"] = text(content, 8) or run.get("name")
        for time in parts(content, 17):
            seconds = dict(fields(time)).get(1)
            if isinstance(seconds, int) and not self.curves.own:
                run["started_at"] = rfc3339(seconds)
        for git in parts(content, 21):
            foreign.add_fact("/git/commit", text(git, 2) or None, "import:/run/git/commit")

    def _exit(self, content: bytes) -> None:
        code = next((signed(value) for number, value in fields(content) if number == 1 and isinstance(value, int)), 0)
        if not self.curves.own and abs(code) < 1 << 31:  # our export writes an exit code even if it is unknown
            self.foreign.run["exit_code"] = code
            self.foreign.completed = True if code == 0 else None

    def finish(self) -> None:
        """Add the rows to the curves, with the likeliest step name that the run has."""
        foreign, curves = self.foreign, self.curves
        curves.add_calls(self.rows, "W&B")
        if curves.own:
            self._own()
        else:
            settings = {key: {"value": python_value(value)} for key, value in self.config.items() if key != "_wandb"}
            read_config(foreign, settings, "import:/config")
        curves.finish()

    def _own(self) -> None:
        """Add the statistics and names of a run that we exported."""
        for name, value in self.summary.items():
            figures = {key: number_in(value.get(key)) for key in FIGURES} if isinstance(value, dict) else {}
            known = {key: figure for key, figure in figures.items() if figure is not None}
            if known and "derived/" not in name and name != "checks":
                for key, figure in known.items():
                    self.curves.add_figure(f"summary/{name}/{key}", figure)
        for key in ("name", "lane", "preset"):
            value = self.config.get(f"run.{key}")
            self.foreign.run[key] = value if isinstance(value, str) and not isinstance(value, Number) else None


def _records(file: BinaryIO) -> Iterator[bytes]:
    """Yield each record. Raises ``_Cut`` if the file ends within one, and ``Malformed`` for a wrong checksum."""
    file.seek(_HEADER_BYTES)
    record, at, open_record = b"", _HEADER_BYTES, False
    while True:
        room = _BLOCK - at % _BLOCK
        if room < 7:
            at += len(file.read(room))
            continue
        head = file.read(7)
        if len(head) < 7 or not any(head):
            if (head and any(head)) or open_record:
                raise _Cut
            return
        checksum, size, kind = struct.unpack("<IHB", head)
        data = file.read(size)
        if len(data) < size:
            raise _Cut
        if zlib.crc32(data, zlib.crc32(bytes([kind]))) != checksum:
            raise Malformed("a record does not match its checksum")
        at += 7 + size
        record = data if kind in _FIRST else record + data
        open_record = kind not in _LAST
        if not open_record:
            yield record
