"""Induce a grammar from the log of an unknown trainer.

In: the text of a log, a vocabulary. Out: rules that reproduce every kept sample, or none. No module here reads or writes files.
Start with ``learned``, then ``shapes``, ``counters`` and ``rules`` in this order.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "readings": "Reading",
    "learned": "Learned learn",
    "counting": "ABSENT EPOCHS GLOBAL PER_EPOCH",
    "metric_names": "SCORE",
    "patterns": "field_name",
    "overview": "may_be_figures survey",
    "progress": "find_heading",
    "proofs": "Induced",
    "tokens": "FRACTION NUMBER split",
    "vocabulary": "Vocabulary build_vocabulary load_vocabulary read_vocabulary",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
