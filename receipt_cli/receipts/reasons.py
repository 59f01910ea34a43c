"""Explain a receipt's values: the log lines that each comes from, and how it is computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import takewhile
from typing import Any, NamedTuple

from receipt_cli.derive import Derivation
from receipt_cli.errors import UsageError
from receipt_cli.io.source import Source, numbered_lines
from receipt_cli.problems import pointer, split_pointer, value_at
from receipt_cli.records.envelope import plain, without_count
from receipt_cli.redaction.text import mask_texts, safe_text
from receipt_cli.scan.extraction import read_record
from receipt_cli.scan.extraction.labelled import keep_labelled
from receipt_cli.scan.extraction.model import DROPPED, convert

Document = Mapping[str, Any]
ENDS = ("first", "last", "min", "max")
"""Statistics of a metric that come from one line."""
FOLLOWING = 64
"""Number of lines after a record in which its companion lines are searched."""
_SPLIT = b"\r"


class Reason(NamedTuple):
    """A value, how it is computed, and the lines that it comes from: one, or the first and last of several."""

    pointer: str
    value: object
    how: str
    lines: tuple[int, ...]


class CellOfLine(NamedTuple):
    """A number or text of one record: the rule that read it, the field or label, the printed text, the value in base units,
    the printed unit, and the treatment: ``read``, ``other`` or ``dropped``."""

    rule: str
    key: str
    text: str
    value: float | str | None
    unit: str | None
    treatment: str


_ABSENT = object()


def explain_field(document: Document, place: str) -> Reason:
    """Return the reason for the value at a JSON pointer of a receipt. Raises ``UsageError`` if there is none."""
    parts = split_pointer(place)
    value = value_at(document, parts, _ABSENT)
    if value is _ABSENT:
        hint = "receipt explain LOG --field /summary/metrics/loss/last"
        raise UsageError(f"the receipt has no {place}", try_=hint)
    how, lines = _why(document, parts)
    return Reason(place, value, how, tuple(line for line in lines if line) or _whole(document))


def explain_metric(document: Document, name: str) -> list[Reason]:
    """Return the reasons for a metric's statistics in the primary phase. Raises ``UsageError`` if there is no such metric."""
    summary = document["summary"] or {"metrics": {}, "other_metrics": {}}
    for block in ("metrics", "other_metrics"):
        if name in summary[block]:
            return [explain_field(document, pointer("summary", block, name, figure)) for figure in (*ENDS, "median", "mean")]
    known = ", ".join([*summary["metrics"], *summary["other_metrics"]][:12]) or "none"
    raise UsageError(f"the receipt has no metric {name}", why=f"it has {known}")


def at_companions(derivation: Derivation, path: str, reasons: Sequence[Reason]) -> list[Reason]:
    """Return the reasons, with the line of a companion if that line has the value, not the record's own line.

    Raises ``InputError``.
    """
    sought = [r for r in reasons if len(r.lines) == 1 and r.pointer.rpartition("/")[2] in ENDS and isinstance(r.value, float)]
    names = {f"{c.grammar.ref} {rule.name}" for c in derivation.detection.chosen for rule in c.grammar.rules if rule.companion}
    if not sought or not names:
        return list(reasons)
    found = read_lines(path, sorted({number for r in sought for number in range(r.lines[0], r.lines[0] + FOLLOWING)}))
    moved: dict[str, Reason] = {}
    for reason in sought:
        (first,) = reason.lines
        for number in range(first, first + FOLLOWING):
            cells = cells_of(derivation, found.get(number, b""))
            if any(cell.value == reason.value and (number == first or cell.rule in names) for cell in cells):
                how = reason.how.replace("its record begins on this line", f"its record begins on line {first}")
                moved[reason.pointer] = reason if number == first else reason._replace(how=how, lines=(number,))
                break
    return [moved.get(reason.pointer, reason) for reason in reasons]


def cells_of(derivation: Derivation, line: bytes) -> list[CellOfLine]:
    """Return the cells that a derivation's grammars read in one line, redraw by redraw; secrets are masked."""
    records = plain(line).split(_SPLIT)
    return [_masked(cell) for record in records for cell in _cells_of(derivation, without_count(record))]


def _masked(cell: CellOfLine) -> CellOfLine:
    text = mask_texts(cell.text, cell.key)
    masked = mask_texts(cell.value, cell.key) if isinstance(cell.value, str) else None
    value = cell.value if text == cell.text and masked is None else masked
    return cell._replace(key=safe_text(cell.key), text=text, value=value)


def _cells_of(derivation: Derivation, text: bytes) -> list[CellOfLine]:
    cells: list[CellOfLine] = []
    for chosen in derivation.detection.chosen:
        grammar = chosen.grammar
        tried = [rule for rule in grammar.rules if any(literal in text for literal in rule.literals)]
        read = [(rule, events) for rule in tried if (events := read_record(rule, text))]
        keep_labelled(text, read)
        for rule, events in read:
            name = f"{grammar.ref} {rule.name}"
            for event in events:
                for key, printed in event.texts.items():
                    spec = rule.fields[key]
                    cells.append(CellOfLine(name, key, printed, convert(spec, printed)[0], spec.unit, "read"))
                for key, number in event.unregistered.items():
                    start, end = event.unregistered_spans[key]
                    printed = text[start:end].decode("utf-8", "replace")
                    treatment = "dropped" if key.startswith(DROPPED) else "other"
                    cells.append(CellOfLine(name, key.split(DROPPED)[-1], printed, number, None, treatment))
                cells += [CellOfLine(name, "", cell, None, None, "read") for cell in event.cells]
    return cells


def read_lines(path: str, wanted: Sequence[int]) -> dict[int, bytes]:
    """Return line number → line for the ``wanted`` lines of a log, from 1. Raises ``InputError``."""
    if not wanted:
        return {}
    missing, last = set(wanted), max(wanted)
    with closing(numbered_lines(Source(path))) as lines:
        upto = takewhile(lambda line: line[0] <= last, lines)
        return {number: line for number, line in upto if number in missing}


def show_line(line: bytes) -> str:
    """Return the last redraw of a line, masked, for people to read."""
    return safe_text(line.rstrip(_SPLIT).rpartition(_SPLIT)[2].decode("utf-8", "replace"))


def _why(document: Document, parts: Sequence[str]) -> tuple[str, Sequence[int | None]]:
    match parts:
        case ["summary", *rest]:
            return _of_summary(document["summary"], rest)
        case ["phases", number, "summary", *rest]:
            return _of_summary(document["phases"][int(number)]["summary"], rest)
        case ["checks", name]:
            return "by the line that decided it, or by the caller", [document["derivation"].get("check_lines", {}).get(name)]
        case ["header", *rest]:
            return _of_header(document["header"]["sources"], rest)
        case ["goodput", *_]:
            return _of_goodput(document, parts)
    nested = next((line for line in _lines_in(document, parts)), None)
    if nested is not None:
        return "as printed on the line", [nested]
    return "over the whole log, with the grammars and options in /derivation", ()


def _of_summary(summary: Document | None, parts: Sequence[str]) -> tuple[str, Sequence[int | None]]:
    if summary is None:
        return "no step was found", ()
    steps, steady = summary["steps"], summary["steady_state"]
    ends = [steps.get("first_line"), steps.get("last_line")]
    match parts:
        case ["metrics" | "other_metrics" as block, name, *rest] if name in summary[block]:
            figures, left = summary[block][name], ""
            places = figures.get("places") or {}
            if figures["window"] == "steady":
                left = f"; {steady['excluded_warmup']} warm-up and {steady['excluded_implausible']} implausible records left out"
            if rest and rest[0] in ENDS:
                more = left if rest[0] in ("min", "max") else ", also during warm-up"
                return f"the {rest[0]} value{more}; its record begins on this line", [places.get(f"{rest[0]}_line")]
            if rest[:1] == ["places"] and rest[1:] and isinstance(places.get(rest[1]), int) and rest[1].endswith("_line"):
                return "the line itself", [places[rest[1]]]
            span = [places.get("first_line"), places.get("last_line")]
            return f"over {figures['record_count']} values, from the first of these lines to the last{left}", span
        case ["derived", name, *_] if name in summary["derived"]:
            inputs = ", ".join(f"{key} {value}" for key, value in summary["derived"][name]["inputs"].items())
            return f"recomputed over the steady records between these lines, from {inputs or 'their figures'}", ends
        case ["steps", "first" | "first_line"]:
            return "the first retained step record", ends[:1]
        case ["steps", "last" | "last_line"]:
            return "the last retained step record", ends[1:]
        case ["slow_steps", "longest", number, *_] if summary.get("slow_steps"):
            slow = summary["slow_steps"]["longest"][int(number)]
            return "the record of the step, against the hundred before it", [slow["line_number"]]
        case ["slow_steps", *_] if summary.get("slow_steps"):
            lines = sorted(slow["line_number"] for slow in summary["slow_steps"]["longest"])
            return "the records whose time is 1.5 times the median of the hundred before them; the longest are listed", lines
        case ["realised", *_] if summary.get("realised"):
            return "by the timestamps of the first and the last step record, and the counts between them", ends
        case ["step_times", *_] if summary.get("step_times"):
            source = "by the timestamps of" if summary["step_times"]["source"] == "timestamps" else "as printed by steady ones of"
            return f"{source} the step records between these lines", ends
        case ["identities", number, *_]:
            return f"{summary['identities'][int(number)]['detail']}: medians, totals and facts between these lines", ends
        case ["checkpoints", "latest", number, *_]:
            saved = summary["checkpoints"]["latest"][int(number)]
            return "the line of the checkpoint, and the step records around it", [saved["line_number"]]
        case ["checkpoints", *_] if summary.get("checkpoints"):
            found = summary["checkpoints"]
            lines = [one["line_number"] for one in found["latest"]]
            last = ends[1:] if parts[1:] and parts[1].startswith("unsaved") else []
            return "by the lines of the checkpoints, and of the last step record", [*lines, found["last_line"], *last]
        case ["time", *_]:
            return "the earliest and the latest timestamp of the run's lines", ends
    return "over the step records between these lines, and other lines of the log", ends


def _of_header(sources: Mapping[str, str], parts: Sequence[str]) -> tuple[str, Sequence[int | None]]:
    for count in range(len(parts), 0, -1):
        origin = sources.get(pointer(*parts[:count]))
        if origin is not None:
            return f"captured, from {origin}", [int(origin[4:])] if origin.startswith("log:") else ()
    return "captured, from an unknown source", ()


def _of_goodput(document: Document, parts: Sequence[str]) -> tuple[str, Sequence[int | None]]:
    nested = list(_lines_in(document, parts))
    if nested:
        return "a silence up to this line", nested
    goodput = document["goodput"] or {}
    ends = [phase["summary"]["steps"].get(key) for phase in document["phases"] for key in ("first_line", "last_line")]
    known = [line for line in ends if line]
    stalls = [stall["line_number"] for stall in ((goodput.get("stalls") or {}).get("longest") or ())[:3]]
    how = f"wall time by {goodput.get('evidence')}, steps by {goodput.get('step_evidence')}"
    return how, [*known[:1], *known[-1:], *stalls]


def _lines_in(document: Document, parts: Sequence[str]) -> Iterator[int]:
    """Yield the line of the innermost object with a line on the path to a value, if any."""
    value: Any = document
    found: list[int] = []
    for part in parts:
        value = value[int(part)] if isinstance(value, list) else value[part]
        if isinstance(value, dict):
            found += [line for key in ("line_number", "first_line") if isinstance(line := value.get(key), int)][:1]
    yield from found[-1:]


def _whole(document: Document) -> tuple[int, ...]:
    count = document["derivation"]["log"]["line_count"]
    return (1, count) if count > 1 else (1,) * bool(count)
