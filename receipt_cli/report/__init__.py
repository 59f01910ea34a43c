"""Receipts as one HTML file that needs nothing else: no network, no server, no build."""

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
