"""What schedulers record of the job, and where that contradicts the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from receipt_cli.documents.invariants.evidence import contradictions
from receipt_cli.render.fields import items, real, text, whole
from receipt_cli.render.scale import byte_size, count
from receipt_cli.render.terminal.page import Page, Span
from receipt_cli.render.terminal.style import Role

_MOST = 4


def write_evidence(page: Page, document: Mapping[str, object]) -> None:
    """Add a line for each job of ``evidence``, and one for each contradiction; nothing without evidence."""
    jobs = items(document, "evidence")
    if not jobs:
        return
    page.gap()
    for job in jobs[:_MOST]:
        page.flow("job", _facts(page, job), indent=0, label_width=11)
    page.left_out(len(jobs) - _MOST, "jobs", indent=11)
    for reason in _contradictions(document)[:_MOST]:
        page.prose(reason, "bad", indent=11, bullet="! ")


def _facts(page: Page, job: object) -> list[list[Span]]:
    called = " ".join(filter(None, (text(job, "source"), text(job, "job_id"))))
    facts = [[Span(page.say(called))]]
    state, reason, code = text(job, "state") or text(job, "ended"), text(job, "reason"), whole(job, "exit_code")
    if state is not None:
        role: Role = "bad" if text(job, "ended") not in ("completed", "not_ended", "unknown", None) else "plain"
        facts.append([Span(page.say(state), role)])
    if reason is not None:
        facts.append([Span(page.say(reason), "dim")])
    if code is not None:
        facts.append([Span(f"exit code {code}")])
    nodes = whole(job, "node_count")
    if nodes is not None:
        facts.append([Span(f"{count(nodes)} {'node' if nodes == 1 else 'nodes'}", "dim")])
    peak, limit = real(job, "max_rss_bytes"), real(job, "memory_limit_bytes")
    if peak is not None:
        facts.append([Span(f"{byte_size(peak)} at its peak")])
    if limit is not None:
        facts.append([Span(f"{byte_size(limit)} granted", "dim")])
    return facts


def _contradictions(document: Mapping[str, object]) -> list[str]:
    try:
        return [reason for _, reason in contradictions(cast(dict[str, Any], document))]
    except (AttributeError, KeyError, TypeError, ValueError):  # the document need not be valid
        return []
