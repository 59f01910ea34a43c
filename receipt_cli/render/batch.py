"""A batch for people: a bar while it runs, what became of the logs when it ends, and what a dry run would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from receipt_cli.render.differences import Difference, tell_kinds, write_differences
from receipt_cli.render.scale import byte_size, count, duration, rate, significant
from receipt_cli.render.terminal.page import Page, Span
from receipt_cli.render.terminal.style import Role, Style
from receipt_cli.render.terminal.table import Column, align

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_ROLES: Mapping[str, Role] = {"written": "good", "replaced": "good", "quarantined": "bad", "gone": "warn"}
_MEGA = 1e6


class BatchBar:
    """A bar on ``stream`` for many logs: a context manager, called with what is being done and how much."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._what = ""

    def __enter__(self) -> BatchBar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, what: str, logs: int, all_logs: int, done: int, total: int) -> None:
        """Show that ``logs`` of ``all_logs`` logs are done, which are ``done`` of ``total`` bytes."""
        if self._bar is None:
            self._bar = self._start()
        if what != self._what or self._task is None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task, self._what = self._bar.add_task(what, total=max(total, 1), logs=""), what
        self._bar.update(self._task, completed=done, logs=f"{count(logs)} of {count(all_logs)}")

    def _start(self) -> Progress:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        style = Style.detect(self._stream)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[logs]} logs", markup=False),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        console = Console(file=self._stream, width=style.width, no_color=not style.color)
        bar = Progress(*columns, console=console, transient=True, refresh_per_second=4)
        bar.start()
        return bar


def render_summary(
    title: str,
    counts: Mapping[str, int],
    derived: int,
    derived_bytes: int,
    seconds: float,
    style: Style,
    unrecognised: int = 0,
) -> str:
    """Return the last words of a batch: ``counts`` are logs by what became of them; zeros are left out.

    ``unrecognised`` says of how many receipts no grammar knew the log.
    """
    page = Page(style)
    logs = f"{count(derived)} {'log' if derived == 1 else 'logs'} derived"
    speed = ""
    if derived and seconds > 0:
        speed = f": {rate(derived / seconds, 'logs/s')}, {significant(derived_bytes / seconds / _MEGA)} MB/s"
    page.line(Span(title, "strong"))
    page.line(f"{logs} ({byte_size(derived_bytes)}) in {duration(seconds)}{speed}")
    rows = [[Span(name, _ROLES.get(name, "plain")), Span(count(number))] for name, number in counts.items() if number]
    page.rows(align([Column(""), Column("", right=True)], rows, page.style.width))
    if unrecognised:
        page.line(Span(f"{count(unrecognised)} of the receipts are of logs that no grammar recognises", "warn"), indent=2)
    return page.text()


def render_quarantine(records: Sequence[tuple[str, str]], total: int, style: Style, more: str = "") -> str:
    """Return the logs in quarantine: path, and why; ``total`` says how many there are, ``more`` how to see them all."""
    page = Page(style)
    if not records:
        return ""
    page.heading("in quarantine", Span(count(total), "bad"))
    rows = [[Span(page.say(path), "strong"), Span(page.say(why))] for path, why in records]
    page.rows(align([Column("log", least=16), Column("why", least=16)], rows, page.style.width - 2))
    if total > len(records):
        page.line(Span(f"… and {count(total - len(records))} more: {page.say(more)}", "dim"), indent=2)
    return page.text()


def render_change(path: str, change: str, differences: Sequence[Difference], style: Style) -> str:
    """Return what a new receipt of the log at ``path`` would change, field by field."""
    page = Page(style)
    told = tell_kinds(difference.kind for difference in differences) if differences else "a first receipt"
    page.line(Span(page.say(path), "strong"), f"  would be {change}: {told}")
    if differences:
        write_differences(page, differences, old="receipt", new="now")
    return page.text()


def render_receipts(rows: Sequence[Mapping[str, object]], style: Style) -> str:
    """Return the receipts of a store, a line each: ``{log_sha256, generation, name, grammar, last_step, healthy, failure}``."""
    page = Page(style)
    columns = [
        Column("log"),
        Column("n", right=True, drop=1),
        Column("run", least=12),
        Column("grammar", least=12),
        Column("last step", right=True),
        Column("outcome", least=10),
    ]
    shown = [
        [
            Span(str(row["log_sha256"])[:12], "strong"),
            Span(str(row["generation"])),
            Span(page.say(str(row["name"] or ""))),
            Span(page.say(str(row["grammar"] or ""))),
            Span(count(row["last_step"]) if isinstance(row["last_step"], int) else "–"),
            _outcome(page, row),
        ]
        for row in rows
    ]
    if shown:
        page.rows(align(columns, shown, page.style.width), indent=0)
    page.line(Span(f"{count(len(shown))} {'receipt' if len(shown) == 1 else 'receipts'}", "dim"))
    return page.text()


def _outcome(page: Page, row: Mapping[str, object]) -> Span:
    healthy, failure = row["healthy"], row["failure"]
    if failure:
        return Span(page.say(str(failure)), "bad")
    return Span("healthy", "good") if healthy else Span("not healthy" if healthy is False else "–", "warn")
