"""Rules of the captured parts of a receipt: its header and origin, its derived parts and its checks agree with each other.

``docs/contracts.md`` lists them. A change that contradicts no other field is found by the digest of the captured parts
(``captured_touched``) and, for derived parts, by ``receipt verify``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from receipt_cli.documents.canonical import CAPTURED, is_touched
from receipt_cli.documents.invariants.rule import PHASES, Broken, Document, Rule, is_import, said, summaries
from receipt_cli.problems import pointer, split_pointer, value_at


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each leaf that is not null; an empty object or array is a leaf."""
    if isinstance(value, dict | list) and value:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, (*path, str(key)))
    elif value is not None:
        yield path


_NOWHERE = object()


def _header_sources(document: Document) -> Broken:
    header = {key: value for key, value in document["header"].items() if key != "sources"}
    sources = document["header"]["sources"]
    for text in sources:
        if value_at(header, split_pointer(text), _NOWHERE) is _NOWHERE:
            yield pointer("header", "sources", text), "points to no value in the header"
    for path in _leaves(header):
        if not any(pointer(*path[:length]) in sources for length in range(1, len(path) + 1)):
            yield pointer("header", *path), "has no source"


HEADER_RULES: tuple[Rule, ...] = (Rule("header_sources", ("header",), _header_sources),)


_PREFIX = "import:"


def _origin(document: Document) -> Broken:
    derivation: dict[str, Any] = document["derivation"]
    if is_import(document) is not ("origin" in derivation):
        named = "an origin is named" if "origin" in derivation else "no origin is named"
        yield "/derivation/rules", f"is {derivation['rules']} though {named}"
    elif is_import(document) and derivation["grammars"]:
        yield "/derivation/grammars", "an imported document needs no grammar"


def _imported_values(document: Document) -> Broken:
    names = {entry["name"] for entry in document["derivation"]["log"].get("files", ())}
    for text, source in document["header"]["sources"].items():
        if not source.startswith(_PREFIX):
            continue
        name, mark, _ = source.removeprefix(_PREFIX).partition("#")
        if not is_import(document):
            yield pointer("header", "sources", text), "is an imported document, but this receipt is of a log"
        elif mark and "/" not in name and name not in names:
            yield pointer("header", "sources", text), f"{name} is not in /derivation/log/files"


def _imported_window(document: Document) -> Broken:
    for at, summary in summaries(document):
        if summary["steady_state"]["rule"].startswith("import/") and not is_import(document):
            yield f"{at}/steady_state/rule", "is for an imported document, but this receipt is of a log"


ORIGIN_RULES: tuple[Rule, ...] = (
    Rule("origin", ("derivation",), _origin),
    Rule("imported_values", ("header", "derivation"), _imported_values),
    Rule("imported_window", ("phases", "summary", "derivation"), _imported_window),
)


_OOM = ("cuda_oom", "host_oom")
_MOST_PHASES = 1000
"""Most phases that a receipt lists; an omitted phase may decide a check."""
_MOST_MARKERS = 20
"""Most markers that a failure lists."""
_NOT_HELD = ("derive/1", "derive/2")
"""Rule versions of released receipts that may break ``checks_of_phases``."""
_CLOCK_SLACK_S = 2.0
"""Rounding of times in whole seconds; a larger contradiction is a reset clock or a changed document."""


def _exit_code(document: Document) -> Broken:
    code, stated = document["derivation"]["options"]["exit_code"], document["checks"]["zero_exit_code"]
    captured = document["run"]["exit_code"]
    if code is not None and stated is not (code == 0):
        yield "/checks/zero_exit_code", f"is {said(stated)} though the caller stated exit code {code}"
    elif captured is not None and stated is not (captured == 0):
        yield "/run/exit_code", f"is {captured} though /checks/zero_exit_code is {said(stated)}"
    elif code is not None and captured != code:
        yield "/run/exit_code", f"is {'null' if captured is None else captured}, the derivation used {code}"


def _wall(document: Document) -> Broken:
    run, wall = document["run"], document["derivation"]["options"].get("wall")
    captured = run.get("wall_time_s")
    if wall is None or captured is None or wall["evidence"] != "receipt_run":
        return  # `--wall RECEIPT` takes the wall time of another receipt
    if wall["seconds"] != captured:
        yield "/run/wall_time_s", f"is {captured}, the derivation used {wall['seconds']} s"


def _times(document: Document) -> Broken:
    run = document["run"]
    if run["started_at"] is None or run["finished_at"] is None:
        return
    began, ended = (_seconds(run[name]) for name in ("started_at", "finished_at"))
    wall = run.get("wall_time_s")
    if ended < began - _CLOCK_SLACK_S:
        yield "/run/finished_at", f"is before the start, {run['started_at']}"
    elif wall is not None and wall > ended - began + _CLOCK_SLACK_S:
        yield "/run/wall_time_s", f"is {wall} s, longer than from start to end"


def _seconds(text: str) -> float:
    """Return the seconds since 1970 of an RFC 3339 text in UTC; a leap second counts as the next second."""
    whole, leap = (text[:17] + "59" + text[19:], 1.0) if text[17:19] == "60" else (text, 0.0)
    try:
        return datetime.fromisoformat(whole).timestamp() + leap
    except ValueError:  # the 31st of February
        return 0.0


def _failure(document: Document) -> Broken:
    checks, failure = document["checks"], document["failure"]
    cut = document["derivation"]["options"].get("log_complete") is False  # ``log_complete_agrees`` checks the consequences
    if failure is None:
        for name in ("zero_exit_code", "no_oom", "completed"):
            if checks[name] is False and not (name == "zero_exit_code" and any(True for _ in _exit_code(document))):
                yield "/failure", f"is null though checks.{name} is false"
    elif checks["completed"] is True and failure["reason"] != "nan_loss" and not cut:
        yield "/checks/completed", f"is true though the run failed with {failure['reason']}"


def _no_oom(document: Document) -> Broken:
    failure, stated = document["failure"], document["checks"]["no_oom"]
    if failure is None:
        return  # ``_failure`` reports it
    seen = failure["reason"] in _OOM or any(marker["reason"] in _OOM for marker in failure["markers"])
    if seen and stated is not False:
        yield "/checks/no_oom", f"is {said(stated)} though the run failed with {failure['reason']} and ran out of memory"
    elif stated is False and not seen and len(failure["markers"]) < _MOST_MARKERS and not is_import(document):
        yield "/checks/no_oom", "is false though no marker of the failure is about memory"


def _mfu(document: Document) -> Broken:
    for at, summary in summaries(document):
        mfu = summary["metrics"].get("mfu_ratio")
        if mfu is None or mfu["max"] is None or mfu["max"] <= 1 or is_import(document):
            continue
        if mfu["window"] == "steady":
            yield f"{at}/metrics/mfu_ratio/max", f"is {mfu['max']} though the steady state has no record above 1"
        if document["checks"]["mfu_plausible"] is not False:
            yield "/checks/mfu_plausible", f"is {said(document['checks']['mfu_plausible'])} though an MFU is {mfu['max']}"


def _checks_of_phases(document: Document) -> Broken:
    if document["derivation"]["rules"] in _NOT_HELD or is_import(document) or len(document["phases"]) >= _MOST_PHASES:
        return
    checks, every = document["checks"], [summary for _, summary in summaries(document)]
    compared: list[Any] = [c["consistent"] for s in every for c in s["consistency"] if c["metric"] != "mfu_ratio"]
    stepped = [
        s
        for s in every
        if s["steps"]["record_count"] or (s["steps"]["record_count"] is None and s["steady_state"]["record_count"])
    ]
    restarts = [s["steps"]["restart_count"] for s in stepped]
    for name, wanted in (
        ("throughput_consistent", all(compared) if compared else None),
        ("steps_monotonic", None if None in restarts or not restarts else not any(restarts)),
    ):
        if checks[name] is not wanted:
            yield f"/checks/{name}", f"is {said(checks[name])}, but {said(wanted)} by the phases"


def _touched(document: Document) -> Broken:
    if is_touched(document):
        yield "/captured_sha256", "is not the digest of run, header and attachments: they were changed later"


CAPTURED_RULES: tuple[Rule, ...] = (
    Rule("exit_code_agrees", ("run", "checks", "derivation"), _exit_code),
    Rule("wall_agrees", ("run", "derivation"), _wall),
    Rule("times_in_order", ("run",), _times, "note"),
    Rule("failure_agrees", ("failure", "checks", "run", "derivation"), _failure),
    Rule("no_oom_agrees", ("failure", "checks", "derivation"), _no_oom),
    Rule("mfu_agrees", (*PHASES, "checks", "derivation"), _mfu),
    Rule("checks_of_phases", (*PHASES, "checks", "derivation"), _checks_of_phases),
    Rule("captured_touched", CAPTURED, _touched, "note"),
)
