"""What happens to a log on its way: other line ends, other files, words of others between its lines."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

Lines = Sequence[bytes]
_NOISE = (
    b"nvidia-smi: fan 34 C 71 W of 300 W\n",
    b"wandb: syncing files\n",
    b"uploading artifacts to the bucket\n",
    b"heartbeat from the agent\n",
)
_WARNINGS = (
    b"/usr/lib/python3/site-packages/torch/utils/data.py:61: UserWarning: pin_memory is set but no accelerator is found.\n",
    b"  warnings.warn(\n",
    b"FutureWarning: `resume_download` is deprecated and will be removed in version 1.0.0.\n",
    b"W0506 07:08:09.123456 140 site.py:12] TracerWarning: this value is treated as a constant\n",
)

_MOMENT = re.compile(rb"(?<![\d/-])\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(?![.,\d]*(?:Z|[+-]\d\d))")


def _between(lines: Lines, others: Sequence[bytes], every: int) -> bytes:
    """Put a line of others behind each so manieth line that ends by a line end alone."""
    made: list[bytes] = []
    for number, line in enumerate(lines):
        made.append(line)
        if number % every == every - 1:
            made.append(others[number // every % len(others)])
    return b"".join(made)


def another_zone(lines: Lines) -> bytes:
    """Return the log with its ISO moments without a zone five hours later."""

    def later(found: re.Match[bytes]) -> bytes:
        try:
            moment = datetime.strptime(found[0].decode().replace("T", " "), "%Y-%m-%d %H:%M:%S") + timedelta(hours=5)
        except ValueError:
            return found[0]
        return moment.strftime(f"%Y-%m-%d{found[1].decode()}%H:%M:%S").encode()

    return _MOMENT.sub(later, b"".join(lines))


def folded(lines: Lines) -> bytes:
    """Return the log as a terminal of 80 columns shows it."""
    texts = (line.removesuffix(b"\n") for line in lines)
    return b"".join(text[at : at + 80] + b"\n" for text in texts for at in range(0, max(len(text), 1), 80))


TEXTS: dict[str, Callable[[Lines], bytes]] = {
    "CRLF": lambda lines: b"".join(re.sub(rb"\r?\n\Z", b"\r\n", line) for line in lines),
    "byte order mark": lambda lines: b"\xef\xbb\xbf" + b"".join(lines),
    "UTF-16": lambda lines: b"".join(lines).decode("utf-8", "replace").encode("utf-16"),
    "blank lines behind": lambda lines: b"".join(lines) + b"\n" * 40,
    "blank lines before": lambda lines: b"\n" * 7 + b"".join(lines),
    "NULs before": lambda lines: b"\0" * 512 + b"".join(lines),
    "lines of others before": lambda lines: b"".join(_NOISE) * 5 + b"".join(lines),
    "lines of others between": lambda lines: _between(lines, _NOISE, 9),
    "lines of others behind": lambda lines: b"".join(lines) + b"".join(_NOISE),
    "warnings between": lambda lines: _between(lines, _WARNINGS, 11),
    "another machine's name": lambda lines: re.sub(rb"\bnode(?=-?\d)", b"mach", b"".join(lines)),
    "another home": lambda lines: b"".join(lines).replace(b"/home/", b"/users/"),
}
"""By name: lines → the bytes of the log with nothing added to what the run said."""


def _write(folder: Path, name: str, data: bytes) -> list[Path]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return [path]


def _zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.compress(data)


def _in_parts(lines: Lines, folder: Path) -> list[Path]:
    third = max(1, len(lines) // 3)
    parts = {"run.log.2": lines[:third], "run.log.1": lines[third : 2 * third], "run.log": lines[2 * third :]}
    return [path for name, part in parts.items() for path in _write(folder, name, b"".join(part))]


FILES: dict[str, Callable[[Lines, Path], list[Path]]] = {
    "gzip": lambda lines, folder: _write(folder, "run.log.gz", gzip.compress(b"".join(lines), 1)),
    "gzip of two members": lambda lines, folder: _write(
        folder, "run.log.gz", gzip.compress(b"".join(lines[:9]), 1) + gzip.compress(b"".join(lines[9:]), 1)
    ),
    "zstd": lambda lines, folder: _write(folder, "run.log.zst", _zstd(b"".join(lines))),
    "xz": lambda lines, folder: _write(folder, "run.log.xz", lzma.compress(b"".join(lines), preset=0)),
    "bzip2": lambda lines, folder: _write(folder, "run.log.bz2", bz2.compress(b"".join(lines), 1)),
    "another name": lambda lines, folder: _write(folder, "Übung 3/ein log", b"".join(lines)),
    "split into parts": _in_parts,
}
"""By name: lines and a folder → the files that hold the log, the oldest first."""
