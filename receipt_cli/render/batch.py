"""Render a batch for the terminal: the outcome of its logs, and the changes that a dry run would make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from receipt_cli.render.console import Column, Page, Span, write_table
from receipt_cli.render.differences import count_kinds, write_differences
from receipt_cli.render.scale import byte_size, count, duration, many, rate, significant
from receipt_cli.render.style import Role, Style

if TYPE_CHECKING:
    from receipt_cli.documents.diff import Difference

_ROLES: Mapping[str, Role] = {"written": "good", "replaced": "good", "quarantined": "bad", "gone": "warn"}
_MEGA = 1e6


def render_summary(
    title: str,
    counts: Mapping[str, int],
    derived: int,
    derived_bytes: int,
    seconds: float,
    style: Style,
    unrecognised: int = 0,
    runs: int = 0,
) -> str:
    """Return the summary of a batch. ``counts`` are paths by outcome; zeros are left out.

    ``unrecognised`` counts receipts of logs that no grammar recognises, ``runs`` those of logs with several runs.
    """
    page = Page(style)
    logs = f"{many(derived, 'log')} derived"
    speed = ""
    if derived and seconds > 0:
        speed = f": {rate(derived / seconds, 'logs/s')}, {significant(derived_bytes / seconds / _MEGA)} MB/s"
    page.line(Span(title, "strong"))
    page.line(f"{logs} ({byte_size(derived_bytes)}) in {duration(seconds)}{speed}")
    rows = [[Span(name, _ROLES.get(name, "plain")), Span(count(number))] for name, number in counts.items() if number]
    write_table(page, [Column(""), Column("", right=True)], rows)
    if runs:
        page.line(f"logs with several runs contain {count(runs)}, each with its receipt", indent=2)
    if unrecognised:
        page.line(Span(f"{count(unrecognised)} of the receipts are of logs that no grammar recognises", "warn"), indent=2)
    return page.text()


def render_quarantine(records: Sequence[tuple[str, str]], total: int, style: Style, more: str = "") -> str:
    """Return the logs in quarantine, path and reason; ``total`` is their number, ``more`` the command that lists all."""
    page = Page(style)
    if not records:
        return ""
    page.heading("in quarantine", Span(count(total), "bad"))
    rows = [[Span(page.say(path), "strong"), Span(page.say(why))] for path, why in records]
    write_table(page, [Column("log", least=16), Column("why", least=16)], rows)
    if total > len(records):
        page.line(Span(f"… and {count(total - len(records))} more: {page.say(more)}", "dim"), indent=2)
    return page.text()


def render_change(path: str, change: str, differences: Sequence[Difference], style: Style, causes: Sequence[str] = ()) -> str:
    """Return the fields that a new receipt of the log at ``path`` would change, and the ``causes``."""
    page = Page(style)
    summary = count_kinds(difference.kind for difference in differences) if differences else "a first receipt"
    page.line(Span(page.say(path), "strong"), f"  would be {change}: {summary}")
    if differences:
        page.line(f"because of: {', '.join(causes) or 'no rule and no definition: the receipt was written otherwise'}", indent=2)
        write_differences(page, differences, old="receipt", new="now")
    return page.text()
