"""The parser of mlperf-logging's compliance checker."""

from __future__ import annotations

import sys

from mlperf_logging.compliance_checker.mlp_parser import parse_file


def main() -> None:
    """Read the log that the command line names and print how many losses it holds."""
    events, problems = parse_file(sys.argv[1], ruleset=sys.argv[2])
    print("records", sum(event.key == "train_loss" for event in events), "problems", len(problems))


main()
