"""Compare two GPU profiles, matched by the names of kernels: what grew, vanished and appeared, busy time and stalls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from receipt_cli.comparison.kinds.contrast import Document, Reasons, beside, pairs

_EVENTS = ("duration_s", "busy_s", "busy_ratio")
_LANE = ("elapsed_s", "tokens_per_s", "peak_memory_bytes")
_SHAPE = ("batch_size", "sequence_length", "warmup_step_count", "step_count")


def compare_profiles(a: Document, b: Document) -> dict[str, Any]:
    """Return the comparison of two profiles: ``figures`` of the session, ``kernels``, ``copies``, ``stalls`` and ``lanes``.

    Profiles of different devices are not comparable. A kernel vanished or appeared only if the other profile lists all of its
    kernels and lacks no records; else it is ``not_listed``.
    """
    reasons, events = Reasons(), [side["events"] or {} for side in (a, b)]
    recorded = bool(events[0]) and bool(events[1])
    labels = [lane["label"] for lane in a["lanes"] if any(lane["label"] == other["label"] for other in b["lanes"])]
    if not recorded and not labels:
        reasons.blocking.append("they have neither events nor a lane of the same name")
    if recorded:
        reasons.equal("the devices", *(_devices(side) for side in events), blocks=True)
        reasons.equal("the format of the recording", *(side["format"] for side in events))
        reasons.equal("the program", *(side["application"] for side in events))
        for which, side in zip(("first", "second"), events, strict=True):
            if not side["complete"] or side["lossy"]:
                reasons.weak.append(f"the {which} recording lacks {'records' if side['lossy'] else 'an end of its session'}")
    lanes = [_lane(a, b, label, reasons) for label in labels]
    if reasons.verdict == "not_comparable":
        return {**reasons.document(), "figures": [], "kernels": [], "copies": [], "stalls": [], "lanes": []}
    return {
        **reasons.document(),
        "figures": _figures(*events) if recorded else [],
        "kernels": _kernels(*events) if recorded else [],
        "copies": _copies(*events) if recorded else [],
        "stalls": _stalls(*events) if recorded else [],
        "lanes": lanes,
    }


def _devices(events: Document) -> str | None:
    """Return the names of the devices; None if one is unknown."""
    names = sorted({device["name"] or "" for device in events["devices"]})
    return ", ".join(names) if names and "" not in names else None


def _figures(a: Document, b: Document) -> list[dict[str, Any]]:
    found = pairs(_EVENTS, a, b)
    for name, key in (("kernel_time_s", "total_s"), ("launch_count", "launch_count"), ("kernel_count", "name_count")):
        found += pairs((name,), {name: a["kernels"][key]}, {name: b["kernels"][key]})
    return found


def _kernels(a: Document, b: Document) -> list[dict[str, Any]]:
    """Return the kernels of both lists by the size of their change, the largest first."""
    sides = [{kernel["name"]: kernel for kernel in events["kernels"]["top"]} for events in (a, b)]
    whole = [_lists_all(events) for events in (a, b)]
    found = []
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        first, second = (side.get(name) for side in sides)
        state = "both"
        if first is None or second is None:
            certain = whole[0] if first is None else whole[1]
            state = "not_listed" if not certain else "appeared" if first is None else "vanished"
        totals = [None if k is None else k["total_s"] for k in (first, second)]
        if state in ("vanished", "appeared"):
            totals = [0.0 if total is None else total for total in totals]
        kernel = beside(name, *totals)
        kernel = {"kernel": name, "state": state, **{key: kernel[key] for key in ("a", "b", "difference", "ratio")}}
        for key in ("count", "mean_s"):
            kernel |= {f"a_{key}": first and first[key], f"b_{key}": second and second[key]}
        found.append(kernel)
    return sorted(found, key=lambda kernel: (kernel["difference"] is None, -abs(kernel["difference"] or 0.0), kernel["kernel"]))


def _lists_all(events: Document) -> bool:
    """Return whether a kernel that is not in the list did not run."""
    kernels = events["kernels"]
    return events["complete"] and not events["lossy"] and len(kernels["top"]) == kernels["name_count"]


def _copies(a: Document, b: Document) -> list[dict[str, Any]]:
    sides = [{copy["direction"]: copy for copy in events["copies"]} for events in (a, b)]
    found = []
    for direction in dict.fromkeys([*sides[0], *sides[1]]):
        first, second = (side.get(direction, {}) for side in sides)
        found.append(
            {"direction": direction, "figures": pairs(("count", "total_s", "total_bytes", "bytes_per_s"), first, second)}
        )
    return found


def _stalls(a: Document, b: Document) -> list[dict[str, Any]]:
    """Return the shares of each reason; a reason that a side with samples does not have has the share 0 there."""
    sides = [{(s["reason"], s["not_issued"]): s["ratio"] for s in events.get("stall_reasons", ())} for events in (a, b)]
    if not all(sides):
        return []
    sampled = [{not_issued for _, not_issued in side} for side in sides]
    keys = [key for key in dict.fromkeys([*sides[0], *sides[1]]) if all(key[1] in seen for seen in sampled)]
    shares = [(*key, *(side.get(key, 0.0) for side in sides)) for key in keys]
    found = [
        {"reason": reason, "not_issued": not_issued, "a": a, "b": b, "difference": b - a} for reason, not_issued, a, b in shares
    ]
    return sorted(found, key=lambda stall: -abs(stall["difference"]))


def _lane(a: Document, b: Document, label: str, reasons: Reasons) -> dict[str, Any]:
    sides: list[Mapping[str, Any]] = [next(lane for lane in side["lanes"] if lane["label"] == label) for side in (a, b)]
    for name in _SHAPE:
        reasons.equal(f"{name} of the lane {label}", *(side[name] for side in sides), blocks=name in _SHAPE[:2])
    return {"label": label, "a_status": sides[0]["status"], "b_status": sides[1]["status"], "figures": pairs(_LANE, *sides)}
