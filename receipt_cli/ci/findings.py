"""What is wrong with a run and its log, each with its place: the one list behind annotations and SARIF."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from receipt_cli.ci.log_locations import Place, Places
from receipt_cli.ci.verdict import Verdict

Level = Literal["error", "warning", "note"]

MAX_TEXT = 1000
"""Characters of a message, and of what it quotes from a log."""
RULES = {
    "failure": "Why the training run failed, as its log shows.",
    "check": "A check of the receipt that the gates require and that does not hold.",
    "gate": "A gate of the CI job that the run did not pass.",
    "problem": "A line of the log that is wrong or ambiguous; the values in doubt are left out of the receipt.",
    "near-miss": "A line of the log that almost matches a rule of the grammar: the trainer's format may have changed.",
}
"""What the first part of a rule's name means."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at. ``rule`` is ``failure/cuda_oom`` or the like, ``message`` plain text in one line."""

    rule: str
    level: Level
    title: str
    message: str
    place: Place | None


def list_findings(document: Mapping[str, Any], verdict: Verdict, places: Places) -> list[Finding]:
    """Return the findings: why the run failed, what made the job fail, then problems and near misses in the log's order."""
    return [*_failure(document, places), *_rulings(verdict, places), *_lines(document, places)]


def _failure(document: Mapping[str, Any], places: Places) -> Iterator[Finding]:
    failure = document.get("failure")
    if failure:
        at = f" (line {failure['line_number']} of the log)" if failure["line_number"] is not None else ""
        told = failure["message"] or f"the run ended: {failure['reason']}"
        title = f"training failed: {failure['reason']}"
        yield Finding(f"failure/{failure['reason']}", "error", title, _cut(told, at), places.locate(failure["line_number"]))


def _rulings(verdict: Verdict, places: Places) -> Iterator[Finding]:
    for ruling in verdict.rulings:
        if ruling.fails:
            title = f"{ruling.kind} {ruling.name}"
            told = _cut(f"{title}: {ruling.sentence}")
            yield Finding(f"{ruling.kind}/{ruling.name}", "error", title, told, places.locate(None))


def _lines(document: Mapping[str, Any], places: Places) -> Iterator[Finding]:
    derivation = document["derivation"]
    for problem in derivation["problems"]["first"]:
        line = problem["line_number"]
        yield Finding(f"problem/{problem['kind']}", "warning", problem["kind"], _cut(problem["detail"]), places.locate(line))
    for miss in (derivation.get("near_misses") or {"first": ()})["first"]:
        told = f"almost matches rule {miss['rule']} of {miss['grammar']}: has the format changed?"
        rule = f"near-miss/{miss['grammar']}"
        yield Finding(rule, "note", "near miss", _cut(told), places.locate(miss["line_number"]))


def _cut(text: str, ending: str = "") -> str:
    room = MAX_TEXT - len(ending)
    return (text if len(text) <= room else f"{text[: room - 1]}…") + ending
