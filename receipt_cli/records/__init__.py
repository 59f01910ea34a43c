"""Split bytes into records, strip envelopes, and find the literals of rules.

In: blocks of bytes. Out: records of at most 64 KiB, their rank and time, and which of them may match a rule.
Start with ``split``, then ``envelope`` and ``prefilter``.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "ENVELOPE": "envelope",
    "NO_RANK": "envelope",
    "REPEATED": "envelope",
    "before": "envelope",
    "head_ends": "envelope",
    "plain": "envelope",
    "read_clock": "envelope",
    "read_moment": "envelope",
    "read_rank": "envelope",
    "starts": "envelope",
    "time_of_day": "envelope",
    "unwrap": "envelope",
    "without_count": "envelope",
    "MAX_SEEN": "heuristics",
    "METRIC_LINE": "heuristics",
    "count_step_lines": "heuristics",
    "metric_lines": "heuristics",
    "NotALiteral": "literals",
    "Number": "literals",
    "Text": "literals",
    "Value": "literals",
    "parse_object": "literals",
    "ACTOR": "place",
    "LOGGED": "place",
    "MENTIONED": "place",
    "PRINTED": "place",
    "form_of": "place",
    "read_host": "place",
    "Prefilter": "prefilter",
    "Fragment": "split",
    "RECORD_CAP": "split",
    "Walk": "split",
    "cap_records": "split",
    "count_blank": "split",
    "count_ends": "split",
    "display_lines": "split",
    "first_end": "split",
    "invalid_records": "split",
    "last_end": "split",
    "normalise": "split",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
