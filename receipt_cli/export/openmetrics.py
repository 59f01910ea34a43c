"""Export a run as OpenMetrics text, readable by the textfile collector of node_exporter.

That collector reads only the older text format, so every family is a gauge, and no sample has a time. It treats UNIT and EOF as
comments. https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from receipt_cli.analysis.checks import healthy, proven
from receipt_cli.definitions.metrics import Metric
from receipt_cli.export.run import ExportedRun

_OTHER = "Printed number that the registry does not know, by the name and in the unit printed."
_ENDINGS = (
    ("_per_s", "_per_second", None), ("_s", "_seconds", "seconds"), ("_bytes", "_bytes", "bytes"), ("_ratio", "_ratio", "ratio"),
    ("_j", "_joules", "joules"), ("_w", "_watts", "watts"), ("tokens_total", "tokens", "tokens"),
    ("samples_total", "samples", "samples"), ("total_flops", "total_flops", "flops"),
)  # fmt: skip


class Family(NamedTuple):
    """A metric's OpenMetrics name, and the unit that ends it ("" for none)."""

    name: str
    unit: str


class _Sample(NamedTuple):
    family: Family
    help: str
    labels: Mapping[str, str]
    value: float


def openmetrics(run: ExportedRun) -> bytes:
    """Return the figures, checks and outcome of a run; each sample has the run's lane and preset as labels."""
    base = {key: run.document["run"][key] for key in ("lane", "preset") if run.document["run"][key]}
    families: dict[Family, list[_Sample]] = {}
    for sample in (*_figures(run), *_outcome(run.document), *_identity(run)):
        families.setdefault(sample.family, []).append(sample)
    lines: list[str] = []
    for (name, unit), samples in families.items():
        meaning = samples[0].help.replace('"', "'").replace("\\", "/").replace("\n", " ")
        lines += [f"# TYPE {name} gauge", f"# HELP {name} {meaning}"]
        lines += [f"# UNIT {name} {unit}"] if unit else []
        lines += [f"{name}{_labels({**base, **sample.labels})} {_number(sample.value)}" for sample in samples]
    return ("\n".join([*lines, "# EOF"]) + "\n").encode("utf-8")


def _figures(run: ExportedRun) -> Iterator[_Sample]:
    for figure in run.figures:
        where = {"phase": figure.phase.name or "", "phase_index": str(figure.phase.number), "source": figure.source}
        named = where if figure.metric else {**where, "name": figure.name}
        meaning = (family(figure.metric), figure.metric.description) if figure.metric else (Family("training_other", ""), _OTHER)
        for statistic, value in figure.known.items():
            yield _Sample(*meaning, {**named, "statistic": statistic}, value)


def _outcome(document: Mapping[str, Any]) -> Iterator[_Sample]:
    run, failure, goodput, summary = (document[part] for part in ("run", "failure", "goodput", "summary"))
    steps = summary["steps"] if summary else {}
    for key, text in (("first", "First"), ("last", "Last"), ("planned", "Planned")):
        yield from _gauge(f"training_{key}_step", "", f"{text} step of the primary phase.", steps.get(key))
    yield from _gauge("training_step_records", "records", "Step records of the primary phase.", steps.get("record_count"))
    yield from _gauge("training_restarts", "", "How often the primary phase started again.", steps.get("restart_count"))
    checks = document["checks"]
    for name, passed in checks.items():
        yield from _gauge("training_check", "", "1: passed, 0: failed; absent where the log proves neither.", passed, check=name)
    yield from _gauge(
        "training_healthy", "", "No core check failed, steps were found, and nothing failed.", healthy(checks, failure)
    )
    yield from _gauge("training_proven", "", "All core checks passed.", proven(checks))
    yield from _gauge("training_exit_code", "", "Exit code of the job.", run["exit_code"])
    labels = {"reason": failure["reason"], "category": failure["category"]} if failure else {}
    yield from _gauge("training_failed", "", "1 where something says that the run failed, and why.", bool(failure), **labels)
    if goodput:
        yield from _gauge(
            "training_goodput_ratio", "ratio", "Share of wall time in steps, without repeated ones.", goodput["goodput_ratio"]
        )
        yield from _gauge("training_wall_time_seconds", "seconds", "Wall time of the job.", goodput["wall_time_s"])
        for cause, lost in goodput["badput_s"].items():
            yield from _gauge("training_badput_seconds", "seconds", "Wall time by what it was lost to.", lost, cause=cause)


def _identity(run: ExportedRun) -> Iterator[_Sample]:
    header, derivation = run.document["header"], run.document["derivation"]
    grammar = next((f"{g['id']}@v{g['version']}" for g in derivation["grammars"]), None)
    known = {
        "name": run.document["run"]["name"], "git_commit": header["git"]["commit"], "trainer": header["software"]["trainer"],
        "torch": header["software"]["torch"], "cuda": header["software"]["cuda"],
        "architecture": header["model"]["architecture"], "grammar": grammar, "log_sha256": run.digest,
    }  # fmt: skip
    yield from _gauge("training_run_info", "", "Which run this is.", 1, **{k: v for k, v in known.items() if v})
    if run.at_ns is not None:
        yield from _gauge("training_run_timestamp_seconds", "seconds", "Time of the run, since 1970.", run.at_ns / 1e9)


def _gauge(name: str, unit: str, meaning: str, value: float | bool | None, /, **labels: str) -> Iterable[_Sample]:
    return [] if value is None else [_Sample(Family(name, unit), meaning, labels, value)]


def _number(value: float) -> str:
    return str(int(value)) if isinstance(value, int) else repr(value)


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def family(metric: Metric) -> Family:
    """Return a metric's OpenMetrics name, ending in its base unit written out."""
    stem = metric.name.removesuffix("_per_device")
    device = "" if stem == metric.name else "device_"
    for ending, written, unit in _ENDINGS:
        if stem.endswith(ending):
            spelled = stem.removesuffix(ending) + written
            rate = "_".join(spelled.split("_")[-3:])  # the counted thing, per second
            return Family(f"training_{device}{spelled}", unit or rate)
    return Family(f"training_{device}{stem}", "")
