"""Write a run in the formats of other systems, one module per format.

In: a receipt, and the records of its log if there is one. Out: bytes, or files at a path; nothing is sent.
Start with ``formats`` (the list), ``run`` (the run that every format exports).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "formats": "FORMATS export",
    "names": "Name",
    "run": "gather",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
