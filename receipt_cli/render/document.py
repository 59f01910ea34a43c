"""Render a document of any kind for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from receipt_cli.render.console import Column, Page, Span, figure_columns, write_texts
from receipt_cli.render.fields import UNKNOWN, items, mapping, or_dash, real, text, truth, whole
from receipt_cli.render.metrics import write_metrics
from receipt_cli.render.receipt import render_receipt, write_identity
from receipt_cli.render.scale import byte_size, count, duration, figure, many, number
from receipt_cli.render.style import Style


def render_document(document: Mapping[str, object], *, style: Style, full: bool = False) -> str:
    """Return the summary of ``document``, each line ended by a newline; an unknown kind is shown as a receipt.

    Of a receipt this is the card, if ``full`` with all below it.

    As with a receipt, the document need not be valid, no line is wider than ``style.width``, and no text of the document
    reaches the terminal as a control sequence.
    """
    kind = (text(document, "schema_version") or "").partition("/")[0]
    write = _WRITERS.get(kind)
    if write is None and kind != "header":
        return render_receipt(document, style=style, full=full)
    page = Page(style)
    page.line(Span(_title(kind, document), "heading"))
    write_identity(page, document)
    if write is not None:
        write(page, document)
    return page.text()


def _title(kind: str, document: Mapping[str, object]) -> str:
    if kind == "ablation":
        kinds = text(document, "ablation", "kind") or "unknown"
        return f"ablation {text(document, 'ablation', 'variant') or '?'} ({kinds.replace('_', ' ')})"
    if kind == "gpu_profile":
        return f"GPU profile {text(document, 'profile', 'label') or '?'}"
    if kind == "evaluation":
        model = text(document, "model", "name")
        return "evaluation" if model is None else f"evaluation of {model}"
    return "golden curves" if kind == "golden" else "header of a run"


def _write_evaluation(page: Page, document: Mapping[str, object]) -> None:
    summary = mapping(document, "summary")
    page.gap()
    page.line(Span("finished", "good") if truth(document, "complete") else Span("not finished", "warn"))
    names = ("step_count", "duration_s", "commits_per_s", "tokens_per_s")
    labels = {"step_count": "steps ", "duration_s": "time "}
    facts = [f"{labels.get(name, '')}{figure(name, real(summary, name))}" for name in names if real(summary, name) is not None]
    peak = real(document, "memory", "peak_memory_bytes")
    facts += [] if peak is None else [f"peak memory {figure('peak_memory_bytes', peak)}"]
    page.flow("", facts)
    write_metrics(page, summary)
    _write_scores(page, document)


def _write_scores(page: Page, document: Mapping[str, object]) -> None:
    scores, step = items(document, "scores"), whole(document, "model", "step")
    if not scores:
        return
    origin, rows = mapping(document, "origin"), [_score(score) for score in scores]
    facts = [text(origin, "producer") or text(origin, "format"), None if step is None else f"checkpoint of step {count(step)}"]
    steps = {row[-1] for row in rows}
    alike = len(steps) == 1 and UNKNOWN not in steps
    if alike and step is None:
        facts.append(rows[0][-1].replace("after ", "after step ") if "after" in rows[0][-1] else f"of step {rows[0][-1]}")
    page.heading(many(len(scores), "score"), *(Span(fact, "dim") for fact in facts if fact))
    columns = [
        Column("task", least=16), Column("metric", least=10), Column("filter", least=6, drop=2), Column("shots", right=True),
        Column("score", right=True), Column("± error", right=True), Column("samples", right=True, drop=1),
        Column("step", right=True),
    ]  # fmt: skip
    used = [i for i in range(len(columns)) if i < 2 or any(row[i] != UNKNOWN for row in rows)]
    used = [i for i in used if columns[i].title != "step" or not alike]
    shown = [[row[i] for i in used] for row in rows[:_MAX_SCORES]]
    write_texts(page, [columns[i] for i in used], shown, len(rows) - len(shown))
    total, known = whole(origin, "problems", "count") or 0, items(origin, "problems", "first")
    if total:
        page.heading("problems", Span(f"{count(total)} in the results", "warn"))
        for problem in known[:_MAX_PROBLEMS]:
            line = whole(problem, "line_number")
            page.prose((text(problem, "detail") or "?") + (f" (line {line})" if line else ""), indent=2, bullet="· ")
        page.left_out(total - len(known[:_MAX_PROBLEMS]))


def _score(score: object) -> list[str]:
    parts = [text(score, name) for name in ("task", "subset", "split")]
    value, error, after = real(score, "value"), real(score, "stderr"), whole(score, "after_step")
    step = whole(score, "step")
    counts = [figure("_count", whole(score, name)) for name in ("shots", "sample_count")]
    names = [" ".join(part for part in parts if part) or "?", text(score, "metric") or "?", text(score, "filter") or UNKNOWN]
    figures = [or_dash(value, number), or_dash(error, lambda value: number(value, 2))]
    place = or_dash(step, str, or_dash(after, lambda step: f"after {step}"))
    return [*names, counts[0], *figures, counts[1], place]


def _write_golden(page: Page, document: Mapping[str, object]) -> None:
    for reference in items(document, "references"):
        system, curves = mapping(reference, "system"), items(reference, "curves")
        ranks = whole(system, "world_size")
        facts = [text(system, "lane"), text(system, "device"), many(ranks, "rank") if ranks else None]
        named = [fact for fact in facts if fact]
        page.heading(" · ".join(named) or "any system", Span(many(len(items(reference, "runs")), "run"), "dim"))
        _, *figures = figure_columns("", "steps", "from", "to")
        columns = [Column("figure", least=10), Column("says of"), Column("tolerance"), *figures]
        write_texts(page, columns, map(_golden, curves[:_MAX_ROWS]), len(curves) - _MAX_ROWS)


def _golden(curve: object) -> list[str]:
    steps = items(curve, "steps")
    ends = [str(steps[0]), str(steps[-1])] if steps else [UNKNOWN, UNKNOWN]
    return [text(curve, "metric") or "?", text(curve, "role") or "?", text(curve, "rule") or "?", count(len(steps)), *ends]


def _write_ablation(page: Page, document: Mapping[str, object]) -> None:
    baseline = text(document, "ablation", "baseline")
    changes = mapping(document, "ablation", "changes")
    settings = [f"{name} = {value}" for name, value in changes.items()]
    page.gap()
    against = f"against {baseline}: {', '.join(settings) or 'no setting changed'}" if baseline else "the baseline itself"
    page.prose(against, indent=2)
    held, steps, first = whole(document, "window", "step_count"), items(document, "steps"), whole(document, "window", "from_step")
    since = "" if first is None else f", from step {count(first)}"
    window = f"the window: {count(held or 0)} of {count(len(steps))} steps{since}"
    write_metrics(page, {"metrics": mapping(document, "summary", "curves")}, phase=window)
    layers = mapping(document, "summary", "layer_curves")
    if layers:
        page.heading("layers", Span(f"{count(whole(document, 'model', 'layer_count') or 0)} of them", "dim"))
        rows = []
        for name, curve in layers.items():
            ends = [(real(curve, end), whole(curve, f"{end}_layer")) for end in ("min", "max")]
            rows.append([name, *(UNKNOWN if v is None else f"{number(v)} in {'?' if at is None else at}" for v, at in ends)])
        write_texts(page, figure_columns("metric", "lowest", "highest"), rows)


_MAX_ROWS = 12
_MAX_SCORES = 40
_MAX_PROBLEMS = 6
_ANSWERS = {True: "confirmed", False: "another one ran", None: "not known"}


def write_profile(page: Page, document: Mapping[str, object]) -> None:
    """Add lanes, comparison and events, if the document has them."""
    _write_lanes(page, document)
    events = mapping(document, "events")
    if events:
        _write_events(page, events)
        _write_problems(page, document)


def _write_lanes(page: Page, document: Mapping[str, object]) -> None:
    lanes = items(document, "lanes")
    if not lanes:
        return
    page.heading("lanes", Span("the warm-up is left out", "dim"))
    rows = [
        [
            text(lane, "label") or "?",
            text(lane, "status") or "?",
            f"{figure('_count', whole(lane, 'warmup_step_count'))} + {figure('_count', whole(lane, 'step_count'))}",
            figure("elapsed_s", real(lane, "elapsed_s")),
            figure("tokens_per_s", real(lane, "tokens_per_s")),
            figure("peak_memory_bytes", real(lane, "peak_memory_bytes")),
            _ANSWERS[truth(lane, "dispatch_confirmed")],
        ]
        for lane in lanes[:_MAX_ROWS]
    ]
    columns = [
        Column("lane", least=8), Column("outcome"), Column("warm-up + steps", right=True, drop=3),
        Column("elapsed", right=True, drop=2), Column("throughput", right=True), Column("peak memory", right=True),
        Column("dispatch", drop=1),
    ]  # fmt: skip
    write_texts(page, columns, rows, len(lanes) - _MAX_ROWS)
    for lane in lanes[:_MAX_ROWS]:
        failure = text(lane, "failure")
        if failure:
            page.prose(f"{text(lane, 'label') or '?'}: {failure}", "bad", indent=2, bullet="! ")
    comparison = mapping(document, "comparison")
    ratio = real(comparison, "speedup")
    if comparison and ratio is not None:
        names = [text(comparison, role) or "?" for role in ("candidate", "baseline")]
        page.line(f"{names[0]} does {number(ratio)} times the tokens per second of {names[1]}", indent=2)


def _write_events(page: Page, events: Mapping[str, object]) -> None:
    facts = [Span("complete", "good") if truth(events, "complete") else Span("not complete", "warn")]
    losses = items(events, "losses")
    if truth(events, "lossy") is not False:
        facts.append(Span("records are missing" if losses else "records may be missing", "warn"))
    page.heading("events", *facts)
    if losses:
        page.prose(f"missing: {', '.join(map(_loss, losses))}", "warn", indent=2)
    session = [f"{label} {figure(name, real(events, *way, name))}" for label, *way, name in (
        ("session", "duration_s"), ("busy", "busy_s"), ("share busy", "busy_ratio"), ("launches", "kernels", "launch_count"),
        ("in kernels", "kernels", "total_s"),
    ) if real(events, *way, name)]  # fmt: skip
    page.flow("", session)
    if real(events, "busy_s") is None and whole(events, "kernels", "launch_count"):
        page.line(Span("how long the devices were busy is not known", "dim"), indent=2)
    kernels, scopes = items(events, "kernels", "top"), items(events, "scopes")
    for title, entries, total in (("kernel", kernels, whole(events, "kernels", "name_count")), ("scope", scopes, None)):
        columns = figure_columns(title, "count", "total", "mean", "max")
        if any(whole(item, "open_count") for item in entries):
            columns.append(Column("open", right=True))
        _write_entries(page, columns, entries, _timing, total)
    launches = [item for item in kernels[:_MAX_ROWS] if mapping(item, "launch")]
    shared = [Column("shared", right=True, drop=1), Column("occupancy", right=True)]
    _write_entries(page, [*figure_columns("launches of", "grid", "block", "registers"), *shared], launches, _launch)
    _write_entries(page, figure_columns("stall reason", "samples", "share"), items(events, "stall_reasons"), _stall)
    _write_entries(page, figure_columns("copies", "count", "time", "size", "rate"), items(events, "copies"), _copy)
    devices, hosts = items(events, "devices"), items(events, "hosts")
    if len(devices) > 1:
        columns = [Column("device", right=True), *figure_columns("name", "memory", "busy")]
        _write_entries(page, columns, devices, _device)
    for item in devices[:_MAX_ROWS]:
        name = text(item, "name")
        number_ = f"device {whole(item, 'number')}"
        whose = number_ if name is None else f"{number_}, {name}" if len(devices) > 1 else name
        write_metrics(page, mapping(item), phase=whose)
    for place, item in enumerate(hosts[:_MAX_ROWS]):
        write_metrics(page, mapping(item), phase=text(item, "name") or f"host {place}")


def _write_entries(
    page: Page,
    columns: Sequence[Column],
    entries: Sequence[object],
    cells: Callable[[object], list[str]],
    total: int | None = None,
) -> None:
    """Add a table of the first entries, with as many cells of each as there are columns; there are ``total`` of them."""
    page.gap()
    rows = [cells(item)[: len(columns)] for item in entries[:_MAX_ROWS]]
    write_texts(page, columns, rows, (total or len(entries)) - len(rows))


def _write_problems(page: Page, document: Mapping[str, object]) -> None:
    total, known = whole(document, "derivation", "problems", "count") or 0, items(document, "derivation", "problems", "first")
    if not total:
        return
    page.heading("problems", Span(f"{count(total)} in the stream", "warn"))
    for problem in known[:_MAX_PROBLEMS]:
        page.prose(text(problem, "detail") or text(problem, "kind") or "?", indent=2, bullet="· ")
    page.left_out(len(known) - _MAX_PROBLEMS, "kinds and places in the document")


def _loss(loss: object) -> str:
    number_ = whole(loss, "count")
    return f"{text(loss, 'kind') or '?'}{'' if number_ is None else f' ({count(number_)})'}"


def _device(device: object) -> list[str]:
    number_ = whole(device, "number")
    figures = [figure(name, real(device, name)) for name in ("memory_bytes", "busy_s")]
    return [or_dash(number_), text(device, "name") or UNKNOWN, *figures]


def _timing(event: object) -> list[str]:
    seconds = (or_dash(real(event, name), duration) for name in ("total_s", "mean_s", "max_s"))
    counts = [figure("_count", whole(event, name)) for name in ("count", "open_count")]
    return [text(event, "name") or "?", counts[0], *seconds, counts[1]]


def _launch(kernel: object) -> list[str]:
    launch = mapping(kernel, "launch")
    sizes = ["×".join(map(str, items(launch, name))) or UNKNOWN for name in ("grid", "block")]
    static, dynamic = (whole(launch, f"{name}_shared_bytes") for name in ("static", "dynamic"))
    shared = UNKNOWN if static is None or dynamic is None else byte_size(static + dynamic)
    low, high = (figure("_ratio", real(launch, f"occupancy_{end}_ratio")) for end in ("min", "max"))
    registers = figure("_count", whole(launch, "registers_per_thread"))
    return [text(kernel, "name") or "?", *sizes, registers, shared, low if low == high else f"{low} – {high}"]


def _stall(stall: object) -> list[str]:
    name = f"{text(stall, 'reason') or '?'}{' (no instruction issued)' if truth(stall, 'not_issued') else ''}"
    return [name, figure("_count", whole(stall, "sample_count")), figure("_ratio", real(stall, "ratio"))]


def _copy(copy: object) -> list[str]:
    title = (text(copy, "direction") or "?").replace("_", " ")
    speed = real(copy, "bytes_per_s")
    figures = [figure("_count" if name == "count" else name, real(copy, name)) for name in ("count", "total_s", "total_bytes")]
    return [title, *figures, or_dash(speed, lambda value: f"{byte_size(value)}/s")]


_WRITERS: Mapping[str, Callable[[Page, Mapping[str, object]], None]] = {
    "evaluation": _write_evaluation,
    "ablation": _write_ablation,
    "gpu_profile": write_profile,
    "golden": _write_golden,
}
"""Kind → what writes it below its title."""
