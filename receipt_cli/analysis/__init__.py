"""Compute what a receipt reports of a run: summary, checks, failure, goodput, flags, bottleneck and memory.

In: phases with their events, marker hits, the metric registry. Out: ``Summary``, ``Checks``, ``Ending``, ``Goodput``; all of them
pure functions of their arguments.
Start with ``summary`` (one phase), then ``checks``, ``failure`` and ``goodput.account`` (a whole run).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "bottleneck": "BOTTLENECK_RULE",
    "checks": (
        "CORE Checks contradicted_metrics deciding_lines evaluate healthy no_step_recognised proven proves_no_step TRUNCATED "
        "UNKNOWN verdict"
    ),
    "completed": "begins_program closes",
    "consistency": "phase_facts",
    "diagnosis": "diagnose",
    "doubts": "doubts_named losses_left_over unread_losses",
    "failure": "Ending Sighting judge",
    "explanation": "Explanation explain",
    "goodput.account": "Account account",
    "goodput.log_time": "find_log_time",
    "goodput.model": "CLASSES GOODPUT_RULE Goodput OF_COMMAND Wall",
    "goodput.timestamps": "Edges LogTime Stamps find_time is_zoned log_edges",
    "limits": "largest dropped left_out lowest",
    "memory": "MEMORY_RULE",
    "omissions": "find_omissions loss_doubts rates_contradicted",
    "progress.checkpoints": "Checkpoints without_unsaved",
    "spikes": "SPIKES_RULE Spikes",
    "stated.completion": "contradicted",
    "stated.cost": "COST_RULE Cost find_cost",
    "stated.job_end": "complete_ending",
    "stated.options": "JobEnd Options StatedFact",
    "steady": "STEADY_RULE SteadyState",
    "stepless": "PROGRAMS RAISED fails_at_start shows_beginning",
    "summary": "MAX_OTHERS NOTHING Summary summarise",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
