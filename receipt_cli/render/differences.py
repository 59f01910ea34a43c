"""Render the differences between two documents, and the results of ``receipt verify`` and of a batch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from receipt_cli.render.console import Column, Page, Span, elide, elide_middle, write_table, write_texts
from receipt_cli.render.fields import UNKNOWN
from receipt_cli.render.scale import byte_size, count, duration, many, rate, significant
from receipt_cli.render.style import Role, Style

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


def _row(page: Page, difference: Difference) -> list[str]:
    mark, role = _MARKS[difference.kind]
    values = [elide(page.say(_json(value)), _VALUE) for value in (difference.old, difference.new)]
    return [Span(mark, role), elide_middle(page.say(difference.pointer), _POINTER), *values]


def _json(value: object) -> str:
    if value is None or isinstance(value, bool | int | float | str | list | dict):
        return json.dumps(value, ensure_ascii=False)
    return UNKNOWN  # of an absent field


_REASONS = {
    "log": "another log: its bytes are not those that the receipt was derived from",
    "times": "another file of times beside the log than the recorded one, or none",
    "samples": "another file of samples beside the log than the recorded one, or none",
    "grammar": "another grammar: the recorded one is not known here; one that does not ship: --grammar FILE",
    "markers": "another catalogue of failure markers than the recorded one ships with this release",
    "registry": "another metric registry than the recorded one ships with this release",
    "peaks": "another table of accelerator peaks than the recorded one ships with this release",
    "rules": "other rules: this release derives otherwise than the recorded rules",
    "values": "other values",
}
_OF_THE_RELEASE = {"markers", "registry", "peaks", "rules"}
"""Inputs of which a release has one version."""
_GENERIC = "generic@"
"""Start of the grammar for unknown trainers, of which a release has one version too."""
_CHANGED = "other values, though log, definitions and rules are the recorded ones: the receipt was changed"


@dataclass(frozen=True, slots=True)
class Title:
    """The compared files: names of the receipt and its (first) log, the grammars that read it, and whether today's are used.

    ``made_by`` is the version of the program that wrote the receipt, if it is another one.
    """

    receipt: str
    log: str
    refs: Sequence[str]
    newest: bool
    made_by: str | None = None


def render_verification(
    differences: Sequence[Difference],
    other: Sequence[str],
    invalid: Sequence[str],
    title: Title,
    style: Style,
    *,
    touched: bool = False,
) -> str:
    """Return the page. ``other`` names the inputs that differ, ``invalid`` the errors of the receipt itself; ``touched``: its
    captured parts were changed.
    """
    page = Page(style)
    log = "stdin" if title.log == "-" else PurePath(title.log).name
    read = Span("  " + (", ".join(title.refs) or "no grammar"), "dim")
    kinds = count_kinds(difference.kind for difference in differences)
    if not differences and not invalid and not touched:
        same = f"{PurePath(title.receipt).name} is what {log} gives"
        page.line(Span("the same today" if title.newest else "verified", "good"), f": {same}", read)
        return page.text()
    otherwise = "the receipt is not valid" if invalid else "the captured parts were changed"
    if title.newest and differences:
        page.line(Span("otherwise today", "warn"), f": {kinds} in {log}", read)
    else:
        page.line(Span("not verified", "bad"), f": {kinds if differences else otherwise}", read)
    for name in other if not title.newest else [name for name in other if name == "log"]:
        page.prose(_CHANGED if list(other) == ["values"] else _REASONS[name], indent=2, bullet="- ")
    of_release = _OF_THE_RELEASE | ({"grammar"} if any(ref.startswith(_GENERIC) for ref in title.refs) else set())
    if title.made_by is not None and not title.newest and of_release & set(other):
        by = f"the receipt was written by receipt {title.made_by}, which verifies it: receipt-cli=={title.made_by}"
        page.prose(by, indent=2, bullet="- ")
    if touched:
        page.prose("run, header or attachments were changed since the receipt was written", indent=2, bullet="- ")
    for text in invalid:
        page.prose(f"the receipt is not valid: {text}", indent=2, bullet="- ")
    if differences:
        page.gap()
        write_differences(page, differences, old="recorded", new="derived now")
    return page.text()


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
    rows = [[Span(name, _ROLES.get(name, "plain")), count(number)] for name, number in counts.items() if number]
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
    write_texts(page, [Column("log", least=16), Column("why", least=16)], records)
    if total > len(records):
        page.line(Span(f"… and {count(total - len(records))} more: {more}", "dim"), indent=2)
    return page.text()


def render_change(path: str, change: str, differences: Sequence[Difference], style: Style, causes: Sequence[str] = ()) -> str:
    """Return the fields that a new receipt of the log at ``path`` would change, and the ``causes``."""
    page = Page(style)
    summary = count_kinds(difference.kind for difference in differences) if differences else "a first receipt"
    page.line(Span(path, "strong"), f"  would be {change}: {summary}")
    if differences:
        page.line(f"because of: {', '.join(causes) or 'no rule and no definition: the receipt was written otherwise'}", indent=2)
        write_differences(page, differences, old="receipt", new="now")
    return page.text()
