"""Turn the columns of a scanned log into events, launches, phases and series.

In: a body and its chosen grammars. Out: events in log order; the launches and phases that they form; series of their values.
Start with ``build`` (events), ``launches``, ``phases``, ``series``.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "find_banners": "banners",
    "read_events": "build",
    "drop_copies": "copies",
    "doubtful_launches": "doubts",
    "count_epochs": "epochs",
    "recount_epochs": "epochs",
    "SeveralRuns": "file_order",
    "steps_missing": "holes",
    "Launch": "launches",
    "Ledger": "ledger",
    "Places": "places",
    "find_places": "places",
    "split_launches": "launches",
    "window": "launches",
    "Event": "model",
    "Meaning": "model",
    "ReadEvents": "model",
    "expand": "model",
    "Phase": "phases",
    "first_facts": "phases",
    "split_phases": "phases",
    "RankFigures": "ranks",
    "leading_rank": "ranks",
    "rank_figures": "ranks",
    "sole_rank": "ranks",
    "RowRun": "rows",
    "Figure": "series",
    "Numbers": "series",
    "Selection": "series",
    "Series": "series",
    "ends": "series",
    "first_with": "series",
    "metric": "series",
    "not_finite_since": "series",
    "placed": "series",
    "positions": "series",
    "read": "series",
    "steps_at": "series",
    "unregistered": "series",
    "number_steps": "step_numbers",
    "FileFacts": "streams",
    "Gathered": "streams",
    "LogFacts": "streams",
    "gather": "streams",
    "gathered_from": "streams",
    "last_bytes_before": "streams",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
