"""Render a comparison document as Markdown, for a pull request or a job summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from receipt_cli.render.comparison.words import (
    OUTCOMES,
    VERDICTS,
    change,
    curve_facts,
    field_name,
    field_value,
    figure_name,
    figures,
    interval,
    reason_text,
    stall_facts,
)
from receipt_cli.render.markdown import code, escape, table

_MAX_ROWS = 40
_MAX_NAMES = 4


def render_markdown(document: Mapping[str, Any]) -> str:
    """Return the comparison (``comparison/1.1``) as GitHub-flavoured Markdown."""
    lines = [line for contrast in document["contrasts"] for line in _contrast(document["baseline"]["runs"], contrast)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _contrast(baseline: Sequence[str], contrast: Mapping[str, Any]) -> Iterator[str]:
    sides = (", ".join(map(code, names[:_MAX_NAMES])) for names in (baseline, contrast["runs"]))
    yield f"### {VERDICTS[contrast['verdict']][0]}: {' and '.join(sides)}"
    yield ""
    yield from (f"- {escape(reason_text(reason))}" for reason in contrast["reasons"][:_MAX_ROWS])
    yield from _rows(("metric", "a", "b", "change", "95 % interval", ""), [_metric(m) for m in contrast["metrics"]])
    fields = [(code(field_name(f["pointer"])), *(code(field_value(f[side])) for side in ("a", "b"))) for f in contrast["fields"]]
    yield from _rows(("field", "a", "b"), fields)
    yield ""
    stalls = [] if contrast["stalls"] is None else [stall_facts(contrast["stalls"])]
    listed = [*stalls, *map(curve_facts, contrast["curves"])]
    yield from (f"- {escape(name)}: {escape(', '.join(facts))}" for name, facts in listed)
    yield ""
    yield from (f"> {escape(note)}" for note in contrast["notes"])
    yield ""


def _metric(m: Mapping[str, Any]) -> tuple[str, ...]:
    unit, a, b = figures(m)
    shown = figure_name(m), f"{a} {unit}".strip(), f"{b} {unit}".strip(), change(m), interval(m), OUTCOMES[m["outcome"]][0]
    return tuple(map(escape, shown))


def _rows(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield from ("", *table(titles, rows[:_MAX_ROWS]))
        if len(rows) > _MAX_ROWS:
            yield f"\n… {len(rows) - _MAX_ROWS} more"
