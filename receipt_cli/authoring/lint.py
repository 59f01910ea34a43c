"""Lint a grammar by its own samples. Every finding is an error; all findings are collected."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import regex

from receipt_cli.authoring.redos import (
    HOSTILE_BOUND_S,
    HOSTILE_BYTES,
    ORDINARY_HELP,
    STEEP,
    ordinary_excess,
    pace,
    rule_growth,
)
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.definitions.strict_yaml import locate
from receipt_cli.errors import DataError
from receipt_cli.grammar.model import Block, Grammar, Rule, Sample, compile_pattern
from receipt_cli.grammar.parse import PARTS, PATTERNS, load_grammar
from receipt_cli.learn.vocabulary import load_vocabulary
from receipt_cli.problems import Finding
from receipt_cli.scan.extraction import extract
from receipt_cli.scan.extraction.model import TIME_BOX_S, Extraction, PatternTimeout, convert
from receipt_cli.scan.extraction.table import bind_cells, bind_row

MIN_LITERAL = 4
_COLUMN_WORD, _COLUMN_WIDTH = 3, 8
"""A word of three letters is also long enough if blanks of a column widen the literal to eight bytes: ``    all   ``."""
_VOCABULARY = re.compile(r"(?:\A|[/\\])generic[/\\]v\d+\.yaml\Z")
"""Path of the vocabulary: a file with words instead of rules."""
_MEASURED = 3
"""Number of too slow measurements for a finding: other processes may disturb one."""
ORDINARY_SECONDS = 0.002
"""Most seconds of a rule for ``redos.ORDINARY``: ten times the slowest shipped rule."""
_HELP = r"use possessive quantifiers (\d++, [^|]*+), bound gaps before a required part ([^|]{0,200}), or anchor the start"
COMPARED = "tokens_per_s"
"""The metric that evidence may compare: its printed value with the recomputed one."""


def lint_grammar(text: bytes, where: str) -> list[Finding]:
    """Return the findings on one grammar file; [] if it has no errors."""
    try:
        if _VOCABULARY.search(where):
            load_vocabulary(text, where, load_registry())
            return []
        grammar = load_grammar(text, where, with_samples=True)
    except DataError as error:
        return [Finding("error", error.where or where, error.message, help=error.try_ or error.why or None)]
    return list(_Linter(grammar, text).findings())


def sample_failures(grammar: Grammar, text: bytes) -> dict[str, int]:
    """Return rule → number of failing samples; all samples of a rule with a wrong shape fail."""
    linter = _Linter(grammar, text)
    failures: dict[str, int] = {}
    for rule in grammar.rules:
        bad = None if any(linter.shape(rule)) else {f.snippet for f in linter.samples(rule)}
        failures[rule.name] = sum(bad is None or sample.line in bad for sample in rule.samples)
    return failures


def sample_findings(grammar: Grammar, text: bytes) -> list[Finding]:
    """Return the findings on shape and samples of ``grammar``, without time measurements."""
    linter = _Linter(grammar, text)
    found = [finding for rule in (*grammar.rules, *grammar.ignore) for finding in linter.shape(rule)]
    return found or [finding for rule in grammar.rules for finding in linter.samples(rule)]


def lint_together(grammars: Sequence[Grammar]) -> list[Finding]:
    """Return a finding for each sample that a step or evaluation rule of another grammar also reads."""
    found = []
    lines = [(g, r, s) for g in grammars for r in g.rules for s in r.samples]
    for other in grammars:
        rules = [r for r in other.rules if r.event in ("step", "eval")]
        for grammar, rule, sample in lines:
            if grammar.id == other.id:
                continue
            for foreign in rules:
                if _events_of(foreign, sample.line):
                    reason = f"sample of {rule.name} is also read by {other.ref} {foreign.name}"
                    found.append(Finding("error", grammar.where, reason, snippet=sample.line))
    return found


def digit_dependence(rule: Rule) -> str:
    """Return the places where a match of ``rule`` depends on digits: nowhere (""), at some texts, or anywhere.

    Records that differ only in digits are read together if no rule depends on these digits.
    """
    compared = rule.compared
    if compared is None:
        return "anywhere"
    words = {"after": compared.kept, "in": compared.own, "on both sides of": compared.echoes, "after, and earlier": compared.far}
    return ", ".join(f"{word} {' '.join(map(repr, sorted(texts)))}" for word, texts in words.items() if texts)


def _events_of(rule: Rule, line: str) -> list[Extraction]:
    """Return as ``_extract_line`` does; none for a pattern that exceeds its time (``hostile`` reports it)."""
    try:
        return _extract_line(rule, line)
    except PatternTimeout:
        return []


def _extract_line(rule: Rule, line: str) -> list[Extraction]:
    """Return the events of ``rule`` in the records of ``line``, filtered by literals as in a scan, with named table cells."""
    events: list[Extraction] = []
    header: tuple[str, ...] = ()
    begun: set[str] = set()
    for record in line.encode("utf-8").split(b"\n"):
        if not any(literal in record for literal in rule.literals):
            continue
        for event in extract(rule, record):
            if event.column == "headers":
                header = event.cells
                continue
            if event.column == "cells" and rule.table is not None:
                bound = bind_cells(rule.table, header, event.cells)
                if bound is None:
                    continue
                event.texts, event.unregistered = bound
            if event.column != "pairs" or rule.block is None:
                events.append(event)
                begun = set()
                continue
            if rule.block.open is None and (not events or event.cells[0] in begun):
                events.append(Extraction(event.start, event.end))
                begun = set()
            if events:  # a row before any opening line belongs to no event
                _join_row(rule.block, events[-1], event, begun)
    if rule.block is not None:
        events = [e for e in events if rule.block.requires <= e.texts.keys()]
    return events


def _join_row(spec: Block, event: Extraction, row: Extraction, begun: set[str]) -> None:
    """Add one row of a sample to its event."""
    bound = bind_row(spec, row.cells) if row.cells[0] not in begun else None
    begun.add(row.cells[0])
    event.start, event.end = row.start, row.end
    if bound is not None and isinstance(bound[1], str):
        event.texts.setdefault(bound[0], bound[1])
    elif bound is not None and isinstance(bound[1], float):
        event.unregistered.setdefault(bound[0], bound[1])


def read_sample(rule: Rule, line: str) -> dict[str, float | int | str]:
    """Return the fields that ``rule`` reads in ``line``, as a grammar's sample lists them; {} without a match."""
    read: dict[str, float | int | str] = {}
    for name, text in (item for event in _events_of(rule, line)[-1:] for item in event.texts.items()):
        value, _ = convert(rule.fields[name], text)
        if value is not None:
            read[name] = int(value) if isinstance(value, float) and rule.fields[name].type == "integer" else value
    return read


def matched_text(rule: Rule, line: str) -> str | None:
    """Return the part of ``line`` that ``rule`` matches, or all of ``line`` if it has several lines; None without a match."""
    events = _events_of(rule, line)
    if not events or "\n" in line:
        return line if events else None
    return line.encode("utf-8")[events[-1].start : events[-1].end].decode("utf-8", "replace").strip()


def _column(record: bytes, at: int) -> int:
    """Return the column of byte ``at`` of ``record``, in characters."""
    return len(record[:at].decode("utf-8", "replace"))


class _Linter:
    def __init__(self, grammar: Grammar, text: bytes) -> None:
        self.grammar = grammar
        self.text = text
        self.broken: set[str] = set()

    def finding(self, path: tuple[str | int, ...], reason: str, **more: Any) -> Finding:
        return Finding("error", f"{self.grammar.where}:{locate(self.text, path)}", reason, **more)

    def findings(self) -> Iterator[Finding]:
        yield from self.identity()
        for rule in (*self.grammar.rules, *self.grammar.ignore):
            found = list(self.shape(rule))
            if found:
                self.broken.add(rule.name)
            yield from found
        for rule in self.grammar.rules:
            if rule.name not in self.broken:
                yield from self.samples(rule)
        for rule in (*self.grammar.rules, *self.grammar.ignore):
            if rule.name not in self.broken:
                yield from self.hostile(rule)
                yield from self.ordinary(rule)
        yield from self.ignored()
        yield from self.silent()
        yield from self.evidence()

    def path(self, rule: Rule) -> tuple[str, str]:
        return ("ignore" if rule.event == "ignored" else "rules", rule.name)

    def identity(self) -> Iterator[Finding]:
        found = re.search(r"([^/\\]+)[/\\]v(\d+)\.ya?ml\Z", self.grammar.where)
        if found and (found.group(1), int(found.group(2))) != (self.grammar.id, self.grammar.version):
            reason = f"the path is {found.group(1)}@v{int(found.group(2))}, but the file has {self.grammar.ref}"
            yield self.finding(("grammar",), reason, help="id and version must match the path")

    def shape(self, rule: Rule) -> Iterator[Finding]:
        path = self.path(rule)
        whole = bool(rule.sources) and all(source.startswith("^") and source.endswith("$") for source in rule.sources)
        for literal in rule.literals:
            word = len(literal.strip())
            if not whole and word < MIN_LITERAL and not (word >= _COLUMN_WORD and len(literal) >= _COLUMN_WIDTH):
                reason = f"{rule.name}: literal {literal.decode()!r} is too short"
                way = f"give at least {MIN_LITERAL} bytes that every match has, or let the pattern match whole lines: ^…$"
                yield self.finding((*path, "literal"), reason, help=way)
        keyed = {"pairs": rule.pairs, "table": rule.table, "mapping": rule.mapping, "block": rule.block}
        patterns = {f"{name}.{key}": getattr(part, key, None) for name, part in keyed.items() for key in PATTERNS}
        patterns["pattern"] = rule.pattern
        groups: set[str] = set()
        for key, pattern in patterns.items():
            if pattern is None:
                continue
            where = (*path, *key.split("."))
            try:
                found = set(compile_pattern(pattern).groupindex)
            except regex.error as error:
                reason = f"{rule.name}: pattern does not compile: {getattr(error, 'msg', error)}"
                parts = f"named parts are {', '.join(PARTS)}" if "(?&" in pattern else None
                yield self.finding(where, reason, snippet=pattern, caret=getattr(error, "pos", None), help=parts)
                return
            except (RecursionError, MemoryError) as error:
                yield self.finding(where, f"{rule.name}: pattern does not compile: {error}")
                return
            except UnicodeEncodeError:
                yield self.finding(where, f"{rule.name}: pattern is not ASCII", help="write other characters as \\xNN bytes")
                return
            if key == "block.row" and found != {"key", "value"}:
                yield self.finding(where, f"{rule.name}: a row must have exactly the groups key and value", snippet=pattern)
            elif key != "block.row":
                groups |= found
            if re.match(r"\(?\.[*+]", pattern) and re.search(r"\.[*+][+?]?\)?\Z", pattern):
                reason = f"{rule.name}: open at both ends"
                yield self.finding(where, reason, snippet=pattern, help="the search is unanchored: remove .*")
        wanted = groups | (set(rule.keyed.keys.values()) if rule.keyed else set())
        if rule.event != "ignored" and wanted != set(rule.fields):
            for name in sorted(wanted ^ set(rule.fields)):
                side = "declared but never captured" if name in rule.fields else "captured but not declared"
                yield self.finding((*path, "fields", name), f"{rule.name}: field {name} is {side}")
        if rule.event == "step" and not rule.redraw and not any(f.target[0] in ("metric", "other") for f in rule.fields.values()):
            yield self.finding(path, f"{rule.name}: a step rule needs a metric")
        if rule.bounds and (rule.table or rule.block):
            name = next(iter(rule.bounds))
            yield self.finding((*path, "fields", name), f"{rule.name}: {name}: a {rule.kind} cannot have at_least")
        if not rule.samples:
            yield self.finding(path, f"{rule.name}: has no sample", help="add a line that a real run printed")

    def samples(self, rule: Rule) -> Iterator[Finding]:
        for number, sample in enumerate(rule.samples):
            path = (*self.path(rule), "samples", number)
            try:
                events = _extract_line(rule, sample.line)
            except PatternTimeout:
                yield self.finding(path, f"{rule.name}: takes over {TIME_BOX_S} s for its own sample", snippet=sample.line)
                continue
            if not events:
                yield self.unmatched(rule, sample, path)
                continue
            if len(events) > 1 and rule.table is None and rule.block is None:
                yield self.finding(path, f"{rule.name}: sample matches {len(events)} times", snippet=sample.line)
            record = sample.line.encode().split(b"\n")[-1]
            event = events[-1]
            rest = (record[: event.start] + record[event.end :]).strip()
            if rest and rule.mapping is None:
                caret = _column(record, event.end) if record[event.end :].strip() else 0
                reason = f"{rule.name}: sample is not matched entirely"
                yield self.finding(path, reason, snippet=sample.line, caret=caret, help="samples are bare lines")
            yield from self.values(rule, sample, event, path)
            for other in (*self.grammar.rules, *self.grammar.ignore):
                if other.name != rule.name and other.name not in self.broken and _events_of(other, sample.line):
                    yield self.finding(path, f"{rule.name}: sample is also matched by {other.name}", snippet=sample.line)

    def unmatched(self, rule: Rule, sample: Sample, path: tuple[str | int, ...]) -> Finding:
        record = sample.line.encode().split(b"\n")[-1]
        if not any(literal in record for literal in rule.literals):
            return self.finding(path, f"{rule.name}: sample has none of the rule's literals", snippet=sample.line)
        caret = None
        if rule.pattern is not None or rule.pairs is not None:
            with contextlib.suppress(TimeoutError, MemoryError):
                ends = range(len(record), 0, -1)
                reached = (n for n in ends if rule.start.fullmatch(record[:n], partial=True, timeout=TIME_BOX_S))
                caret = _column(record, next(reached, 0))
        return self.finding(path, f"{rule.name}: sample is not matched", snippet=sample.line, caret=caret)

    def values(self, rule: Rule, sample: Sample, event: Extraction, path: tuple[str | int, ...]) -> Iterator[Finding]:
        got: dict[str, Any] = {}
        for name, text in event.texts.items():
            value, readable = convert(rule.fields[name], text)
            if not readable:
                yield self.finding(path, f"{rule.name}: {name} cannot read {text!r}", snippet=sample.line)
            elif value is not None:
                got[name] = value
        for title, have, want in (("field", got, sample.fields), ("other value", event.unregistered, sample.others)):
            for name in sorted({*have, *want}, key=str):
                if name not in want or name not in have or not _same(have[name], want[name]):
                    stated = repr(want[name]) if name in want else "nothing"
                    read = repr(have[name]) if name in have else "nothing"
                    reason = f"{rule.name}: {title} {name} is stated as {stated}, read as {read}"
                    yield self.finding(path, reason, snippet=sample.line)

    def hostile(self, rule: Rule) -> Iterator[Finding]:
        for left in reversed(range(_MEASURED)):
            slow = rule_growth(rule)
            steep = slow is not None and slow.exponent >= STEEP
            bound = HOSTILE_BOUND_S if steep else TIME_BOX_S
            if slow is None or slow.at(HOSTILE_BYTES) <= bound or slow.at(HOSTILE_BYTES) <= bound * pace():
                return
            seconds = f"{slow.at(HOSTILE_BYTES):.1f} s"
            reason = f"{rule.name}: takes {seconds} for a hostile line of {HOSTILE_BYTES} bytes, over {bound} s"
            reason += f"; the time grows with the length to the power of {slow.exponent:.1f}" if steep else ""
            if not left:
                yield self.finding(self.path(rule), reason, snippet=slow.attack.describe(), help=_HELP)

    def ordinary(self, rule: Rule) -> Iterator[Finding]:
        slow = ordinary_excess(rule.literals, lambda line: extract(rule, line), ORDINARY_SECONDS)
        if slow is not None:
            yield self.finding(self.path(rule), f"{rule.name}: takes {slow * 1000:.3g} ms on ordinary lines", help=ORDINARY_HELP)

    def ignored(self) -> Iterator[Finding]:
        for rule in self.grammar.ignore:
            for number, sample in enumerate(rule.samples):
                if rule.name in self.broken:
                    continue
                path = ("ignore", rule.name, "samples", number)
                if not _events_of(rule, sample.line):
                    yield self.unmatched(rule, sample, path)
                for other in self.grammar.rules:
                    if other.name not in self.broken and _events_of(other, sample.line):
                        yield self.finding(path, f"{rule.name}: sample is also matched by {other.name}", snippet=sample.line)

    def silent(self) -> Iterator[Finding]:
        for number, line in enumerate(self.grammar.no_match):
            for rule in self.grammar.rules:
                if rule.name not in self.broken and _events_of(rule, line):
                    yield self.finding(("no_match", number), f"a line that must match nothing matches {rule.name}", snippet=line)

    def evidence(self) -> Iterator[Finding]:
        names = {r.name: r for r in self.grammar.rules}
        for side, entries in (("proves", self.grammar.proves), ("excludes", self.grammar.excludes)):
            for number, entry in enumerate(entries):
                rule, _, field = (entry.seen or "").partition(".")
                if entry.metric is not None and entry.metric != COMPARED:
                    yield self.finding(("evidence", side, number), f"evidence cannot compare {entry.metric}, only {COMPARED}")
                if entry.seen and (rule not in names or (field and field not in names[rule].fields)):
                    yield self.finding(("evidence", side, number), f"evidence names the unknown {entry.seen}")


def _same(have: object, want: object) -> bool:
    if isinstance(have, float) and isinstance(want, int | float) and not isinstance(want, bool):
        return have == want or (math.isnan(have) and math.isnan(want))
    return type(have) is type(want) and have == want


def check_index(entries: Mapping[str, str], files: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each difference between ``grammars/index.yaml`` (path -> digest) and the files (path -> digest)."""
    where = "grammars/index.yaml"
    found = [Finding("error", where, f"{path} is not listed") for path in sorted(files.keys() - entries.keys())]
    found += [Finding("error", where, f"{path} does not exist") for path in sorted(entries.keys() - files.keys())]
    for path in sorted(entries.keys() & files.keys()):
        if entries[path] != files[path]:
            found.append(Finding("error", where, f"{path}: the digest differs", help="make freeze, or make a new version"))
    return found
