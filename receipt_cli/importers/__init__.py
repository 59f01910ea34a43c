"""Other systems' records of a run in: training receipts, reports and summaries → a receipt that names its origin."""

from receipt_cli.rooms import doors

PUBLIC = {
    "import_document": "importing",
    "read_wall": "wall_time",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
