"""Follow the log of a running job: appended bytes go into one fold, and the receipt follows at the end.

In: a path and a ``derive.Plan``. Out: the ``derive.Reading`` of the finished log; meanwhile ``Snapshot`` for a display.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "Until": "loop",
    "follow": "loop",
    "Figures": "snapshot",
    "Snapshot": "snapshot",
    "Watch": "watch",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
