"""Withhold doubtful values: the only place where a computed value becomes null."""

from __future__ import annotations

from typing import Any

from receipt_cli.documents.invariants.rule import pointer_parts


def withhold(document: dict[str, Any]) -> None:
    """Set each field to null that a problem of the receipt lists in its ``fields``.

    ``/summary`` and the primary phase's summary are one object; missing fields are ignored.
    """
    for problem in document["derivation"]["problems"]["first"]:
        for field in problem["fields"]:
            *way, name = pointer_parts(field)
            place: Any = document
            for part in way:
                place = place[int(part)] if isinstance(place, list) else place.get(part) if place is not None else None
            if isinstance(place, dict) and name in place:
                place[name] = None
