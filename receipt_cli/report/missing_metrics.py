"""Runs of a lane in order of time → metrics that its runs print no more: drift that leaves no trace in any one log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from receipt_cli.report.drift import Sign

Document: TypeAlias = Mapping[str, Any]

BEFORE = 10
"""Runs up to the last that has a metric which are looked at: nearly all of them must have it."""
LEAST_BEFORE = 4
LEAST_SINCE = 3
"""Runs without it: fewer may have died before they printed it."""
_USUAL = 0.8


def vanished(documents: Sequence[Document]) -> list[list[Sign]]:
    """Return for each receipt the metrics that the runs of its lane and preset have stopped printing by then.

    ``documents`` are in order of time. Runs without a step, and those that name neither lane nor preset, do not count.
    """
    found: list[list[Sign]] = [[] for _ in documents]
    lanes: dict[tuple[str | None, str | None], list[int]] = {}
    for place, document in enumerate(documents):
        key = document["run"]["lane"], document["run"]["preset"]
        if any(key) and _steps(document):
            lanes.setdefault(key, []).append(place)
    for (lane, preset), places in lanes.items():
        printed = [frozenset(documents[place]["summary"]["metrics"]) for place in places]
        title = " · ".join(name for name in (lane, preset) if name)
        for metric in sorted(frozenset().union(*printed)):
            last = max(i for i, names in enumerate(printed) if metric in names)
            before = [metric in names for names in printed[max(0, last + 1 - BEFORE) : last + 1]]
            since = places[last + 1 :]
            if len(since) >= LEAST_SINCE and len(before) >= LEAST_BEFORE and sum(before) >= _USUAL * len(before):
                run = documents[places[last]]
                name = run["run"]["name"] or run["derivation"]["log"]["sha256"][:12]
                sign = Sign("vanished", f"{metric} is printed no more in {title}", 1, f"last in {name}")
                for place in since:
                    found[place].append(sign)
    return found


def _steps(document: Document) -> bool:
    return bool(document["summary"] and document["summary"]["steps"]["record_count"])
