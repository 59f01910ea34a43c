"""SQL views of the documents of a store besides receipts: one of all, and those of each kind."""

from __future__ import annotations

from collections.abc import Sequence

from receipt_cli.store.columns import FLAG, REAL, TEXT, TIME, WHOLE, Column, View, entries, names_of, types_of

DOCUMENTS = "stored.documents"
"""The table that the views read: one row per document."""

KEY = (
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
_WHO = (KEY[1], *(column for column in ABOUT if column.name in ("title", "name", "lane", "run_at", "run_id")))
_VALID = f"FROM {DOCUMENTS} WHERE refusal IS NULL"


def _of(kind: str, columns: Sequence[Column]) -> tuple[tuple[Column, ...], str]:
    """Return the columns and the statement of the documents of a kind."""
    every = (KEY[1], *ABOUT, *columns)
    return every, f"SELECT {names_of(every)} {_VALID} AND kind = '{kind}'"


def _within(kind: str, field: str, columns: Sequence[Column], who: Sequence[Column] = _WHO) -> tuple[tuple[Column, ...], str]:
    """Return the columns and the statement of a list inside the documents of a kind."""
    return entries(f"{_VALID} AND kind = '{kind}'", field, who, columns)


_ID = (KEY[1], ABOUT[2])
_SCORED = (*_WHO, EVALUATION[1])
DOCUMENT_VIEWS = (
    View("documents", "A document besides receipts, of any kind, with the run that it belongs to.",
         (*KEY, *ABOUT), f"SELECT {names_of((*KEY, *ABOUT))} {_VALID}"),
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
         (*KEY, ABOUT[0], *STATE), f"SELECT {names_of((*KEY, ABOUT[0], *STATE))} FROM {DOCUMENTS} WHERE refusal IS NOT NULL"),
)  # fmt: skip


def document_structure() -> dict[str, object]:
    """Return the structure of one row of ``DOCUMENTS`` for DuckDB's ``from_json``."""
    columns = (*KEY, *ABOUT, *STATE, Column("excluded", FLAG, ""), *ABLATION, *EVALUATION, *PROFILE, *GOLDEN)
    lists = {"curves": CURVE, "scores": SCORE, "kernels": KERNEL, "stalls": STALL, "golden_curves": GOLDEN_CURVE}
    return {**types_of(columns), **{name: [types_of(inside)] for name, inside in lists.items()}}
