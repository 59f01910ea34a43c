"""Build the HTML report of a store or of one run.

In: receipts and curves. Out: one HTML file that loads nothing; its script and style are in ``assets``.
Start with ``data`` (what the page contains), ``row`` (one run), ``page`` (the file).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "product_curves": "curves",
    "one_run_report": "data",
    "store_report": "data",
    "render_page": "page",
    "choose": "plot_data",
    "plotted": "plot_data",
    "SeriesFolder": "curves",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
