"""Run the relations over logs, print each violation, and write the table of them.

``python -m benchmarks.metamorphic.table [FOLDER ...] [--only TEXT] [--every N] [--write PATH]``
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.metamorphic.disturbances import FILES, TEXTS, another_zone, folded
from benchmarks.metamorphic.mentions import FORMS, PLACES, WORDS, inserted
from benchmarks.metamorphic.sameness import CLOCK, DOUBT, NEAR, OBSERVED, SHOWN, WHO, Document, May, differences, inventions
from benchmarks.metamorphic.wrappings import WRAPPINGS
from receipt_cli.errors import ReceiptError
from receipt_cli.receipts.production import Request, produce_all

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "logs"
LARGE = 300_000
"""Bytes of a log that is left out."""
Lines = Sequence[bytes]
Found = Sequence[Document] | str
_STAMPED = ("CRI", "docker json", "JSON", "Loki", "Cloud", "journal", "RFC", "ts", "Python logging", "loguru", "GitHub", "GitLab")
_STAMPED += ("Buildkite", "timestamp")
_LOGGERS = ("Python logging", "loguru", "Ray")
_NAMING = ("journal", "RFC 3164", "RFC 5424", "srun", "torchrun", "Ray", "mpirun", "pdsh")


class Relation(NamedTuple):
    """A name, how the logs and what is around them are made, and what may differ."""

    name: str
    check: Callable[[Lines, Found, Path], list[str]]
    may: tuple[May, ...] = ()


def receipts(paths: Sequence[Path], workers: int = 1) -> Found:
    """Return the receipts of all launches of a log in some files, or the name of its error."""
    try:
        request = Request(path=str(paths[0]), more=tuple(map(str, paths[1:])), workers=workers)
        return [product.document for product in produce_all(request)]
    except ReceiptError as error:
        return type(error).__name__


def _write(folder: Path, data: bytes) -> list[Path]:
    path = folder / "run.log"
    path.write_bytes(data)
    return [path]


def _text(name: str, change: Callable[[Lines], bytes], may: tuple[May, ...]) -> Relation:
    def check(lines: Lines, before: Found, folder: Path) -> list[str]:
        return differences(before, receipts(_write(folder, change(lines))), may)

    return Relation(name, check, may)


def _files(name: str, change: Callable[[Lines, Path], list[Path]]) -> Relation:
    return Relation(name, lambda lines, before, folder: differences(before, receipts(change(lines, folder))))


def _lossy(name: str, change: Callable[[Lines], bytes]) -> Relation:
    """What a change destroys may be missing; nothing else may be there instead."""

    def check(lines: Lines, before: Found, folder: Path) -> list[str]:
        return inventions(before, receipts(_write(folder, change(lines))))

    return Relation(name, check, (May(OBSERVED.paths, "what is destroyed may be missing; no reason and no value is another"),))


@contextmanager
def _surroundings(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    time.tzset()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        time.tzset()


def _elsewhere(name: str, workers: int = 1, **variables: str) -> Relation:
    def check(lines: Lines, before: Found, folder: Path) -> list[str]:
        with _surroundings(**variables):
            return differences(before, receipts(_write(folder, b"".join(lines)), workers))

    return Relation(name, check)


def _mention(form: str) -> Relation:
    """Lines that mention failures change no verdict; between the lines of one record they may cost that record."""
    texts = [form.format(word, WORDS[number - 1]) for number, word in enumerate(WORDS)]

    def check(lines: Lines, before: Found, folder: Path) -> list[str]:
        if isinstance(before, str) or any(document["failure"] for document in before):
            return []
        return [
            f"at {places}: {found}"
            for places in PLACES
            for found in differences(before, receipts(_write(folder, inserted(lines, texts, places))), (OBSERVED, _FIGURES, NEAR))
            if found.startswith(("/checks", "/failure")) or "launches" in found
        ]

    return Relation(f"mention: {form.format('WORDS', 'OTHERS')}", check, (OBSERVED,))


_SHOWN = re.compile(r"message|/host$|/file$|path|dir|/flags/|/observed")
_MOMENTS = re.compile(r"/time/|_at$|message|/observed")
_FIGURES = May(CLOCK.paths, "lines of others take part in the account of time")


def _allowed(name: str) -> tuple[May, ...]:
    """Return what may differ behind the head ``name``."""
    chosen = [(CLOCK, _STAMPED), (DOUBT, _LOGGERS), (WHO, _NAMING)]
    return (*(may for may, names in chosen if any(part in name for part in names)), NEAR, SHOWN)


def relations() -> list[Relation]:
    """Return all relations of this table."""
    made = [_text(name, change, _allowed(name)) for name, change in WRAPPINGS.items()]
    named = May(WHO.paths, "the host has another name")
    paths = May(_SHOWN, "paths and names are shown as they are printed")
    own = {"another machine's name": (named, paths), "another home": (paths,)}
    for name, change in TEXTS.items():
        made.append(_text(name, change, own.get(name, (_FIGURES, NEAR) if "lines of" in name or "between" in name else ())))
    made += [_files(name, change) for name, change in FILES.items()]
    made.append(_text("another time zone", another_zone, (May(_MOMENTS, "moments are another zone's; their distances stay"),)))
    made += [
        _lossy("folded at 80 columns", folded),
        _lossy("no last line end", lambda lines: b"".join(lines)[:-1]),
        _lossy("last line cut", lambda lines: b"".join(lines)[:-9]),
    ]
    made += [
        _elsewhere("another locale", LC_ALL="de_DE.UTF-8", LANG="tr_TR.UTF-8"),
        _elsewhere("the clock of Tokyo", TZ="Asia/Tokyo"),
    ]
    made.append(_elsewhere("two workers", workers=2))
    return made + [_mention(form) for form in FORMS]


def whole_lines(data: bytes) -> list[bytes]:
    """Return the lines of a log, each with its end; redraws are parts of lines."""
    return [line + b"\n" for line in (data if data.endswith(b"\n") else data + b"\n").split(b"\n")[:-1]]


def run(logs: Sequence[Path], chosen: Sequence[Relation]) -> dict[str, list[tuple[Path, str]]]:
    """Return the violations of each relation: the log, and the first difference."""
    found: dict[str, list[tuple[Path, str]]] = {relation.name: [] for relation in chosen}
    for path in logs:
        lines = whole_lines(path.read_bytes())
        with tempfile.TemporaryDirectory() as folder:
            before = receipts(_write(Path(folder), b"".join(lines)))
        for relation in chosen:
            with tempfile.TemporaryDirectory() as folder:
                differing = relation.check(lines, before, Path(folder))
            if differing:
                found[relation.name].append((path, differing[0]))
                print(f"{relation.name}: {path.name}: {differing[0]} (of {len(differing)})", file=sys.stderr, flush=True)
    return found


def markdown(found: dict[str, list[tuple[Path, str]]], chosen: Sequence[Relation], counts: Counter[str]) -> str:
    """Return the table."""
    sets = ", ".join(f"{count} logs of {name}" for name, count in counts.items())
    made = ["# Metamorphic relations", "", f"Violations over {sets}: fields of a receipt that differ and may not.", ""]
    made += ["| relation | violations | what may differ, and why |", "|---|--:|---|"]
    for relation in chosen:
        reasons = "; ".join(dict.fromkeys(may.reason for may in relation.may if may.reason)) or "nothing"
        name = relation.name.replace("|", "\\|")
        made.append(f"| {name} | {len(found[relation.name])} | {reasons} |")
    return "\n".join(made) + "\n"


def main(arguments: list[str]) -> int:
    """Print the table of the logs of some folders."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metamorphic.table", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[FIXTURES])
    parser.add_argument("--only", default="", help="relations whose name contains this text")
    parser.add_argument("--every", type=int, default=1, help="each so manieth log")
    parser.add_argument("--write", type=Path, help="where the table goes")
    options = parser.parse_args(arguments)
    logs: list[Path] = []
    counts: Counter[str] = Counter()
    for folder in options.folders:
        own = [path for path in sorted(folder.rglob("*.log"))[:: options.every] if path.stat().st_size <= LARGE]
        counts[folder.name if folder != FIXTURES else "the fixtures"] += len(own)
        logs += own
    chosen = [relation for relation in relations() if options.only in relation.name]
    table = markdown(run(logs, chosen), chosen, counts)
    print(table)
    if options.write is not None:
        options.write.write_text(table, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
