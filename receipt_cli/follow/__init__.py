"""Parse a log that still grows, and finish with the receipt of the whole log.

In: a file or pipe, and when to stop. Out: snapshots for the live view, then the fold of all bytes read.
Start with ``loop``, then ``tail`` (files) and ``snapshot`` (the view).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "loop": "Until follow",
    "snapshot": "Figures Snapshot",
    "watch": "Watch",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
