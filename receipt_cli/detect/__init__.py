"""Choose the grammars that explain a log, or fall back to generic parsing.

In: the body of a scanned log, the grammars that scanned it. Out: ``Detection``: the chosen grammars and why.
Start with ``choose``, then ``parts`` (several trainers in turn) and ``generic`` (unknown trainers).
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
    "gaps_of_launches": "parts",
    "gaps_of_trainers": "parts",
    "read_parts": "parts",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
