"""A comparison document → Markdown for a pull request or a job's page; whatever came from a log is escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from receipt_cli.render.contrast import (
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
)
from receipt_cli.render.text import clean

_MAX_ROWS = 40


def render_markdown(document: Mapping[str, Any]) -> str:
    """Return the comparison (``comparison/1.0``) as GitHub-flavoured Markdown."""
    lines: list[str] = []
    for contrast in document["contrasts"]:
        names = " and ".join(", ".join(_code(n) for n in part["runs"][:4]) for part in (document["baseline"], contrast))
        lines += [f"### {VERDICTS[contrast['verdict']][0]}: {names}", ""]
        lines += [f"- {escape(reason_text(reason))}" for reason in contrast["reasons"][:_MAX_ROWS]]
        lines += _table(("metric", "a", "b", "change", "95 % interval", ""), [_metric(m) for m in contrast["metrics"]])
        rows = [(field_name(f["pointer"]), *(field_value(f[side]) for side in ("a", "b"))) for f in contrast["fields"]]
        lines += _table(("field", "a", "b"), rows)
        lines += ["", *(f"- {escape(name)}: {escape(', '.join(facts))}" for name, facts in map(curve_facts, contrast["curves"]))]
        lines += ["", *(f"> {escape(note)}" for note in contrast["notes"]), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def escape(text: str) -> str:
    """Return ``text`` as Markdown that shows it and does nothing else."""
    shown = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#+!|~@-])", r"\\\1", shown)


def _code(text: str) -> str:
    return f"`{clean(text).replace('`', chr(39))}`"


def _metric(m: Mapping[str, Any]) -> tuple[str, ...]:
    unit, a, b = figures(m)
    return figure_name(m), f"{a} {unit}".strip(), f"{b} {unit}".strip(), change(m), interval(m), OUTCOMES[m["outcome"]][0]


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    lines = ["", f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    lines += [f"| {' | '.join(escape(cell) for cell in row)} |" for row in rows[:_MAX_ROWS]]
    return [*lines, *([f"\n… {len(rows) - _MAX_ROWS} more"] if len(rows) > _MAX_ROWS else [])]
