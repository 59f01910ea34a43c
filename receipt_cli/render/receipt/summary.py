"""Render a receipt for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from receipt_cli.redaction.mask import count_masks
from receipt_cli.render.card import render_card
from receipt_cli.render.receipt.cost import write_cost
from receipt_cli.render.receipt.diagnosis import write_bottleneck, write_memory
from receipt_cli.render.receipt.evidence import write_evidence
from receipt_cli.render.receipt.goodput import write_goodput
from receipt_cli.render.receipt.identity import write_identity
from receipt_cli.render.receipt.metrics import write_metrics
from receipt_cli.render.receipt.outcome import write_accounting, write_failure, write_verdict
from receipt_cli.render.receipt.phases import write_phases
from receipt_cli.render.receipt.progress import write_progress
from receipt_cli.render.scale import count
from receipt_cli.render.terminal.page import Page, Span
from receipt_cli.render.terminal.style import Style

_MAX_CLASSES = 12


def render_receipt(
    document: Mapping[str, object],
    *,
    style: Style,
    series: Mapping[str, Sequence[float]] | None = None,
    full: bool = False,
    log: str | None = None,
    running: bool = False,
    last: tuple[str, str] | None = None,
) -> str:
    """Return the card of ``document`` (a receipt), if ``full`` with all below it; each line is ended by a newline.

    ``series`` maps names of ``summary.metrics`` and ``summary.other_metrics`` to their values in step order,
    in base units and NaN where not finite, for the trend of each metric. ``log``, ``running`` and ``last`` are those of
    ``render_card``. The document need not be valid: what is missing or of the wrong type reads as unknown. No line is wider
    than ``style.width``, and no text of the document reaches the terminal as a control sequence.
    """
    card = render_card(document, style, log=log, running=running, last=last)
    if not full:
        return card
    page = Page(style)
    write_identity(page, document)
    write_verdict(page, document)
    write_phases(page, document)
    write_metrics(page, document, series)
    write_progress(page, document)
    write_goodput(page, document)
    write_cost(page, document)
    write_bottleneck(page, document)
    write_memory(page, document)
    write_failure(page, document)
    write_evidence(page, document)
    write_accounting(page, document)
    _write_redactions(page, document)
    return f"{card}\n{page.text()}"


def _write_redactions(page: Page, document: Mapping[str, object]) -> None:
    """Add how often each class of secret is masked in ``document``; nothing where none is."""
    derivation = document.get("derivation")
    derived = {key: value for key, value in derivation.items() if key != "redactions"} if isinstance(derivation, dict) else {}
    parts = [document.get(key) for key in ("run", "header", "phases", "failure", "attachments", "evidence")]
    masks = count_masks(*parts, derived)
    if not masks:
        return
    most = sorted(masks.items(), key=lambda item: (-item[1], item[0]))
    classes = [[Span(count(number)), Span(f" {page.say(kind)}", "dim")] for kind, number in most[:_MAX_CLASSES]]
    if len(most) > _MAX_CLASSES:
        classes.append([Span(f"{len(most) - _MAX_CLASSES} more classes", "dim")])
    page.flow("masked", classes, indent=0, label_width=11)
