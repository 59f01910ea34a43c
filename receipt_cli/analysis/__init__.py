"""analysis."""

from receipt_cli.rooms import doors

PUBLIC = {
    "CORE": "checks",
    "Checks": "checks",
    "evaluate": "checks",
    "healthy": "checks",
    "proven": "checks",
    "phase_facts": "consistency",
    "diagnose": "diagnosis",
    "Ending": "failure",
    "Sighting": "failure",
    "judge": "failure",
    "Account": "goodput.account",
    "account": "goodput.account",
    "CLASSES": "goodput.model",
    "Goodput": "goodput.model",
    "OF_COMMAND": "goodput.model",
    "Wall": "goodput.model",
    "recorded_wall": "goodput.model",
    "Edges": "goodput.timestamps",
    "read_edges": "goodput.timestamps",
    "largest": "limits",
    "left_out": "limits",
    "lowest": "limits",
    "Spikes": "spikes",
    "SteadyState": "steady",
    "MAX_OTHERS": "summary",
    "NOTHING": "summary",
    "Summary": "summary",
    "summarise": "summary",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
