"""The catalogue of failure markers: texts that show how a run ended, the reason of each and its weight.

This module loads ``grammars/markers/v2.yaml`` and searches single records; ``authoring.lint_markers`` checks the file.
``analysis.failure`` ranks the hits and leaves out failures that the run recovered from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final, Literal, NamedTuple

import regex

from receipt_cli.definitions.reading import Fail, below, listed
from receipt_cli.definitions.resources import load_shipped, unpack
from receipt_cli.errors import DataError
from receipt_cli.patterns import compile_later
from receipt_cli.problems import Finding

Role = Literal["cause", "stop", "error", "consequence", "observation", "restart", "completion", "exit_code", "detail"]
"""Kind of evidence; the last five never have a reason."""
Category = Literal[
    "memory", "hardware", "network", "numerics", "scheduler", "signal", "storage", "environment", "code",
    "unknown",
]  # fmt: skip
"""Area in which to look for the remedy."""
Reason = Literal[
    "cuda_oom", "host_oom", "nan_loss", "nccl_timeout", "nccl_error", "cuda_error", "ecc_or_xid", "preempted",
    "time_limit", "killed", "segfault", "disk_full", "import_error", "child_failed", "traceback",
    "interrupted",
]  # fmt: skip
"""Failure slugs that one log line can prove; the contract's other slugs are conclusions."""

Retry = Literal["same", "elsewhere", "fix_first", "unknown"]
"""How a failed job may be run again."""

MARKERS_PATH: Final = "markers/v2.yaml"
SEARCH_SECONDS: Final = 1.0
"""Time limit of a search in seconds; after it the marker does not match, so that it never stops a receipt."""
CORE_SECONDS: Final = 0.02
"""Time limit of a core search in seconds, about the time to compile the pattern, which is searched after it."""
SILENT_ROLES: Final = ("observation", "restart", "completion", "exit_code", "detail")
MIN_LITERAL: Final = 5
MANY_PROCESSES: Final = frozenset({
    "root_cause", "failed_rank", "child_failed", "elastic_restart", "nccl_timeout", "nccl_failure", "nccl_victim",
    "rank_segfault", "launcher_stopped", "worker_died", "worker_exception",
})  # fmt: skip
"""Markers of a job with several processes, each of which may print the same lines and its own error."""
_HEAD: Final = "(?&head)"
HEADLESS: Final = "(?:)"
"""Replacement for a head in the core of a pattern."""
_OTHER_GROUP: Final = compile_later(r"\((?!\?(?::|<?[=!]))")
_BLANKS: Final = b" \t\r\n\v\f\x00"
_COLOUR: Final = compile_later(rb"\x1b\[[0-9;]{0,12}m")
_ATOM: Final = r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<group>\((?:\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^()\[\\]|(?&group))*\))"
"""Pattern of an escape, a set or a whole group of a pattern."""


class CounterSample(NamedTuple):
    """A line on which only the markers ``fires`` (ids) may match, and never the marker that lists it."""

    line: bytes
    fires: tuple[str, ...] = ()


class MarkerHit(NamedTuple):
    """One marker found in one record.

    ``start`` and ``end`` are the byte offsets of the message in the record: the pattern's ``message`` group, or
    from the match to the record's end without trailing blanks and colours. ``exit_code`` is the printed exit code
    (negative: the signal that ended a process), or None, and ``code_span`` its byte offsets.
    """

    marker: Marker
    start: int
    end: int
    exit_code: int | None = None
    code_span: tuple[int, int] = (-1, -1)

    def moved(self, by: int) -> MarkerHit:
        """Return the hit with all offsets ``by`` bytes later."""
        begin, end = self.code_span
        span = (begin + by, end + by) if begin >= 0 else self.code_span
        return self._replace(start=self.start + by, end=self.end + by, code_span=span)


@dataclass(frozen=True)
class Marker:
    """One text of the catalogue and the failure that it proves.

    A marker of ``priority`` 0 is the cause at any place, of priority 1 the earliest wins, 2 and 3 count only without a
    better one. ``overcome_after`` is the number of later step records that prove that the run recovered. A record without any of
    ``literals`` cannot match. ``core`` is the pattern without its line head: it matches wherever the pattern does,
    compiles in a quarter of the time and is faster to search.
    """

    id: str
    reason: Reason | None
    category: Category
    role: Role
    priority: int
    overcome_after: int
    literals: tuple[bytes, ...]
    source: str
    samples: tuple[bytes, ...]
    counter_samples: tuple[CounterSample, ...]
    core: str | None = None
    retry: Retry | None = None

    @cached_property
    def pattern(self) -> regex.Pattern[bytes]:
        """The pattern, compiled on first use because most logs need only a few."""
        return regex.compile(self.source.encode("ascii"))

    @cached_property
    def _core(self) -> regex.Pattern[bytes] | None:
        return None if self.core is None else regex.compile(self.core.encode("ascii"))

    def may_match(self, record: bytes) -> bool:
        """Return whether the core of the pattern matches, or is missing or too slow."""
        if self._core is None:
            return True
        try:
            return self._core.search(record, timeout=CORE_SECONDS) is not None
        except TimeoutError:
            return True

    def search(self, record: bytes, places: Callable[[bytes], Iterable[int]] = lambda _: ()) -> MarkerHit | None:
        """Return the first hit in ``record`` (raw bytes without the line end), or None.

        A pattern with a head is also searched from each of the record's ``places``, where its line may begin. A search
        that exceeds its time limit gives None.
        """
        if not any(literal in record for literal in self.literals) or not self.may_match(record):
            return None
        hit = self._search(record)
        if hit is None and self.core is not None:
            for at in places(record):
                hit = self._search(record[at:])
                if hit is not None:
                    return hit.moved(at)
        return hit

    def _search(self, record: bytes) -> MarkerHit | None:
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
        return MarkerHit(self, start, end) if code is None else MarkerHit(self, start, end, int(code), match.span("exit_code"))


@dataclass(frozen=True)
class Catalogue:
    """The markers of one catalogue file in file order: of two with the same priority and place, the first in it wins."""

    version: int
    sha256: str
    markers: tuple[Marker, ...]
    retry: Mapping[str, Retry] = field(default_factory=dict)
    """Reason → how the job may be run again; a marker may state its own."""

    @cached_property
    def by_literal(self) -> Mapping[bytes, tuple[Marker, ...]]:
        """Literal → the markers that need it, in file order; a scan looks for these bytes only."""
        table: dict[bytes, list[Marker]] = {}
        for marker in self.markers:
            for literal in marker.literals:
                table.setdefault(literal, []).append(marker)
        return {literal: tuple(markers) for literal, markers in table.items()}

    @cached_property
    def _places(self) -> Mapping[str, tuple[int, Marker]]:
        return {marker.id: (place, marker) for place, marker in enumerate(self.markers)}

    def among(self, names: Iterable[str]) -> list[Marker]:
        """Return the markers whose ids are among ``names``, in file order."""
        return [marker for _, marker in sorted(self._places[name] for name in names if name in self._places)]

    def search(self, record: bytes) -> tuple[MarkerHit, ...]:
        """Return every marker's first hit in ``record``, in file order."""
        found = (marker.search(record) for marker in self.markers)
        return tuple(hit for hit in found if hit is not None)


@cache
def load_catalogue() -> Catalogue:
    """Return the shipped catalogue.

    Raises ``DataError`` if the file is missing, is not strict YAML or does not have a catalogue's shape. Samples are
    checked by ``authoring.lint_markers``.
    """
    return load_shipped(f"grammars/{MARKERS_PATH}", lambda packed: unpack(Catalogue, packed), parse_catalogue)


def parse_catalogue(text: bytes, where: str) -> Catalogue:
    """Return the catalogue in ``text``. Raises ``DataError`` for the first finding of ``read_catalogue``."""
    catalogue, findings = read_catalogue(text, where)
    for found in findings:
        raise DataError(found.reason, where=found.where)
    return catalogue


def read_catalogue(text: bytes, where: str) -> tuple[Catalogue, list[Finding]]:
    """Return the catalogue without its broken markers, and the findings on its shape.

    Raises ``DataError`` if ``text`` is not YAML.
    """
    from receipt_cli.definitions.reading import check_definition
    from receipt_cli.definitions.strict_yaml import locate, read_yaml

    findings: list[Finding] = []

    def fail(reason: str, *steps: str | int, key: str | None = None) -> DataError:
        name, *inner = map(str, steps[1:] if steps[:1] == ("markers",) and steps[1:] else ("", *steps))
        place = f"{where}:{locate(text, ('markers', name))}" if name else where
        findings.append(Finding("error", place, " ".join(filter(None, [f"{name or 'catalogue'}:", ".".join(inner), reason]))))
        return _Found(reason, where=place)

    data = read_yaml(text, where, shipped=True)
    head, markers = data.get("head", ""), []
    entries = data["markers"] if isinstance(data.get("markers"), dict) else {}
    with suppress(_Found):
        check_definition("markers", {**data, "markers": {"any": _ANY} if entries else entries}, fail, lambda *_: True)
        if not head.isascii():
            raise fail("is not ASCII", "head")
    for name, body in entries.items() if not findings else ():
        with suppress(_Found):
            check_definition("markers", {**data, "markers": {str(name): body}}, fail, lambda *_: True)
            markers.append(_marker(str(name), body, head, below(fail, "markers", str(name))))
    version = data.get("version")

    sha256, retry = hashlib.sha256(text).hexdigest(), data.get("retry") or {}
    return Catalogue(version if type(version) is int else 0, sha256, tuple(markers), retry), findings


class _Found(DataError):
    """An error that is already listed as a finding."""


_ANY: Final[Mapping[str, Any]] = {
    "reason": None, "category": "unknown", "role": "observation", "rank": 3, "overcome_after": 1, "literal": "-", "pattern": "-",
    "samples": ["-"], "counter_samples": [],
}  # fmt: skip
"""A valid marker, to validate the rest of a catalogue without its own markers."""


def _marker(name: str, entry: Mapping[str, Any], head: str, fail: Fail) -> Marker:
    """Return the marker of ``entry``, whose shape is valid. Raises the error that ``fail`` makes."""
    literals = tuple(item.encode() for item in listed(entry["literal"]))
    if not entry["pattern"].isascii():
        raise fail("is not ASCII", "pattern")
    if min(map(len, literals)) < MIN_LITERAL:
        raise fail(f"must have at least {MIN_LITERAL} bytes", "literal")
    if (entry["role"] in SILENT_ROLES) != (entry["reason"] is None):
        raise fail(f"role {entry['role']} {'cannot have a' if entry['role'] in SILENT_ROLES else 'needs a'} reason")
    counters = [(item, []) if isinstance(item, str) else (item["line"], item["fires"]) for item in entry["counter_samples"]]
    pattern = _one_line(entry["pattern"])
    return Marker(
        id=name,
        reason=entry["reason"],
        category=entry["category"],
        role=entry["role"],
        priority=entry["rank"],
        overcome_after=entry["overcome_after"],
        literals=literals,
        source=pattern.replace(_HEAD, f"(?:{_one_line(head)})"),
        samples=tuple(item.encode() for item in entry["samples"]),
        counter_samples=tuple(CounterSample(line.encode(), tuple(fires)) for line, fires in counters),
        core=_core(pattern) if _HEAD in pattern else None,
        retry=entry.get("retry"),
    )


def _core(pattern: str) -> str:
    """Return a faster pattern that matches wherever ``pattern`` does: without its heads and optional parts after them.

    The part between a head and a ``\\K`` is removed too, unless it captures. Optional parts after a head would be tried at
    every place of a record, and the rest of the pattern matches without them.
    """
    cuts = [each.start() for each in regex.finditer(rf"{_ATOM}|\|", pattern) if each.group() == "|"]
    alternatives = [pattern[start:end] for start, end in zip([0, *(cut + 1 for cut in cuts)], [*cuts, None], strict=True)]
    return "|".join(map(_shortened, alternatives)).replace(_HEAD, HEADLESS)


def _shortened(alternative: str) -> str:
    if alternative.startswith(_HEAD):
        found = regex.finditer(_ATOM, alternative, pos=len(_HEAD))
        kept = next((each.start() for each in found if each.group() == r"\K"), None)
        if kept is not None and not _OTHER_GROUP.search(alternative[len(_HEAD) : kept]):
            alternative = _HEAD + alternative[kept:]
    return regex.sub(rf"^{regex.escape(_HEAD)}(?:\\K)?(?:(?!\\K)(?:{_ATOM})(?:[*?]|\{{0?,\d*\}})[?+]?)+", _HEAD, alternative)


def _one_line(pattern: str) -> str:
    """Return the pattern without its line breaks, which are only layout."""
    return pattern.replace("\n", "")


def _message_end(record: bytes) -> int:
    """Return the end of the record without trailing blanks and colours."""
    end = len(record.rstrip(_BLANKS))
    while (start := record.rfind(b"\x1b[", max(0, end - 16), end)) >= 0:
        if not _COLOUR.fullmatch(record, start, end):
            break
        end = len(record[:start].rstrip(_BLANKS))
    return end
