"""Find, in one pass over a text, the groups of short texts that it contains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Leads:
    """Groups of texts, numbered from 0."""

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        self._owners: dict[str, list[int]] = {}
        for number, leads in enumerate(groups):
            for lead in leads:
                self._owners.setdefault(lead, []).append(number)
        self._frequent = [lead for lead in self._owners if len(lead) == 1]
        self._others = [lead for lead in self._owners if len(lead) > 1]
        self._search: Any = None

    def groups_in(self, text: str) -> list[int]:
        """Return the ascending numbers of the groups with a text in ``text``."""
        found = [lead for lead in self._frequent if lead in text]
        if self._search is None:
            self._search = _searcher(self._others)
        if self._search is False:
            found += [lead for lead in self._others if lead in text]
        else:
            hits = self._search(text.encode("utf-8", "surrogatepass"), overlapping=True)
            found += [self._others[number] for number in {hit[0] for hit in hits}] if hits else ()
        return sorted({number for lead in found for number in self._owners[lead]}) if found else []


def _searcher(leads: Sequence[str]) -> Any:
    """Return a function that finds ``leads`` in bytes, or False without the Aho-Corasick package."""
    try:
        from ahocorasick_rs import BytesAhoCorasick
    except ModuleNotFoundError:
        return False
    return BytesAhoCorasick([lead.encode() for lead in leads]).find_matches_as_indexes
