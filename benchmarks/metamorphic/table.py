"""Run the relations over logs, print each violation, and write the table of them.

``python -m benchmarks.metamorphic.table [FOLDER ...] [--only TEXT] [--every N] [--from N] [--largest BYTES] [--jobs N]
[--write PATH] [--details PATH]``

Of a folder with a ``truth.jsonl``, the logs that it names, too. A folder may be one log. Of a long log its first and its last
lines are taken. A text is read once: packings that unpack to one text have one receipt. ``--details`` gets a line for each log
when its relations are done.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
import time
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.machine import describe_machine
from benchmarks.metamorphic.disturbances import FILES, TEXTS, another_zone, folded
from benchmarks.metamorphic.mentions import FORMS, PLACES, WORDS, inserted
from benchmarks.metamorphic.relations import RELATIONS as ARRANGEMENTS
from benchmarks.metamorphic.relations import Relation as Arrangement
from benchmarks.metamorphic.relations import violation
from benchmarks.metamorphic.sameness import (
    CELLS,
    CLOCK,
    DOUBT,
    MEMORY,
    OBSERVED,
    PROOF,
    SHOWN,
    STATED,
    WHO,
    WINDOW,
    Compared,
    Document,
    May,
    compare,
    inventions,
)
from benchmarks.metamorphic.wrappings import WRAPPINGS
from receipt_cli.errors import ReceiptError
from receipt_cli.io.encoding import as_utf8
from receipt_cli.io.source import Source
from receipt_cli.receipts.production import Request, produce_all

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "logs"
LARGEST = 32_000
"""Bytes that are taken of a log: two thirds of them from its begin, one from its end."""
_AROUND = ("LC_ALL", "LANG", "TZ")
CRASHED = "the program crashed"
Lines = Sequence[bytes]
Found = Sequence[Document] | str
_STAMPED: tuple[str, ...] = ("CRI", "docker json", "JSON", "Loki", "Cloud", "journal", "RFC", "ts", "timestamp")
_STAMPED += ("Python logging", "loguru", "GitHub", "GitLab", "Buildkite")
_LOGGERS = ("Python logging", "loguru", "Ray")
_LONGER = ("srun", "torchrun", "Ray", "mpirun --tag", "pdsh", "compose", "kubectl --prefix", "colour", "basic")
_NAMING = ("journal", "RFC 3164", "RFC 5424", "srun", "torchrun", "Ray", "mpirun", "pdsh")


class Relation(NamedTuple):
    """A name, how the logs and what is around them are made, and what may differ."""

    name: str
    check: Callable[[Lines, Found, Path], Compared]
    may: tuple[May, ...] = ()


_read: dict[tuple[object, ...], Found] = {}
"""Receipts of the texts that were read since ``forget``."""


def forget() -> None:
    """Forget the receipts of texts."""
    _read.clear()


def receipts(paths: Sequence[Path], workers: int = 1) -> Found:
    """Return the receipts of all launches of a log in some files, or the name of its error."""
    try:
        key = _text_of(paths[0], workers) if len(paths) == 1 else None
        if key is not None and key in _read:
            return _read[key]
        request = Request(path=str(paths[0]), more=tuple(map(str, paths[1:])), workers=workers)
        found = [product.document for product in produce_all(request)]
    except ReceiptError as error:
        return type(error).__name__
    if key is not None:
        _read[key] = found
    return found


def _text_of(path: Path, workers: int) -> tuple[object, ...]:
    """Return what the receipt of a log depends on: its text behind compression and packing, and what is around the program."""
    source, digest = Source(str(path)), hashlib.sha256()
    for block in source.blocks():
        digest.update(block)
    return digest.digest(), repr(source.problems), workers, *(os.environ.get(name) for name in _AROUND)


def _write(folder: Path, data: bytes) -> list[Path]:
    path = folder / "run.log"
    path.write_bytes(data)
    return [path]


def _text(name: str, change: Callable[[Lines], bytes], may: tuple[May, ...]) -> Relation:
    def check(lines: Lines, before: Found, folder: Path) -> Compared:
        return compare(before, receipts(_write(folder, change(lines))), may)

    return Relation(name, check, may)


def _files(name: str, change: Callable[[Lines, Path], list[Path]]) -> Relation:
    return Relation(name, lambda lines, before, folder: compare(before, receipts(change(lines, folder))))


_COPIED = (
    May(CLOCK.paths, "times are those of one of the copies"),
    May(re.compile(f"{WHO.paths.pattern}|/ranks/"), "the head names a rank"),
    MEMORY,
    May(re.compile(r"/(?:observed|markers)/\d+/count$|/failure/victims"), "each copy of a message is one"),
)


def _arranged(arrangement: Arrangement) -> Relation:
    """Lines that are copied or tagged change nothing; a log that is appended to itself has each of its launches twice."""

    def check(lines: Lines, before: Found, folder: Path) -> Compared:
        if isinstance(before, str) or len(lines) < arrangement.at_least:
            return Compared([])
        after = receipts(_write(folder, b"".join(arrangement.rearrange(lines))))
        if arrangement.launches == 1 or isinstance(after, str):
            return compare(before, after, _COPIED)
        fault = violation(arrangement, before, after)
        return Compared([fault] if fault else [])

    return Relation(arrangement.name, check, _COPIED if arrangement.launches == 1 else ())


def _lossy(name: str, change: Callable[[Lines], bytes]) -> Relation:
    """What a change destroys may be missing; nothing else may be there instead."""

    def check(lines: Lines, before: Found, folder: Path) -> Compared:
        after = receipts(_write(folder, change(lines)))
        found = inventions(before, after)
        return Compared(found, frozenset() if found or not compare(before, after).differing else frozenset((_DESTROYED,)))

    return Relation(name, check, (May(re.compile(""), _DESTROYED),))


_DESTROYED = "what is destroyed may be missing; no reason, no check, no step and no value is another"


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
    def check(lines: Lines, before: Found, folder: Path) -> Compared:
        with _surroundings(**variables):
            return compare(before, receipts(_write(folder, b"".join(lines)), workers))

    return Relation(name, check)


def _mention(form: str) -> Relation:
    """Lines that mention failures change no verdict; between the lines of one record they may cost that record."""
    texts = [form.format(word, WORDS[number - 1]) for number, word in enumerate(WORDS)]

    def check(lines: Lines, before: Found, folder: Path) -> Compared:
        found, excused = list[str](), set[str]()
        for places in PLACES:
            one = compare(before, receipts(_write(folder, inserted(lines, texts, places))), (OBSERVED, PROOF, _PARTED))
            found += [f"at {places}: {text}" for text in one.differing]
            excused |= one.excused
        return Compared(found, frozenset(excused))

    return Relation(f"mention: {form.format('WORDS', 'OTHERS')}", check, (OBSERVED, PROOF, _PARTED))


_SHOWN = re.compile(r"message|/host$|/file$|path|dir|/flags/|/observed|/problems/")
_MOMENTS = re.compile(r"/time/|_at$|message|/observed")
_PARTED = May(
    re.compile(r"^/(?!checks|failure/(?:reason|category|retry|exception/(?:type|message)))"),
    "lines of others may stand between the lines of one record, or of a traceback, whose frame is another then",
)


def _allowed(name: str) -> tuple[May, ...]:
    """Return what may differ behind the head ``name``."""
    chosen = [(CLOCK, _STAMPED), (DOUBT, _LOGGERS), (SHOWN, _LOGGERS), (PROOF, _LOGGERS), (WHO, _NAMING), (CELLS, ("ts -s %.s",))]
    chosen += [(WINDOW, _LONGER), (STATED, (*_LONGER, *_STAMPED))]
    return tuple(may for may, names in chosen if any(part in name for part in names))


def relations() -> list[Relation]:
    """Return all relations of this table."""
    made = [_text(name, change, _allowed(name)) for name, change in WRAPPINGS.items()]
    named = May(WHO.paths, "the host has another name")
    paths = May(_SHOWN, "paths and names are shown as they are printed")
    own = {
        "another machine's name": (named, paths),
        "another home": (paths,),
        "UTF-16": (May(re.compile("/problems/decoded_as"), "the receipt says how the log was decoded"),),
        "NULs before": (May(re.compile("/problems/nul_bytes"), "the receipt says that the log has NULs"),),
    }
    for name, change in TEXTS.items():
        made.append(
            _text(name, change, own.get(name, (PROOF, _PARTED) if "between" in name else (PROOF,) if "others" in name else ()))
        )
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
    made += [_arranged(arrangement) for arrangement in ARRANGEMENTS]
    return made + [_mention(form) for form in FORMS]


def whole_lines(data: bytes) -> list[bytes]:
    """Return the lines of a log, each with its end; redraws are parts of lines."""
    return [line + b"\n" for line in (data if data.endswith(b"\n") else data + b"\n").split(b"\n")[:-1]]


def shortened(data: bytes, largest: int) -> bytes:
    """Return a log, or the first and the last lines of one that is longer: whole lines, and redraws of very long ones."""
    if len(data) <= largest:
        return data
    head, tail = data[: 2 * largest // 3], data[-largest // 3 :]
    for end in (b"\n", b"\r"):
        if end in head:
            head = head[: head.rfind(end)]
            break
    return head + b"\n" + tail[tail.find(b"\n") + 1 :]


def chosen_logs(folder: Path, every: int = 1, start: int = 0) -> list[Path]:
    """Return the logs of a folder, the smallest first: each so manieth from ``start`` on."""
    if folder.is_file():
        return [folder]
    truth, found = folder / "truth.jsonl", set(folder.rglob("*.log"))
    if truth.is_file():
        found |= {folder / json.loads(line)["path"] for line in truth.read_text("utf-8").splitlines()}
    return sorted((path for path in found if path.is_file()), key=lambda path: (path.stat().st_size, path))[start::every]


class Outcome(NamedTuple):
    """The logs that violate a relation, each with the first difference; how many logs differ by right, by the reason."""

    violations: list[tuple[Path, str]]
    excused: Counter[str]


def run(
    logs: Sequence[Path], only: Sequence[str] = (), largest: int = LARGEST, jobs: int = 1, details: Path | None = None
) -> dict[str, Outcome]:
    """Return the outcome of each relation whose name contains a text of ``only``; ``jobs`` processes share the logs.

    ``details`` gets all that differs as a JSON line for each log, as soon as the log is done. A log that raises violates the
    relation ``CRASHED``, and the others go on.
    """
    found = {relation.name: Outcome([], Counter()) for relation in _chosen(only)}
    found[CRASHED] = Outcome([], Counter())
    with ProcessPoolExecutor(jobs) as pool, open(details or os.devnull, "w", encoding="utf-8") as kept:
        running = {pool.submit(_of_log, path, only, largest): path for path in logs}
        for done in as_completed(running):
            path, error = running[done], done.exception()
            own = {CRASHED: Compared([repr(error)])} if error else done.result()
            for name, (differing, excused) in own.items():
                found[name].excused.update(excused)
                if differing:
                    found[name].violations.append((path, differing[0]))
                    print(f"{name}: {path}: {differing[0]} (of {len(differing)})", file=sys.stderr, flush=True)
            kept.write(json.dumps({"log": str(path), **{n: [c.differing, sorted(c.excused)] for n, c in own.items()}}) + "\n")
            kept.flush()
    return found


def _chosen(only: Sequence[str]) -> list[Relation]:
    return [one for one in relations() if not only or any(text in one.name for text in only)]


def _of_log(path: Path, only: Sequence[str], largest: int) -> dict[str, Compared]:
    """Return what differs of one log by the name of the relation."""
    forget()
    text = b"".join(as_utf8(iter([path.read_bytes()]), [])).removeprefix(BOM_UTF8)  # of UTF-16, bytes are no lines
    lines = whole_lines(shortened(text, largest))
    with tempfile.TemporaryDirectory() as folder:
        before = receipts(_write(Path(folder), b"".join(lines)))
    with tempfile.TemporaryDirectory() as folder:
        return {one.name: one.check(lines, before, Path(folder)) for one in _chosen(only)}


def markdown(found: dict[str, Outcome], about: Sequence[str]) -> str:
    """Return the table; a reason that no log needs is none."""
    made = ["# Metamorphic relations", "", *about, ""]
    made += ["| relation | violations | what differs by right, in how many logs |", "|---|--:|---|"]
    for relation, (violations, excused) in found.items():
        reasons = "; ".join(f"{reason}: {count}" for reason, count in sorted(excused.items())) or "nothing"
        name = relation.replace("|", "\\|")
        made.append(f"| {name} | {len(violations)} | {reasons} |")
    return "\n".join(made) + "\n"


def main(arguments: list[str]) -> int:
    """Print the table of the logs of some folders."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metamorphic.table", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[FIXTURES])
    parser.add_argument("--only", action="append", default=[], help="relations whose name contains this text, or one of these")
    parser.add_argument("--every", type=int, default=1, help="each so manieth log")
    parser.add_argument("--from", type=int, default=0, dest="start", help="the first of these")
    parser.add_argument("--largest", type=int, default=LARGEST, help="bytes that are taken of a log")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the logs")
    parser.add_argument("--write", type=Path, help="where the table goes")
    parser.add_argument("--details", type=Path, help="where all that differs goes, as a JSON line for each log")
    options = parser.parse_args(arguments)
    logs = {folder: chosen_logs(folder, options.every, options.start) for folder in options.folders}
    sets = ", ".join(f"{len(own)} logs of {'the fixtures' if f.resolve() == FIXTURES else f.name}" for f, own in logs.items())
    chosen = [path for own in logs.values() for path in own]
    found = run(chosen, options.only, options.largest, options.jobs, options.details)
    machine = describe_machine()
    sets += f" (one of {options.every})" if options.every > 1 else ""
    cut = f"Of a log of more than {options.largest:,} bytes, the first two thirds of that and the last third are taken."
    times = os.times()
    spent = f"{(times.user + times.children_user) / 60:.0f} minutes of one core: {machine['processor']}"
    about = [
        f"Logs that violate a relation, of {sets}: a field of a receipt differs that may not. {cut}",
        "",
        f"Commit {machine['commit']}, {spent}, Python {machine['python'].split()[1]}.",
    ]
    table = markdown(found, about)
    print(table)
    if options.write is not None:
        options.write.write_text(table, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
