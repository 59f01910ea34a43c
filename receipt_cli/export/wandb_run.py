"""Export a run as a W&B offline run folder, for ``wandb sync`` and ``wandb leet``.

Messages: wandb/proto/wandb_internal.proto; framing: LevelDB's log format with W&B's header and zlib's CRC-32. Written without
the wandb package, which would add host, Python and packages of the exporting machine.
"""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from receipt_cli import __version__
from receipt_cli.analysis.checks import healthy
from receipt_cli.export.run import ExportedRun
from receipt_cli.io.atomic import make_folder, write_atomically
from receipt_cli.io.protobuf import block, integer

_BLOCK = 32768
_FILE_HEADER = struct.pack("<4sHB", b":W&B", 0xBEE1, 0)
_HEADER = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_PROJECT = re.compile(r"[/\\#?%:]")
_LONGEST, _TAG = 128, 64
"""Longest project name and longest tag that W&B accepts, in characters."""
_MIN_CONSUMER = "0.70.0"
"""Oldest version of wandb that can read these files, as wandb itself states it."""


def write_run_folder(run: ExportedRun, path: Path) -> str:
    """Write the run's folder below ``path``, always of the same name; return how to read it. Raises ``OutputError``.

    Its file has the configuration, the curves as history, the figures as summary, and the exit code.
    """
    moment = datetime.fromtimestamp(run.dated_ns // 10**9, UTC)
    folder = path / "wandb" / f"offline-run-{moment:%Y%m%d_%H%M%S}-{run.identity}"
    make_folder(folder / "files")
    data = framed(integer(1, number) + content for number, content in enumerate(_contents(run), 1))
    write_atomically(folder / f"run-{run.identity}.wandb", data)
    shown = quote(str(folder))
    return f"read it: wandb leet {shown}; upload it: wandb sync {shown}"


def _contents(run: ExportedRun) -> Iterator[bytes]:
    """Yield the content of each record: one field of the message Record."""
    yield block(21, block(1, block(1, f"receipt {__version__}") + block(2, _MIN_CONSUMER)))
    yield block(17, _run(run))
    for step, row in sorted(_rows(run).items()):
        items = {**row, "_step": step, **({"_timestamp": run.dated_ns / 1e9} if run.dated_ns else {})}
        yield block(2, _items(1, items) + block(2, integer(1, step)))
    yield block(3, _items(1, _summary(run)))
    yield block(18, integer(1, run.exit_code))


def _run(run: ExportedRun) -> bytes:
    seconds, nanoseconds = divmod(run.dated_ns, 10**9)
    at = b"" if not run.dated_ns else block(17, integer(1, seconds) + integer(2, nanoseconds))
    named = block(1, run.identity) + block(3, _PROJECT.sub("-", run.lane)[:_LONGEST]) + block(4, _items(1, run.facts()))
    tags = [run.document["run"]["preset"], failure["reason"] if (failure := run.document["failure"]) else None]
    git = run.document["header"]["git"]["commit"]
    return (
        named
        + block(8, run.title)
        + b"".join(block(10, tag[:_TAG]) for tag in tags if tag)
        + at
        + (block(21, block(2, git)) if git else b"")
    )


def _rows(run: ExportedRun) -> dict[int, dict[str, float]]:
    rows: dict[int, dict[str, float]] = {}
    for curve in run.curves:
        for step, value in zip(curve.steps, curve.values, strict=True):
            rows.setdefault(step, {})[curve.key] = value
    return rows


def _summary(run: ExportedRun) -> dict[str, object]:
    figures: dict[str, object] = {figure.key: figure.known for figure in run.figures if figure.known}
    checks = run.document["checks"]
    return {**figures, "checks": {**checks, "healthy": healthy(checks, run.document["failure"])}}


def _items(number: int, values: Mapping[str, object]) -> bytes:
    """Return field ``number`` for each value: key and JSON; NaN and infinities are strings, as in W&B."""
    return b"".join(block(number, block(1, key) + block(16, _json(value))) for key, value in values.items())


def _json(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def framed(records: Iterable[bytes]) -> bytes:
    """Return the records in blocks of 32 KiB; a record that does not fit continues in the next block."""
    out = bytearray(_FILE_HEADER)
    for record in records:
        start, kind = 0, _FIRST
        while True:
            room = _BLOCK - len(out) % _BLOCK
            if room < _HEADER.size:
                out += bytes(room)
                room = _BLOCK
            part = record[start : start + room - _HEADER.size]
            start += len(part)
            ends = start == len(record)
            written = (_FULL if kind == _FIRST else _LAST) if ends else kind
            out += _HEADER.pack(zlib.crc32(part, zlib.crc32(bytes([written]))), len(part), written) + part
            if ends:
                break
            kind = _MIDDLE
    return bytes(out)
