"""SQL views of a store: their columns, with types and meanings, and their statements.

Metrics are found by registry id, so that a metric with another name in an older receipt appears in
the same column. A column keeps its name, type and meaning forever; new ones are added at the end of a group. Times are UTC,
numbers in base units, unknown values NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

TEXT, WHOLE, REAL, FLAG, TIME = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMP"
_LARGEST = 2**63 - 1


class Column(NamedTuple):
    """One column: name, DuckDB type, meaning, and path in a document ("": computed)."""

    name: str
    type: str
    meaning: str
    source: str = ""


class View(NamedTuple):
    """One view: name, meaning of a row, columns, and statement."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    select: str


def names_of(columns: Sequence[Column], prefix: str = "") -> str:
    """Return the quoted names of columns for a statement, each after ``prefix``."""
    return ", ".join(f'{prefix}"{column.name}"' for column in columns)


def types_of(columns: Sequence[Column]) -> dict[str, object]:
    """Return name → type of columns, for DuckDB's ``from_json``."""
    return {c.name: [TEXT] if c.type == f"{TEXT}[]" else c.type for c in columns}


def entries(source: str, field: str, who: Sequence[Column], columns: Sequence[Column]) -> tuple[tuple[Column, ...], str]:
    """Return columns and statement of a view of the entries of the list ``field``, each after the columns ``who`` of its row.

    ``source`` is what follows the columns in the statement that selects the rows: ``FROM …``.
    """
    listed = f"(SELECT {names_of(who)}, unnest({field}) AS x {source})"
    return (*who, *columns), f"SELECT {names_of(who)}, {names_of(columns, 'x.')} FROM {listed}"


def values_of(columns: Sequence[Column], document: object) -> dict[str, Any]:
    """Return name → value of the columns that have a source, in ``document`` or a part of it; None if it lacks the value."""
    return {column.name: _value_of(column, document) for column in columns if column.source}


def _value_of(column: Column, document: object) -> object:
    value = document
    for key in _keys(column.source):
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list):
            value = value[int(key)] if int(key) < len(value) else None
        else:
            return None
    return whole(value) if column.type == WHOLE else timestamp(value) if column.type == TIME else value


@cache
def _keys(source: str) -> tuple[str, ...]:
    return tuple(source.split("."))


def whole(value: object) -> int | None:
    """Return a whole number of at most 64 bits, else None; JSON may write it as 3.0."""
    number = int(value) if isinstance(value, int | float) and value == value // 1 else None
    return number if number is not None and abs(number) <= _LARGEST else None


def timestamp(value: object) -> str | None:
    """Return an RFC 3339 time in UTC in DuckDB's form, to the microsecond; None for an impossible date."""
    if not isinstance(value, str):
        return None
    clock, _, fraction = value.removesuffix("Z").partition(".")
    leap = clock.endswith(":60")
    try:
        moment = datetime.fromisoformat(f"{clock[:-2]}59" if leap else clock)
        moment += timedelta(seconds=int(leap), microseconds=0 if leap else int(fraction[:6].ljust(6, "0")))
    except (ValueError, OverflowError):
        return None
    return moment.isoformat(sep=" ")


DOCUMENTS = "stored.documents"
"""The table that the views read: one row per document."""

FILE_KEY = (
    Column("kind", TEXT, "Kind of the document: ablation, evaluation, gpu_profile or golden."),
    Column("sha256", TEXT, "Digest of the document, which is its identity."),
)
ABOUT = (
    Column("path", TEXT, "Path of its file, below the store."),
    Column("schema_version", TEXT, "Version of the document.", "schema_version"),
    Column("title", TEXT, "What it is about: a variant, a model or program, a label, or systems."),
    Column("name", TEXT, "Name of its run, as the document states it.", "run.name"),
    Column("lane", TEXT, "Its lane, else that of the run that it is linked to.", "run.lane"),
    Column("preset", TEXT, "Its recipe.", "run.preset"),
    Column("run_at", TIME, "Time of its run or session, else of collecting its header; NULL if unknown."),
    Column("run_id", TEXT, "The run in the view runs that it belongs to; NULL if none or several have a claim."),
    Column("run_name", TEXT, "Name of that run."),
    Column("linked_by", TEXT, "digest: of an attachment, a file or a log; name: that of the run."),
)
STATE = (Column("refusal", TEXT, "Reason for skipping the file; NULL for a valid document."),)
ABLATION = (
    Column("study", TEXT, "What the ablation studies.", "ablation.kind"),
    Column("variant", TEXT, "Name of the variant.", "ablation.variant"),
    Column("baseline", TEXT, "Variant that it is to be compared with; NULL for the baseline itself.", "ablation.baseline"),
    Column("changes", TEXT, "Settings in which it differs from the baseline, as JSON."),
    Column("architecture", TEXT, "Architecture of the model.", "model.architecture"),
    Column("layer_count", WHOLE, "Layers of the model.", "model.layer_count"),
    Column("from_step", WHOLE, "First step of the window of comparison; NULL for all steps.", "window.from_step"),
    Column("window_step_count", WHOLE, "Steps in it.", "window.step_count"),
)
EVALUATION = (
    Column("complete", FLAG, "Whether the evaluation was finished.", "complete"),
    Column("model", TEXT, "Name or path of the model or checkpoint.", "model.name"),
    Column("revision", TEXT, "Revision of it.", "model.revision"),
    Column("checkpoint_step", WHOLE, "Training step of the checkpoint, if stated.", "model.step"),
    Column("producer", TEXT, "The program that evaluated, else the format of its results."),
    Column("step_count", WHOLE, "Steps that a performance tracker recorded.", "summary.step_count"),
    Column("duration_s", REAL, "Its seconds.", "summary.duration_s"),
    Column("tokens_per_s", REAL, "Its tokens per second.", "summary.tokens_per_s"),
)
SCORE = (
    Column("task", TEXT, "The task, benchmark or data set."),
    Column("subset", TEXT, "Part of the task."),
    Column("split", TEXT, "Split of the data."),
    Column("metric", TEXT, "The metric as stated."),
    Column("filter", TEXT, "How answers were taken, or the conditions of a detection metric."),
    Column("shots", WHOLE, "Examples in the prompt."),
    Column("value", REAL, "The score; NULL if the program has none."),
    Column("stderr", REAL, "Its standard error."),
    Column("sample_count", WHOLE, "Samples that were scored."),
    Column("higher_is_better", FLAG, "Whether a larger value is better, if stated."),
    Column("task_version", TEXT, "Version of the task."),
    Column("step", WHOLE, "Training step of the model that was scored, if stated."),
    Column("after_step", WHOLE, "Last training step that the log prints before the score."),
    Column("line_number", WHOLE, "Line of the log that prints it."),
)
PROFILE = (
    Column("label", TEXT, "Name of the profile.", "profile.label"),
    Column("format", TEXT, "Format of the recording; NULL if only lanes were timed.", "events.format"),
    Column("application", TEXT, "Program that was recorded.", "events.application"),
    Column("device_name", TEXT, "Product names of the devices, joined by ' + '."),
    Column("device_count", WHOLE, "Devices of the session."),
    Column("complete", FLAG, "Whether the recording has both ends of the session.", "events.complete"),
    Column("lossy", FLAG, "Whether records are known to be missing.", "events.lossy"),
    Column("duration_s", REAL, "Length of the session.", "events.duration_s"),
    Column("busy_s", REAL, "Time in which at least one kernel ran on a device, summed over the devices.", "events.busy_s"),
    Column("busy_ratio", REAL, "Its share of the session, 0 to 1.", "events.busy_ratio"),
    Column("kernel_count", WHOLE, "Kernels of different names.", "events.kernels.name_count"),
    Column("launch_count", WHOLE, "Launches of kernels.", "events.kernels.launch_count"),
    Column("kernel_time_s", REAL, "Durations of all launches together.", "events.kernels.total_s"),
    Column("lane_count", WHOLE, "Lanes that were timed."),
)
KERNEL = (
    Column("kernel", TEXT, "Name of the kernel.", "name"),
    Column("count", WHOLE, "Its launches.", "count"),
    Column("total_s", REAL, "Their durations together.", "total_s"),
    Column("min_s", REAL, "The shortest.", "min_s"),
    Column("mean_s", REAL, "The mean.", "mean_s"),
    Column("max_s", REAL, "The longest.", "max_s"),
)
STALL = (
    Column("reason", TEXT, "Why warps waited."),
    Column("not_issued", FLAG, "Whether the samples are of cycles without an instruction."),
    Column("sample_count", WHOLE, "Its samples."),
    Column("ratio", REAL, "Its share of the samples of stalls."),
)
CURVE = (
    Column("metric", TEXT, "The metric."),
    Column("record_count", WHOLE, "Steps with a value."),
    Column("nonfinite_count", WHOLE, "How many of them are not finite."),
    *(Column(name, REAL, f"The {name} value.") for name in ("first", "last", "min", "max", "mean", "median")),
)
GOLDEN = (
    Column("reference_count", WHOLE, "Systems with golden curves."),
    Column("golden_runs", f"{TEXT}[]", "Digests of the logs of the good runs."),
)
GOLDEN_CURVE = (
    Column("lane", TEXT, "Lane of the good runs."),
    Column("device", TEXT, "Their accelerators."),
    Column("world_size", WHOLE, "Their ranks."),
    Column("metric", TEXT, "The figure.", "metric"),
    Column("role", TEXT, "Whether it says something of the data or of what training gave.", "role"),
    Column("rule", TEXT, "How its tolerances came about.", "rule"),
    Column("step_count", WHOLE, "Its steps."),
    Column("first_step", WHOLE, "The first."),
    Column("last_step", WHOLE, "The last."),
)
_OF_DOCUMENT = (FILE_KEY[1], *(column for column in ABOUT if column.name in ("title", "name", "lane", "run_at", "run_id")))
_VALID_DOCUMENT = f"FROM {DOCUMENTS} WHERE refusal IS NULL"


def _of(kind: str, columns: Sequence[Column]) -> tuple[tuple[Column, ...], str]:
    """Return the columns and the SQL query of the view that lists the documents of a kind."""
    every = (FILE_KEY[1], *ABOUT, *columns)
    return every, f"SELECT {names_of(every)} {_VALID_DOCUMENT} AND kind = '{kind}'"


def _within(
    kind: str, field: str, columns: Sequence[Column], who: Sequence[Column] = _OF_DOCUMENT
) -> tuple[tuple[Column, ...], str]:
    """Return the columns and the SQL query of the view of a list inside the documents of a kind."""
    return entries(f"{_VALID_DOCUMENT} AND kind = '{kind}'", field, who, columns)


_ID = (FILE_KEY[1], ABOUT[2])
_REFUSED = (*FILE_KEY, ABOUT[0], *STATE)
_SCORED = (*_OF_DOCUMENT, EVALUATION[1])
DOCUMENT_VIEWS = (
    View("documents", "A document besides receipts, of any kind, with the run that it belongs to.",
         (*FILE_KEY, *ABOUT), f"SELECT {names_of((*FILE_KEY, *ABOUT))} {_VALID_DOCUMENT}"),
    View("ablations", "An ablation: one variant of a model.", *_of("ablation", ABLATION)),
    View("ablation_curves", "A curve of the model in an ablation, within its window.", *_within("ablation", "curves", CURVE)),
    View("evaluations", "An evaluation.", *_of("evaluation", EVALUATION)),
    View("scores", "A score of an evaluation.", *_within("evaluation", "scores", SCORE, _SCORED)),
    View("evaluation_curves", "A metric that a performance tracker recorded.", *_within("evaluation", "curves", CURVE)),
    View("gpu_profiles", "A GPU profile.", *_of("gpu_profile", PROFILE)),
    View("kernels", "One of the longest kernels of a GPU profile.", *_within("gpu_profile", "kernels", KERNEL)),
    View("stall_reasons", "Why warps of a GPU profile waited.", *_within("gpu_profile", "stalls", STALL)),
    View("goldens", "A document of golden curves.", *_of("golden", GOLDEN)),
    View("golden_curves", "A golden curve.", *_within("golden", "golden_curves", GOLDEN_CURVE, _ID)),
    View("documents_passed_over", "A skipped document: invalid, or of an unknown kind or version.",
         _REFUSED, f"SELECT {names_of(_REFUSED)} FROM {DOCUMENTS} WHERE refusal IS NOT NULL"),
)  # fmt: skip


def document_structure() -> dict[str, object]:
    """Return the structure of one row of ``DOCUMENTS`` for DuckDB's ``from_json``."""
    columns = (*FILE_KEY, *ABOUT, *STATE, Column("excluded", FLAG, ""), *ABLATION, *EVALUATION, *PROFILE, *GOLDEN)
    lists = {"curves": CURVE, "scores": SCORE, "kernels": KERNEL, "stalls": STALL, "golden_curves": GOLDEN_CURVE}
    return {**types_of(columns), **{name: [types_of(inside)] for name, inside in lists.items()}}


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
