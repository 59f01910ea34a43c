"""Compute what a receipt reports of a run: summary, checks, failure, goodput, flags, bottleneck and memory.

In: phases with their events, marker hits, the metric registry. Out: ``Summary``, ``Checks``, ``Ending``, ``Goodput``; all of them
pure functions of their arguments.
Start with ``summary`` (one phase), then ``checks``, ``failure`` and ``goodput.account`` (a whole run).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "BOTTLENECK_RULE": "bottleneck",
    "CORE": "checks",
    "Checks": "checks",
    "deciding_lines": "checks",
    "evaluate": "checks",
    "healthy": "checks",
    "proven": "checks",
    "TRUNCATED": "checks",
    "verdict": "checks",
    "phase_facts": "consistency",
    "diagnose": "diagnosis",
    "Ending": "failure",
    "Explanation": "explanation",
    "explain": "explanation",
    "Sighting": "failure",
    "judge": "failure",
    "Account": "goodput.account",
    "account": "goodput.account",
    "CLASSES": "goodput.model",
    "GOODPUT_RULE": "goodput.model",
    "Goodput": "goodput.model",
    "OF_COMMAND": "goodput.model",
    "Wall": "goodput.model",
    "recorded_wall": "goodput.model",
    "Edges": "goodput.timestamps",
    "find_time": "goodput.timestamps",
    "is_zoned": "goodput.timestamps",
    "log_edges": "goodput.timestamps",
    "largest": "limits",
    "dropped": "limits",
    "left_out": "limits",
    "lowest": "limits",
    "MEMORY_RULE": "memory",
    "loss_missing": "omissions",
    "SPIKES_RULE": "spikes",
    "Spikes": "spikes",
    "STEADY_RULE": "steady",
    "SteadyState": "steady",
    "MAX_OTHERS": "summary",
    "NOTHING": "summary",
    "Summary": "summary",
    "summarise": "summary",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
