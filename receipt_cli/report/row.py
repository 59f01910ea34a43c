"""Extract the row of a receipt for the panels, tables and filters of a report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from receipt_cli.analysis.checks import CORE, ENDED_BADLY, contradicted_metrics, outcome
from receipt_cli.definitions.metrics import Registry
from receipt_cli.documents.canonical import run_id, run_time
from receipt_cli.render.store import OUTCOMES, cause
from receipt_cli.report.packing import MAX_NAME, Pool, number
from receipt_cli.store.flatten import signature
from receipt_cli.store.listing import place_of
from receipt_cli.store.views import MEMORY

Document: TypeAlias = Mapping[str, Any]

CHECKS = (*CORE, "steps_monotonic", "completed", "mfu_plausible", "throughput_consistent")
"""Checks that a report counts; others appear only on the run's own page."""
COLUMNS = (
    "name", "digest", "at", "lane", "preset", "commit", "accelerator", "trainer", "grammar", "state", "checks", "reason",
    "step", "planned", "loss", "tokens", "recomputed", "step_time", "mfu", "memory", "goodput", "wall",
    "path", "model", "signature", "val_loss", "step_tokens", "device_hours", "cost", "currency", "cause",
)  # fmt: skip
_TEXTS = (
    "name", "lane", "preset", "commit", "accelerator", "trainer", "grammar", "reason",
    "path", "model", "signature", "currency", "cause",
)  # fmt: skip
_MARKS = {True: "1", False: "0", None: "-"}


def core_row(document: Document, registry: Registry) -> dict[str, Any]:
    """Return the values of ``COLUMNS``: figures in base units, ``at`` in seconds since 1970; ``pack_row`` packs them.

    ``recomputed`` is 1 if ``tokens`` was not printed but follows from batch and step time; ``val_loss`` is the smallest;
    ``step_tokens`` are the tokens of a step if the header has them.
    """
    run, header, checks, failure = document["run"], document["header"], document["checks"], document["failure"] or {}
    summary, cost = document["summary"] or {}, document.get("cost") or {}
    log, _, earlier = run_id(document).partition(".")
    digest = ".".join(filter(None, (log[:16], earlier)))
    when, told = run_time(document), listed(document)
    grammars = document["derivation"]["grammars"]
    doubtful = contradicted_metrics(summary)
    tokens = _figure(summary, registry, "tokens_per_s", "median") if "tokens_per_s" not in doubtful else None
    derived = _figure(summary, registry, "tokens_per_s", "median", "derived") if tokens is None else None
    steps = summary.get("steps") or {}
    return {
        "name": _name(document),
        "digest": digest,
        "at": instant(when and when.time),
        "lane": run["lane"],
        "preset": run["preset"],
        "commit": header["git"]["commit"],
        "accelerator": _accelerators(header),
        "trainer": header["software"]["trainer"],
        "grammar": f"{grammars[0]['id']}@v{grammars[0]['version']}" if grammars else None,
        "state": OUTCOMES.index(told["outcome"]),
        "checks": "".join(_MARKS[checks.get(name)] for name in CHECKS),
        "reason": failure.get("reason"),
        "step": number(steps.get("last")),
        "planned": number(steps.get("planned")),
        "loss": _figure(summary, registry, "loss", "last"),
        "tokens": derived if tokens is None else tokens,
        "recomputed": int(tokens is None and derived is not None),
        "step_time": _figure(summary, registry, "step_time_s", "median"),
        "mfu": _figure(summary, registry, "mfu_ratio", "median"),
        "memory": _memory(summary),
        "goodput": number((document["goodput"] or {}).get("goodput_ratio")),
        "wall": number(told["wall_time_s"]),
        "path": next(iter(run.get("log_paths") or ()), None),
        "model": header["model"]["architecture"] or header["software"]["trainer"] or (grammars[0]["id"] if grammars else None),
        "signature": told["failure_signature"],
        "cause": " ".join(filter(None, (cause(told), told["place"]))) or None,
        "val_loss": _figure(summary, registry, "val_loss", "min"),
        "step_tokens": _step_tokens(header["flags"] or {}),
        "device_hours": number(cost.get("device_hours")),
        "cost": number(cost.get("amount")),
        "currency": cost.get("currency"),
    }


def listed(document: Document) -> dict[str, Any]:
    """Return a receipt as ``render_runs`` and ``failure_groups`` list it."""
    failure, summary = document["failure"] or {}, document["summary"] or {}
    raised, steps, when = failure.get("exception") or {}, summary.get("steps") or {}, run_time(document)
    frame, kept = raised.get("frame") or {}, summary.get("checkpoints") or {}
    row = {
        "run_id": run_id(document),
        "run_at": when and when.time,
        "name": _name(document),
        "lane": document["run"]["lane"],
        "outcome": outcome(document),
        "excluded": False,
        "failure": failure.get("reason"),
        "exception_type": raised.get("type"),
        "message": failure.get("message"),
        "exit_code": document["run"]["exit_code"],
        "finite_losses": document["checks"].get("finite_losses"),
        "failure_signature": signature(failure["reason"], raised.get("type"), failure["message"]) if failure else None,
        "place": place_of(frame.get("file"), frame.get("line")),
        "last_step": steps.get("last"),
        "steps_planned": steps.get("planned"),
        "loss_last": ((summary.get("metrics") or {}).get("loss") or {}).get("last"),
        "wall_time_s": document["run"].get("wall_time_s") or (document["goodput"] or {}).get("wall_time_s"),
        "unsaved_step_count": kept.get("unsaved_step_count"),
    }
    return row if row["outcome"] in ENDED_BADLY else {**row, "place": None}


def _name(document: Document) -> str:
    """Return the run's name, else the name of its file, else the first digits of its log's digest."""
    path = next(iter(document["run"].get("log_paths") or ()), None)
    return document["run"]["name"] or (path and path.rpartition("/")[2]) or f"log {document['derivation']['log']['sha256'][:12]}"


def _step_tokens(flags: Mapping[str, Any]) -> int | float | None:
    each, batch, length = (flags.get(name) for name in ("tokens_per_step", "global_batch_size", "sequence_length"))
    if each is None and isinstance(batch, int) and isinstance(length, int):
        each = batch * length
    return number(each) if isinstance(each, int | float) and not isinstance(each, bool) else None


def pack_row(row: Mapping[str, Any], pool: Pool) -> dict[str, Any]:
    """Return ``row`` with its texts as numbers of ``pool``."""
    return {**row, **{name: pool.text(row[name], MAX_NAME) for name in _TEXTS}}


def instant(time: str | None) -> float | int | None:
    """Return an RFC 3339 time (UTC by default) as seconds since 1970, or None."""
    if time is None:
        return None
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:  # a leap second, which the schema's format allows
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    seconds = aware.timestamp()
    return int(seconds) if seconds == int(seconds) else round(seconds, 3)


def _figure(summary: Document, registry: Registry, name: str, figure: str, block: str = "metrics") -> int | float | None:
    wanted = registry.by_name[name].id
    values = (entry[figure] for entry in (summary.get(block) or {}).values() if entry["id"] == wanted)
    return number(next(values, None))


def _memory(summary: Document) -> int | float | None:
    """Return the run's first memory figure, in the store's order."""
    by_id = {entry["id"]: entry for entry in (summary.get("metrics") or {}).values()}
    figures = (number(by_id.get(wide.metric_id, {}).get(wide.figure)) for wide in MEMORY)
    return next((figure for figure in figures if figure is not None), None)


def _accelerators(header: Document) -> str | None:
    known = [a for a in (header["hardware"]["accelerators"] or []) if a["name"]]
    return " + ".join(f"{a['count']} × {a['name']}" if a["count"] else a["name"] for a in known) or None
