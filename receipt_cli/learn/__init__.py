"""Learn a grammar from the log of an unknown trainer, mined from its own lines. No module here reads or writes files.

In: the blocks of a log and the ``Vocabulary``. Out: ``Learned``: rules as plain data. ``shapes`` collects records of one
shape, ``counters`` chooses those of training, ``rules`` writes their patterns.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "write_draft": "draft",
    "Learned": "learned",
    "learn": "learned",
    "Induced": "rules",
    "Vocabulary": "vocabulary",
    "build_vocabulary": "vocabulary",
    "load_vocabulary": "vocabulary",
    "read_vocabulary": "vocabulary",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
