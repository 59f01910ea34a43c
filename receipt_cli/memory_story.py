"""``memory/1``: how memory developed over a phase: allocated against reserved, and what the allocator counted."""

from __future__ import annotations

from typing import Literal, NamedTuple

Reading = Literal["steady", "growth", "fragmentation", "unknown"]


class MemoryStory(NamedTuple):
    """The reading, the figures it rests on (bytes, counts, bytes per step), the bucket that grew most, and why."""

    reading: Reading
    figures: dict[str, float]
    growing: str | None
    because: str
