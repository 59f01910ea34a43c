"""SQL views of a store: their columns, with types and meanings, and their statements.

Metrics are found by registry id, so that a metric with another name in an older receipt appears in
the same column.
"""

from __future__ import annotations

from typing import NamedTuple

from receipt_cli.store.columns import FLAG, REAL, TEXT, TIME, WHOLE, Column, View, entries, names_of, types_of
from receipt_cli.store.document_views import DOCUMENT_VIEWS


class Wide(NamedTuple):
    """A statistic of one metric of the primary phase as a column of ``runs``; ``block`` is its block of the summary."""

    name: str
    metric_id: int
    figure: str
    block: str = "metrics"


KEY = (
    Column("log_sha256", TEXT, "Digest of the log (decompressed bytes), which may contain several runs."),
    Column("generation", WHOLE, "Number of the receipt among those of its log, from 1; the highest is current."),
    Column("run_id", TEXT, "Identity of the run: log_sha256, followed by .run1 or the like for an earlier run of its log."),
)
RUN = (
    Column("path", TEXT, "Path of the receipt file, below the store."),
    Column("schema_version", TEXT, "Version of the document.", "schema_version"),
    Column("name", TEXT, "The run's own name, else that of its first path."),
    Column("lane", TEXT, "Line of comparable runs: hardware and recipe together."),
    Column("preset", TEXT, "Name of the recipe."),
    Column("started_at", TIME, "When the job started.", "run.started_at"),
    Column("finished_at", TIME, "When the job ended.", "run.finished_at"),
    Column("collected_at", TIME, "When the header was collected.", "header.collected_at"),
    Column("run_at", TIME, "The time of the run: started_at, else what run_at_source names."),
    Column("run_at_source", TEXT, "A field of the run, evidence (a job's start), log or log_ends; _local without a zone."),
    Column("exit_code", WHOLE, "Exit code of the job as captured.", "run.exit_code"),
    Column("git_commit", TEXT, "Commit id.", "header.git.commit"),
    Column("git_branch", TEXT, "Branch.", "header.git.branch"),
    Column("git_dirty", FLAG, "Whether the tree held uncommitted changes.", "header.git.dirty"),
    Column("accelerator_name", TEXT, "Product names of the accelerators, joined by ' + '."),
    Column("accelerator_count", WHOLE, "Number of accelerators; NULL if the number of one kind is unknown."),
    Column("accelerator_memory_bytes", WHOLE, "Memory of one accelerator; NULL for several kinds."),
    Column("world_size", WHOLE, "Processes (ranks) of the job.", "header.parallelism.world_size"),
    Column("trainer", TEXT, "The training program, with its version if known.", "header.software.trainer"),
    Column("torch_version", TEXT, "PyTorch version.", "header.software.torch"),
    Column("cuda_version", TEXT, "CUDA or ROCm version.", "header.software.cuda"),
    Column("python_version", TEXT, "Python version.", "header.software.python"),
    Column("architecture", TEXT, "Name of the model's architecture.", "header.model.architecture"),
    Column("parameter_count", WHOLE, "Parameters of the model: as the primary phase prints it, else the header."),
    Column("grammar_id", TEXT, "Grammar of the primary phase.", "derivation.grammars.0.id"),
    Column("grammar_version", WHOLE, "Its version.", "derivation.grammars.0.version"),
    Column("grammar_sha256", TEXT, "Its digest.", "derivation.grammars.0.sha256"),
    Column("rules", TEXT, "Version of the rules in code that the figures follow.", "derivation.rules"),
    Column("tool_version", TEXT, "Version of the program that wrote the receipt.", "derivation.tool_version"),
    Column("origin", TEXT, "Format of the document that was imported; NULL for a log.", "derivation.origin.format"),
    Column("log_size_bytes", WHOLE, "Size of the log.", "derivation.log.size_bytes"),
    Column("log_line_count", WHOLE, "Lines of the log.", "derivation.log.line_count"),
    Column("problem_count", WHOLE, "Problems: parts of the log that could not be read properly.", "derivation.problems.count"),
    Column("near_miss_count", WHOLE, "Lines almost read: a format may have changed.", "derivation.near_misses.count"),
    Column("unmatched_count", WHOLE, "Records that no rule matched.", "derivation.lines.unmatched"),
    Column("phase_count", WHOLE, "Phases of the log."),
    Column("outcome", TEXT, "How the run ended: failed, stopped, running, cut off, finished or unknown."),
    Column("healthy", FLAG, "has_steps is true, none of the four core checks is false, and the run did not fail."),
    Column("proven", FLAG, "All four core checks are true."),
    Column("finite_losses", FLAG, "Check: every loss printed is finite. NULL: unknown.", "checks.finite_losses"),
    Column("zero_exit_code", FLAG, "Check: the job ended with exit code 0. NULL: unknown.", "checks.zero_exit_code"),
    Column("has_steps", FLAG, "Check: a training step was recognised.", "checks.has_steps"),
    Column("no_oom", FLAG, "Check: memory did not run out. NULL: unknown.", "checks.no_oom"),
    Column("steps_monotonic", FLAG, "Check: the step number only grew. NULL: unknown.", "checks.steps_monotonic"),
    Column("completed", FLAG, "Check: the run did what it set out to do. NULL: unknown.", "checks.completed"),
    Column("mfu_plausible", FLAG, "Check: no printed MFU is above 1. NULL: none printed.", "checks.mfu_plausible"),
    Column("throughput_consistent", FLAG, "Check: reported and derived throughput agree. NULL: nothing to compare.",
           "checks.throughput_consistent"),
    Column("failure_reason", TEXT, "Slug of the failure's cause; NULL if no failure is known.", "failure.reason"),
    Column("failure_category", TEXT, "Kind of the cause.", "failure.category"),
    Column("goodput_ratio", REAL, "Share of the wall time in retained steps, 0 to 1.", "goodput.goodput_ratio"),
    Column("wall_time_s", REAL, "Wall time.", "goodput.wall_time_s"),
    Column("goodput_step_time_s", REAL, "Time in retained steps.", "goodput.step_time_s"),
    Column("badput_checkpoint_s", REAL, "Wall time lost to checkpoints.", "goodput.badput_s.checkpoint"),
    Column("badput_eval_s", REAL, "Wall time lost to evaluation.", "goodput.badput_s.eval"),
    Column("badput_compilation_s", REAL, "Wall time lost to compilation.", "goodput.badput_s.compilation"),
    Column("badput_data_loading_s", REAL, "Wall time lost to waiting for data.", "goodput.badput_s.data_loading"),
    Column("badput_initialization_s", REAL, "Wall time before the first step.", "goodput.badput_s.initialization"),
    Column("badput_wasted_progress_s", REAL, "Wall time of steps superseded by a restart.", "goodput.badput_s.wasted_progress"),
    Column("badput_gpu_idle_s", REAL, "Wall time of steps in which no GPU did anything.", "goodput.badput_s.gpu_idle"),
    Column("badput_idle_s", REAL, "Wall time that nothing explains.", "goodput.badput_s.idle"),
    Column("goodput_evidence", TEXT, "Evidence for the wall time.", "goodput.evidence"),
    Column("job_wall_time_s", REAL, "Wall time of the job as its wrapper measured it.", "run.wall_time_s"),
    Column("job_peak_rss_bytes", WHOLE, "Largest resident memory of the job's processes, as sampled.", "run.peak_rss_bytes"),
    Column("log_path", TEXT, "First path of the log below the root of its archive; NULL if no batch found it."),
    Column("log_path_count", WHOLE, "Number of paths with these bytes."),
    Column("name_source", TEXT, "Where name is from: receipt, stem (of log_path), template or mapping."),
    Column("lane_source", TEXT, "Where lane is from: receipt, template, mapping or mark."),
    Column("preset_source", TEXT, "Where preset is from: receipt, template or mapping."),
    Column("run_number", WHOLE, "Number of the run in its log, from 1."),
    Column("run_count", WHOLE, "Number of runs in its log."),
    Column("log_first_at", TIME, "First timestamp of the run's lines.", "summary.time.first"),
    Column("log_last_at", TIME, "Last timestamp of the run's lines.", "summary.time.last"),
    Column("log_zone", TEXT, "utc if the timestamps have an offset; NULL for local times.", "summary.time.zone"),
    Column("failure_signature", TEXT, "Reason and message of the failure without parts that vary between runs."),
    Column("retry", TEXT, "would_repeat: it would fail in the same place; until derive/3 same, elsewhere, fix_first or unknown.",
           "failure.retry.verdict"),
    Column("culprit_host", TEXT, "Host of the rank that failed first.", "failure.culprit.host"),
    Column("seed", WHOLE, "The only seed of the header; NULL for several."),
    Column("hourly_rate", REAL, "Price of the job per hour.", "header.cost.hourly_rate"),
    Column("currency", TEXT, "Currency of cost and hourly_rate.", "header.cost.currency"),
    Column("cost", REAL, "The receipt's cost.amount, else hourly_rate times the wall time: job_wall_time_s, else wall_time_s."),
    Column("device_hours", REAL, "The receipt's cost.device_hours, else wall time in hours times accelerator_count."),
    Column("checkpoint_count", WHOLE, "Checkpoints that the log shows.", "goodput.parts.checkpoint.count"),
    Column("goodput_low", REAL, "Lower bound of goodput_ratio.", "goodput.range.low"),
    Column("goodput_high", REAL, "Upper bound of goodput_ratio.", "goodput.range.high"),
    Column("excluded", FLAG, "Whether a user excluded the run from history and statistics."),
    Column("note", TEXT, "Note on the run."),
    Column("tags", f"{TEXT}[]", "Tags of the run."),
)  # fmt: skip
STEPS = (
    Column("phase", TEXT, "Name of the phase.", "phase"),
    Column("steps_first", WHOLE, "First step printed.", "steps.first"),
    Column("steps_last", WHOLE, "Last step printed.", "steps.last"),
    Column("steps_planned", WHOLE, "Planned number of steps.", "steps.planned"),
    Column("step_record_count", WHOLE, "Step records, each once.", "steps.record_count"),
    Column("restart_count", WHOLE, "How often the step number went back.", "steps.restart_count"),
    Column("superseded_count", WHOLE, "Records superseded by a restart.", "steps.superseded_count"),
    Column("steady_record_count", WHOLE, "Records of the steady window.", "steady_state.record_count"),
    Column("training_time_s", REAL, "Training time as the trainer prints it.", "training_time_s"),
    Column("bottleneck", TEXT, "What the rest of the pipeline waits for; NULL without such figures.", "bottleneck.verdict"),
    Column("memory_reading", TEXT, "How memory developed: steady, growth, fragmentation or unknown.", "memory.reading"),
    Column("loss_spike_count", WHOLE, "Jumps of the loss.", "spikes.metrics.loss.count"),
    Column("grad_norm_spike_count", WHOLE, "Jumps of the gradient norm.", "spikes.metrics.grad_norm.count"),
    Column("checkpoint_last_step", WHOLE, "Step of the last checkpoint.", "checkpoints.last_step"),
    Column("unsaved_step_count", WHOLE, "Steps after it, which a restart would repeat.", "checkpoints.unsaved_step_count"),
    Column("unsaved_time_s", REAL, "Time of these steps, by the log's timestamps.", "checkpoints.unsaved_time_s"),
)
"""Columns of a phase, and of the primary phase in ``runs``; sources are below its summary."""
WIDE = (
    Wide("loss_first", 1, "first"), Wide("loss_last", 1, "last"), Wide("loss_min", 1, "min"),
    Wide("grad_norm_median", 2, "median"), Wide("learning_rate_last", 3, "last"),
    Wide("val_loss_last", 100, "last"), Wide("val_loss_min", 100, "min"),
    Wide("val_bpb_last", 101, "last"), Wide("val_bpb_min", 101, "min"),
    Wide("val_accuracy_last", 103, "last"), Wide("val_accuracy_max", 103, "max"),
    Wide("tokens_per_s_median", 20, "median"),
    Wide("derived_tokens_per_s_median", 20, "median", "derived"),
    Wide("tokens_per_s_per_device_median", 21, "median"),
    Wide("samples_per_s_median", 22, "median"), Wide("steps_per_s_median", 24, "median"),
    Wide("flops_per_s_per_device_median", 26, "median"), Wide("mfu_ratio_median", 27, "median"),
    Wide("step_time_s_median", 40, "median"), Wide("data_time_s_median", 41, "median"),
    Wide("tokens_total_last", 80, "last"),
    Wide("peak_memory_allocated_bytes_max", 62, "max"), Wide("peak_memory_reserved_bytes_max", 63, "max"),
    Wide("peak_memory_bytes_max", 64, "max"), Wide("memory_allocated_bytes_max", 60, "max"),
    Wide("memory_reserved_bytes_max", 61, "max"), Wide("memory_used_bytes_max", 65, "max"),
)  # fmt: skip
_DERIVED = {"derived": ", recomputed from batch and step time"}
MEMORY = tuple(wide for wide in WIDE if wide.metric_id in range(60, 70))
"""Memory statistics in order of preference for a run."""
FIGURES = (
    *(Column(w.name, REAL, f"The primary phase's {w.figure} of metric {w.metric_id}{_DERIVED.get(w.block, '')}.") for w in WIDE),
    Column("memory_bytes", REAL, "The run's memory value: the first known of the memory columns above."),
    Column("memory_metric", TEXT, "The metric of memory_bytes, which is its largest steady value."),
    Column("rank_peak_memory_bytes", REAL, "Largest memory value that any rank printed; NULL if only one rank printed."),
)
METRIC = (
    Column("metric", TEXT, "Name: as this version's registry spells it, or as printed if it has no id."),
    Column("id", WHOLE, "Identity in the metric registry; NULL outside of it."),
    Column("unit", TEXT, "Base unit; NULL outside of the registry."),
    Column("source", TEXT, "reported: printed by the trainer; derived: recomputed; other: reported, outside of the registry."),
    Column("window_name", TEXT, "Records that the statistics are over: all, or steady (without warm-up).", "window"),
    Column("scope", TEXT, "Scope of a value, such as global or per_device.", "scope"),
    Column("definition", TEXT, "Exact meaning of the number, if the name leaves it open.", "definition"),
    Column("record_count", WHOLE, "Values in the window.", "record_count"),
    Column("nonfinite_count", WHOLE, "NaN and infinite values, which the statistics exclude.", "nonfinite_count"),
    Column("first", REAL, "First value printed.", "first"),
    Column("last", REAL, "Last value printed.", "last"),
    Column("min", REAL, "Smallest.", "min"),
    Column("max", REAL, "Largest.", "max"),
    Column("mean", REAL, "Mean.", "mean"),
    Column("median", REAL, "Median.", "median"),
)
PHASE = (
    Column("phase_index", WHOLE, "Number of the phase in the log, from 0."),
    Column("is_primary", FLAG, "Whether it is the primary phase: that of the columns of runs."),
)
CHECK = (
    Column("check_name", TEXT, "Name of the check."),
    Column("passed", FLAG, "true, false, or NULL if the log proves neither."),
)
FAILURE = (
    Column("reason", TEXT, "Slug of the most specific cause.", "reason"),
    Column("category", TEXT, "Kind of the cause.", "category"),
    Column("line_number", WHOLE, "Line of the log that shows it.", "line_number"),
    Column("message", TEXT, "The cause as printed.", "message"),
    Column("exception_type", TEXT, "Type of the exception; NULL if the log shows none.", "exception.type"),
    Column("frame_file", TEXT, "File of its innermost frame outside installed packages.", "exception.frame.file"),
    Column("frame_line", WHOLE, "Line of that file.", "exception.frame.line"),
    Column("culprit_rank", WHOLE, "Rank that failed first; NULL if the log does not name it.", "culprit.rank"),
    Column("culprit_host", TEXT, "Its host.", "culprit.host"),
    Column("victim_count", WHOLE, "How many failed only because another did.", "victims.count"),
    Column("retry", TEXT, "would_repeat or null; until derive/3 same, elsewhere, fix_first or unknown.", "retry.verdict"),
    Column("silence_s", REAL, "Seconds without progress before the last timestamp of the log.", "progress.silence_s"),
    Column("stalled", FLAG, "Whether silence_s is longer than earlier steps allow.", "progress.stalled"),
    Column("log_tail", f"{TEXT}[]", "Last lines of the log.", "log_tail"),
)
CAUSE = (
    Column("marker", TEXT, "Failure marker that the run did not survive.", "id"),
    Column("reason", TEXT, "Slug of its failure reason.", "reason"),
    Column("role", TEXT, "What it shows: a cause, an external stop, an error, a consequence.", "role"),
    Column("count", WHOLE, "How often the log shows it.", "count"),
    Column("first_line", WHOLE, "Its first line.", "first_line"),
    Column("message", TEXT, "Its first occurrence as printed.", "message"),
)
RANK = (
    Column("rank", WHOLE, "Rank, from 0."),
    Column("record_count", WHOLE, "Steps that it printed.", "record_count"),
    Column("median_step_time_s", REAL, "Median of its step times; NULL if it prints none.", "median_step_time_s"),
    Column("straggles", FLAG, "Whether its median is over 1.1 times that of all ranks.", "straggles"),
    Column("peak_memory_bytes", REAL, "Largest memory figure that it printed.", "peak_memory_bytes"),
)
CHECKPOINT = (
    Column("step", WHOLE, "Step of the checkpoint.", "step"),
    Column("line_number", WHOLE, "Its line.", "line_number"),
    Column("duration_s", REAL, "Seconds that it took.", "duration_s"),
)
SETTING = (
    Column("field", TEXT, "Field of the header, as a JSON pointer such as /flags/lr."),
    Column("value", TEXT, "Its value as text."),
)
PLACE = (
    Column("path", TEXT, "Path of the log, below the root of its archive."),
    Column("name", TEXT, "Name of the run there."),
    Column("lane", TEXT, "Lane of the run there."),
    Column("preset", TEXT, "Preset of the run there."),
    Column("name_source", TEXT, "Where the name is from."),
    Column("lane_source", TEXT, "Where the lane is from."),
    Column("preset_source", TEXT, "Where the preset is from."),
)
EVIDENCE = (
    Column("source", TEXT, "Form of the scheduler's document.", "source"),
    Column("job_id", TEXT, "Id of the job.", "job_id"),
    Column("job_name", TEXT, "Name of the job.", "name"),
    Column("state", TEXT, "State in the scheduler's own words.", "state"),
    Column("ended", TEXT, "How the job ended: completed, failed, out_of_memory, timeout, preempted or the like.", "ended"),
    Column("reason", TEXT, "Reason in the scheduler's own words.", "reason"),
    Column("exit_code", WHOLE, "Exit code of the job, negative for a signal.", "exit_code"),
    Column("submitted_at", TIME, "When it was submitted.", "submitted_at"),
    Column("started_at", TIME, "When it started.", "started_at"),
    Column("finished_at", TIME, "When it ended.", "finished_at"),
    Column("zone", TEXT, "utc if the times have an offset; NULL for local times.", "zone"),
    Column("nodes", f"{TEXT}[]", "Names of its nodes.", "nodes"),
    Column("node_count", WHOLE, "Number of its nodes.", "node_count"),
    Column("max_rss_bytes", WHOLE, "Largest resident memory of one of its tasks.", "max_rss_bytes"),
    Column("memory_limit_bytes", WHOLE, "Memory that it was granted.", "memory_limit_bytes"),
    Column("restart_count", WHOLE, "How often the scheduler started it again.", "restart_count"),
    Column("contradictions", f"{TEXT}[]", "Contradictions to the log or another part of the receipt, in words."),
)
STORED = (
    Column("stamp", TEXT, "Size and times of the file, by which a change is noticed."),
    Column("refusal", TEXT, "Reason for skipping the file; NULL for a valid receipt."),
    Column("attached", f"{TEXT}[]", "Digests of the attachments."),
)
"""Columns of the index only."""


TABLE = "stored.receipts"
"""The table that the views read: one row per receipt file."""
_CURRENT = f"FROM {TABLE} WHERE refusal IS NULL AND is_current"
_RUNS = (*KEY, *RUN, *STEPS, *FIGURES)
_IN_PHASE = (*KEY, *PHASE, STEPS[0])
_BY_NAME = {column.name: column for column in RUN}
_WHO = (*KEY, *(_BY_NAME[name] for name in ("name", "lane", "preset", "log_path", "run_at")))
_SIGNED = tuple(_BY_NAME[name] for name in ("failure_signature", "name", "log_path", "run_at"))
_OF_PHASES = f"FROM (SELECT {names_of(KEY)}, p.* FROM (SELECT {names_of(KEY)}, unnest(phases) AS p {_CURRENT}))"
_OF_PRIMARY = f"FROM (SELECT {names_of(_WHO)}, unnest(phases) AS p {_CURRENT}) WHERE p.is_primary"
_SETTINGS = f"(SELECT {names_of(KEY)}, unnest(settings) AS s {_CURRENT})"


def _settings(pointer: str) -> str:
    """Return the statement of the settings below ``pointer``, under their own names."""
    pair = f'substr(s.field, {len(pointer) + 1}) AS "key", s.value AS "value"'
    return f"SELECT {names_of(KEY)}, {pair} FROM {_SETTINGS} WHERE s.field LIKE '{pointer}%'"


_PAIR = (Column("key", TEXT, "Its name."), SETTING[1])

VIEWS = (
    View("runs", "A run: the current receipt of each log.", _RUNS, f"SELECT {names_of(_RUNS)} {_CURRENT}"),
    View("phases", "A phase of a run.", *entries(_CURRENT, "phases", KEY, (*PHASE, *STEPS))),
    View("metrics", "A metric of a phase of a run.", *entries(_OF_PHASES, "metrics", _IN_PHASE, METRIC)),
    View("checks", "A check of a run.", *entries(_CURRENT, "checks", KEY, CHECK)),
    View("failures", "A run that failed.", (*KEY, *FAILURE, *_SIGNED),
         f"SELECT {names_of(KEY)}, {names_of(FAILURE, 'failure.')}, {names_of(_SIGNED)} {_CURRENT} AND failure IS NOT NULL"),
    View("results", "A metric of the primary phase of a run, with the run's name: for most questions.",
         *entries(_OF_PRIMARY, "p.metrics", _WHO, METRIC)),
    View("ranks", "A rank of the primary phase of a run, if several print.", *entries(_OF_PRIMARY, "p.ranks", _WHO, RANK)),
    View("checkpoints", "One of the last twenty checkpoints of the primary phase of a run.",
         *entries(_OF_PRIMARY, "p.checkpoints", _WHO, CHECKPOINT)),
    View("causes", "A kind of failure marker that a run did not survive.", *entries(_CURRENT, "causes", _WHO, CAUSE)),
    View("evidence", "A job as a scheduler or a platform records it.", *entries(_CURRENT, "evidence", _WHO, EVIDENCE)),
    View("settings", "A known header field of a run.", *entries(_CURRENT, "settings", KEY, SETTING)),
    View("flags", "A setting of a run: a field of /flags.", (*KEY, *_PAIR), _settings("/flags/")),
    View("seeds", "A seed of a run: a field of /seeds.", (*KEY, *_PAIR), _settings("/seeds/")),
    View("paths", "A path of a run's log.", *entries(_CURRENT, "places", KEY, PLACE)),
    View("history", "A receipt, including those replaced by a newer one of the same log.",
         (*_RUNS, Column("is_current", FLAG, "Whether it is the current receipt of its log.")),
         f"SELECT {names_of(_RUNS)}, is_current FROM {TABLE} WHERE refusal IS NULL"),
    View("passed_over", "A skipped receipt file: invalid, or of an unknown version.",
         (*KEY, RUN[0], STORED[1]), f"SELECT {names_of((*KEY, RUN[0], STORED[1]))} FROM {TABLE} WHERE refusal IS NOT NULL"),
    *DOCUMENT_VIEWS,
)  # fmt: skip


def structure() -> dict[str, object]:
    """Return the structure of one row of the index (a receipt file) for DuckDB's ``from_json``."""
    metric = types_of(METRIC)
    phase = {**types_of((*PHASE, *STEPS)), "metrics": [metric], "ranks": [types_of(RANK)], "checkpoints": [types_of(CHECKPOINT)]}
    nested: dict[str, object] = {"checks": [types_of(CHECK)], "failure": types_of(FAILURE), "phases": [phase]}
    nested |= {"settings": [types_of(SETTING)], "places": [types_of(PLACE)], "causes": [types_of(CAUSE)]}
    nested |= {"evidence": [types_of(EVIDENCE)]}
    return {**types_of((*KEY, *STORED, *RUN, *STEPS, *FIGURES)), **nested}
