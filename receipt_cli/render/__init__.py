"""Format documents, findings and tables as text for the terminal and as Markdown.

In: documents and typed results. Out: strings; nothing is printed. The layout is our own code: a terminal library takes longer to
import than a summary takes to render.
Start with ``terminal.page`` (lines and tables), ``receipt.summary`` (the summary of a receipt).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "batch": "render_change render_quarantine render_summary",
    "store": "render_receipts render_answer render_meanings render_panel",
    "comparison.markdown": "render_markdown",
    "comparison.terminal": "render_reproducibility render_comparison",
    "comparison.words": "VERDICTS field_name field_value figures reason_text",
    "document": "render_document",
    "explain": "render_first_records render_explain render_learned",
    "findings": "render_findings",
    "history": "render_history",
    "live": "render_live",
    "markdown": "MAX_CELL code escape table",
    "overlay": "MOST_RUNS OverlaidRun render_overlay",
    "plot": "Curve render_curves render_ranges",
    "receipt.metrics": "metric_label",
    "receipt.summary": "render_receipt",
    "scale": "byte_size count duration kind_of measure percent scale_for",
    "schema": "render_changes render_fields",
    "terminal.page": "Page Span",
    "terminal.progress": "BatchBar BatchLines ReadingBar Screen shows_progress",
    "terminal.style": "Role Style",
    "terminal.table": "Column render_table write_table",
    "terminal.text": "clean disarm",
    "verification": "Title render_verification",
    "watching": "job_record render_watch",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
