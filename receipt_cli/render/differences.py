"""Render the differences between two documents, field by field, in aligned columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from receipt_cli.render.console import Column, Page, Span, elide, elide_middle, write_table
from receipt_cli.render.scale import count
from receipt_cli.render.style import Role

if TYPE_CHECKING:
    from receipt_cli.documents.diff import Difference

MOST = 40
"""Most differences shown one by one."""
_VALUE = 44
_LEAST = 12
_POINTER = 56
_MARKS: dict[str, tuple[str, Role]] = {"gained": ("+", "good"), "lost": ("-", "bad"), "changed": ("~", "warn")}
_PHASE = re.compile(r"/phases/\d+(?=/summary)")


def write_differences(page: Page, differences: Sequence[Difference], *, old: str = "old", new: str = "new") -> None:
    """Add the differences in their order, ``MOST`` at most, below ``old`` and ``new`` as titles.

    Differences of the primary phase that repeat those of the summary are counted and not shown twice.
    """
    in_summary = {_seen(d) for d in differences if d.pointer.startswith("/summary/")}
    shown = [d for d in differences if not (_PHASE.match(d.pointer) and _seen(d) in in_summary)]
    columns = [Column(""), Column("field"), Column(old, least=_LEAST), Column(new, least=_LEAST)]
    rows = [_row(page, difference) for difference in shown[:MOST]]
    write_table(page, columns, rows)
    if len(shown) > MOST:
        page.line(Span(f"… and {count(len(shown) - MOST)} more: --json lists them all", "dim"), indent=2)
    if again := len(differences) - len(shown):
        page.line(Span(f"{count(again)} of the same in the primary phase: /phases", "dim"), indent=2)


def count_kinds(kinds: Iterable[str]) -> str:
    """Return the numbers of gained, lost and changed fields in words, or ``nothing differs``."""
    known = list(kinds)
    parts = [f"{count(known.count(kind))} {kind}" for kind in _MARKS if kind in known]
    return ", ".join(parts) if parts else "nothing differs"


def _seen(difference: Difference) -> tuple[str, str, str]:
    return _PHASE.sub("", difference.pointer), _json(difference.old), _json(difference.new)


def _row(page: Page, difference: Difference) -> list[Span]:
    mark, role = _MARKS[difference.kind]
    values = [Span(elide(page.say(_json(value)), _VALUE)) for value in (difference.old, difference.new)]
    return [Span(mark, role), Span(elide_middle(page.say(difference.pointer), _POINTER)), *values]


def _json(value: object) -> str:
    if value is None or isinstance(value, bool | int | float | str | list | dict):
        return json.dumps(value, ensure_ascii=False)
    return ""
