"""Import training receipts, reports and summaries of other systems as receipts that name their origin."""

from receipt_cli.rooms import doors

PUBLIC = {
    "import_document": "importing",
    "read_wall": "wall_time",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
