"""Extract the row of a receipt for the panels, tables and filters of a report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from receipt_cli.analysis.checks import CORE, contradicted_metrics, healthy, proven
from receipt_cli.definitions.metrics import Registry
from receipt_cli.documents.identity import run_id, run_time
from receipt_cli.report.packing import MAX_NAME, Pool, number
from receipt_cli.store.signatures import signature
from receipt_cli.store.views import MEMORY

Document: TypeAlias = Mapping[str, Any]

CHECKS = (*CORE, "steps_monotonic", "completed", "mfu_plausible", "throughput_consistent")
"""Checks that a report counts; others appear only on the run's own page."""
COLUMNS = (
    "name", "digest", "at", "lane", "preset", "commit", "accelerator", "trainer", "grammar", "state", "checks", "reason",
    "category", "step", "planned", "loss", "tokens", "recomputed", "step_time", "mfu", "memory", "memory_metric", "goodput",
    "path", "model", "signature", "val_loss", "step_tokens", "device_hours", "cost", "currency",
)  # fmt: skip
_TEXTS = (
    "name", "lane", "preset", "commit", "accelerator", "trainer", "grammar", "reason", "category", "memory_metric",
    "path", "model", "signature", "currency",
)  # fmt: skip
FAILING, HEALTHY, PROVEN, UNKNOWN = 0, 1, 2, 3
_MARKS = {True: "1", False: "0", None: "-"}


def core_row(document: Document, registry: Registry) -> dict[str, Any]:
    """Return the values of ``COLUMNS``: figures in base units, ``at`` in seconds since 1970; ``pack_row`` packs them.

    ``recomputed`` is 1 if ``tokens`` was not printed but follows from batch and step time; ``val_loss`` is the smallest;
    ``step_tokens`` are the tokens of a step if the header has them.
    """
    run, header, checks, failure = document["run"], document["header"], document["checks"], document["failure"] or {}
    summary = document["summary"] or {}
    log, _, earlier = run_id(document).partition(".")
    digest = ".".join(filter(None, (log[:16], earlier)))
    when = run_time(document)
    grammars = document["derivation"]["grammars"]
    doubtful = contradicted_metrics(summary)
    tokens = _figure(summary, registry, "tokens_per_s", "median") if "tokens_per_s" not in doubtful else None
    derived = _figure(summary, registry, "tokens_per_s", "median", "derived") if tokens is None else None
    memory_name, memory = _memory(summary)
    losses = _figure(summary, registry, "loss", "last")
    steps = summary.get("steps") or {}
    return {
        "name": run["name"] or f"log {log[:12]}",
        "digest": digest,
        "at": instant(when and when.time),
        "lane": run["lane"],
        "preset": run["preset"],
        "commit": header["git"]["commit"],
        "accelerator": _accelerators(header),
        "trainer": header["software"]["trainer"],
        "grammar": f"{grammars[0]['id']}@v{grammars[0]['version']}" if grammars else None,
        "state": _state(checks, document["failure"]),
        "checks": "".join(_MARKS[checks.get(name)] for name in CHECKS),
        "reason": failure.get("reason"),
        "category": failure.get("category"),
        "step": number(steps.get("last")),
        "planned": number(steps.get("planned")),
        "loss": losses,
        "tokens": derived if tokens is None else tokens,
        "recomputed": int(tokens is None and derived is not None),
        "step_time": _figure(summary, registry, "step_time_s", "median"),
        "mfu": _figure(summary, registry, "mfu_ratio", "median"),
        "memory": memory,
        "memory_metric": memory_name,
        "goodput": number((document["goodput"] or {}).get("goodput_ratio")),
        "path": next(iter(run.get("log_paths") or ()), None),
        "model": header["model"]["architecture"] or header["software"]["trainer"] or (grammars[0]["id"] if grammars else None),
        "signature": _signature(failure) if failure else None,
        "val_loss": _figure(summary, registry, "val_loss", "min"),
        "step_tokens": _step_tokens(header["flags"] or {}),
        **_cost(document),
    }


def _state(checks: dict[str, bool | None], failure: Mapping[str, Any] | None) -> int:
    fine = healthy(checks, failure)
    return UNKNOWN if fine is None else FAILING if not fine else PROVEN if proven(checks) else HEALTHY


def _signature(failure: Document) -> str:
    return signature(failure["reason"], (failure.get("exception") or {}).get("type"), failure["message"])


def _step_tokens(flags: Mapping[str, Any]) -> int | float | None:
    each, batch, length = (flags.get(name) for name in ("tokens_per_step", "global_batch_size", "sequence_length"))
    if each is None and isinstance(batch, int) and isinstance(length, int):
        each = batch * length
    return number(each) if isinstance(each, int | float) and not isinstance(each, bool) else None


def _cost(document: Document) -> dict[str, Any]:
    own = document.get("cost") or {}
    return {"device_hours": number(own.get("device_hours")), "cost": number(own.get("amount")), "currency": own.get("currency")}


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


def _memory(summary: Document) -> tuple[str | None, int | float | None]:
    """Return the run's first memory figure, in the store's order, and the metric's name."""
    by_id = {entry["id"]: (name, entry) for name, entry in (summary.get("metrics") or {}).items()}
    for wide in MEMORY:
        name, entry = by_id.get(wide.metric_id, (None, {}))
        value = number(entry.get(wide.figure))
        if value is not None:
            return name, value
    return None, None


def _accelerators(header: Document) -> str | None:
    known = [a for a in (header["hardware"]["accelerators"] or []) if a["name"]]
    return " + ".join(f"{a['count']} × {a['name']}" if a["count"] else a["name"] for a in known) or None
