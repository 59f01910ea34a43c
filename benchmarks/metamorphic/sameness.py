"""What must not differ between the receipts of a log and of the same log elsewhere, and what may, with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Document = Mapping[str, Any]


class May(NamedTuple):
    """Fields that may differ, as a pattern of their paths, and why; with ``to`` only to this value."""

    paths: re.Pattern[str]
    reason: str
    to: tuple[object, ...] | None = None


MISSING = "-"
_PLACES = re.compile(
    r"/(?:attachments|captured_sha256|derivation/(?:log|lines|near_misses|redactions|problems|grammars|cells))\b|/header/sources|/log_tail|/redactions"
    r"|(?:^|[/_])lines?(?:$|/|_number)|/first_line|/last_line|/excerpt|/run/name"
)
"""Where a record stands and how it looks there: that is what the relations change."""
CLOCK = May(
    re.compile(r"/goodput|/cost/|/time(?:$|/)|/(?:elapsed|wall|training)_time_s|/failure/progress|/stall|/realised|/step_times|/unsaved_time_s|/duration_s|/identities"),
    "the head gives each line a time",
)
WHO = May(re.compile(r"/failure/culprit|/failure/victims|/ranks?(?:$|/)"), "the head names a rank or a host")
DOUBT = May(
    re.compile(r"/checks/(?:zero_exit_code|no_oom|completed)$|^/failure(?:$|/)|/derivation/observed"),
    "an error that a logger or a worker prints need not have ended the run",
    (None, MISSING, "no_grammar_match", "reason:no_grammar_match", "unknown"),
)
SHOWN = May(
    re.compile(r"/derivation/observed|/failure/(?:message|markers)"), "a head is shown with the line, and may make it a message"
)
OBSERVED = May(re.compile(r"/derivation/observed"), "what is said is observed")
NEAR = May(re.compile(r"/checks/has_steps$"), "a count before a line makes it nearer to a record", (None,))


def differences(before: Sequence[Document] | str, after: Sequence[Document] | str, may: Sequence[May] = ()) -> list[str]:
    """Return what differs and may not: paths with both values. A text stands for the error that a log gave instead."""
    if isinstance(before, str) or isinstance(after, str):
        return [] if before == after else [f"{_name(before)} became {_name(after)}"]
    if len(before) != len(after):
        return [f"{len(before)} launches became {len(after)}"]
    found = []
    for ours, theirs in zip(before, after, strict=True):
        old, new = dict(_flat(_stating(ours))), dict(_flat(_stating(theirs)))
        for path in {**old, **new}:
            was, became = old.get(path, MISSING), new.get(path, MISSING)
            if was != became and not _PLACES.search(path) and not any(_allows(one, path, became) for one in may):
                found.append(f"{path}: {was!s:.80} became {became!s:.80}")
    return found


def _stating(document: Document) -> Document:
    """Return a receipt without a summary of no record: whether a log that nothing reads has one, its nearest lines decide."""
    summary = document["summary"]
    empty = summary and not summary["steps"]["record_count"] and not any((summary["metrics"] or {}).values())
    return {**document, "summary": None} if empty and not document["phases"] else document


_CUT = {None, "truncated", "no_grammar_match", "traceback"}
"""What may be said of any damaged log: a traceback whose last line is cut has no other name."""


def inventions(before: Sequence[Document] | str, after: Sequence[Document] | str) -> list[str]:
    """Return what a damaged log states that the whole one does not: a reason, a value out of range, more records."""
    if isinstance(before, str) or isinstance(after, str):
        return []
    found = []
    reasons = {(document["failure"] or {}).get("reason") for document in before} | _CUT
    ranges = _ranges(before)
    for document in after:
        if (reason := (document["failure"] or {}).get("reason")) not in reasons:
            found.append(f"/failure/reason: {reason}")
        for name, (least, most, count) in _ranges([document]).items():
            low, high, many = ranges.get(name, (0.0, 0.0, 0))
            if count > many or least < low or most > high:
                found.append(f"{name}: {count} of {least} to {most}, of {many} of {low} to {high}")
    return found


def _ranges(documents: Sequence[Document]) -> dict[str, tuple[float, float, int]]:
    """Return the least and the greatest value of each metric of the registry, and how many records there are of it."""
    found: dict[str, tuple[float, float, int]] = {}
    for document in documents:
        for phase in document["phases"] or []:
            for name, metric in (phase["summary"]["metrics"] or {}).items():
                if metric and metric["min"] is not None and not CLOCK.paths.search(f"/{name}"):
                    low, high, many = found.get(name, (metric["min"], metric["max"], 0))
                    found[name] = (min(low, metric["min"]), max(high, metric["max"]), many + metric["record_count"])
    return found


def _allows(may: May, path: str, became: object) -> bool:
    return may.paths.search(path) is not None and (may.to is None or became in may.to)


def _name(documents: Sequence[Document] | str) -> str:
    return documents if isinstance(documents, str) else f"{len(documents)} launches"


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{path}/{key}")
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from _flat(inner, f"{path}/{number}")
    elif value not in ({}, []):
        yield path, value
