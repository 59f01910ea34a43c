"""Table of the phases of a run."""

from __future__ import annotations

from collections.abc import Mapping

from receipt_cli.render.fields import UNKNOWN, items, mapping, real, text, whole
from receipt_cli.render.scale import count, duration, measure, scale_for
from receipt_cli.render.terminal.page import Page, Span
from receipt_cli.render.terminal.table import Column, write_table

_MAX_PHASES = 12
_SPEEDS = (
    "tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "samples_per_s_per_device", "steps_per_s", "step_time_s",
)  # fmt: skip
_RESULTS = {
    "val_map": "mAP", "val_mask_map": "mAP of masks", "val_keypoint_map": "mAP of keypoints", "val_map_50": "mAP 50",
    "val_word_error_rate": "WER", "val_character_error_rate": "CER", "val_bleu": "BLEU", "val_pass_at_1": "pass@1",
    "val_f1": "F1", "val_auc": "AUC", "val_ndcg": "NDCG", "val_recall": "recall", "val_psnr_db": "PSNR",
    "val_lddt": "lDDT", "frechet_inception_distance": "FID",
    "eval_episode_return_mean": "return", "episode_return_mean": "return",
}  # fmt: skip
"""What people train for, by its usual name: of several the first is shown."""


def write_phases(page: Page, document: Mapping[str, object]) -> None:
    """Add one row for each phase (at most twelve), the primary one marked."""
    phases = items(document, "phases")
    if not phases:
        return
    primary = _key(mapping(document, "summary"))
    marked = next((i for i, phase in enumerate(phases) if _key(mapping(phase, "summary")) == primary), None)
    shown = list(range(min(len(phases), _MAX_PHASES)))
    if marked is not None and marked not in shown:
        shown[-1] = marked
    marks = {i: "" if len(phases) == 1 else "▸ " if i == marked else "  " for i in shown}
    rows = [_phase_row(page, phases[i], marks[i]) for i in shown]
    columns = [
        Column("phase", least=12),
        Column("steps", right=True),
        Column("records", right=True, drop=4),
        Column("restarts", right=True, drop=2 if any(row[3].role == "warn" for row in rows) else 5),
        Column("loss", right=True, drop=1),
        Column("result", right=True, drop=2),
        Column("median speed", right=True, drop=3),
        Column("time", right=True, drop=6),
    ]
    for at in (7, 5):  # time and result
        if all(row[at].text == UNKNOWN for row in rows):
            columns, rows = columns[:at] + columns[at + 1 :], [row[:at] + row[at + 1 :] for row in rows]
    if len(phases) == 1 and _name(phases[0]) is None:
        columns, rows = columns[1:], [row[1:] for row in rows]
    page.gap()
    write_table(page, columns, rows, hidden=len(phases) - len(shown), what="phases")


def _key(summary: Mapping[str, object]) -> tuple[object, ...]:
    """Return a key that identifies a summary among those of all phases."""
    return (text(summary, "phase"), *(whole(summary, "steps", key) for key in ("first", "last", "record_count")))


def _name(phase: object) -> str | None:
    return text(phase, "name") or text(phase, "summary", "phase")


def _phase_row(page: Page, phase: object, mark: str) -> list[Span]:
    summary = mapping(phase, "summary")
    name = _name(phase)
    restarts = whole(summary, "steps", "restart_count")
    first, last = (real(summary, "metrics", "loss", key) for key in ("first", "last"))
    scale = scale_for("loss", [v for v in (last, first) if v is not None])
    ends = [UNKNOWN if value is None else scale.format(value) for value in (first, last)]
    course = UNKNOWN if first is None and last is None else " → ".join(ends)
    time = real(summary, "training_time_s")
    records = whole(summary, "steps", "record_count")
    return [
        Span(f"{mark}{page.say(name) if name else 'unnamed'}", "strong" if mark.strip() else "plain"),
        Span(_steps(summary)),
        Span(UNKNOWN if records is None else count(records)),
        Span(UNKNOWN if restarts is None else count(restarts), "warn" if restarts else "plain"),
        Span(course),
        Span(_result(summary)),
        Span(_speed(summary)),
        Span(UNKNOWN if time is None else duration(time)),
    ]


def _steps(summary: Mapping[str, object]) -> str:
    first, last, planned = (whole(summary, "steps", key) for key in ("first", "last", "planned"))
    if first is None and last is None and planned is None:
        return UNKNOWN
    ends = "?" if first is None and last is None else "–".join("?" if v is None else count(v) for v in (first, last))
    if first is not None and first == last:
        ends = count(first)
    return ends if planned is None else f"{ends} / {count(planned)}"


def _result(summary: Mapping[str, object]) -> str:
    """Return the last value of the first metric that people train for, with its name."""
    for metric, name in _RESULTS.items():
        value = real(summary, "metrics", metric, "last")
        if value is not None:
            return f"{name} {scale_for(metric, [value]).format(value)}"
    return UNKNOWN


def _speed(summary: Mapping[str, object]) -> str:
    for metric in _SPEEDS:
        value = real(summary, "metrics", metric, "median")
        if value is not None:
            suffix = "/step" if metric == "step_time_s" else "/device" if metric.endswith("_per_device") else ""
            return measure(metric, value) + suffix
    return UNKNOWN
