"""What changed when a lane slowed down: change points over the runs of a store, and the header fields that changed there."""

from receipt_cli.rooms import doors

PUBLIC = {
    "history": "lane_history",
    "worsened": "lane_history",
    "make_lanes": "lanes",
    "run_time": "lanes",
    "watch": "lanes",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
