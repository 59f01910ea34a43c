"""How many secrets are masked in a receipt, and of which classes."""

from __future__ import annotations

from collections.abc import Mapping

from receipt_cli.redaction.mask import count_masks
from receipt_cli.render.scale import count
from receipt_cli.render.terminal.page import Page, Span

_MAX_CLASSES = 12


def write_redactions(page: Page, document: Mapping[str, object]) -> None:
    """Add how often each class of secret is masked in ``document``; nothing where none is."""
    derivation = document.get("derivation")
    told = {key: value for key, value in derivation.items() if key != "redactions"} if isinstance(derivation, dict) else {}
    parts = [document.get(key) for key in ("run", "header", "phases", "failure", "attachments")]
    found = count_masks(*parts, told)
    if not found:
        return
    most = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    classes = [[Span(count(number)), Span(f" {page.say(kind)}", "dim")] for kind, number in most[:_MAX_CLASSES]]
    if len(most) > _MAX_CLASSES:
        classes.append([Span(f"{len(most) - _MAX_CLASSES} more classes", "dim")])
    page.flow("masked", classes, indent=0, label_width=11)
