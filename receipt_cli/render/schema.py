"""Render the fields of a schema, and the differences between two, for the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from receipt_cli.render.console import Page, Span
from receipt_cli.render.scale import count
from receipt_cli.render.style import Role, Style

if TYPE_CHECKING:
    from receipt_cli.documents.schema_fields import Change, Field

_POINTER, _TYPE = 46, 15
"""Widest columns of pointers and types, in cells; a longer text pushes the rest of its line to the right."""
_SIGNS: dict[str, tuple[str, Role]] = {"added": ("+", "good"), "removed": ("-", "bad"), "changed": ("~", "warn")}


def render_fields(fields: Sequence[Field], style: Style) -> str:
    """Return the reference: for each field a line of pointer, type and unit, aligned, and its description below."""
    page = Page(style)
    width, kinds = _widest((field.pointer for field in fields), _POINTER), _widest((field.kind for field in fields), _TYPE)
    for field in fields:
        optional = not field.required and not field.pointer.endswith("*")
        note = ", ".join(part for part in (field.unit, "optional" if optional else None) if part)
        pointer, kind = field.pointer.ljust(width), field.kind.ljust(kinds if note else 0)
        fits = len(pointer) + len(kind) + len(note) + 4 <= style.width
        page.line(Span(pointer, "strong"), "  ", kind, *([Span(f"  {note}", "dim")] if note and fits else []))
        if note and not fits:
            page.prose(note, "dim", indent=4)
        if field.description:
            page.prose(field.description, indent=4)
        if field.choices:
            page.prose(f"one of {', '.join(map(_json_text, field.choices))}", "dim", indent=4)
        if field.same_as is not None:
            page.line(Span(f"its fields are those of {field.same_as}", "dim"), indent=4)
    return page.text()


def render_changes(old: str, new: str, changes: Sequence[Change], style: Style) -> str:
    """Return the verdict on the two schemas named, then a line for each change, aligned."""
    page = Page(style)
    against = sum(not change.compatible for change in changes)
    if not changes:
        page.line(f"{old} and {new} hold the same fields")
    elif against:
        page.line(Span("not compatible", "bad"), f": a reader of {old} may refuse a {new}")
    else:
        page.line(Span("compatible", "good"), f": a reader of {old} reads a {new} and passes over the new")
    width = _widest((change.pointer for change in changes), _POINTER)
    for change in changes:
        sign, role = _SIGNS[change.kind]
        mark = Span("" if change.compatible else "  ✗", "bad")
        head = [Span(sign, role), " ", Span(change.pointer.ljust(width), "strong"), "  "]
        if change.what == "field":
            page.line(*head, str(change.new if change.kind == "added" else change.old), mark)
        elif change.what == "description":
            page.line(*head, "description", mark)
            page.prose(str(change.new), "dim", indent=4)
        else:
            page.line(*head, f"{change.what}: {_limit(change.old)} → {_limit(change.new)}", mark)
    if changes:
        page.gap()
        page.line(f"{count(len(changes))} changes, {count(against)} of them not allowed in a minor version")
    return page.text()


def _widest(texts: Iterable[str], most: int) -> int:
    return max((len(text) for text in texts if len(text) <= most), default=0)


def _limit(value: object) -> str:
    return "nothing" if value is None else _json_text(value)


def _json_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
