"""Explain the choice of a grammar for a log: candidates, matches of each rule, and unmatched metric-looking lines."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from receipt_cli.authoring.lint import check_index, digit_dependence, lint_grammar, lint_together, sample_failures
from receipt_cli.authoring.lint_markers import lint_catalogue
from receipt_cli.authoring.site_search import find_site
from receipt_cli.definitions.failure_markers import MARKERS_PATH
from receipt_cli.definitions.resources import read_shipped
from receipt_cli.derive import Derivation, Options, derive
from receipt_cli.detect.generic import load_generic
from receipt_cli.grammar.catalog import INDUCED, list_grammars, read_entry, read_file, shipped
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.grammar.parse import load_grammar
from receipt_cli.io.source import Progress, Source
from receipt_cli.learn.evidence import Decision, reason
from receipt_cli.learn.learned import weigh_log
from receipt_cli.problems import EXCERPT_BYTES, Finding
from receipt_cli.records.envelope import unwrap
from receipt_cli.records.heuristics import METRIC_LINE
from receipt_cli.records.split import RECORD_CAP
from receipt_cli.redaction.text import mask_texts, safe_text
from receipt_cli.scan.extraction import read_record
from receipt_cli.scan.extraction.model import PatternTimeout, convert

MAX_LINES = 20
MAX_KEPT = 64 * 1024 * 1024
"""Number of first bytes of a log that are searched for unmatched lines."""
PIECE = 1 << 20


class Kept(Source):
    """A source that keeps its first bytes."""

    def __init__(self, path: str, progress: Progress | None = None, most: int = MAX_KEPT) -> None:
        super().__init__(path, progress)
        self.kept, self._most = bytearray(), most

    def blocks(self) -> Iterator[bytes]:
        """Yield the blocks as ``Source`` does."""
        for block in super().blocks():
            self.kept += block[: self._most - len(self.kept)]
            yield block


def explain_log(path: str, grammar: str | None = None, progress: Progress | None = None) -> tuple[dict[str, Any], Derivation]:
    """Return the explanation of one log as plain data, and its derivation. Raises as ``derive`` does."""
    with closing(Kept(path, progress)) as source:
        derivation = derive(source, Options(grammar=grammar), workers=1, site=find_site(path))
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
    count, lines = unmatched_lines(source.kept, [c.grammar for c in detection.chosen])
    learned = not chosen or INDUCED in chosen
    return {
        "explanations": list(_explanations(weigh_log([bytes(source.kept)], load_generic()))) if learned else [],
        "candidates": candidates,
        "rules": rules,
        "near_miss_count": derivation.near_misses[0],
        "unmatched_metric_line_count": count,
        "unmatched": lines,
    }, derivation


def _explanations(decision: Decision) -> Iterator[dict[str, Any]]:
    """Yield the explanations of the log, the best first, each with its score and the evidence for it."""
    words = load_generic()
    for weighed in decision.weighed[:MAX_EXPLANATIONS]:
        chosen = weighed.explanation in decision.chosen
        yield {
            "kind": weighed.explanation.kind,
            "records": weighed.explanation.count,
            "line": safe_text(mask_texts(weighed.explanation.sample.decode("utf-8", "replace")), EXCERPT_BYTES),
            "chosen": chosen,
            "score": round(weighed.score, 2),
            "evidence": {name: round(words.evidence[name] * value, 2) for name, value in weighed.measures.items()},
            "why": None if chosen else reason(weighed, decision, words),
        }


MAX_EXPLANATIONS = 8


def _why(name: str, derivation: Derivation) -> str:
    for chosen in derivation.detection.chosen:
        if chosen.grammar.id == name == INDUCED:
            return "no grammar knows this trainer: read by the words beside its numbers"
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
    if layer == "format":
        return "a common format: whoever knows the program goes first"
    return "explains fewer records alone" if layer == "trainer" else f"a {layer}: its lines accompany a trainer's"


def unmatched_lines(raw: bytes | bytearray, grammars: list[Grammar]) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of metric-looking records that no rule of ``grammars`` reads, and the first of them."""
    rules = [rule for g in grammars for rule in (*g.rules, *g.ignore)]
    count = line = at = 0
    found: list[dict[str, Any]] = []
    while at < len(raw):  # piece by piece: a list of all lines would take more memory than the log
        end = raw.find(b"\n", at + PIECE) + 1 or len(raw)
        for text in unwrap(bytes(raw[at:end])).split(b"\n"):
            line += 1
            for record in text.split(b"\r"):
                if METRIC_LINE.search(record, 0, 2000) is None or any(_reads(rule, record) for rule in rules):
                    continue
                count += 1
                if len(found) < MAX_LINES:
                    found.append({"line_number": line, "text": safe_text(record[:EXCERPT_BYTES].decode("utf-8", "replace"), 200)})
        line -= raw[end - 1 : end] == b"\n"  # the last line end of a piece begins no line
        at = end
    return count, found


def first_readings(raw: bytes | bytearray, grammar: Grammar) -> dict[str, dict[str, Any]]:
    """Return rule → the first record that it reads: ``line_number``, ``text`` and ``fields``."""
    found: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(unwrap(bytes(raw)).split(b"\n"), start=1):
        for rule in grammar.rules:
            if rule.name in found or not any(literal in line for literal in rule.literals):
                continue
            for record in line.split(b"\r"):
                fields = _read_fields(rule, record[:RECORD_CAP])
                if fields is not None:
                    text = safe_text(record[:EXCERPT_BYTES].decode("utf-8", "replace"), 200)
                    found[rule.name] = {"line_number": number, "text": text, "fields": mask_texts(fields)}
                    break
        if len(found) == len(grammar.rules):
            break
    return found


def _read_fields(rule: Rule, record: bytes) -> dict[str, Any] | None:
    """Return the fields that ``rule`` reads in a record, including those outside the registry; None without a match."""
    try:
        events = read_record(rule, record)
    except PatternTimeout:
        return None
    if not events:
        return None
    values = {name: convert(rule.fields[name], text)[0] for name, text in events[0].texts.items()}
    whole = {name: int(v) if rule.fields[name].type == "integer" and isinstance(v, float) else v for name, v in values.items()}
    row = {events[0].cells[0]: events[0].cells[1]} if events[0].column == "pairs" else {}
    return {**{name: value for name, value in whole.items() if value is not None}, **events[0].unregistered, **row}


def _reads(rule: Rule, record: bytes) -> bool:
    try:
        return any(literal in record for literal in rule.literals) and bool(read_record(rule, record[:RECORD_CAP]))
    except PatternTimeout:
        return False


def lint_files(files: Sequence[Path]) -> tuple[list[Finding], int]:
    """Return the findings on a user's grammar files, and the number of files. Raises ``InputError``."""
    return [f for path in files for f in lint_grammar(read_file(str(path)), str(path))], len(files)


def lint_shipped() -> tuple[list[Finding], int]:
    """Return the findings on all shipped definitions (grammars alone and together, index, markers), and the number of files."""
    entries = list_grammars()
    texts = {entry.path: read_entry(entry) for entry in entries}
    found = [f for path, text in texts.items() for f in lint_grammar(text, f"grammars/{path}")]
    found += lint_together(shipped(with_samples=True)) if not found else []
    files = {path: hashlib.sha256(text).hexdigest() for path, text in texts.items()}
    found += check_index({entry.path: entry.sha256 for entry in entries}, files)
    found += lint_catalogue(read_shipped(f"grammars/{MARKERS_PATH}"), f"grammars/{MARKERS_PATH}")
    return found, len(entries) + 1


def test_grammar(name: str, log: str | None) -> tuple[list[dict[str, Any]], bool]:
    """Return a row for each rule (samples, failures, digits, and with a log its read records), and whether all pass.

    A rule that depends on digits is slower on a large log; see ``digit_dependence``.
    """
    site = find_site(log)
    text = site.definition(name)
    grammar = load_grammar(text, name, with_samples=True)
    failures = sample_failures(grammar, text)
    rows: list[dict[str, Any]] = [
        {
            "rule": r.name,
            "event": r.event,
            "samples": len(r.samples),
            "failed": failures.get(r.name, 0),
            "tells digits apart": digit_dependence(r),
        }
        for r in grammar.rules
    ]
    good = not any(failures.values())
    if log is not None:
        with closing(Kept(log)) as source:
            derivation = derive(source, Options(grammar=name), workers=1, site=site)
        first = first_readings(source.kept, grammar)
        for row in rows:
            row["records"] = derivation.rule_records.get((grammar.ref, row["rule"]), 0)
            row["first"] = first.get(row["rule"])
            row["near misses"] = sum(1 for miss in derivation.near_misses[1] if miss.rule == row["rule"])
        good = good and derivation.checks.get("has_steps") is True
    return rows, good
