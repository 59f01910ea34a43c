"""Split bytes into records, strip envelopes, and find the literals of rules.

In: blocks of bytes. Out: records of at most 64 KiB, their rank and time, and which of them may match a rule.
Start with ``split``, then ``envelope`` and ``prefilter``.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "bars": "short_bars",
    "envelope": (
        "CLOCK_MASKED ENVELOPE MASK NO_RANK REPEATED UNIX_MASKED before behind_heads form_of_heads head_ends is_blind "
        "may_have_time plain read_clock read_moment read_rank split_rank starts time_of_day unwrap without_count"
    ),
    "heuristics": "MAX_SEEN METRIC_LINE STEP_LINE count_step_lines metric_lines",
    "literals": "LITERALS NotALiteral Number Text Value parse_object",
    "place": "ACTOR LOGGED MENTIONED PRINTED form_of is_indented read_host",
    "prefilter": "Prefilter",
    "split": (
        "Fragment RECORD_CAP Walk cap_records count_blank count_ends display_lines first_end invalid_records last_end normalise "
        "spell_nonfinite without_marks"
    ),
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
