"""Documents, findings and tables as text for a terminal: functions of their arguments that print nothing.

The layout is written by hand. It imports and runs in a few milliseconds; a terminal library takes longer than
that to import alone, and no output here needs what it can do more.
"""

from receipt_cli.render.explain import render_explain
from receipt_cli.render.findings import Finding, render_findings
from receipt_cli.render.receipt import render_receipt
from receipt_cli.render.style import ColorChoice, Style
from receipt_cli.render.table import render_table

__all__ = [
    "ColorChoice",
    "Finding",
    "Style",
    "render_explain",
    "render_findings",
    "render_receipt",
    "render_table",
]
