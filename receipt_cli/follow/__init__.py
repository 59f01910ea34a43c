"""Following the log of a job that runs: what is appended goes into the same fold, and the receipt comes at its end."""

from receipt_cli.rooms import doors

PUBLIC = {
    "Until": "loop",
    "follow": "loop",
    "Figures": "snapshot",
    "SoFar": "snapshot",
    "Watch": "watch",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
