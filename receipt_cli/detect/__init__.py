"""Choose the grammars that explain a log, or fall back to generic parsing.

In: the body of a scanned log, the grammars that scanned it. Out: ``Detection``: the chosen grammars and why.
Start with ``choose``, then ``parts`` (several trainers in turn) and ``generic`` (unknown trainers).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "choose": "Choice Chosen Detection count_explained detect",
    "generic": "GENERIC is_generic learn_streams load_generic may_be_another read_generically shows_no_figure wanted",
    "parts": "gaps_of_launches gaps_of_trainers read_parts",
    "unread": "training_unread",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
