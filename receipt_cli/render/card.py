"""Render the card of a receipt: at most eight lines with the run's end, its cause, progress and speed."""

from __future__ import annotations

import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from rich.cells import cell_len
from rich.text import Text

from receipt_cli.analysis.checks import FEWEST_RECORDS, LOSSES, STOPS, TOO_FEW, Outcome, outcome, too_short
from receipt_cli.documents.invariants.evidence import contradictions
from receipt_cli.render.console import elide_middle, printed, say
from receipt_cli.render.fields import items, mapping, real, text, truth, whole
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.scale import clock, count, duration, kind_of, many, measure, number, parameters, percent, si
from receipt_cli.render.style import Style

Document = Mapping[str, object]

MOST_LINES = 8
_HANGING = 12
_GLYPHS: Mapping[Outcome, tuple[str, str]] = {
    "failed": ("✗", "bold red"),
    "stopped": ("■", "bold yellow"),
    "cut off": ("~", "bold yellow"),
    "finished": ("✓", "bold green"),
    "running": ("▶", "bold cyan"),
    "unknown": ("?", "bold magenta"),
}
REASONS = {
    "cuda_oom": "GPU out of memory", "host_oom": "host out of memory", "nan_loss": "loss is NaN",
    "nccl_timeout": "NCCL timeout", "nccl_error": "NCCL error", "cuda_error": "CUDA error",
    "ecc_or_xid": "GPU hardware error", "preempted": "preempted", "time_limit": "time limit", "killed": "killed",
    "segfault": "segmentation fault", "disk_full": "disk full", "import_error": "import error",
    "child_failed": "a process of the job failed", "traceback": "traceback without its error", "interrupted": "interrupted",
    "unknown": "error", "no_grammar_match": "error",
}  # fmt: skip
PROBLEMS = {
    "generic_reading": "no grammar, so the labels of the log are trusted",
    "training_unread": "lines that look like training are unread",
    "step_printed_twice": "a step is printed with two values",
    "foreign_record": "a record looks like another program's",
    "launch_doubtful": "a new start of the run is not proven",
    "several_figures": "an evaluation prints several figures of one name",
    "loss_ambiguous": "several labels may be the loss",
    "checkpoint_begun": "the last checkpoint is begun, maybe not saved",
    "end_before_plan": "closing line far before the plan",
    "rounded_to_zero": "a learning rate is printed with too few digits",
    "rate_contradicted": "a printed rate contradicts the steps and their time",
    "placeholder": "a printed loss stands for none",
    "loss_missing": "the last records print no loss",
    "figure_unread": "a label is printed, its value not read",
    "clock_goes_back": "the clock goes back: no wall time",
    "clock_skip": "the clock skips an hour: no wall time",
    "output_held_back": "output is held back: PYTHONUNBUFFERED=1 shows step times",
    "file_of_another_run": "a file is left out: nothing ties it to the run",
    "side_by_side": "two runs write into one log",
    "decoded_as": "the log is not UTF-8",
    "lines_folded": "cut lines were joined",
    "wall_without_step_times": "the wall time is known, that of the steps is not",
    "failed_start": "a start after the run failed",
    "record_too_long": "a line is too long to read",
    "last_record_cut": "last record cut",
    "steps_missing": "steps missing",
    "step_jump": "a step counter jumps far ahead",
    "nul_bytes": "NUL bytes",
    "compressed_stream_damaged": "the compressed log is damaged",
    "fact_contradicted": "a stated fact contradicts the log",
    "unreadable_value": "a value is not a number",
    "block_row_without_opening": "rows of a block without its opening line",
    "table_row_without_header": "table rows that do not fit their header",
    "other_metrics_dropped": "metrics outside the registry were left out",
    "phases_dropped": "phases with few records were left out",
    "ranks_dropped": "ranks were left out",
    "wall_of_no_phase": "the stated wall time is of a phase not in the log",
}
_RATES = ("tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "samples_per_s_per_device", "steps_per_s")
_RESULTS = {
    "val_map": "mAP", "val_mask_map": "mAP of masks", "val_keypoint_map": "mAP of keypoints", "val_map_50": "mAP 50",
    "val_word_error_rate": "WER", "val_character_error_rate": "CER", "val_bleu": "BLEU", "val_pass_at_1": "pass@1",
    "val_f1": "F1", "val_auc": "AUC", "val_ndcg": "NDCG", "val_recall": "recall", "val_psnr_db": "PSNR",
    "val_lddt": "lDDT", "frechet_inception_distance": "FID",
    "eval_episode_return_mean": "return", "episode_return_mean": "return",
}  # fmt: skip
"""Metric of a result → its usual name; without a loss the card shows the first that is known."""
_ROUNDS = {"xgboost", "lightgbm"}
"""Trainers whose steps are called rounds."""
_FULL_MEMORY = 0.95
_WIDEST_LIST = 3
_MODEL = 34
"""Most characters shown of a model's name."""
_SIZE = r"([\d.]+ [KMGT]iB)"
_ASKED = re.compile(rf"Tried to allocate {_SIZE}")
_TOTAL = re.compile(rf"total capacity of {_SIZE}|{_SIZE} total capacity")
_FREE = re.compile(rf"of which {_SIZE} is free|{_SIZE} free")
_IDLE = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")


class _Cause(NamedTuple):
    """The cause of an outcome: words, log line, and the user's own file and function."""

    words: str
    line: int | None = None
    file: str = ""
    function: str = ""
    place_of_error: bool = False
    """Whether the error was raised in the file: `KeyError at x.py:3`, not `GPU out of memory · x.py:3`."""


def render_card(
    document: Document,
    style: Style,
    *,
    log: str | None = None,
    running: bool = False,
    last: tuple[str, str] | None = None,
) -> str:
    """Return the card of ``document``: at most eight lines, none wider than ``style.width``, each ended by a newline.

    ``log`` is the path that the next command names; ``running`` says that the run goes on; ``last`` is the label and the text
    of the last row, in place of the next command. The document need not be valid: what is missing or of the wrong type is
    unknown. No text of the document reaches the terminal as a control sequence.
    """
    return printed(*_Card(document, style, log, running).lines(last), style=style)


def find_doubts(document: Document, style: Style) -> list[str]:
    """Return the doubts about a receipt, the worst first."""
    return list(_Card(document, style, None, running=False).doubts())


class _Card:
    def __init__(self, document: Document, style: Style, log: str | None, running: bool) -> None:
        self.document = document
        self.style = style
        self.log = log
        self.word: Outcome = outcome(document, running=running)
        self.summary = mapping(document, "summary")
        self.steps = mapping(self.summary, "steps")
        keys = ("first", "last", "planned", "record_count")
        self.first, self.last, self.planned, self.records = (whole(self.steps, key) for key in keys)
        self.metrics = mapping(self.summary, "metrics")
        self.failure = mapping(document, "failure")
        self.trainer = _trainer_id(document)
        self.unit = "round" if self.trainer in _ROUNDS else "step"
        compared = (one for one in items(self.summary, "consistency") if truth(one, "consistent") is False)
        self.contradicted = {text(one, "metric") or "?": real(one, "derived") for one in compared}

    def lines(self, last: tuple[str, str] | None) -> list[Text]:
        cause = self._cause()
        doubts = list(self.doubts())
        rows = [
            ("outcome", self._headline(cause)),
            ("message", self._indented(cause)),
            ("run", self._row("run", self._run())),
            ("steps", self._row("steps", self._progress())),
            ("runs", self._row("runs", self._runs())),
            ("loss", self._row("loss", self._loss()) or self._row("result", self._result())),
            ("speed", self._row("speed", self._speed())),
            ("time", self._row("time", self._time())),
            ("doubts", self._row("doubts", self._doubt_row(doubts)) if doubts else None),
            ("last", self._row(last[0], [Text(say(last[1], self.style))]) if last else None),
            ("more", self._row("more", self._more(cause)) if not doubts and last is None else None),
        ]
        shown = [(name, line) for name, line in rows if line is not None]
        for name in ("speed", "runs", "time", "message"):
            if len(shown) > MOST_LINES:
                shown = [row for row in shown if row[0] != name]
        return [line for _, line in shown]

    # the outcome

    def _headline(self, cause: _Cause) -> Text:
        glyph, role = _GLYPHS[self.word]
        line = Text(f"{glyph} {self.word}", role)
        line.append(" " * (_HANGING - line.cell_len))
        place = self._log_place(cause.line)
        room = self.style.width - _HANGING - (place.cell_len + 1 if place.cell_len else 0)
        line.append_text(self._fitted(cause, room))
        if place.cell_len:
            line.append(" ").append_text(place)
        return line

    def _fitted(self, cause: _Cause, room: int) -> Text:
        """Return the words and as much of the file and function as fits; the path is cut from the left."""
        joint = " at " if cause.place_of_error else " · "
        parts = cause.file.replace("\\", "/").split("/")
        files = ["/".join(parts[number:]) for number in range(len(parts))] if cause.file else []
        where = [f"{file} in {cause.function}" for file in files] if cause.function else []
        where += files
        for one in where:
            if len(cause.words) + len(joint) + len(one) <= room:
                file, _, function = one.partition(" in ")
                linked = self._linked(file, text(self.failure, "exception", "frame", "file"))
                return Text.assemble(cause.words, joint, linked, function and f" in {function}")
        shown = Text(cause.words)
        shown.truncate(room, overflow="ellipsis")
        return shown

    def _cause(self) -> _Cause:
        if self.word == "failed":
            return self._failed()
        if self.word == "stopped":
            return _Cause(self._stop() + self._after(plan=True), whole(self.failure, "line_number"))
        if self.word == "cut off":
            end = f"log ends{self._after(plan=True) or ' before the first step'}, no known error"
            return _Cause(end, whole(self.failure, "line_number") or self._line_count())
        if self.word == "running":
            return _Cause(self._after(plan=True).strip(" ,") or "no step read yet", whole(self.steps, "last_line"))
        if self.word == "finished":
            words, line = self._finished()
            return _Cause(words, line)
        return self._unknown()

    def _failed(self) -> _Cause:
        reason = text(self.failure, "reason") or "unknown"
        line = whole(self.failure, "line_number")
        if reason == "nan_loss" or reason in STOPS or not self.failure:
            return self._not_finite(line)
        if reason == "unknown":
            code = whole(self.document, "run", "exit_code")
            told = text(self.failure, "message") or ("the exit code is not zero" if code is None else f"exit code {code}")
            return _Cause(say(told, self.style) + ("" if line else ", no known error"), line)
        raised = mapping(self.failure, "exception")
        frame = mapping(raised, "frame")
        file, number_ = text(frame, "relative"), whole(frame, "line")
        place = f"{say(file, self.style)}:{number_}" if file and number_ is not None else ""
        function = text(frame, "function")
        kind = (text(raised, "type") or "").rpartition(".")[2]
        if kind and reason in ("traceback", "import_error", "child_failed", "no_grammar_match"):
            kind = say(kind, self.style)
            shown = "" if function in (None, "<module>") else say(function or "", self.style)
            words = kind if place else kind + self._after()
            return _Cause(words, whole(raised, "line_number") or line, place, shown, place_of_error=True)
        words = say(REASONS.get(reason, reason.replace("_", " ")), self.style)
        message = text(self.failure, "message") or ""
        if reason == "traceback" and not message.startswith("Traceback"):
            words = "error"
        if reason == "cuda_oom" and ("RESOURCE_EXHAUSTED" in message or "TPU" in message):
            words = "device out of memory"
        return _Cause(words + self._after(), line, place)

    def _not_finite(self, line: int | None) -> _Cause:
        loss = mapping(self.metrics, "loss")
        bad, records = whole(loss, "nonfinite_count"), whole(loss, "record_count")
        what = "loss is NaN" if real(loss, "places", "inf_line") is None else "loss is not finite"
        since = self._step_of_record((records or 0) - (bad or 0)) if bad and records and real(loss, "last") is None else None
        words = what if since is None else f"{what} from {self.unit} {since} on"
        if self.planned is not None and self.last is not None and self.last >= self.planned - 1:
            words += f", though all {steps(self.planned)} {self.unit}s ran"
        if text(self.failure, "reason") in STOPS:
            words += f", then {self._stop()}"
        return _Cause(words, line)

    def _step_of_record(self, index: int) -> int | None:
        """Return the step of record ``index`` (from 0) if records come at every multiple of a number, else None."""
        first, stride = self.first, self._stride()
        if first is None or stride is None or whole(self.steps, "restart_count"):
            return None
        if self.records != whole(self.metrics, "loss", "record_count"):
            return None
        return first + index * stride if stride == 1 or (stride and first % stride == 0) else None

    def _stride(self) -> int | None:
        """Return the steps from one record to the next if records are evenly spaced; None without two records."""
        if self.first is None or self.last is None or not self.records or self.records < 2:
            return None
        stride, rest = divmod(self.last - self.first, self.records - 1)
        return None if rest else stride

    def _stop(self) -> str:
        reason = text(self.failure, "reason") or ""
        message = text(self.failure, "message") or ""
        slurm = "Slurm " if "slurm" in message.lower() or "srun" in message else ""
        words = REASONS.get(reason, "stopped")
        return f"{slurm}{words}" if reason == "time_limit" or not slurm else f"{words} by Slurm"

    def _after(self, *, plan: bool = False) -> str:
        """Return `` after step N``, followed by `` of M`` if ``plan``; ``, no step read`` if there is no step."""
        last, planned = whole(self.failure, "progress", "step"), self.planned
        last = self._done() if last is None or last == self.last else last
        if last is None:
            return ", no step read" if not self.summary or truth(self.document, "checks", "has_steps") is not True else ""
        of = f" of {steps(planned)}" if plan and planned is not None and planned >= last else ""
        return f" after {self.unit} {steps(last)}{of}"

    def _finished(self) -> tuple[str, int | None]:
        line = whole(self.document, "derivation", "check_lines", "completed")
        completed = truth(self.document, "checks", "completed") is True
        last, planned, records = self._done(), self.planned, self.records
        exit_code = "" if completed else ", exit code 0"
        if too_short(self.document):
            return f"too short to judge: fewer than {FEWEST_RECORDS} records{exit_code}", line
        if not records:
            seen = "no step line was recognised" if records is None else "no training step"
            return seen + (exit_code or ", ran to its end"), line
        if not completed and records < FEWEST_RECORDS:
            return f"too short to judge: {_many(records, 'record')}{exit_code}", None
        start = self._resumed()
        if last is None:
            return _many(records, "record") + exit_code, line
        if planned is not None and last >= planned - 1:
            epoch = real(self.metrics, "epoch", "last")
            if start is not None:
                origin = text(self.document, "header", "sources", "/flags/start_step") or ""
                at = int(origin[4:]) if origin[4:].isdigit() else None
                return f"{self.unit} {steps(last)} of {steps(planned)}, resumed at {steps(start)}{exit_code}", at
            if last < planned and self.first != 0:
                return f"{self.unit} {steps(last)} of {steps(planned)}" + exit_code, line
            behind = f", epoch {_epoch(epoch)}" if epoch and epoch != last else ""
            return f"{steps(max(last, planned))} of {_many(planned, self.unit)}" + behind + exit_code, line
        of = f" of {steps(planned)}" if planned is not None else ""
        of += f", resumed at {steps(start)}" if start is not None else ""
        return f"after {self.unit} {steps(last)}{of}{exit_code}", line

    def _unknown(self) -> _Cause:
        last, planned, line, end = self._done(), self.planned, whole(self.steps, "last_line"), self._line_count()
        if truth(self.document, "checks", "has_steps") is not True:
            known = truth(self.document, "checks", "has_steps") is False
            return _Cause(f"no {'training step' if known else 'step line was recognised'}, no known error")
        seen = max(line or 0, whole(self.summary, "checkpoints", "last_line") or 0)
        closing = "no closing line" if line is None or end is None or seen >= end else "no known end line"
        where = "log ends" if last is None else f"log ends after {self.unit} {steps(last)}"
        where += f" of {steps(planned)}" if planned is not None and last is not None else ""
        lacks = [*(["no plan read"] if planned is None and self.unit == "step" else []), closing, "no known error"]
        room = self.style.width - _HANGING - self._log_place(line).cell_len - 1
        fitting = (words for told in (lacks, lacks[-2:], lacks[-1:]) if len(words := f"{where}: {', '.join(told)}") <= room)
        return _Cause(next(fitting, where), line)

    def _indented(self, cause: _Cause) -> Text | None:
        if self.word != "failed":
            return None
        reason, line = text(self.failure, "reason"), whole(self.failure, "line_number")
        raised = mapping(self.failure, "exception")
        message = text(self.failure, "message") or ""
        if reason == "cuda_oom":
            shown = _memory_asked(text(raised, "message") or message, self.style.width - _HANGING)
        elif raised and cause.line == whole(raised, "line_number"):
            shown = text(raised, "message") or ""
            quoted = len(shown) > 2 and shown[0] == shown[-1] and shown[0] in "'\""
            shown = shown[1:-1] if quoted and text(raised, "type") == "KeyError" else shown  # Python prints the marks
        else:
            shown = message if line is not None and reason not in ("nan_loss", "unknown", *STOPS) else ""
        if shown.strip().lower() in cause.words.lower():
            return None
        told = Text(" " * _HANGING + say(shown.strip(), self.style))
        told.truncate(self.style.width, overflow="ellipsis")
        return told

    # the rows

    def _run(self) -> list[Text]:
        parts: list[str] = []
        if name := text(self.document, "run", "name"):
            parts.append(name)
        parts.append(trainer_name(self.document))
        architecture = text(self.document, "header", "model", "architecture")
        known = whole(self.document, "header", "model", "parameter_count") or whole(self.summary, "parameter_count")
        if architecture or known:
            parts.append(elide_middle(architecture, _MODEL) if architecture else f"{parameters(known or 0)} parameters")
        degrees = mapping(self.document, "header", "parallelism")
        world = whole(degrees, "world_size")
        sizes = {kind: whole(degrees, kind) for kind in ("data", "tensor", "pipeline", "context")}
        if world is None and None not in sizes.values():
            world = math.prod(size or 1 for size in sizes.values())
        split = " × ".join(f"{kind} {size}" for kind, size in sizes.items() if kind != "data" and size is not None and size > 1)
        if world is not None:
            ranks = many(world, "rank")
            parts.append(f"{ranks}, {split}" if " × " in split else ranks)
        models = items(self.document, "header", "hardware", "accelerators")
        device = text(models[0], "name") if models else None
        if device:
            parts.append(device if len(models) == 1 else f"{device} and {len(models) - 1} more")
        return [Text(say(part, self.style)) for part in parts]

    def _runs(self) -> list[Text]:
        launches = mapping(self.document, "derivation", "launches")
        runs, used, line = (whole(launches, key) for key in ("count", "used", "first_line"))
        if runs is None or used is None or runs < 2:
            return []
        return [Text.assemble(f"{used} of {runs} in this file, from ", self._log_line(line)), Text("--all-runs")]

    def _done(self) -> int | None:
        """Return the last step known to be done: of a record, or of a line after it."""
        reached = whole(self.steps, "reached")
        return self.last if self.last is None or reached is None else reached

    def _resumed(self) -> int | None:
        start = whole(self.document, "header", "flags", "start_step")
        return start if start is not None and self.first is not None and 1 < start <= self.first else None

    def _begin(self, start: int) -> int | None:
        """Return the first step that a resumed run made: some trainers print the step before it, some the step itself."""
        first, stride = self.first, self._stride()
        if first is None or stride is None:
            return first if first == start else None
        if first == start + stride and start % stride == 0:
            return start + 1
        return start if first == start or start % stride == 1 else None

    def _progress(self) -> list[Text]:
        last, planned, records = self._done(), self.planned, self.records
        if not self.summary or records == 0 or (last is None and not records):
            return [Text("none read")]
        start, logged, logged_last = self._resumed(), self.last, ""
        if last is None:
            shown = f"{_many(records or 0, 'record')} without a step number"
        elif start is not None and self.word == "finished" and (begin := self._begin(start)) is not None:
            shown = f"{steps(begin)}–{steps(last)} run here"
        else:
            from_zero = self.first == 0 and planned == last + 1
            shown = f"{steps(self.first or 0)}–{steps(last)}" if from_zero or self.unit != "step" else steps(last)
            if planned is not None or (self.word in ("unknown", "cut off") and self.trainer not in ("", "generic", *_ROUNDS)):
                shown += f" of {'?' if planned is None else steps(planned)}"
            logged_last = f", last logged {steps(logged)}" if logged is not None and logged != last else ""
        epoch = real(self.metrics, "epoch", "last")
        behind = ""
        if epoch and epoch != last and (self.word != "finished" or start is not None or planned is None):
            behind = f", epoch {_epoch(epoch)}"
        skipped = self._skipped()
        more = f", {steps(skipped)} skipped" if skipped else ""
        restarts, again = whole(self.steps, "restart_count"), whole(self.steps, "superseded_count")
        if restarts:
            more += f", {_many(restarts, 'restart')}" + (f" repeated {_many(again, 'record')}" if again else "")
        saved = self._saved()
        room = self.style.width - _HANGING - sum(part.cell_len + 3 for part in saved)
        for told in (shown + logged_last + behind + more, shown + behind + more, shown + more):
            if len(told) <= room:
                return [Text(told), *saved]
        return [Text(shown), *saved]

    def _skipped(self) -> int | None:
        told = mapping(self.metrics, "skipped_step_count")
        mean, records, last = real(told, "mean"), whole(told, "record_count"), whole(told, "last")
        if text(told, "definition") == "since_last_record":
            return None if mean is None or records is None else round(mean * records)
        return last

    def _saved(self) -> list[Text]:
        """Return the last checkpoint and the steps after it, or that no checkpoint line was recognised."""
        lost = self.word in ("failed", "stopped", "cut off")
        found = mapping(self.summary, "checkpoints")
        step = whole(found, "last_step")
        if not whole(found, "count"):
            return [Text("no checkpoint line was recognised", "yellow")] if lost else []
        latest = items(found, "latest")
        line = whole(latest[-1], "line_number") if latest else whole(found, "last_line")
        if step is None:
            return [Text.assemble("checkpoint ", self._log_place(line))]
        after = whole(self.steps, "last_line")
        ended = real(latest[-1] if latest else {}, "duration_s") is not None or self.word == "finished"
        if not ended and line is not None and after is not None and line > after:
            return [Text(f"checkpoint at {steps(step)}, maybe not complete", "yellow")]
        unsaved, seconds = whole(found, "unsaved_step_count"), real(found, "unsaved_time_s")
        if unsaved and self.word != "finished":
            took = f" ({clock(seconds)})" if seconds else ""
            words = f"{_many(unsaved, self.unit)}{took} not saved"
            return [Text.assemble(f"checkpoint at {steps(step)}, ", (words, "yellow"))]
        return [Text.assemble(f"checkpoint at {steps(step)} ", self._log_place(line))]

    def _loss(self) -> list[Text]:
        if "loss" in self.metrics or "val_loss" in self.metrics:
            parts: list[Text] = []
            for placed in (True, False):  # the line of the highest loss, if there is room
                parts = self._course("", "loss", self.metrics.get("loss"), placed=placed)
                parts += self._course("val ", "val_loss", self.metrics.get("val_loss"))
                if sum(part.cell_len + 3 for part in parts) - 3 <= self.style.width - _HANGING:
                    break
            return parts
        named = {
            name: entry
            for block in (self.metrics, mapping(self.summary, "other_metrics"))
            for name, entry in block.items()
            if "loss" in name.lower() and "scale" not in name.lower() and name not in LOSSES
        }
        if len(named) == 1:
            return [part for name, entry in named.items() for part in self._course(f"{name} ", name, entry)]
        heads = Counter(_head(name) for name in named)
        labels = {name: _head(name) if heads[_head(name)] == 1 else name for name in named}
        found = [part for name, entry in named.items() for part in self._course(f"{labels[name]} ", name, entry, plain=True)]
        shown: list[Text] = []
        room = self.style.width - _HANGING - len("no total read · 9 more")
        for part in found:
            if len(shown) < _WIDEST_LIST and part.cell_len + 3 <= room:
                shown.append(part)
                room -= part.cell_len + 3
        more = len(found) - len(shown)
        return [Text("no total read"), *shown, *([Text(f"{more} more")] if more else [])] if found else []

    def _course(self, label: str, name: str, entry: object, *, plain: bool = False, placed: bool = False) -> list[Text]:
        """Return the text of a loss: first, last and, unless ``plain``, least value; if ``placed``, the line of its greatest."""
        first, last, low, high = (real(entry, key) for key in ("first", "last", "min", "max"))
        bad, records = whole(entry, "nonfinite_count"), whole(entry, "record_count")
        ends_in_nan = last is None and bool(bad)
        if first is None and last is None and low is None:
            return [Text.assemble(say(f"{label}NaN", self.style), style="red")] if ends_in_nan else []
        shown = Text(say(label, self.style) if label else "")
        if ends_in_nan and records is not None and bad == records - 1 and first is not None and name == "loss":
            shown.append(_figure(first) + ("" if self.first is None else f" at {self.unit} {steps(self.first)}") + ", then ")
            return [shown.append("NaN", "red")]
        if records == 1 and first is not None:
            return [shown.append(_figure(first))]
        shown.append("?" if first is None else _figure(first)).append(" → ")
        shown.append(*(("NaN", "red") if ends_in_nan else ("?" if last is None else _figure(last), "")))
        if plain:
            return [shown]
        if low is not None and low == last and first != last:
            shown.append(" (best)")
        elif low is not None and low != first:
            shown.append(f" (best {_figure(low)})")
        elif high is not None and last is not None and first is not None and high > max(first, last):
            line = whole(entry, "places", "max_line") if placed else None
            shown.append(f" (highest {_figure(high)}")
            shown.append_text(Text(", ") + self._log_line(line) if line is not None else Text()).append(")")
        if bad and not ends_in_nan:
            shown.append(f", {count(bad)} NaN", "red")
        return [shown]

    def _result(self) -> list[Text]:
        for name, label in _RESULTS.items():
            first, last = (real(self.metrics, name, key) for key in ("first", "last"))
            if last is not None:
                shown = measure(name, last)
                return [Text(f"{label} {shown if first is None or first == last else f'{measure(name, first)} → {shown}'}")]
        return []

    def _speed(self) -> list[Text]:
        medians: dict[str, tuple[float, str]] = {}
        for name in ("step_time_s", "mfu_ratio", "flops_per_s_per_device", *_RATES):
            value = real(self.metrics, name, "median")
            if value is not None and name not in self.contradicted:
                medians[name] = (value, "")
        for name in ("tokens_per_s", "samples_per_s"):
            value = real(self.summary, "derived", name, "median")
            if value is not None and not any(rate in medians for rate in _RATES):
                medians[name] = (value, " (recomputed)")
        if "step_time_s" not in medians and not any(rate in medians for rate in _RATES):
            value = real(self.summary, "step_times", "p50_s")
            if value:
                stamped = text(self.summary, "step_times", "source") == "timestamps"
                guessed = "~" if stamped and not mapping(self.document, "derivation", "times") else ""
                return [Text(f"{guessed}{_step_time(value)}"), *self._memory()]
            if rate := self.contradicted.get("steps_per_s"):
                return [Text(_step_time(1 / rate)), *self._memory()]
            if mapping(self.document, "derivation", "times") and (rate := real(self.summary, "realised", "steps_per_s")):
                return [Text(f"{number(rate)} steps/s of wall time"), *self._memory()]
        parts: list[str] = []
        lead = next((name for name in ("step_time_s", *_RATES) if name in medians), None)
        if lead == "step_time_s":
            parts.append(_step_time(medians[lead][0]))
            second = next((name for name in ("mfu_ratio", "flops_per_s_per_device") if name in medians), None)
            third = next((name for name in _RATES if name in medians), None)
        else:
            parts += [_rate(lead, medians[lead])] if lead else []
            second, third = ("mfu_ratio" if "mfu_ratio" in medians else None), None
        parts += [_rate(name, medians[name]) for name in (second, third) if name]
        if self.trainer in _OFF_GPU:
            parts = [part.replace("per GPU", "per device") for part in parts]
        if parts and whole(self.summary, "steady_state", "record_count") == 1 and lead and text(self.metrics, lead, "window"):
            parts[0] += " (warm-up only)" if text(self.metrics, lead, "window") == "steady" else ""
        return [*map(Text, parts), *self._memory()]

    def _memory(self) -> list[Text]:
        total = real(next(iter(items(self.document, "header", "hardware", "accelerators")), None), "memory_bytes")
        peaks = [real(self.metrics, f"peak_memory{kind}_bytes", "max") for kind in ("_reserved", "_allocated", "")]
        peak = max((value for value in peaks if value is not None), default=None)
        if not total or peak is None or not _FULL_MEMORY <= peak / total <= 1:
            return []
        return [Text(f"memory {100 * peak / total:.4g} %")]

    def _time(self) -> list[Text]:
        goodput = mapping(self.document, "goodput")
        wall, ratio = real(goodput, "wall_time_s"), real(goodput, "goodput_ratio")
        if wall is None:
            wall = real(self.document, "run", "wall_time_s")
            known = real(self.summary, "training_time_s") if wall is None else wall
            known = self._lived() if known is None else known
            return [Text(clock(known))] if known else []
        low, high = real(goodput, "range", "low"), real(goodput, "range", "high")
        share = ""
        if ratio is not None and low is not None and high is not None and low != high:
            share = f", {percent(low)} to {percent(high)} in steps"
        elif ratio is not None:
            share = f", {percent(ratio)} in steps"
        losses = [(name, seconds) for name in mapping(goodput, "badput_s") if (seconds := real(goodput, "badput_s", name))]
        largest = sorted(losses, key=lambda pair: -pair[1])[:_WIDEST_LIST]
        lost = [Text(f"{clock(wall)}{share}")]
        for name, seconds in largest:
            if seconds >= 0.002 * wall:
                guessed = "~" if text(goodput, "parts", name, "how") == "inferred" else ""
                label = _LOST.get(name) or say(name.replace("_", " "), self.style)
                lost.append(Text(f"{label} {guessed}{clock(seconds)}"))
        idle = real(self.document, "run", "sampled", "gpu_idle_s") if "gpu_idle" not in mapping(goodput, "parts") else None
        return [*lost, *([Text(f"GPUs idle ~{clock(idle)}")] if idle else [])]

    def _lived(self) -> float | None:
        """Return the seconds from the start of the command to its end, by when its lines came; None if these are unknown."""
        first, last = (text(self.summary, "time", end) for end in ("first", "last"))
        if not mapping(self.document, "derivation", "times") or first is None or last is None:
            return None
        with suppress(ValueError):  # the document need not be valid
            return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
        return None

    # doubts, and the next command

    def doubts(self) -> Iterator[str]:
        """Yield the doubts about the receipt, the worst first."""
        if items(self.document, "evidence"):
            with suppress(AttributeError, KeyError, TypeError, ValueError):  # the document need not be valid
                yield from (reason for _, reason in contradictions(dict(self.document)))
        yield from self._problems()
        nonfinite = {name: whole(self.metrics, name, "nonfinite_count") for name in LOSSES}
        for name, bad in nonfinite.items():
            if bad and self.word != "failed":
                yield f"{count(bad)} values of {metric_label(name)} are not finite"
        for flag in items(self.summary, "flags"):
            label, detail = metric_label(text(flag, "metric") or "?"), text(flag, "detail") or "?"
            yield detail if label in detail else f"{label}: {detail}"
        named = {text(flag, "metric") for flag in items(self.summary, "flags")}
        if mapping(self.document, "derivation", "problems", "kinds").get("rate_contradicted"):
            named |= self.contradicted.keys() - {"mfu_ratio"}
        for metric in (metric for metric in self.contradicted if metric not in named):
            yield f"{metric_label(metric)} as printed contradicts batch size and step time"
        if truth(self.document, "checks", "mfu_plausible") is False:
            yield "an MFU above 100 % is printed"
        for name in mapping(self.summary, "spikes", "metrics"):
            spikes = mapping(self.summary, "spikes", "metrics", name)
            if total := whole(spikes, "count"):
                step = whole(next(iter(items(spikes, "first")), None), "step")
                at = "" if step is None else f", {'first ' if total > 1 else ''}at {self.unit} {steps(step)}"
                yield f"{many(total, 'jump')} of {metric_label(name)}{at}"
        if marked := whole(self.summary, "spikes", "marked_count"):
            yield f"the trainer marked {many(marked, 'jump')}"
        if odd := whole(self.document, "derivation", "lines", "undecodable"):
            yield f"{many(odd, 'line')} with bytes that are no text"
        if near := whole(self.document, "derivation", "near_misses", "count"):
            yield f"{many(near, 'line')} almost read"

    def _problems(self) -> Iterator[str]:
        problems = mapping(self.document, "derivation", "problems")
        first = items(problems, "first")
        kinds = {name: n for name in mapping(problems, "kinds") if (n := whole(problems, "kinds", name))}
        kinds = kinds or Counter(text(one, "kind") or "problem" for one in first)
        costly = {text(one, "kind") for one in first if items(one, "fields")}
        ranked = sorted(kinds, key=lambda kind: (kind == "generic_reading", kind not in costly))
        for kind in ranked:
            if kind in ("no_step_recognised", TOO_FEW):
                continue  # the first row says so
            rates = sorted(self.contradicted.keys() - {"mfu_ratio"})
            if kind == "rate_contradicted" and rates:
                names = ", ".join(map(_unit, rates))
                yield f"{names} as printed contradict{'s' if len(rates) == 1 else ''} steps ÷ time: left out"
            else:
                words = PROBLEMS.get(kind, kind.replace("_", " "))
                yield f"{words} ({count(kinds[kind])} times)" if kinds[kind] > 1 else words

    def _doubt_row(self, doubts: Sequence[str]) -> list[Text]:
        room = self.style.width - _HANGING
        shown = f"{len(doubts)}: {say(doubts[0], self.style)}"
        for doubt in doubts[1:]:
            if len(shown) + 2 + len(doubt) <= room:
                shown += f"; {say(doubt, self.style)}"
        parts = [Text(shown, "yellow")]
        if len(shown) + len(" · --full") <= room:
            parts.append(Text("--full"))
        return parts

    def _more(self, cause: _Cause) -> list[Text]:
        """Return the next command; the log is called LOG if there is no room for its path."""
        read, grammars = truth(self.document, "checks", "has_steps"), items(self.document, "derivation", "grammars")
        full = [Text("--full")]
        if read is not True and not grammars:
            command, full = "receipt grammar learn LOG", []
        elif self.word in ("failed", "stopped") and cause.line is not None:
            command = f"receipt explain LOG --line {cause.line}"
        elif self.word == "unknown" and read:
            command, full = "exit code known? receipt parse LOG --job-exit N", []
        elif self.word == "finished" and self.records:
            command = "receipt plot LOG"
        else:
            command, full = "receipt parse LOG --full", []
        if self.log and self.log != "-" and self.log.isprintable():
            named = command.replace("LOG", say(shlex.quote(self.log), self.style))
            command = named if cell_len(named) + _HANGING <= self.style.width else command
        return [Text(command), *full]

    # lines of text

    def _row(self, label: str, parts: Sequence[Text]) -> Text | None:
        """Return a line of ``label`` and as many of the parts as fit; the first is cut if it does not."""
        if not parts:
            return None
        line = Text.assemble((f"  {label}".ljust(_HANGING), "dim" if label != "doubts" else "yellow"))
        for index, part in enumerate(parts):
            joint = 3 if index else 0
            if line.cell_len + joint + part.cell_len > self.style.width:
                if not index:
                    line.append_text(part)
                    line.truncate(self.style.width, overflow="ellipsis")
                continue
            if index:
                line.append(" · ", "dim")
            line.append_text(part)
        return line

    def _log_place(self, line: int | None) -> Text:
        """Return ``(log:N)``; empty without a line."""
        return Text() if line is None else Text.assemble("(", self._log_line(line), ")")

    def _log_line(self, line: int | None) -> Text:
        """Return ``log:N``, or the file and its line in a log of several files."""
        before, name, at = 0, "log", line or 0
        for file in items(self.document, "derivation", "log", "files"):
            own = whole(file, "line_count") or 0
            if before < (line or 0) <= before + own:
                name, at = say(text(file, "name") or "log", self.style), (line or 0) - before
            before += own
        linked = name == "log" and self.log not in (None, "-")
        return self._linked(f"{name}:{at}", os.path.abspath(self.log or "") if linked else None)

    def _linked(self, shown: str, path: str | None) -> Text:
        link = path is not None and Path(path).is_absolute()
        return Text(shown, f"cyan link file://{quote(path or '')}" if link else "cyan")

    def _line_count(self) -> int | None:
        return whole(self.document, "derivation", "log", "line_count")


_LOST = {"gpu_idle": "GPUs idle", "data_loading": "data", "initialization": "start", "wasted_progress": "repeated steps"}


def steps(value: float) -> str:
    """Return a number of steps: whole below a million, then with k, M or B."""
    return f"{int(value)}" if abs(value) < 1e6 else si(value)


_TRAINERS = {
    name.lower(): name
    for name in re.split(
        " ",
        "AllenNLP BasicSR Caffe CatBoost CleanRL ColossalAI Composer Darknet DeepSpeed DeepSpeed-Chat Diffusers EasyLM ESPnet "
        "Flair Forgather GluonCV GluonNLP GNMT GPT-NeoX HF-Trainer JoeyNMT Kaldi Keras Knover LeRobot Levanter LightGBM "
        "Lightning LitGPT LLaMA-Factory Marian MaxText Megatron-LM MLPerf MLX-LM MMCV MMEngine MXNet NeMo Nerfstudio nanoGPT "
        "modded-nanogpt OLMo OpenNMT-py OpenNMT-tf OpenPCDet OpenRLHF PyTorch-examples RecBole RLlib scikit-learn SkyRL spaCy "
        "SpeechBrain Swin Tacotron2 TensorFlow-Estimator TorchSpec Transformer-XL Ultralytics ViTS WeNet XGBoost YOLOX",
    )
} | {"llm-c": "llm.c", "hf-trainer": "HF Trainer", "mlperf-2019": "MLPerf", "receipt-emit": "receipt_cli.emit"}
"""Grammar → the trainer's name as its authors write it, if that differs."""
_BUILT_ON = {"trl": "TRL", "axolotl": "Axolotl", "unsloth": "Unsloth", "llamafactory": "LLaMA-Factory"}
_OFF_GPU = {"maxtext", "easylm", "levanter", "clu"}
"""Trainers that mostly run on other devices than GPUs."""


def trainer_name(document: Document) -> str:
    """Return the name of a receipt's trainer, for people."""
    known, printed_name = _trainer_id(document), (text(document, "header", "software", "trainer") or "")
    head, _, version = printed_name.partition(" ")
    if known in ("", "generic", "jsonl") and head in ("", known):
        return "unknown trainer, read by its labels" if known else "unknown trainer"
    if not head and "trainer" in mapping(document, "header", "software"):
        return "unknown trainer"
    name = _TRAINERS.get(known, known) if known not in ("", "generic") else _TRAINERS.get(head.lower(), head)
    if head.lower() in _BUILT_ON and known == "hf-trainer":
        return f"{name} ({_BUILT_ON[head.lower()]})"
    return f"{name} {version}".rstrip() if head.lower() in (known, name.lower()) else name


def _trainer_id(document: Document) -> str:
    grammars = items(document, "derivation", "grammars")
    return (text(grammars[0], "id") if grammars else None) or ""


def _unit(rate: str) -> str:
    return measure(rate, 1.0).partition(" ")[2] if kind_of(rate) == "rate" else metric_label(rate)


def _epoch(value: float) -> str:
    return steps(value) if value == int(value) else f"{value:.2g}" if value < 1 else f"{value:.1f}"


def _figure(value: float) -> str:
    """Return a loss with four digits; below 0.1 without zeros at the end."""
    shown = number(value)
    return shown.rstrip("0") if 0 < abs(value) < 0.1 and "e" not in shown else shown


def _head(name: str) -> str:
    """Return the first word of a metric's name, or the whole name if that word is ``loss`` or too short."""
    head = re.split(r"[_ /-]", name)[0]
    return head if len(head) > 2 and head != "loss" else name


def _many(number_: int, noun: str) -> str:
    return f"{steps(number_)} {noun}{'' if number_ == 1 else 's'}"


def _step_time(seconds: float) -> str:
    return f"{duration(seconds)}/step"


def _rate(name: str, value: tuple[float, str]) -> str:
    figure, note = value
    if name == "mfu_ratio":
        return f"MFU {percent(figure)}"
    shown = f"{figure:.4g} {_unit(name)}" if figure < 10 else measure(name, figure)
    return f"{shown}{' per GPU' if name.endswith('_per_device') else ''}{note}"


def _memory_asked(message: str, room: int) -> str:
    """Return the memory that PyTorch asked for, the free and total memory, and the idle cache, if printed."""
    asked, free, total, idle = (_size(pattern, message) for pattern in (_ASKED, _FREE, _TOTAL, _IDLE))
    if asked is None:
        return message
    parts = [f"{asked[0]} asked for"]
    if free is not None and total is not None:
        same = free[0].partition(" ")[2] == total[0].partition(" ")[2]
        parts.append(f"{free[0].partition(' ')[0] if same else free[0]} of {total[0]} free")
    elif free is not None:
        parts.append(f"{free[0]} free")
    if idle is not None and idle[1] >= asked[1] / 2:
        parts.append(f"{idle[0]} reserved unused")
    while len(", ".join(parts)) > room and len(parts) > 1:
        parts.pop()
    return ", ".join(parts)


def _size(pattern: re.Pattern[str], message: str) -> tuple[str, float] | None:
    """Return the size that the pattern finds, as text and in bytes."""
    found = pattern.search(message)
    if found is None:
        return None
    amount, unit = next(group for group in found.groups() if group).split()
    value = float(amount)
    shown = f"{value:.0f}" if value >= 100 and unit == "MiB" else f"{value:g}"
    return f"{shown} {unit}", value * 1024.0 ** ("KMGT".index(unit[0]) + 1)
