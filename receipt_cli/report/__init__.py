"""Build the HTML report of a store or of one run.

In: receipts and curves. Out: one HTML file that loads nothing; its script and style are in ``assets``.
Start with ``data`` (the content of the page), ``row`` (one run), ``page`` (the file).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "curves": "product_curves SeriesFolder",
    "data": "one_run_report store_report",
    "page": "render_page",
    "plot_data": "choose choose_for overlaid plotted",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
