"""Turn the columns of a scanned log into events, launches, phases and series.

In: a body and its chosen grammars. Out: events in log order; the launches and phases that they form; series of their values.
Start with ``build`` (events), ``launches``, ``phases``, ``series``.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "banners": "find_launches is_command",
    "build": "read_events",
    "copies": "alone drop_copies",
    "counters": "Contest JUMP jumps_at_end set_aside",
    "doubts": "carry_doubts doubtful_launches",
    "epochs": "count_epochs recount_epochs",
    "file_order": "SeveralRuns",
    "holes": "steps_missing",
    "launches": "SAID_DONE Launch window",
    "places": "Places find_places",
    "model": "Event Ledger Meaning ReadEvents expand in_order numbers_of part_of records_at",
    "phases": "Phase first_facts last_steps split_phases",
    "printed_digits": "Digits PrintedDigits",
    "ranks": "RankFigures leading_rank rank_figures sole_rank",
    "relays": "Relay as_retained is_relay lengths_of starts_of",
    "rows": "RowRun",
    "series": (
        "Figure Numbers Piece Selection Series first_with is_shown metric not_finite_since pieces placed positions read steps_at "
        "unregistered values_of"
    ),
    "seeds": "with_seed",
    "starts": "configures introduces",
    "step_numbers": "number_steps",
    "streams": "FileFacts Gathered LogFacts gather gathered_from last_bytes_before",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
