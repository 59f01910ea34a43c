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


class Compared(NamedTuple):
    """What differs and may not: paths with both values; and the reasons of what differs and may."""

    differing: list[str]
    excused: frozenset[str] = frozenset()


MISSING = "-"
_PLACES = re.compile(
    r"/(?:attachments|captured_sha256|derivation/(?:candidates|log|lines|near_misses|redactions))\b|/header/sources|/log_tail|/redactions"
    r"|(?:^|[/_])lines?(?:$|/|_number)|/first_line|/last_line|/excerpt"
)
"""Where a record stands, how it looks there, and how many lines there are: that is what the relations change."""
CLOCK = May(
    re.compile(
        r"^/goodput|/cost/|/summary/(?:time|realised|step_times|training_time_s|bottleneck)\b|/(?:unsaved_time|duration|wall_time)_s"
        r"|/failure/progress|/metrics/(?:elapsed|wall)_time_s|/identities|/problems/clock_goes_back|/run/(?:started|finished)_at"
    ),
    "the head gives each line a time",
)
WHO = May(
    re.compile(r"/failure/(?:culprit|victims)|/ranks?(?:$|/)|/problems/(?:ranks|rank_|one_rank)"),
    "the head names a rank or a host",
)
DOUBT = May(
    re.compile(r"/checks/(?:zero_exit_code|no_oom|completed)$|^/failure(?:$|/)|/derivation/observed"),
    "an error that a logger or a worker prints need not have ended the run",
    (None, MISSING, "no_grammar_match", "reason:no_grammar_match", "unknown", "reason:unknown", "truncated", "reason:truncated"),
)
SHOWN = May(re.compile(r"^/failure/(?:message|markers|exception|line)|^/derivation/observed/\d+/message$"), DOUBT.reason)
"""What goes with a reason that is in doubt: the message of the next best."""
MEMORY = May(re.compile(r"/summary/memory/figures/rank_peak_m(?:in|ax)_bytes$"), "of tagged ranks the memory of each is known")
CELLS = May(
    re.compile(r"^/checks/has_steps$|^/failure/(?:reason|message|retry/rule)$"),
    "seconds before lines of nothing but numbers are one of their columns: nothing shows that the log is of a training",
    (False, "no_grammar_match", "reason:no_grammar_match", "no grammar recognises this log"),
)
WINDOW = May(
    re.compile(r"/summary/time/(?:first|last)$|^/failure/progress/silence_s$"),
    "lines with a head are longer: fewer of them are among the first and last bytes of the log, whose times are looked at",
)
STATED = May(
    re.compile(r"^/header/data/"),
    "lines with a head are longer: fewer of them are among the first bytes of the log, whose statements are looked at",
    (None, MISSING),
)
PROOF = May(
    re.compile(
        r"^/checks/(?:completed|has_steps)$|^/derivation/problems/no_step_recognised$|^(?:/phases/\d+)?/summary/steps/record_count$"
    ),
    "a check is false only by a proof, which lines of others after the training or beside an early failure take away",
    (None, True),
)
OBSERVED = May(re.compile(r"/derivation/observed"), "what is said is observed")


def differences(before: Sequence[Document] | str, after: Sequence[Document] | str, may: Sequence[May] = ()) -> list[str]:
    """Return what differs and may not: paths with both values. A text stands for the error that a log gave instead."""
    return compare(before, after, may).differing


def compare(before: Sequence[Document] | str, after: Sequence[Document] | str, may: Sequence[May] = ()) -> Compared:
    """Compare the receipts of all launches field by field. A text stands for the error that a log gave instead."""
    if isinstance(before, str) or isinstance(after, str):
        return Compared([] if before == after else [f"{_name(before)} became {_name(after)}"])
    if len(before) != len(after):
        return Compared([f"{len(before)} launches became {len(after)}"])
    found: list[str] = []
    excused: set[str] = set()
    for ours, theirs in zip(before, after, strict=True):
        if PROOF in may and (ours["failure"] or {}).get("reason") == "truncated" and theirs["failure"] is None:
            ours, excused = {**ours, "failure": None}, {*excused, PROOF.reason}  # a log that breaks off has no line behind
        old, new = dict(_flat(_stating(ours))), dict(_flat(_stating(theirs)))
        for path in {**old, **new}:
            was, became = old.get(path, MISSING), new.get(path, MISSING)
            if was == became or _PLACES.search(path):
                continue
            reason = next((one.reason for one in may if _allows(one, path, became)), None)
            if reason is None:
                found.append(f"{path}: {was!s:.80} became {became!s:.80}")
            else:
                excused.add(reason)
    return Compared(found, frozenset(excused))


def _stating(document: Document) -> Document:
    """Return a receipt with what a grammar and a problem are, not where; without a summary of no record.

    Whether a log that nothing reads has such a summary, its nearest lines decide.
    """
    derivation = document["derivation"]
    kinds = dict.fromkeys((problem["kind"] for problem in derivation["problems"]["first"]), True)
    grammars = [(grammar["id"], grammar["version"]) for grammar in derivation["grammars"]]
    derivation = {**derivation, "problems": kinds, "grammars": grammars}
    summary = document["summary"]
    empty = summary and not summary["steps"]["record_count"] and not any((summary["metrics"] or {}).values())
    summary = None if empty and not document["phases"] else summary
    return {**document, "derivation": derivation, "summary": summary}


_CUT = {None, "truncated", "no_grammar_match", "traceback", "unknown"}
"""What may be said of any damaged log: a traceback whose last line is cut has no other name; unknown is no reason."""


def inventions(before: Sequence[Document] | str, after: Sequence[Document] | str) -> list[str]:
    """Return what a damaged log states that the whole one does not: a reason, a value or step out of range, more records."""
    if isinstance(before, str) or isinstance(after, str):
        return []
    found = []
    reasons = {(document["failure"] or {}).get("reason") for document in before} | _CUT
    reasons |= {"nan_loss" for document in before if document["checks"]["finite_losses"] is False}  # what is left of two reasons
    reasons |= {"killed"} if "host_oom" in reasons else set()
    reasons |= {"cuda_error"} if "cuda_oom" in reasons else set()
    ranges = _ranges(before)
    checked = {check for document in before for check in document["checks"].items()}
    for document in after:
        found += [f"/checks/{name}: {value}" for name, value in document["checks"].items() if _claims(name, value, checked)]
        if (reason := (document["failure"] or {}).get("reason")) not in reasons:
            found.append(f"/failure/reason: {reason}")
        for name, (least, most, count) in _ranges([document]).items():
            low, high, many = ranges.get(name, (0.0, 0.0, 0))
            if count > many or least < low or most > high:
                found.append(f"{name}: {count} of {least} to {most}, of {many} of {low} to {high}")
    return found


def _claims(name: str, value: bool | None, checked: set[tuple[str, bool | None]]) -> bool:
    """True for a check that passes, or proves a fault of the run, where that of no whole log does; an end may be lost."""
    return (value is True or (value is False and name in ("no_oom", "finite_losses"))) and (name, value) not in checked


def _ranges(documents: Sequence[Document]) -> dict[str, tuple[float, float, int]]:
    """Return the least and the greatest step and value of each metric of the registry, and how many records there are of it."""
    found: dict[str, tuple[float, float, int]] = {}
    for summary in (phase["summary"] for document in documents for phase in document["phases"] or []):
        metrics = {name: metric for name, metric in (summary["metrics"] or {}).items() if metric and metric["min"] is not None}
        own = {name: (one["min"], one["max"], one["record_count"]) for name, one in metrics.items()}
        steps = summary["steps"]
        if steps["first"] is not None:
            own["steps"] = (steps["first"], steps["last"], steps["record_count"])
        for name, (least, most, count) in own.items():
            if None not in (least, most, count) and not CLOCK.paths.search(f"/metrics/{name}"):  # a problem leaves it open
                low, high, many = found.get(name, (least, most, 0))
                found[name] = (min(low, least), max(high, most), many + count)
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
