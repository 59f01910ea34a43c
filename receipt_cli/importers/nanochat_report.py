"""Read nanochat's ``report.md``: phases from its sections, facts from its header, each value with its line.

A section begins with its title and a timestamp, because text that a model sampled may look like any other line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.definitions.units import read_number
from receipt_cli.importers.model import DeclaredPhase, ForeignRun, single
from receipt_cli.importers.values import Meaning, metric
from receipt_cli.problems import pointer

FORMAT = "nanochat-report"
_TITLE = "# nanochat training report"
_HEADER = "header"
_SECTION = re.compile(r"## (?P<title>[A-Z][\w ]{2,40})\s*\Z")
_STAMP = re.compile(r"timestamp: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*\Z", re.ASCII)
_STARTED = re.compile(r"Run started: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*\Z", re.ASCII)
_ITEM = re.compile(r"- (?P<key>[A-Za-z_%][\w %:()./-]{0,60}?): (?P<value>\S.{0,200}?)\s*\Z")
_SAMPLE = re.compile(r"- sample \d+: ")
_COMMIT = re.compile(r"(?P<commit>[0-9a-f]{4,40}) \((?P<state>dirty|clean)\)\Z")
_CPUS = re.compile(r"\d+ cores \((?P<logical>\d+) logical\)\Z")
_GPUS = re.compile(r"(?P<count>\d+)x (?P<name>.+)\Z")
_RATE = re.compile(r"\$(?P<rate>\d+(?:\.\d+)?)/hour\Z")

_PHASES = {
    "Base model training": "base_train",
    "Base model loss": "base_train",
    "Base model evaluation": "base_train",
    "Midtraining": "mid_train",
    "Chat evaluation mid": "mid_train",
    "Chat SFT": "chat_sft",
    "SFT": "chat_sft",
    "Chat evaluation sft": "chat_sft",
    "Chat RL": "chat_rl",
    "Chat evaluation rl": "chat_rl",
}
_TRAINING = ("Base model training", "Midtraining", "Chat SFT", "SFT", "Chat RL")
_LAST_STAGE = ("Chat SFT", "SFT")
"""The last stage of a complete run; reinforcement learning may follow."""
_RESULTS: tuple[tuple[str, Meaning, str], ...] = (
    ("Minimum validation bpb", metric("val_bpb"), "min"),
    ("Final validation bpb", metric("val_bpb"), "last"),
    ("MFU %", metric("mfu_ratio", "percent", definition="last_step"), "last"),
    ("Training loss", metric("loss"), "last"),
    ("Validation loss", metric("val_loss"), "last"),
    ("Total training flops", metric("total_flops"), "last"),
)
_PEAK = metric("peak_memory_bytes")
_FLAGS = {
    "depth", "max_seq_len", "device_batch_size", "total_batch_size", "embedding_lr", "unembedding_lr", "matrix_lr",
    "weight_decay", "grad_clip", "warmup_ratio", "warmdown_ratio", "final_lr_frac", "init_lr_frac", "dtype",
    "target_examples_per_step", "window_pattern",
}  # fmt: skip
_CHAT_SETTINGS = ("temperature", "max_new_tokens", "num_samples", "top_k", "batch_size", "max_problems", "step")


@dataclass(slots=True)
class _Section:
    """A section and the time at its head, when it was written; for the header, when the run started."""

    title: str
    ended: datetime | None = None
    items: dict[str, tuple[str, int]] = field(default_factory=dict)


def recognise(text: str) -> bool:
    """Return whether ``text`` begins with the report's title."""
    return text.lstrip().startswith(_TITLE)


def read(text: str) -> ForeignRun:
    """Return the run in a report."""
    foreign = ForeignRun(FORMAT, producer="nanochat", trainer="nanochat")
    sections = list(_sections(foreign, text))
    phases: dict[str, DeclaredPhase] = {}
    first = True
    for section in sections:
        if section.title == _HEADER:
            _header(foreign, section)
        elif section.title in _PHASES:
            name = _PHASES[section.title]
            phase = phases.setdefault(name, DeclaredPhase(name))
            if section.title in _TRAINING:
                _training(foreign, phase, section, whole_run=first)
                first = False
            else:
                _evaluation(phase, section)
    foreign.declared = list(phases.values())
    if any(section.title in _LAST_STAGE for section in sections):
        foreign.completed = True  # a section is written only after its stage succeeded
    if not foreign.declared:
        foreign.problems.add("no_training_section", None, "the report has no training section")
    return foreign


def stage_times(text: str) -> list[tuple[str, float]]:
    """Return (phase, seconds) of each training stage, from the previous section's time or the run's start to its own.

    A section is written at the end of its stage. A stage without a known beginning is left out.
    """
    times: list[tuple[str, float]] = []
    for before, section in pairwise(_sections(ForeignRun(FORMAT), text)):
        begun, ended = before.ended, section.ended
        if begun is not None and ended is not None and ended >= begun and section.title in _TRAINING:
            times.append((_PHASES[section.title], (ended - begun).total_seconds()))
    return times


def _moment(stamp: re.Match[str] | None) -> datetime | None:
    try:
        return None if stamp is None else datetime.strptime(stamp[1], "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None


def _sections(foreign: ForeignRun, text: str) -> Iterator[_Section]:
    """Yield the header and the sections with their items; count every line in ``foreign``."""
    lines = text.splitlines()
    section = _Section(_HEADER)
    sampled = False
    for number, line in enumerate(lines, 1):
        title = _SECTION.match(line)
        stamp = _STAMP.match(lines[number]) if number < len(lines) else None
        if title is not None and (stamp is not None or title["title"] == "Summary"):
            yield section
            section, sampled = _Section(title["title"], _moment(stamp)), False
            foreign.matched += 1
            continue
        section.ended = section.ended or _moment(_STARTED.match(line))
        sampled = sampled or _SAMPLE.match(line) is not None
        item = None if sampled else _ITEM.match(line)
        if item is None:
            foreign.ignored += 1
        elif item["key"] in section.items:
            foreign.unmatched += 1
            foreign.problems.add("repeated_key", number, f"{section.title}: {item['key']} occurs twice: used the first")
        else:
            foreign.matched += 1
            section.items[item["key"]] = (item["value"], number)
    yield section


def _number(foreign: ForeignRun, section: _Section, key: str, unit: str | None = None) -> float | None:
    """Return a number in base units; None if it is missing, printed as None, or unreadable, which is a problem."""
    value, line = section.items.get(key, ("None", 0))
    if value == "None":
        return None
    number = read_number(value, unit)
    if number is None or not math.isfinite(number):
        foreign.problems.add("unreadable_value", line, f"{section.title}: {key}: unreadable number", value)
        return None
    return number


def _training(foreign: ForeignRun, phase: DeclaredPhase, section: _Section, *, whole_run: bool) -> None:
    """Add the results of a training stage; with ``whole_run`` its settings become the run's."""
    for key in ("Calculated number of iterations", "Number of iterations"):
        planned = _number(foreign, section, key)
        if planned is not None and planned > 0 and planned.is_integer():
            phase.planned = int(planned)
    count = _number(foreign, section, "Number of parameters")
    phase.parameter_count = int(count) if count else None
    phase.training_time_s = _number(foreign, section, "Total training time", "suffix")
    for key, meaning, figure in _RESULTS:
        phase.state(meaning, _number(foreign, section, key, meaning.unit), figure)
    phase.records = max(phase.records, 1 if {"mfu_ratio", "loss"} & phase.metrics.keys() else 0)
    phase.state(_PEAK, _number(foreign, section, "Peak memory usage", "suffix") or None)
    estimate = _number(foreign, section, "CORE metric estimate")
    if estimate is not None:
        phase.others["CORE metric estimate"] = single(estimate)
    if whole_run:
        _settings(foreign, section, phase)


def _settings(foreign: ForeignRun, section: _Section, phase: DeclaredPhase) -> None:
    items = section.items
    for key in sorted(_FLAGS & items.keys()):
        text, line = items[key]
        number = read_number(text)
        value: object = text
        if number is not None and math.isfinite(number):
            value = int(number) if number.is_integer() else number
        foreign.add_fact(pointer("flags", key), value, f"log:{line}")
    if "DDP world size" in items:
        size = _number(foreign, section, "DDP world size")
        foreign.add_fact("/parallelism/world_size", size, f"log:{items['DDP world size'][1]}")
    if phase.parameter_count is not None:
        foreign.add_fact("/model/parameter_count", phase.parameter_count, f"log:{items['Number of parameters'][1]}")
    name = items.get("run", ("dummy", 0))[0]
    foreign.run["name"] = None if name == "dummy" else name


def _evaluation(phase: DeclaredPhase, section: _Section) -> None:
    """Add the results of an evaluation, each under the name of its task."""
    known: Mapping[str, str] = {"CORE metric": "core_metric_ratio"}
    for key, (text, _) in section.items.items():
        number = read_number(text)
        if number is None or key in _CHAT_SETTINGS:
            continue
        if key in known and known[key] in load_registry().by_name:
            phase.metrics.setdefault(known[key], single(number))
        else:
            phase.others.setdefault(key, single(number))


def _header(foreign: ForeignRun, section: _Section) -> None:
    def item(key: str) -> tuple[str, str]:
        value, line = section.items.get(key, ("", 0))
        return ("" if value in ("unknown", "None") else value), f"log:{line}"

    for key, place in (
        ("Branch", "/git/branch"), ("Message", "/git/message"), ("Platform", "/software/platform"),
        ("CUDA Version", "/software/cuda"), ("Python", "/software/python"), ("PyTorch", "/software/torch"),
    ):  # fmt: skip
        value, line = item(key)
        foreign.add_fact(place, value or None, line)
    commit = _COMMIT.match(item("Commit")[0])
    if commit is not None:
        foreign.add_fact("/git/commit", commit["commit"], item("Commit")[1])
        foreign.add_fact("/git/dirty", commit["state"] == "dirty", item("Commit")[1])
    cpus = _CPUS.match(item("CPUs")[0])
    if cpus is not None:
        foreign.add_fact("/hardware/cpu_count", int(cpus["logical"]), item("CPUs")[1])
    gpus = _GPUS.match(item("GPUs")[0])
    if gpus is not None:
        entry = {"name": gpus["name"], "count": int(gpus["count"]), "memory_bytes": None}
        foreign.add_fact("/hardware/accelerators", [entry], item("GPUs")[1])
    rate = _RATE.match(item("Hourly Rate")[0])
    if rate is not None:
        cost = {"hourly_rate": float(rate["rate"]), "currency": "USD", "source": "nanochat's table of rough prices"}
        foreign.add_fact("/cost", cost, item("Hourly Rate")[1])
    foreign.add_fact("/software/trainer", foreign.trainer, "log:1")
