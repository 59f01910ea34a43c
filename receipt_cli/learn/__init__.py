"""Induce a grammar from the log of an unknown trainer.

In: the text of a log, a vocabulary. Out: rules that reproduce every kept sample, or none. No module here reads or writes files.
Start with ``learned``, then ``shapes``, ``counters`` and ``rules`` in this order.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "Reading": "readings",
    "Learned": "learned",
    "learn": "learned",
    "ABSENT": "counting",
    "EPOCHS": "counting",
    "GLOBAL": "counting",
    "PER_EPOCH": "counting",
    "SCORE": "metric_names",
    "field_name": "patterns",
    "survey": "overview",
    "FRACTION": "tokens",
    "NUMBER": "tokens",
    "split": "tokens",
    "Vocabulary": "vocabulary",
    "build_vocabulary": "vocabulary",
    "load_vocabulary": "vocabulary",
    "read_vocabulary": "vocabulary",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
