"""Leave out the figures that a problem puts in doubt: the one place where a figure that was computed becomes null."""

from __future__ import annotations

from typing import Any

from receipt_cli.documents.invariants.rule import pointer_parts


def withhold(document: dict[str, Any]) -> None:
    """Set each figure to null that a problem of the receipt names in its ``fields``.

    ``/summary`` and the primary phase are one object; a figure that the receipt does not have is passed over.
    """
    for problem in document["derivation"]["problems"]["first"]:
        for field in problem["fields"]:
            *way, name = pointer_parts(field)
            place: Any = document
            for part in way:
                place = place[int(part)] if isinstance(place, list) else place.get(part) if place is not None else None
            if isinstance(place, dict) and name in place:
                place[name] = None
