"""Render a document of any kind for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from receipt_cli.render.console import Column, Page, Span
from receipt_cli.render.fields import items, mapping, real, text, truth, whole
from receipt_cli.render.metrics import write_metrics
from receipt_cli.render.profile import figure, write_profile, write_texts
from receipt_cli.render.receipt import render_receipt, write_identity
from receipt_cli.render.scale import count, number
from receipt_cli.render.style import Style


def render_document(document: Mapping[str, object], *, style: Style, full: bool = False) -> str:
    """Return the summary of ``document``, each line ended by a newline; an unknown kind is shown as a receipt.

    Of a receipt this is the card, if ``full`` with all below it.

    As with a receipt, the document need not be valid, no line is wider than ``style.width``, and no text of the document
    reaches the terminal as a control sequence.
    """
    kind = (text(document, "schema_version") or "").partition("/")[0]
    write = {"evaluation": _write_evaluation, "ablation": _write_ablation, "gpu_profile": write_profile}.get(kind)
    if write is None and kind != "header":
        return render_receipt(document, style=style, full=full)
    page = Page(style)
    page.line(Span(page.say(_title(kind, document)), "heading"))
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
    return "evaluation" if kind == "evaluation" else "header of a run"


def _write_evaluation(page: Page, document: Mapping[str, object]) -> None:
    summary = mapping(document, "summary")
    page.gap()
    page.line(Span("finished", "good") if truth(document, "complete") else Span("not finished", "warn"))
    names = ("step_count", "duration_s", "commits_per_s", "tokens_per_s")
    labels = {"step_count": "steps ", "duration_s": "time "}
    facts = [f"{labels.get(name, '')}{figure(name, real(summary, name))}" for name in names if real(summary, name) is not None]
    peak = real(document, "memory", "peak_memory_bytes")
    facts += [] if peak is None else [f"peak memory {figure('peak_memory_bytes', peak)}"]
    page.flow("", [[Span(fact)] for fact in facts])
    write_metrics(page, {"metrics": mapping(summary, "metrics")})


def _write_ablation(page: Page, document: Mapping[str, object]) -> None:
    baseline = text(document, "ablation", "baseline")
    changes = mapping(document, "ablation", "changes")
    settings = [f"{name} = {value}" for name, value in changes.items()]
    page.gap()
    against = f"against {baseline}: {', '.join(settings) or 'no setting changed'}" if baseline else "the baseline itself"
    page.prose(page.say(against), indent=2)
    held, steps, first = whole(document, "window", "step_count"), items(document, "steps"), whole(document, "window", "from_step")
    since = "" if first is None else f", from step {count(first)}"
    window = f"the window: {count(held or 0)} of {count(len(steps))} steps{since}"
    write_metrics(page, {"metrics": mapping(document, "summary", "curves")}, phase=window)
    layers = mapping(document, "summary", "layer_curves")
    if layers:
        page.heading("layers", Span(f"{count(whole(document, 'model', 'layer_count') or 0)} of them", "dim"))
        rows = [[name, *(_extreme(curve, end) for end in ("min", "max"))] for name, curve in layers.items()]
        write_texts(page, [Column("metric", least=12), Column("lowest", right=True), Column("highest", right=True)], rows)


def _extreme(curve: object, end: str) -> str:
    value, layer = real(curve, end), whole(curve, f"{end}_layer")
    return "–" if value is None else f"{number(value)} in {'?' if layer is None else layer}"
