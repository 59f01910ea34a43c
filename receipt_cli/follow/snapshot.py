"""The displayed state of a running job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from receipt_cli.analysis.summary import Summary
from receipt_cli.derive import Derivation
from receipt_cli.receipts.assembly import Document, assemble


@dataclass(frozen=True, slots=True)
class Figures:
    """The results for the first ``size_bytes`` of a log.

    ``document`` is their receipt without a header; ``summary`` is its summary of the current phase (the last one with steps)
    or empty; ``series`` are the metrics of that phase in step order.
    """

    size_bytes: int
    document: Document
    summary: Mapping[str, object] = field(default_factory=dict)
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def last_step(self) -> int | None:
        """The last step of the current phase."""
        steps = self.summary.get("steps")
        return steps["last"] if isinstance(steps, dict) else None


def figures(derivation: Derivation) -> Figures:
    """Return the figures of a derivation."""
    document = assemble(derivation, run={}, header={})
    running = [i for i, summary in enumerate(derivation.summaries) if summary.record_count]
    size = derivation.log.size_bytes
    if not running:
        return Figures(size, document)
    summary: Summary = derivation.summaries[running[-1]]
    return Figures(size, document, document["phases"][running[-1]]["summary"], summary.series)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a followed log.

    ``heard_at`` is the time of the last output, in seconds since 1970; ``step_time_s`` the observed time of a step, or None;
    ``figures`` are None until computed; ``ends`` describes the condition that ends following; ``warnings`` are changes of
    the file.
    """

    name: str
    size_bytes: int
    line_count: int
    heard_at: float | None
    figures: Figures | None
    step_time_s: float | None
    ends: str
    warnings: Sequence[str] = ()
