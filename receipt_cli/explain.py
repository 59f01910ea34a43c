"""A log → why its grammar won: candidates, what each rule matched, and metric-looking lines that nothing matched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from receipt_cli.derive import Derivation, Options, derive
from receipt_cli.detect import METRIC_LINE
from receipt_cli.grammar import Grammar
from receipt_cli.match import extract
from receipt_cli.records import normalise
from receipt_cli.redact import safe_text
from receipt_cli.source import Source

MAX_LINES = 20
MAX_KEPT = 64 * 1024 * 1024
"""Bytes of a log that are searched for lines that nothing matched."""


class _Kept(Source):
    """A source that keeps the first bytes it gives."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.kept = bytearray()

    def blocks(self) -> Iterator[bytes]:
        """Yield the blocks, as ``Source`` does."""
        for block in super().blocks():
            if len(self.kept) < MAX_KEPT:
                self.kept += block[: MAX_KEPT - len(self.kept)]
            yield block


def explain_log(path: str, grammar: str | None = None) -> tuple[dict[str, Any], Derivation]:
    """Return the explanation of one log as plain data, and its derivation. Raises as ``derive``."""
    source = _Kept(path)
    derivation = derive(source, Options(grammar=grammar), workers=1)
    detection = derivation.detection
    chosen = {c.grammar.id: c for c in detection.chosen}
    candidates = [
        {
            "id": c.id,
            "version": chosen[c.id].grammar.version if c.id in chosen else None,
            "layer": c.layer,
            "score": c.alone_steps or c.alone,
            "step_records": c.step_records,
            "records": c.records,
            "chosen": c.id in chosen,
            "why": _why(c.id, derivation),
        }
        for c in detection.candidates
    ]
    rules = [
        {
            "grammar": c.grammar.ref,
            "rule": rule.name,
            "event": rule.event,
            "matched": derivation.rule_records.get((c.grammar.ref, rule.name), 0),
            "near_misses": sum(1 for m in derivation.near_misses[1] if (m.grammar, m.rule) == (c.grammar.id, rule.name)),
        }
        for c in detection.chosen
        for rule in c.grammar.rules
    ]
    count, lines = unmatched_lines(bytes(source.kept), [c.grammar for c in detection.chosen])
    return {
        "candidates": candidates,
        "rules": rules,
        "near_miss_count": derivation.near_misses[0],
        "unmatched_metric_line_count": count,
        "unmatched": lines,
    }, derivation


def _why(name: str, derivation: Derivation) -> str:
    for chosen in derivation.detection.chosen:
        if chosen.grammar.id == name:
            by = {
                "option": "asked for",
                "only_version": "explains most records alone",
                "evidence": "explains most records alone; the log proves this version",
                "default": "explains most records alone; the log does not prove which version: the newest that fits",
            }
            return by[chosen.chosen_by]
    if name in derivation.detection.tie:
        return "ties with another grammar"
    layer = next(c.layer for c in derivation.detection.candidates if c.id == name)
    return "explains fewer records alone" if layer == "trainer" else f"a {layer}: its lines accompany a trainer's"


def unmatched_lines(raw: bytes, grammars: list[Grammar]) -> tuple[int, list[dict[str, Any]]]:
    """Return how many metric-looking records no rule of ``grammars`` reads, and the first of them."""
    rules = [rule for g in grammars for rule in (*g.rules, *g.ignore)]
    count = 0
    found: list[dict[str, Any]] = []
    for number, line in enumerate(normalise(raw).split(b"\n"), start=1):
        for record in re.split(rb"\r", line):
            if METRIC_LINE.search(record[:2000]) is None:
                continue
            if any(any(lit in record for lit in rule.literals) and extract(rule, record[:65536]) for rule in rules):
                continue
            count += 1
            if len(found) < MAX_LINES:
                found.append({"line_number": number, "text": safe_text(record[:500].decode("utf-8", "replace"), 200)})
    return count, found
