"""Rules of the wall time: its parts add up, the ratio follows from them, and each part states its evidence."""

from __future__ import annotations

import math
from typing import Any

from receipt_cli.documents.invariants.rule import PHASES, Broken, Document, Rule, pointer, summaries

_SLACK = 1e-9
"""Largest relative error of a sum: each part is rounded once."""
_LISTED = 10
"""Most stalls that a receipt lists."""


def _parts(document: Document) -> dict[str, Any] | None:
    """Return the block if it states the evidence of each part, which it does since receipt/1.2; else None."""
    goodput: dict[str, Any] | None = document["goodput"]
    return goodput if goodput is not None and "parts" in goodput else None


def _ratio(document: Document) -> Broken:
    goodput = _parts(document)
    if goodput is None:
        return
    wall, steps = float(goodput["wall_time_s"]), float(goodput["step_time_s"])
    if wall and abs(float(goodput["goodput_ratio"]) - min(1.0, steps / wall)) > _SLACK:
        yield "/goodput/goodput_ratio", "is not step_time_s over wall_time_s"


def _add_up(document: Document) -> Broken:
    goodput = _parts(document)
    if goodput is None:
        return
    lost = [float(seconds) for seconds in goodput["badput_s"].values() if seconds is not None]
    total, wall = math.fsum([float(goodput["step_time_s"]), *lost]), float(goodput["wall_time_s"])
    if goodput["badput_s"]["idle"] is None or abs(total - wall) > _SLACK * max(wall, 1.0):
        yield "/goodput/badput_s", f"with step_time_s adds up to {total:g} s of a wall time of {wall:g} s"


def _known(document: Document) -> Broken:
    goodput = _parts(document)
    for name, part in goodput["parts"].items() if goodput is not None else ():
        at = pointer("goodput", "parts", name)
        unknown = goodput is not None and goodput["badput_s"][name] is None
        if unknown != (part["how"] == "unknown"):
            yield f"{at}/how", f"is {part['how']} though its seconds are {'null' if unknown else 'known'}"
        elif unknown and (part["count"] is not None or part["overlapped_s"] is not None):
            yield at, "is unknown, so its count and overlap must be null"


def _stated(document: Document) -> Broken:
    goodput, wall = _parts(document), document["derivation"]["options"].get("wall")
    if goodput is None:
        return
    if wall is None:
        if goodput["evidence"] != "log_timestamps":
            yield "/goodput/evidence", "is not log_timestamps, but no option states a wall time"
        elif goodput["phase"] is not None:
            yield "/goodput/phase", "is not null, but no option states a wall time"
        return
    if goodput["evidence"] not in (wall["evidence"], "log_timestamps"):
        yield "/goodput/evidence", f"is not {wall['evidence']}, which the options state"
    elif goodput["evidence"] == wall["evidence"]:
        for key, stated in (("wall_time_s", wall["seconds"]), ("phase", wall["phase"])):
            if goodput[key] != stated:
                yield f"/goodput/{key}", f"is not {stated}, which the options state"


def _range(document: Document) -> Broken:
    goodput = _parts(document)
    if goodput is None or "range" not in goodput:
        return
    low, high, ratio = goodput["range"]["low"], float(goodput["range"]["high"]), float(goodput["goodput_ratio"])
    if low is not None and float(low) > high + _SLACK:
        yield "/goodput/range/low", f"is above the high end, {high:g}"
    elif not float(low or 0) - _SLACK <= ratio <= high + _SLACK:
        yield "/goodput/range", f"does not contain the goodput, {ratio:g}"


def _stalls(document: Document) -> Broken:
    goodput = _parts(document)
    stalls = None if goodput is None else goodput.get("stalls")
    if goodput is None or stalls is None:
        return
    longest, total = stalls["longest"], float(stalls["total_s"])
    lengths = [float(stall["duration_s"]) for stall in longest]
    if len(longest) != min(stalls["count"], _LISTED):
        yield "/goodput/stalls/longest", f"lists {len(longest)} of {stalls['count']} stalls"
    if lengths != sorted(lengths, reverse=True):
        yield "/goodput/stalls/longest", "is not sorted by duration"
    if math.fsum(lengths) > total * (1 + _SLACK) + _SLACK:
        yield "/goodput/stalls/total_s", f"is less than the listed stalls, {math.fsum(lengths):g} s"
    limit = max(document["derivation"]["log"]["line_count"], document["derivation"]["log"]["record_count"])
    for number, stall in enumerate(longest):
        if not stall["after_line"] <= stall["line_number"] <= limit:
            yield (
                pointer("goodput", "stalls", "longest", number),
                f"is between lines {stall['after_line']} and {stall['line_number']}",
            )


def _time(document: Document) -> Broken:
    for at, summary in summaries(document):
        time = summary.get("time")
        if time is None:
            continue
        if (time["zone"] is not None) is not (time["first"].endswith("Z") and time["last"].endswith("Z")):
            yield f"{at}/time/zone", "does not agree with the timestamps"
        elif time["first"].rstrip("Z") > time["last"].rstrip("Z"):
            yield f"{at}/time/last", f"is before the first timestamp, {time['first']}"


GOODPUT_RULES: tuple[Rule, ...] = (
    Rule("goodput_ratio", ("goodput",), _ratio),
    Rule("goodput_adds_up", ("goodput",), _add_up),
    Rule("goodput_known", ("goodput",), _known),
    Rule("goodput_range", ("goodput",), _range),
    Rule("goodput_stalls", ("goodput", "derivation"), _stalls),
    Rule("time_in_order", PHASES, _time),
    Rule("goodput_stated", ("goodput", "derivation"), _stated),
)
