"""Paths and folders → the streams of one log: find log files, the rank that wrote each, and the parts of rotated files.

Only names and first bytes count here; ``gather`` decides from the content whether files belong to one run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import BinaryIO

from receipt_cli.errors import InputError
from receipt_cli.io.compression import compression_of, unpacked
from receipt_cli.patterns import compile_later

MAX_FILES = 4096
HEAD_BYTES = 4096
"""Bytes at the start of a file that decide whether it is a text."""
_NULS = 1 << 20
_DOCUMENT = compile_later(rb'(?:\xef\xbb\xbf)?\s*\{\s*"schema_version"\s*:\s*"([a-z][a-z0-9_]*)/')
_LOG = (".log", ".txt", ".out", ".err", ".jsonl", ".ndjson", ".console", ".output", "")
_NO_LOG = compile_later(r"(?i)tfevents|\.receipt\b|(?:~|\.(?:tmp|swp|lock|pid))$")
_NO_LOG_TEXT = compile_later(r"(?i)requirements|licen[cs]e|readme|^(?:makefile|dockerfile)$")
"""Names of texts that are not logs, unless their suffix is only used by logs."""
_ROTATED = compile_later(r"(?P<base>.+?)[.-](?:(?P<count>\d{1,3})|(?P<date>\d{4}-?\d\d-?\d\d(?:[_T-]\d\d[\d:-]*)?))$")
_WORDS = r"rank|worker|process|proc|gpu|cuda|device|replica|pod|node|host|machine|task"
_RANK = compile_later(rf"(?i)(?<![a-z])(?:global|local)?[._-]?(?P<word>{_WORDS})s?[._-]?(?P<number>\d{{1,6}})(?![\da-z])")
_STREAM = compile_later(r"(?i)(?:^|[._-])(?:stdout|stderr|output)[._-](?P<number>\d{1,6})(?![\da-z])")
_ATTEMPT = compile_later(r"(?i)(?<![a-z])(?:attempt|restart|retry)[._-]?(\d{1,4})(?!\d)")
_LAST = compile_later(r"(?:^|(?<![A-Za-z])(?P<word>[A-Za-z]*+)[._-]?)(?P<number>\d{1,4})$")
_OTHER_WORDS = frozenset(
    ("run", "seed", "fold", "trial", "exp", "experiment", "job", "attempt", "try", "part", "epoch", "step", "v", "version")
)
_STREAM_WORD = compile_later(r"(?i)(?<![a-z])(?:stdout|stderr|out(?:put)?|err(?:or)?)(?![a-z])")
_NODES = ("node", "host", "machine", "pod")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file: ``name`` is its path below the common folder of all files.

    ``rank`` is the number in its name; ``certain`` if a word there marks it as a rank; ``attempt`` is the number of the
    attempt, for launchers that keep one folder per attempt.
    """

    path: str
    name: str
    rank: int | None = None
    certain: bool = False
    attempt: int | None = None


def find_logs(paths: Sequence[str]) -> tuple[list[str], int]:
    """Return the log files among ``paths`` and inside their folders, and the number of folder files left out.

    Raises ``InputError`` for a folder without logs and for more than ``MAX_FILES`` files.
    """
    found: list[str] = []
    left_out = 0
    for path in paths:
        if path == "-" or not os.path.isdir(path):
            found.append(path)
            continue
        inside = [str(file) for file in _walk(Path(path))]
        logs = [file for file in inside if _is_log(Path(file))]
        if not logs:
            if is_store(path):
                raise InputError("is a store, not a log", where=path, try_=f"receipt store ls {path}")
            raise InputError(
                "is a directory that holds no log",
                where=path,
                why=f"{len(inside)} files, none of them a text that looks like a log",
            )
        found += logs
        left_out += len(inside) - len(logs)
    unique = list(dict.fromkeys(found))
    if len(unique) > MAX_FILES:
        raise InputError(f"{len(unique)} files are more than one run writes", where=paths[0], try_="name the files of one run")
    return unique, left_out


def is_store(path: str) -> bool:
    """Return whether ``path`` is the folder of a store of receipts."""
    return os.path.isdir(os.path.join(path, "receipts"))


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        for name in sorted(files, key=_natural):
            if not name.startswith("."):
                yield Path(parent) / name


def _is_log(path: Path) -> bool:
    """Return whether ``path`` is a text file with a log's name; receipts and empty files are not."""
    if not has_log_name(path.name) or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return is_log_text(read_head(file))
    except OSError:
        return True  # reading it raises the error


def has_log_name(name: str) -> bool:
    """Return whether ``name`` is a usual file name for a log."""
    name = unpacked(name)
    rotated = _ROTATED.match(name)
    suffix = PurePath(rotated["base"] if rotated else name).suffix.lower()
    if _NO_LOG.search(name) or (suffix in (".txt", "") and _NO_LOG_TEXT.search(name)):
        return False
    return suffix in _LOG or suffix[1:].isdigit()


_CONTROLS = bytes(c for c in range(32) if c not in b"\t\n\r\f\b\x1b")


def is_log_text(head: bytes) -> bool:
    """Return whether ``head``, the first ``HEAD_BYTES`` of a file, is text or compressed, but no receipt or script."""
    if not head or document_kind(head) is not None or head.startswith(b"#!"):
        return False
    text = head.replace(b"\0", b"")  # left by truncating a file that is being written
    controls = len(text) - len(text.translate(None, _CONTROLS))
    return compression_of(head) is not None or (bool(text) and controls * 20 < len(text))


def document_kind(head: bytes) -> str | None:
    """Return the kind if ``head`` begins a document of this program, such as ``receipt``; else None."""
    match = _DOCUMENT.match(head)
    return match[1].decode("ascii") if match else None


def read_head(file: BinaryIO) -> bytes:
    """Return the first ``HEAD_BYTES`` after leading NULs, which a log has if its rotation truncated it."""
    head = file.read(HEAD_BYTES)
    while head and not head.strip(b"\0"):
        more = file.read(_NULS)
        rest = more.lstrip(b"\0")[:HEAD_BYTES]
        if rest or not more:
            return rest or head
    return head


def arrange(paths: Sequence[str], names: Sequence[str] | None = None) -> list[list[LogFile]]:
    """Return the files as streams: the parts of a rotated file form one, oldest first.

    ``names`` are the original names of the files if their paths differ.
    """
    names = names_of(paths) if names is None else names
    ranks = _ranks(names)
    streams: dict[str, list[tuple[tuple[object, ...], LogFile]]] = {}
    bases = {unpacked(name) for name in names}
    order: list[str] = []
    for path, name in zip(paths, names, strict=True):
        rank, certain = ranks[name]
        attempt = _ATTEMPT.search(name)
        file = LogFile(path, name, rank, certain, int(attempt[1]) if attempt else None)
        base, age = _part(unpacked(name), bases)
        if base not in streams:
            order.append(base)
        streams.setdefault(base, []).append((age, file))
    return [[file for _, file in sorted(streams[base], key=lambda part: part[0])] for base in sorted(order, key=_natural)]


def _part(name: str, bases: set[str]) -> tuple[str, tuple[object, ...]]:
    """Return the base name of a rotated part (else ``name``), and a sort key of the part's age."""
    rotated = _ROTATED.match(name)
    if rotated is None or not (rotated["base"] in bases or PurePath(rotated["base"]).suffix.lower() in _LOG[:-1]):
        return name, (2, 0, "")
    if rotated["date"]:
        return rotated["base"], (1, 0, rotated["date"])
    return rotated["base"], (0, -int(rotated["count"]), "")


def names_of(paths: Sequence[str]) -> list[str]:
    """Return the paths relative to their common folder."""
    full = [os.path.abspath(path) for path in paths]
    common = os.path.commonpath([os.path.dirname(path) for path in full])
    return [PurePath(os.path.relpath(path, common)).as_posix() for path in full]


def _ranks(names: Sequence[str]) -> dict[str, tuple[int | None, bool]]:
    """Return name → (rank or None, whether a word in the name marks it as a rank)."""
    said = {name: _said_rank(name) for name in names}
    keys = sorted({key for key in said.values() if key is not None})
    plain = all(len(key) == 1 for key in keys)
    numbered = {key: key[0] if plain else place for place, key in enumerate(keys)}
    found: dict[str, tuple[int | None, bool]] = {}
    for name in names:
        key = said[name]
        found[name] = (numbered[key], True) if key is not None else (_last_number(name), False)
    return found


def family_of(name: str) -> str:
    """Return a file's name without its rank, node, attempt, stream and suffix: equal for all files of one run."""
    path = PurePath(unpacked(name))
    folder = "#" if path.parent.name.isdigit() and path.stem in ("stdout", "stderr") else path.parent.name
    name = f"{path.parent.parent}/{folder}/{path.stem if path.suffix.lower() in _LOG else path.name}"
    for pattern in (_RANK, _STREAM, _ATTEMPT):
        name = pattern.sub(lambda found: found[0].rstrip("0123456789"), name)
    return _STREAM_WORD.sub("stream", name)


def _said_rank(name: str) -> tuple[int, ...] | None:
    """Return (rank,) or (node, rank on it); None if no word marks a number as a rank."""
    found = {m["word"].lower(): int(m["number"]) for m in _RANK.finditer(name)}
    file = PurePath(name)
    if "rank" in found:
        return (found["rank"],) if "local" not in name.lower() else _on_node(found, found["rank"])
    stream = _STREAM.search(file.name)
    folder = file.parent.name
    if stream is not None:
        return _on_node(found, int(stream["number"]))
    if folder.isdigit() and file.stem in ("stdout", "stderr"):  # torchrun's layout
        return _on_node(found, int(folder))
    inner = [number for word, number in found.items() if word not in _NODES]
    if inner:
        return _on_node(found, inner[-1])
    nodes = [number for word, number in found.items() if word in _NODES]
    return (nodes[-1],) if nodes else None


def _on_node(found: dict[str, int], rank: int) -> tuple[int, ...]:
    nodes = [number for word, number in found.items() if word in _NODES]
    return (nodes[-1], rank) if nodes else (rank,)


def _last_number(name: str) -> int | None:
    """Return the number that ends a name and may be a rank; None if the word before it excludes that."""
    base = PurePath(unpacked(name))
    stem = base.stem if base.suffix.lower() in _LOG else base.name
    last = _LAST.search(stem)
    if last is None or (last["word"] or "").lower() in _OTHER_WORDS:
        return None
    return int(last["number"])


def _natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Return a sort key for natural order: ``log2`` before ``log10``."""
    parts = re.split(r"(\d+)", name)
    return tuple((part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
