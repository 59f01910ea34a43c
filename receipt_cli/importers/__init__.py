"""Import training receipts, reports and summaries of other systems as receipts that name their origin.

In: the path of a document. Out: ``Imported``: a valid receipt and its derivation. A format module reads its document into a
``ForeignRun`` (``model``); ``derive`` turns that into a derivation by the same functions as a log.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "import_document": "importing",
    "read_wall": "wall_time",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
