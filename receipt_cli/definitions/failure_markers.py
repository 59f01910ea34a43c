"""The marker catalogue: texts that tell how a run ended, what each one proves and how much it weighs.

``grammars/markers/v1.yaml`` is the data; this module loads it and searches single records with it; ``marker_lint`` lets
it prove itself. Nothing is judged here: ranking and overcoming are the failure fold's work.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final, Literal, NamedTuple, get_args

import regex

from receipt_cli.definitions.compiled import load_shipped, unpack
from receipt_cli.errors import DataError

Role = Literal["cause", "stop", "error", "consequence", "observation", "restart", "completion", "exit_code", "detail"]
"""What the text is evidence of; the last five never carry a reason."""
Category = Literal[
    "memory", "hardware", "network", "numerics", "scheduler", "signal", "storage", "environment", "code",
    "unknown",
]  # fmt: skip
"""Where to look for the remedy."""
Reason = Literal[
    "cuda_oom", "host_oom", "nan_loss", "nccl_timeout", "nccl_error", "cuda_error", "ecc_or_xid", "preempted",
    "time_limit", "killed", "segfault", "disk_full", "import_error", "child_failed", "traceback",
    "interrupted",
]  # fmt: skip
"""Failure slugs that a line of a log can prove; the contract's other slugs are conclusions."""

Retry = Literal["same", "elsewhere", "fix_first", "unknown"]
"""Whether a job that ended so may be run again."""

PATH: Final = "markers/v1.yaml"
SEARCH_SECONDS: Final = 1.0
"""A search that takes longer counts as no match: a marker must never stop a receipt."""
CORE_SECONDS: Final = 0.02
"""A search for a core that takes longer is given up for the pattern: about what compiling that takes."""
SILENT_ROLES: Final = ("observation", "restart", "completion", "exit_code", "detail")
MIN_LITERAL: Final = 5
_HEAD: Final = "(?&head)"
HEADLESS: Final = "(?:)"
"""What stands for a head in the core of a pattern."""
_BLANKS: Final = b" \t\r\n\v\f\x00"
_ID: Final = re.compile(r"[a-z][a-z0-9_]{2,39}")
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;]{0,12}m")


class CounterSample(NamedTuple):
    """A line that fires no marker but those of ``fires`` (ids), and never the one that it stands under."""

    line: bytes
    fires: tuple[str, ...] = ()


class MarkerHit(NamedTuple):
    """One marker found in one record.

    ``start`` and ``end`` are byte offsets of the message in the record: the pattern's ``message`` group, or
    from the match to the record's end without trailing blanks and colours. ``exit_code`` is the number that
    the text gives (negative: the signal that ended a process), or None.
    """

    marker: Marker
    start: int
    end: int
    exit_code: int | None = None


@dataclass(frozen=True)
class Marker:
    """One text of the catalogue and what it proves.

    ``rank`` 0 is the cause wherever it stands, at 1 the earliest wins, 2 and 3 count only when nothing better
    is there. ``overcome_after`` is the number of later step records that prove that the run got over it.
    ``literals`` are the gate: a record without one of them cannot match. ``core`` is the pattern without what it says
    of the head of a line: it matches wherever the pattern does, and takes a quarter of the time to compile.
    """

    id: str
    reason: Reason | None
    category: Category
    role: Role
    rank: int
    overcome_after: int
    literals: tuple[bytes, ...]
    source: str
    samples: tuple[bytes, ...]
    counter_samples: tuple[CounterSample, ...]
    core: str | None = None
    retry: Retry | None = None

    @cached_property
    def pattern(self) -> regex.Pattern[bytes]:
        """The compiled pattern; compiled on first use, because most logs need only a few."""
        return regex.compile(self.source.encode("ascii"))

    @cached_property
    def _core(self) -> regex.Pattern[bytes] | None:
        return None if self.core is None else regex.compile(self.core.encode("ascii"))

    def behind_heads(self, record: bytes) -> bool:
        """True where the pattern asks for the head of a line, and the record holds what it asks for behind that."""
        if self._core is None or not any(literal in record for literal in self.literals):
            return False
        try:
            return self._core.search(record, timeout=CORE_SECONDS) is not None
        except TimeoutError:
            return True

    def may_match(self, record: bytes) -> bool:
        """False where not even the core of the pattern matches; nothing is asked once the pattern is compiled."""
        return "pattern" in vars(self) or self._core is None or self.behind_heads(record)

    def search(self, record: bytes) -> MarkerHit | None:
        """Return the first hit in ``record`` (one record, raw, without its line end), or None.

        A search that runs into its time limit is no match.
        """
        if not any(literal in record for literal in self.literals):
            return None
        if not self.may_match(record):
            return None
        try:
            match = self.pattern.search(record, timeout=SEARCH_SECONDS)
        except TimeoutError:
            return None
        if match is None:
            return None
        groups = match.groupdict()
        named = groups.get("message") is not None
        start, end = match.span("message") if named else (match.start(), _message_end(record))
        code = groups.get("exit_code")
        return MarkerHit(self, start, end, None if code is None else int(code))


@dataclass(frozen=True)
class Catalogue:
    """All markers of one catalogue file in its order: at one rank and one place the earlier marker wins."""

    version: int
    sha256: str
    markers: tuple[Marker, ...]
    retry: Mapping[str, Retry] = field(default_factory=dict)
    """Whether to run the job again, by reason; a marker may state its own."""

    @cached_property
    def by_literal(self) -> Mapping[bytes, tuple[Marker, ...]]:
        """Literal → the markers that it can announce, in file order; a scan looks for these bytes only."""
        table: dict[bytes, list[Marker]] = {}
        for marker in self.markers:
            for literal in marker.literals:
                table.setdefault(literal, []).append(marker)
        return {literal: tuple(markers) for literal, markers in table.items()}

    def search(self, record: bytes) -> tuple[MarkerHit, ...]:
        """Return every marker's first hit in ``record``, in file order."""
        found = (marker.search(record) for marker in self.markers)
        return tuple(hit for hit in found if hit is not None)


class CatalogueFinding(NamedTuple):
    """One thing wrong with a catalogue: ``where`` is ``file:line``, ``marker`` its id or empty."""

    where: str
    marker: str
    reason: str
    help: str | None = None


@cache
def load_catalogue() -> Catalogue:
    """Return the catalogue that this installation ships.

    Raises ``DataError`` when the file is missing, is no strict YAML or does not have a catalogue's shape.
    Samples are not run here: ``marker_lint`` does that.
    """
    return load_shipped(f"grammars/{PATH}", lambda packed: unpack(Catalogue, packed), parse_catalogue)


def parse_catalogue(text: bytes, where: str) -> Catalogue:
    """Return the catalogue in ``text``. Raises ``DataError`` for the first finding of ``read_catalogue``."""
    catalogue, findings = read_catalogue(text, where)
    for found in findings:
        raise DataError(f"{found.marker or 'catalogue'}: {found.reason}", where=found.where)
    return catalogue


def read_catalogue(text: bytes, where: str) -> tuple[Catalogue, list[CatalogueFinding]]:
    """Return the catalogue and the findings on its shape; a broken marker is found and left out."""
    from receipt_cli.definitions.strict_yaml import read_yaml

    data = read_yaml(text, where, shipped=True)
    unknown = sorted(map(str, data.keys() - {"catalogue", "version", "head", "retry", "markers"}))
    problems = [f"unknown key {key!r}" for key in unknown]
    version, head, entries = data.get("version"), data.get("head", ""), data.get("markers")
    if data.get("catalogue") != "markers":
        problems.append("catalogue must be 'markers'")
    if not _is_integer(version, 1):
        problems.append("version must be a positive integer")
    if not isinstance(head, str) or not head.isascii():
        problems.append("head must be an ASCII pattern")
    retry = data.get("retry", {})
    if not isinstance(retry, dict) or not all(k in get_args(Reason) and v in get_args(Retry) for k, v in retry.items()):
        problems.append(f"retry must map reasons to one of {', '.join(get_args(Retry))}")
        retry = {}
    if not isinstance(entries, dict) or not entries:
        problems.append("markers must be a mapping with at least one marker")
        entries = {}
    findings = [CatalogueFinding(where, "", problem) for problem in problems]
    markers = []
    for name, entry in entries.items():
        wrong = _shape_problems(entry)
        if _ID.fullmatch(str(name)) is None:
            wrong.append("a marker's id is 3 to 40 of a-z, 0-9 and _")
        if wrong:
            place = entry_place(where, entry_lines(text), str(name))
            findings += [CatalogueFinding(place, str(name), problem) for problem in wrong]
        else:
            markers.append(_marker(name, entry, str(head)))
    digest = hashlib.sha256(text).hexdigest()
    return Catalogue(version if isinstance(version, int) else 0, digest, tuple(markers), retry), findings


def _marker(name: str, entry: Mapping[str, Any], head: str) -> Marker:
    def counter(item: Any) -> CounterSample:
        if isinstance(item, str):
            return CounterSample(item.encode())
        return CounterSample(item["line"].encode(), tuple(item["fires"]))

    pattern = _one_line(entry["pattern"])
    return Marker(
        id=name,
        reason=entry["reason"],
        category=entry["category"],
        role=entry["role"],
        rank=entry["rank"],
        overcome_after=entry["overcome_after"],
        literals=tuple(item.encode() for item in _texts(entry["literal"])),
        source=pattern.replace(_HEAD, f"(?:{_one_line(head)})"),
        samples=tuple(item.encode() for item in entry["samples"]),
        counter_samples=tuple(map(counter, entry["counter_samples"])),
        core=pattern.replace(_HEAD, HEADLESS) if _HEAD in pattern else None,
        retry=entry.get("retry"),
    )


def _one_line(pattern: str) -> str:
    """Join a pattern that the file spreads over several lines; line breaks are no part of it."""
    return pattern.replace("\n", "")


def _shape_problems(entry: object) -> list[str]:
    if not isinstance(entry, dict):
        return ["a marker is a mapping"]
    problems = [f"unknown key {key!r}" for key in sorted(map(str, entry.keys() - _SHAPE))]
    problems += [f"key {key!r} is missing" for key in _SHAPE if key not in entry and key != "retry"]
    problems += [f"{key} is {said}" for key, (sound, said) in _SHAPE.items() if key in entry and not sound(entry[key])]
    if not problems and (entry["role"] in SILENT_ROLES) != (entry["reason"] is None):
        problems.append(f"{', '.join(SILENT_ROLES)}: no reason; every other role: a reason")
    return problems


def _is_integer(value: object, least: int, most: int = 1 << 30) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _texts(value: Any) -> list[Any]:
    """Return what may be one text or a list of them as a list."""
    return value if isinstance(value, list) else [value]


def _are_texts(value: object, least: int = 1) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(i, str) and len(i) >= least for i in value)


def _is_counter(item: object) -> bool:
    if isinstance(item, dict):
        return item.keys() == {"line", "fires"} and _are_texts([item["line"]]) and _are_texts(item["fires"])
    return _are_texts([item])


_SHAPE: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "reason": (lambda v: v is None or v in get_args(Reason), f"null or one of {', '.join(get_args(Reason))}"),
    "category": (lambda v: v in get_args(Category), f"one of {', '.join(get_args(Category))}"),
    "role": (lambda v: v in get_args(Role), f"one of {', '.join(get_args(Role))}"),
    "rank": (lambda v: _is_integer(v, 0, 3), "an integer from 0 to 3"),
    "overcome_after": (lambda v: _is_integer(v, 1), "a positive integer"),
    "literal": (
        lambda v: _are_texts(_texts(v)) and all(len(item.encode()) >= MIN_LITERAL for item in _texts(v)),
        f"one or several texts of at least {MIN_LITERAL} bytes",
    ),
    "pattern": (lambda v: isinstance(v, str) and v != "" and v.isascii(), "ASCII text"),
    "retry": (lambda v: v in get_args(Retry), f"one of {', '.join(get_args(Retry))}"),
    "samples": (_are_texts, "a list of lines"),
    "counter_samples": (
        lambda v: isinstance(v, list) and all(map(_is_counter, v)),
        "a list of lines, or of {line, fires: [marker ids]}",
    ),
}


def _message_end(record: bytes) -> int:
    """Return where the record ends when blanks and colours at its end are left out."""
    end = len(record.rstrip(_BLANKS))
    while (start := record.rfind(b"\x1b[", max(0, end - 16), end)) >= 0:
        if not _COLOUR.fullmatch(record, start, end):
            break
        end = len(record[:start].rstrip(_BLANKS))
    return end


def entry_lines(text: bytes) -> dict[str, int]:
    """Return marker id → the line number of its entry."""
    keys = re.finditer(rb"^  (\w+):\s*?$", text, re.MULTILINE)
    return {key[1].decode(): text.count(b"\n", 0, key.start()) + 1 for key in keys}


def entry_place(where: str, lines: Mapping[str, int], name: str) -> str:
    """Return ``file:line`` of a marker, as far as its line is known."""
    return f"{where}:{lines[name]}" if name in lines else where
