"""Render comparison and reproducibility documents for the terminal, the verdict first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from receipt_cli.render.comparison import words
from receipt_cli.render.comparison.words import reason_text
from receipt_cli.render.console import Column, Page, Span, elide, figure_columns, write_table
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.plot import Curve, OverlaidRun, render_overlay
from receipt_cli.render.scale import count, measure, percent, some
from receipt_cli.render.style import Role, Style

_MAX_REASONS = 8
_MAX_NAMES = 4
_MAX_TOLD = 4
_LACKING = " is unknown on both sides"
_NAME = 20
_WIDE = 100
"""Least columns of a terminal on which steps of losses and numbers of records are shown."""
_ROWS = {
    "loss": ("loss", "val_loss"),
    "speed": (
        "tokens_per_s_per_device", "tokens_per_s", "samples_per_s_per_device", "samples_per_s", "step_time_s", "steps_per_s",
    ),
    "MFU": ("mfu_ratio",),
    "memory": (
        "peak_memory_reserved_bytes", "peak_memory_allocated_bytes", "peak_memory_bytes", "memory_reserved_bytes",
        "memory_allocated_bytes",
    ),
}  # fmt: skip
"""Rows of the first screen, each with its metrics; the first with an interval is shown, else the first of both sides."""
_SEVERITIES: dict[str | None, Role] = {"block": "bad", "warn": "warn", "ignore": "dim", None: "plain"}
_ANSWERS: dict[str, tuple[str, str, Role]] = {
    "identical": ("✓ identical", "✓ goes on where the first run was: identical", "good"),
    "same_within_printed_precision": (
        "✓ same within the printed precision", "✓ goes on where the first run was, within the printed precision", "good",
    ),
    "same_within_tolerance": ("✓ same within the tolerance", "✓ goes on where the first run was, within the tolerance", "good"),
    "same_data_other_numbers": ("✗ same data, other numbers", "✗ goes on with the same data, but other numbers", "bad"),
    "other_data": ("✗ other data", "✗ goes on with other data", "bad"),
    "other_numbers_data_not_printed": (
        "✗ other numbers; the data is not shown", "✗ goes on with other numbers; the data is not shown", "bad",
    ),
    "not_comparable": ("? not comparable", "? not comparable", "warn"),
}  # fmt: skip
"""Verdict → its words for a rerun and for a resumed run, and their role."""
_SAME: dict[bool | None, tuple[str, Role]] = {True: ("same", "good"), False: ("differs", "bad"), None: ("unknown", "warn")}
_PARTS = {
    "configuration": "configuration",
    "seeds": "seeds",
    "parameters": "parameters",
    "resume": "resume point",
    "data": "data",
}
_BASES = {"within_run": "of these runs' own steps", "between_runs": "between runs"}


def render_comparison(document: Mapping[str, Any], style: Style, *, full: bool = False, more: Sequence[str] = ()) -> str:
    """Return the comparison (``comparison/1.4``), each line ended by a newline; ``full``: with everything compared.

    The first screen says whether the runs are comparable, which fields differ, and how outcome, loss, speed and memory changed;
    ``more`` are the next commands.
    """
    page = Page(style)
    for contrast in document["contrasts"]:
        page.gap()
        _verdict(page, contrast)
        _changes(page, document["baseline"]["runs"], contrast)
        if not full:
            continue
        page.gap()
        for side, names in (("a", document["baseline"]["runs"]), ("b", contrast["runs"])):
            repeats = f"  {len(names)} runs" if len(names) > 1 else ""
            page.line(Span(f"{side}  ", "dim"), Span(some(names, _MAX_NAMES), "strong"), Span(repeats, "dim"))
        for reason in contrast["reasons"][:_MAX_REASONS]:
            page.prose(words.reason_text(reason), indent=2, bullet="· ")
        page.left_out(len(contrast["reasons"]) - _MAX_REASONS)
        _metrics(page, contrast["metrics"])
        if contrast["stalls"] is not None:
            name, facts = words.stall_facts(contrast["stalls"])
            page.flow(name, facts, label_width=12)
        if contrast["curves"]:
            page.heading("curves")
        for curve in contrast["curves"]:
            name, facts = words.curve_facts(curve)
            page.flow(name, facts, label_width=12)
        _outcome(page, contrast["outcome"])
        _fields(page, "fields that differ", contrast["fields"])
        page.gap()
        for note in contrast["notes"]:
            page.prose(note, "dim", bullet="· ")
    for target in document["targets"]:
        page.heading(words.target_title(target))
        columns = [Column("run", least=8), Column("reached"), *(Column(name, right=True) for name in words.TARGET_HEAD[2:])]
        write_table(page, columns, list(words.target_rows(target)))
    if more:
        page.flow("more", more)
    return page.text()


def _verdict(page: Page, contrast: Mapping[str, Any]) -> None:
    verdict, role = words.VERDICTS[contrast["verdict"]]
    severity = "block" if contrast["verdict"] == "not_comparable" else "warn"
    told = [f for f in contrast["fields"] if f["severity"] == severity]
    shown = [f"{_short(f['pointer'])} {words.field_value(f['a'])} → {words.field_value(f['b'])}" for f in told[:_MAX_TOLD]]
    shown += [f"{len(told) - len(shown)} more"] if len(told) > len(shown) else []
    missing = [_short(reason.removesuffix(_LACKING)) for reason in contrast["reasons"] if reason.endswith(_LACKING)]
    if missing and contrast["verdict"] == "caveats":
        shown.append(f"unknown on both sides: {', '.join(missing)}")
    shown += [reason for reason in contrast["reasons"] if not reason.startswith("/") and contrast["verdict"] == "caveats"]
    page.prose(", ".join(shown), bullet=f"{verdict}  ", mark=role)


def _short(pointer: str) -> str:
    return words.field_name(pointer).removeprefix("flags ").replace("_", " ")


def _changes(page: Page, baseline: Sequence[str], contrast: Mapping[str, Any]) -> None:
    """Add the rows of the first screen: outcome, losses, speed, MFU, memory, and what else is worse, better or lost."""
    ends, metrics = contrast["outcome"]["ends"], {m["name"]: m for m in contrast["metrics"]}
    sides = [_ended(ends[side]) for side in "ab"]
    same = ends["a"]["outcome"] == ends["b"]["outcome"]
    rows = [["outcome", *sides, Span("-" if same else "differs", "plain" if same else "warn")]]
    used: set[str] = set()
    for label, names in _ROWS.items():
        both = [name for name in names if name in metrics and None not in (metrics[name]["a"], metrics[name]["b"])]
        judged = sorted(both, key=lambda name: metrics[name]["low"] is None and metrics[name]["outcome"] != "no_evidence")
        for name in both if label == "loss" else judged[:1]:
            used.add(name)
            rows.append(_changed("val loss" if name == "val_loss" else label, metrics[name], contrast, page.style.width >= _WIDE))
    widest = max(cell_len(row[column]) for row in rows for column in (1, 2))
    columns = [Column(""), *(_side(page, side, names, widest) for side, names in (("a", baseline), ("b", contrast["runs"])))]
    write_table(page, [*columns, Column("change", least=20)], rows)
    for word in ("worse", "lost", "better"):
        others = [words.figure_name(m) for m in contrast["metrics"] if m["outcome"] == word and m["name"] not in used]
        if others:
            bullet = f"{'also ' if word != 'lost' else ''}{word}: "
            page.prose(some(others, _MAX_NAMES), words.OUTCOMES[word][1], indent=2, bullet=bullet)


def _side(page: Page, side: str, names: Sequence[str], least: int) -> Column:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return Column(elide(f"{side} {page.say(names[0])}", _NAME - len(more)) + more, least=least)


def _ended(end: Mapping[str, Any]) -> str:
    step, planned = end["step"], end["planned"]
    of = f"/{planned}" if planned is not None and step is not None and planned >= step else ""
    return end["outcome"] if step is None else f"{end['outcome']} {step}{of}"


def _changed(label: str, m: Mapping[str, Any], contrast: Mapping[str, Any], wide: bool) -> list[str]:
    scale, a, b = words.figures(m)
    steps = [contrast["outcome"]["ends"][side]["step"] for side in "ab"]
    at = [f" at step {step}" if wide and label.endswith("loss") and step is not None else "" for step in steps]
    scale += "/device" if "_per_device" in m["name"] else ""
    values = [f"{value} {scale}".strip() + place for value, place in zip((a, b), at, strict=True)]
    role: Role = words.OUTCOMES[m["outcome"]][1] if m["outcome"] in ("better", "worse") else "plain"
    if m["outcome"] == "incomparable":
        why = "defined differently" if (m["reason"] or "").startswith("definition differs") else m["reason"]
        return [label, *values, Span(f"not compared: {why}", "warn")]
    told = words.change(m)
    if m["outcome"] in ("equal", "below_precision"):
        told = "same" if m["outcome"] == "equal" else f"{told}, below precision"
    elif m["low"] is not None or m["outcome"] == "no_evidence":
        bounds = words.interval(m)
        told += f", {bounds}" if bounds.startswith("too") else f" ({bounds})"
    elif label.endswith("loss") and contrast["verdict"] == "not_comparable":
        told += ", not comparable"
    elif (m["reason"] or "").startswith("no interval"):
        counts = "{} steps each" if len(set(m["records"])) == 1 else "{} and {} steps"
        told += f", no interval: {counts.format(*m['records'])}" if wide else ", too few records"
    return [label, *values, Span(told, role)]


def _metrics(page: Page, metrics: Sequence[Mapping[str, Any]]) -> None:
    if not metrics:
        return
    page.heading("metrics")
    columns = [
        Column("metric", least=12), Column("unit"), Column("a", right=True), Column("b", right=True),
        Column("change", right=True), Column("95 % interval", right=True, drop=1), Column("", drop=2),
    ]  # fmt: skip
    shown = sorted(metrics, key=lambda m: m["better"] == "none")  # metrics with a better direction first
    same = [m for m in shown if m["outcome"] == "equal" and m["better"] == "none"]
    write_table(page, columns, [_row(m) for m in shown if m not in same])
    if same:
        page.prose(f"equal: {', '.join(map(words.figure_name, same))}", "dim", indent=2)
    bases = dict.fromkeys(_BASES[m["basis"]] for m in metrics if m["basis"] != "none")
    if bases:
        page.prose(f"intervals {' and '.join(bases)}", "dim", indent=2)
    for m in metrics:
        if m["outcome"] == "incomparable":
            page.prose(f"{words.figure_name(m)}: {m['reason']}", "warn", indent=2, bullet="! ")


def _row(m: Mapping[str, Any]) -> list[str]:
    unit, a, b = words.figures(m)
    outcome, role = words.OUTCOMES[m["outcome"]]
    strong: Role = role if m["outcome"] in ("better", "worse", "lost") else "plain"
    texts = words.figure_name(m), Span(unit, "dim"), a, b
    return [*texts, Span(words.change(m), strong), Span(words.interval(m), "dim"), Span(outcome, role)]


def _fields(page: Page, title: str, fields: Sequence[Mapping[str, Any]], most: int = 40) -> None:
    """Add a table of at most ``most`` fields with their values on both sides, coloured by severity, if any."""
    if not fields:
        return
    page.heading(title)
    columns = [Column("field", least=12), Column("a", least=8), Column("b", least=8)]
    rows = [
        [
            Span(words.field_name(f["pointer"]), _SEVERITIES[f.get("severity")]),
            *(words.field_value(f[s]) for s in ("a", "b")),
        ]
        for f in fields[:most]
    ]
    write_table(page, columns, rows, hidden=len(fields) - most)


def _outcome(page: Page, outcome: Mapping[str, Any]) -> None:
    answers = {True: "true", False: "false", None: "unknown"}
    rows = [
        [c["check"], *(Span(answers[c[side]], "bad" if c[side] is False else "plain") for side in ("a", "b"))]
        for c in outcome["checks"]
    ]
    reasons = [outcome["failure"][side] for side in ("a", "b")]
    if reasons[0] != reasons[1]:
        rows.append(["failure", *(Span(reason or "none", "bad" if reason else "plain") for reason in reasons)])
    if rows:
        page.heading("outcome")
        write_table(page, [Column("check", least=8), Column("a"), Column("b")], rows)


def render_reproducibility(document: Mapping[str, Any], style: Style) -> str:
    """Return the answer (``reproducibility/2.0``), each line ended by a newline."""
    page = Page(style)
    for side in ("a", "b"):
        page.line(Span(f"{side}  ", "dim"), Span(document[side], "strong"))
    rerun, resume, role = _ANSWERS[document["verdict"]]
    page.gap()
    page.line(Span(resume if document["question"] == "resume" else rerun, role))
    page.prose(words.reason_text(document["because"]), indent=2)
    rows = [_part(label, document[name]) for name, label in _PARTS.items() if name != "parameters" or document[name]["a"]]
    rows += [_part(metric_label(curve["metric"]), curve) for curve in document["curves"]]
    page.gap()
    write_table(page, [Column("part", least=13), Column(""), Column("because", least=20)], rows)
    apart = [curve for curve in document["curves"] if curve["same"] is False]
    if apart:
        page.heading("where they differ")
        columns = [Column("figure", least=8), Column("first at", right=True), Column("a"), Column("b"), *_DIFFERENCES]
        write_table(page, columns, [_differing(curve) for curve in apart])
    configuration = document["configuration"]
    _fields(page, "fields", [*configuration["differences"], *configuration["unknown"]], 20)
    _fields(page, "data", [fact for fact in document["data"]["facts"] if fact["a"] != fact["b"]], 20)
    page.gap()
    for note in document["notes"]:
        page.prose(words.reason_text(note), "dim", bullet="· ")
    return page.text()


_DIFFERENCES = (
    Column("equal", right=True), Column("greatest", right=True, drop=2), Column("equal again from", right=True, drop=1),
)  # fmt: skip


def _differing(curve: Mapping[str, Any]) -> list[str]:
    """Return the cells of a figure that differs: its first departure, the equal values, the greatest difference."""
    at, worst = curve["departs"], curve["greatest"]
    most = "-" if worst is None else f"{worst['delta']:+.4g} at {worst['step']}"
    places = [f" :{at[f'{side}_line']}" if at[f"{side}_line"] is not None else "" for side in ("a", "b")]
    values = [f"{at[f'{side}_text']}{line}" for side, line in zip(("a", "b"), places, strict=True)]
    again = "never" if curve["meets"] is None else str(curve["meets"])
    label = metric_label(curve["metric"])
    return [label, str(at["step"]), *values, f"{curve['matches']} of {curve['compared']}", most, again]


def _part(label: str, part: Mapping[str, Any]) -> list[str]:
    same, role = _SAME[part["same"]]
    return [label, Span(same, role), words.reason_text(part["because"])]


_KINDS = {"strong": "strong scaling: the same global batch", "weak": "weak scaling: the same batch on each device", "unknown": ""}
_HEIGHT = 10


def render_scaling(document: Mapping[str, Any], style: Style) -> str:
    """Return the answer (``scaling/1.0``), each line ended by a newline."""
    page, points = Page(style), document["points"]
    comparable = document["verdict"] == "comparable"
    page.line(Span("✓ comparable", "good") if comparable else Span("? not comparable", "warn"))
    page.prose(reason_text(document["because"]), indent=2)
    if _KINDS[document["kind"]]:
        page.prose(_KINDS[document["kind"]], "dim", indent=2)
    if points:
        metric = document["metric"]
        page.gap()
        _, *columns = figure_columns("", "devices", "throughput", "per device", "speedup", "efficiency")
        rows = [
            [
                count(point["devices"]),
                measure(metric, point["rate"]),
                measure(metric, point["rate_per_device"]),
                f"{point['speedup']:.3g} ×",
                Span(percent(point["efficiency"]), "strong"),
                some(point["runs"], 2),
            ]
            for point in points
        ]
        write_table(page, [*columns, Column("runs", least=8, drop=1)], rows)
        page.paste(_plot(metric, points, style))
    page.gap()
    for note in document["notes"]:
        page.prose(reason_text(note), "dim", bullet="· ")
    return page.text()


def _plot(metric: str, points: list[Mapping[str, Any]], style: Style) -> str:
    devices = [point["devices"] for point in points]
    lines = {"measured": [point["rate"] for point in points], "ideal": [points[0]["rate_per_device"] * n for n in devices]}
    runs = [OverlaidRun(name, {metric: Curve(metric, devices, values)}, {}) for name, values in lines.items()]
    return render_overlay(runs, [metric], _HEIGHT, style, "devices")
