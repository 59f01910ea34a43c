"""Follow the log of a running job: appended bytes go into one fold, and the receipt follows at the end."""

from receipt_cli.rooms import doors

PUBLIC = {
    "Until": "loop",
    "follow": "loop",
    "Figures": "snapshot",
    "SoFar": "snapshot",
    "Watch": "watch",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
