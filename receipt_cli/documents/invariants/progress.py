"""Rules of a phase's progress: rates are amounts over a time, quantiles ascend, and checkpoints are steps of the phase."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from receipt_cli.documents.invariants.figures import close, ratio
from receipt_cli.documents.invariants.rule import PHASES, Broken, Document, Rule, pointer, summaries

_AMOUNTS = {"steps_per_s": "step_count", "tokens_per_s": "tokens", "samples_per_s": "samples"}
_ASCENDING = ("p5_s", "p50_s", "p90_s", "p95_s", "p99_s")
_LISTED = 20
"""Most checkpoints that a receipt lists."""


def _blocks(document: Document, name: str) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for at, summary in summaries(document):
        if summary.get(name):
            yield at + pointer(name), summary[name], summary


def _realised(document: Document) -> Broken:
    for at, found, summary in _blocks(document, "realised"):
        for rate, amount in _AMOUNTS.items():
            wanted = ratio(found[amount], found["duration_s"])
            if not close(found[rate], wanted):
                yield f"{at}/{rate}", f"is {found[rate]}, but {amount} over duration_s is {wanted}"
        steps = summary["steps"]
        known = steps["first"] is not None and steps["last"] is not None
        if found["step_count"] is not None and known and found["step_count"] != steps["last"] - steps["first"]:
            yield f"{at}/step_count", f"is not the number of steps from {steps['first']} to {steps['last']}"


def _step_times(document: Document) -> Broken:
    for at, found, summary in _blocks(document, "step_times"):
        for low, high in pairwise(_ASCENDING):
            if found[low] > found[high]:
                yield f"{at}/{low}", f"is above {high}"
        printed = summary["metrics"].get("step_time_s")
        if found["source"] != "printed":
            if printed is not None:
                yield f"{at}/source", "is timestamps though the records print their step time"
        elif printed is None:
            yield f"{at}/source", "is printed, but the phase has no printed step time"
        elif printed["median"] is not None and not close(found["p50_s"], printed["median"]):
            yield f"{at}/p50_s", f"is {found['p50_s']}, the phase's own median is {printed['median']}"


def _identities(document: Document) -> Broken:
    for at, found, _ in _blocks(document, "identities"):
        names = [one["name"] for one in found]
        for number, one in enumerate(found):
            if names.index(one["name"]) != number:
                yield f"{at}/{number}/name", "appears twice"
            if not close(one["ratio"], ratio(one["left"], one["right"])):
                yield f"{at}/{number}/ratio", "is not left over right"
            elif one["holds"] is not True and one["ratio"] == 1:
                yield f"{at}/{number}/holds", "is not true though both sides are equal"


def _checkpoints(document: Document) -> Broken:
    for at, found, summary in _blocks(document, "checkpoints"):
        latest, last = found["latest"], found["latest"][-1]
        if len(latest) != min(found["count"], _LISTED):
            yield f"{at}/latest", f"lists {len(latest)} of {found['count']} checkpoints"
        if found["last_step"] != last["step"]:
            yield f"{at}/last_step", f"is {found['last_step']}, but the last listed checkpoint is of step {last['step']}"
        if found["last_line"] < last["line_number"]:
            yield f"{at}/last_line", "is before the last listed checkpoint"
        durations = [one["duration_s"] for one in latest]
        if found["count"] == len(latest) and (found["duration_s"] is None) != (None in durations):
            yield f"{at}/duration_s", "does not follow from the listed checkpoints"
        end = summary["steps"]["last"]
        unsaved = found["unsaved_step_count"]
        if unsaved is not None and end is not None and last["step"] is not None and unsaved > max(0, end - last["step"]):
            yield f"{at}/unsaved_step_count", f"is more than the steps from {last['step']} to {end}"


PROGRESS_RULES: tuple[Rule, ...] = (
    Rule("realised_rates", PHASES, _realised),
    Rule("step_time_spread", PHASES, _step_times),
    Rule("identity_ratio", PHASES, _identities),
    Rule("checkpoints_agree", PHASES, _checkpoints),
)
