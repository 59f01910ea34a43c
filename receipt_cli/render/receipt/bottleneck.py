"""What holds the run up: the verdict of the primary phase and the comparison that it rests on."""

from __future__ import annotations

from collections.abc import Mapping

from receipt_cli.render.fields import mapping, text
from receipt_cli.render.terminal.page import NO_BREAK, Page, Span

_MEANS = {
    "inference": "training waits for inference",
    "training": "training is slower than what feeds it",
    "data": "steps wait for data",
    "compute": "steps compute",
    "balanced": "nothing stands out",
    "unknown": "the figures do not say",
}


def write_bottleneck(page: Page, document: Mapping[str, object]) -> None:
    """Add the verdict and why, if the log carries the figures for one."""
    found = mapping(document, "summary", "bottleneck")
    verdict, because = text(found, "verdict"), text(found, "because")
    if verdict is None:
        return
    words = _MEANS.get(verdict)
    says = [Span(page.say(verdict)), *([Span(f" ({words})", "dim")] if words else [])]
    page.gap()
    page.flow("bottleneck", [says], indent=0, label_width=11)
    if because is not None:
        page.prose(page.say(because).replace(" %", f"{NO_BREAK}%"), "dim", indent=13)
