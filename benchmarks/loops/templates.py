"""drain3 on every line: it mines templates and reads no numbers."""

from __future__ import annotations

import sys

from drain3 import TemplateMiner
from drain3.template_miner_config import TemplateMinerConfig


def main() -> None:
    """Read the log that the command line names and print how many templates were found."""
    miner = TemplateMiner(config=TemplateMinerConfig())
    with open(sys.argv[1], encoding="utf-8", errors="replace") as lines:
        for line in lines:
            miner.add_log_message(line.rstrip())
    print("templates", len(miner.drain.clusters))


main()
