"""Find the meaning of names in a foreign document: by the format's table, then by the aliases of the metric registry.

A name with an uncertain unit or meaning is doubtful, and its value is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from receipt_cli.definitions.metrics import Alias, load_registry
from receipt_cli.definitions.units import SPECIAL_UNITS

Kind = Literal["metric", "other", "fact", "step", "ignored", "doubtful"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a printed name: its kind, canonical name, the unit of the printed number, scope and definition.

    ``unit`` is a key of ``units.UNITS``, None for a base unit. A ``fact`` is a single value of the run (``grammar.FACTS``).
    """

    kind: Kind
    name: str = ""
    unit: str | None = None
    scope: str | None = None
    definition: str | None = None


_SIZE = re.compile(r"(?<![a-z])[kmgt]b\)?\Z")
"""Ending of a memory metric's name in GB or MB, which may be powers of 1000 or of 1024 bytes."""
_MAX_KNOWN = 4096
STEP, IGNORED, DOUBTFUL = Meaning("step"), Meaning("ignored"), Meaning("doubtful")


def metric(name: str, unit: str | None = None, *, scope: str | None = None, definition: str | None = None) -> Meaning:
    """Return the meaning of a canonical metric."""
    return Meaning("metric", name, unit, scope, definition)


def other(name: str) -> Meaning:
    """Return the meaning of a metric outside the registry, even if the registry has its name."""
    return Meaning("other", name)


def fact(name: str, unit: str | None = None) -> Meaning:
    """Return the meaning of a single value of the run."""
    return Meaning("fact", name, unit)


@cache
def _spellings() -> dict[str, list[tuple[str, Alias]]]:
    """Return lower-case spelling → (metric name, alias) for the registry's aliases."""
    known: dict[str, list[tuple[str, Alias]]] = {}
    for entry in load_registry().metrics:
        for alias in entry.aliases:
            known.setdefault(alias.spelling.lower(), []).append((entry.name, alias))
    return known


class Names:
    """The names of one format.

    ``trainers`` are the registry's trainers whose spellings it may use, the likeliest first; without any, a spelling counts
    only if it has the same meaning in all trainers, in its base unit. ``prefixes`` map possible prefixes of a known spelling,
    such as ``train/``, to their replacements.
    """

    def __init__(self, table: Mapping[str, Meaning], trainers: Sequence[str] = (), prefixes: Mapping[str, str] | None = None):
        self._table = table
        self._trainers = trainers
        self._prefixes = prefixes or {}
        self._known: dict[str, Meaning | None] = {}

    def meaning(self, spelling: str) -> Meaning | None:
        """Return the meaning of ``spelling``, ``DOUBTFUL`` if it is uncertain, None for an unknown name."""
        if spelling not in self._known:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            tries = [spelling]
            tries += [new + spelling.removeprefix(old) for old, new in self._prefixes.items() if spelling.startswith(old)]
            found = (self._table.get(name) or self._alias(name) for name in tries)
            self._known[spelling] = next((meaning for meaning in found if meaning is not None), None)
        return self._known[spelling]

    def _alias(self, spelling: str) -> Meaning | None:
        lowered = spelling.lower()
        if lowered in load_registry().by_name:
            return Meaning("metric", lowered)
        known = _spellings().get(lowered, ())
        own = [(name, a) for trainer in self._trainers for name, a in known if a.trainer == trainer]
        meanings = {(name, alias.printed_in) for name, alias in (own[:1] if self._trainers else known)}
        if not meanings:
            size = _SIZE.search(lowered)
            before = lowered[: size.start()] if size is not None else ""
            return DOUBTFUL if "mem" in before or "vram" in before else None
        name, unit = next(iter(meanings))
        sure = unit not in SPECIAL_UNITS if own else len(meanings) == 1 and unit is None
        return Meaning("metric", name, unit) if sure else DOUBTFUL
