"""Two logs, one behind the other: each launch has the receipt that it has in a log of its own.

All but line numbers, counts of bytes and lines, and digests of the log must be the same; and but for the last lines of a
failed run, which may begin or end with lines of the other log that no rule reads, and the problem that a launch is in doubt,
with the figures that it makes null.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]
OF_THE_LOG = ("log", "lines", "launches")
"""Keys of ``derivation`` that describe the log as a whole."""
DOUBT = "launch_doubtful"
_PLACE = re.compile(r"\Alog:\d+\Z")


def alone(document: Document) -> Any:
    """Return a receipt without what depends on the log around its launch."""
    derivation = {name: value for name, value in document["derivation"].items() if name not in OF_THE_LOG}
    problems = derivation["problems"]
    kept = [problem for problem in problems["first"] if problem["kind"] != DOUBT]
    if "candidates" in derivation:
        derivation["candidates"] = [{**one, "share": None} for one in derivation["candidates"]]  # it is one of the log
    derivation["problems"] = {"count": problems["count"] - len(problems["first"]) + len(kept), "first": kept}
    failure = document["failure"] and {name: value for name, value in document["failure"].items() if name != "log_tail"}
    return without_places({**document, "derivation": derivation, "failure": failure})


def without_places(value: Any) -> Any:
    """Return a value of a document without line numbers, and without the digest of what they are in."""
    if isinstance(value, Mapping):
        return {name: without_places(inner) for name, inner in value.items() if not _is_place(name)}
    if isinstance(value, list):
        return [without_places(inner) for inner in value]
    return "log" if isinstance(value, str) and _PLACE.match(value) else value


def _is_place(name: str) -> bool:
    return name in ("line", "line_number", "lines", "check_lines", "captured_sha256") or name.endswith("_line")


def differences(before: Sequence[Document], after: Sequence[Document]) -> Iterator[str]:
    """Yield where the receipts of the launches of two logs differ from those of the logs one behind the other."""
    if len(before) != len(after):
        yield f"{len(before)} launches became {len(after)}"
        return
    for number, (one, other) in enumerate(zip(before, after, strict=True), 1):
        doubts = [problem for problem in other["derivation"]["problems"]["first"] if problem["kind"] == DOUBT]
        null = {_in_summary(field) for problem in doubts for field in problem["fields"]} - {""}
        yield from (f"launch {number}: {found}" for found in _between(alone(one), alone(other), "", null))


def _in_summary(where: str) -> str:
    """Return the place of a figure in the summary of its phase; empty for others."""
    return where.partition("/summary/")[2]


def _between(one: Any, other: Any, where: str, null: Collection[str]) -> Iterator[str]:
    """Yield where two values differ, but for the figures of a summary that may be ``null`` in the other one."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in sorted(one.keys() | other.keys()):
            yield from _between(one.get(name), other.get(name), f"{where}/{name}", null)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _between(left, right, f"{where}/{index}", null)
    elif repr(one) != repr(other) and not (other is None and _in_summary(where) in null):
        yield f"{where}: {str(one)[:80]} became {str(other)[:80]}"
