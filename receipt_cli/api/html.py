"""A receipt as a small HTML table for a notebook: no script, no style, all text escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from receipt_cli.analysis.checks import contradicted_metrics, outcome
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.render.scale import measure
from receipt_cli.render.text import clean

_MOST = 8
"""Most metrics shown; the receipt has the others."""


def receipt_table(document: Mapping[str, Any]) -> str:
    """Return a table of the outcome, trainer, steps and first metrics of a valid receipt."""
    cells = (f"<tr><th>{_shown(label)}</th><td>{_shown(value)}</td></tr>" for label, value in _rows(document))
    return f"<table>{''.join(cells)}</table>"


def _shown(text: object) -> str:
    return escape(clean(str(text)))


def _rows(document: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    failure, summary = document["failure"], document["summary"]
    word = outcome(document)
    if document["run"]["name"] is not None:
        yield "run", document["run"]["name"]
    yield "outcome", f"{word}: {failure['reason']}" if failure is not None else word
    grammars = document["derivation"]["grammars"]
    trainer = document["header"]["software"]["trainer"]
    yield "trainer", trainer or ", ".join(entry["id"] for entry in grammars) or "not recognised"
    if summary is None:
        return
    steps = summary["steps"]
    planned = f" of {steps['planned']}" if steps["planned"] is not None else ""
    yield "steps", f"{steps['first']} to {steps['last']}{planned}" if steps["record_count"] != 0 else "none"
    doubtful = contradicted_metrics(summary)
    for name, statistic in [item for item in summary["metrics"].items() if item[0] not in doubtful][:_MOST]:
        metric = load_registry().by_name.get(name)
        which = metric.headline if metric is not None else "last"
        if statistic[which] is not None:
            yield f"{name} ({which})", measure(name, statistic[which])
