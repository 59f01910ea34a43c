"""Outcome of a run: the verdict and its checks, the failure reason, and the accounting of all log records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from receipt_cli.analysis.checks import CORE
from receipt_cli.render.fields import child, items, mapping, real, text, truth, whole
from receipt_cli.render.scale import count, duration, share
from receipt_cli.render.terminal.page import Page, Span
from receipt_cli.render.terminal.style import Role
from receipt_cli.render.terminal.text import cells, elide, elide_middle, pad

_FALSE = {  # what explains most comes first
    "has_steps": "no training step was found",
    "no_oom": "memory ran out",
    "finite_losses": "a loss is not finite",
    "zero_exit_code": "the exit code is not zero",
}
_UNKNOWN = {
    "finite_losses": "whether every loss is finite",
    "zero_exit_code": "the exit code",
    "has_steps": "whether there were steps",
    "no_oom": "whether memory ran out",
}
_MARKS: dict[bool | None, tuple[str, Role]] = {True: ("✓", "good"), False: ("✗", "bad"), None: ("?", "warn")}
_MAX_CHECKS = 24
_NAME_WIDTH = 32
_RULERS = " ^~=-*#_"  # a line of nothing else carries no information
_MAX_TAIL = 12
_MAX_MARKERS = 6
_MAX_DETAILS = 3


def write_verdict(page: Page, document: Mapping[str, object]) -> None:
    """Add the verdict in one line (healthy and proven, healthy, or not, and why) and the checks under it."""
    checks = mapping(document, "checks")
    wrong = [reason for name, reason in _FALSE.items() if truth(checks, name) is False]
    failed = text(document, "failure", "reason")
    unknown = [name for name in CORE if truth(checks, name) is None]
    page.gap()
    if wrong:
        page.flow("", [[Span(f"✗ not healthy: {', '.join(wrong)}", "bad")], *_cause(page, document)], indent=0)
    elif failed is not None:
        state = "truncated: the log stops before its run ends" if failed == "truncated" else "not healthy: the run failed"
        page.flow("", [[Span(f"✗ {state}", "bad")], *(_cause(page, document) if failed != "truncated" else [])], indent=0)
    elif truth(checks, "has_steps") is None:
        page.flow("", [[Span("? unknown: no step line was recognised", "warn")]], indent=0)
    elif unknown:
        page.flow("", [[Span("✓ healthy", "good"), Span(", not proven")], *_cause(page, document)], indent=0)
        page.prose(f"the log does not show {_join([_UNKNOWN[name] for name in unknown])}", "dim", indent=2)
    else:
        page.flow("", [[Span("✓ healthy and proven", "good")], *_cause(page, document)], indent=0)
    names = [*CORE, *(name for name in checks if name not in CORE)][:_MAX_CHECKS]
    write_check_grid(page, [(elide(page.say(name), _NAME_WIDTH), truth(checks, name), name in CORE) for name in names])


def _cause(page: Page, document: Mapping[str, object]) -> list[list[Span]]:
    reason, line = text(document, "failure", "reason"), whole(document, "failure", "line_number")
    if reason is None:
        return []
    return [[Span(page.say(reason), "warn"), Span(f" at line {line}" if line is not None else "", "dim")]]


def write_check_grid(page: Page, checks: Sequence[tuple[str, bool | None, bool]]) -> None:
    """Add the checks (name, value, whether it decides about health) in as many aligned columns (4, 2 or 1) as fit."""
    for columns in (4, 2, 1):
        widths = [max((cells(name) for name, _, _ in checks[i::columns]), default=0) for i in range(columns)]
        if sum(widths) + 4 * columns + 2 <= page.style.width:
            break
    for start in range(0, len(checks), columns):
        spans: list[Span] = []
        for (name, value, decides), width in zip(checks[start : start + columns], widths, strict=False):
            mark, role = _MARKS[value]
            if value is False and not decides:
                role = "warn"
            named: Role = "plain" if value is True else "dim" if value is None else role
            spans += [
                Span(mark, "dim" if value is None and not decides else role),
                Span(" "),
                Span(pad(name, width), named),
            ]
            spans.append(Span("  "))
        page.line(*spans, indent=2)


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def write_failure(page: Page, document: Mapping[str, object]) -> None:
    """Add the failure reason, the markers and the end of the log; nothing for a run that did not fail."""
    failure = mapping(document, "failure")
    if not failure:
        return
    reason, category, line = text(failure, "reason"), text(failure, "category"), whole(failure, "line_number")
    place = f" · {_place(page, document, line)}" if line is not None else ""
    page.gap()
    page.line(
        Span("failure", "heading"),
        "  ",
        Span(page.say(reason or "?"), "bad"),
        Span(f" · {page.say(category)}" if category else "", "dim"),
        Span(place, "dim"),
    )
    message = text(failure, "message")
    if message:
        page.prose(page.say(message), indent=2)
    _explain(page, failure)
    seen = [found for found in map(_marker, items(failure, "markers")) if found]
    if seen:
        shown = [[Span(page.say(name)), Span(note, "dim")] for name, note in seen[:_MAX_MARKERS]]
        more = len(seen) - _MAX_MARKERS
        page.flow("seen", [*shown, *([[Span(f"{more} more", "dim")]] if more > 0 else [])])
    _tail(page, failure, message)


def _explain(page: Page, failure: Mapping[str, object]) -> None:
    """Add where the exception was raised, who failed first, whether it would fail again, and since when nothing moved."""
    file, line = text(failure, "exception", "frame", "file"), whole(failure, "exception", "frame", "line")
    if file is not None and line is not None:
        function = text(failure, "exception", "frame", "function")
        page.flow("raised", [[Span(f"{page.say(file)}:{line}"), Span(f" in {page.say(function)}" if function else "", "dim")]])
    first = _party(page, mapping(failure, "culprit"))
    others = [_party(page, victim) for victim in items(failure, "victims", "first") if isinstance(victim, Mapping)]
    if first:
        page.flow("first", [[Span(first)]])
    if others:
        count_ = whole(failure, "victims", "count") or len(others)
        more = [[Span(f"{count_ - _MAX_MARKERS} more", "dim")]] if count_ > _MAX_MARKERS else []
        page.flow("after it", [*([Span(one, "dim")] for one in others[:_MAX_MARKERS]), *more])
    if text(failure, "retry", "verdict") == "would_repeat":
        rule = page.say(text(failure, "retry", "rule") or "")
        page.flow("retry", [[Span("would fail in the same place"), Span(f"  {rule}", "dim")]])
    silence = real(failure, "progress", "silence_s")
    if truth(mapping(failure, "progress"), "stalled") and silence is not None:
        place = whole(failure, "progress", "line_number")
        page.flow(
            "stalled",
            [[Span(f"no progress for the last {duration(silence)}", "warn"), Span(f" since line {place or 0}", "dim")]],
        )


def _party(page: Page, party: Mapping[str, object]) -> str:
    """Return rank and host of a party, and the collective that it was at; empty for nobody."""
    rank, host = whole(party, "rank"), text(party, "host")
    enqueued, completed = whole(party, "enqueued"), whole(party, "completed")
    parts = [f"rank {rank}" if rank is not None else "", f"on {page.say(host)}" if host is not None else ""]
    parts += [f"(collective {enqueued} enqueued, {completed} completed)"] if enqueued is not None else []
    return " ".join(part for part in parts if part)


def _place(page: Page, document: Mapping[str, object], line: int) -> str:
    """Return the line in words: in a log of several files, the file and the line in it."""
    before = 0
    for file in items(document, "derivation", "log", "files"):
        own = whole(file, "line_count") or 0
        if before < line <= before + own:
            return f"line {line - before} of {page.say(text(file, 'name') or '?')} (line {line} of all)"
        before += own
    return f"line {line} of the log"


def _marker(marker: object) -> tuple[str, str] | None:
    name = text(marker, "id")
    if name is None:
        return None
    times, first, last = (whole(marker, key) for key in ("count", "first_line", "last_line"))
    note = f" ×{count(times)}" if times is not None and times != 1 else ""
    if first is not None:
        note += f" line {first}" + (f"–{last}" if last is not None and last != first else "")
    return name, note


def _tail(page: Page, failure: Mapping[str, object], message: str | None) -> None:
    tail = [line.expandtabs(4).rstrip() for line in items(failure, "log_tail") if isinstance(line, str)]
    telling = [line for line in tail if line.strip(_RULERS)]
    shown = telling[-min(_MAX_TAIL, max(4, page.style.height // 2)) :]
    if not shown:
        return
    kept = "" if len(shown) == len(tail) else f" ({len(shown)} of the {len(tail)} lines kept)"
    page.line(Span(f"the log ended with{kept}", "dim"), indent=2)
    for line in shown:
        cause = message is not None and line.strip() == message.strip()
        body = elide_middle(page.say(line), page.style.width - 4)
        page.line(Span("│ ", "dim"), Span(body, "warn" if cause else "dim"), indent=2)


def write_accounting(page: Page, document: Mapping[str, object]) -> None:
    """Add how many records were matched, ignored, unmatched or undecodable, then near-misses and problems."""
    derivation = mapping(document, "derivation")
    counts = {name: whole(derivation, "lines", name) for name in ("matched", "ignored", "unmatched", "undecodable")}
    total = sum(value for value in counts.values() if value is not None)
    page.gap()
    facts: list[list[Span]] = []
    for name, value in counts.items():
        role: Role = "warn" if value and name == "undecodable" else "plain"
        part = f" ({share(value, total)})" if value and None not in counts.values() else ""
        facts.append([Span(f"{'?' if value is None else count(value)} {name}", role), Span(part, "dim")])
    page.flow("log records", facts, indent=0, label_width=11)
    _details(
        page,
        "near-misses",
        mapping(derivation, "near_misses"),
        "almost match a rule: has the format changed?",
    )
    _details(page, "problems", mapping(derivation, "problems"), "values in doubt are left out")


def _details(page: Page, label: str, found: Mapping[str, object], meaning: str) -> None:
    number = real(found, "count")
    if not number:
        return
    page.flow(label, [[Span(count(number), "warn"), Span(f"  {meaning}", "dim")]], indent=0, label_width=11)
    first = items(found, "first")[:_MAX_DETAILS]
    for entry in first:
        line = whole(entry, "line_number")
        grammar, rule = text(entry, "grammar"), text(entry, "rule")
        what = text(entry, "detail") or (f"{grammar or '?'} {rule}" if rule else text(entry, "kind") or "?")
        place = f"line {line}  " if line is not None else ""
        excerpt = child(entry, "excerpt")
        if isinstance(excerpt, str) and excerpt:
            page.line(Span(place, "dim"), Span(page.say(what)), Span(f"  {page.say(excerpt)}", "dim"), indent=13)
        else:
            page.prose(page.say(what), indent=13, bullet=place)
