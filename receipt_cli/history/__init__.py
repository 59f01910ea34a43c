"""Find the runs at which a lane changed, and the header fields that changed there.

In: receipts of a store. Out: a history document: change points, spikes, candidate causes.
Start with ``lane_history``, then ``changes`` (the statistics).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "lane_history": "history worsened",
    "lanes": "make_lanes watch",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
