"""Choose the grammars that read a scanned log, or learn one from the log itself (``generic``).

In: an engine and the scanned body of a log. Out: ``Detection``: the chosen grammars, and how well each grammar explains it.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "Choice": "choose",
    "Chosen": "choose",
    "Detection": "choose",
    "count_explained": "choose",
    "detect": "choose",
    "GENERIC": "generic",
    "is_generic": "generic",
    "learn_streams": "generic",
    "leaves_lines": "generic",
    "load_generic": "generic",
    "read_generically": "generic",
    "wanted": "generic",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
