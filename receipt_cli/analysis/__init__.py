"""Turn the phases of a run into figures and findings: summary, checks, failure, goodput, diagnosis.

In: ``events.Phase``. Out: ``Summary``, ``Ending``, ``Checks``, ``Goodput``. Each versioned rule is named beside its code, such
as ``steady.STEADY_RULE``.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "BOTTLENECK_RULE": "bottleneck",
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
    "GOODPUT_RULE": "goodput.model",
    "Goodput": "goodput.model",
    "OF_COMMAND": "goodput.model",
    "Wall": "goodput.model",
    "recorded_wall": "goodput.model",
    "Edges": "goodput.timestamps",
    "read_edges": "goodput.timestamps",
    "largest": "limits",
    "left_out": "limits",
    "lowest": "limits",
    "MEMORY_RULE": "memory",
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
