"""Blocks of bytes → columns, marker hits and counts of one stretch of a log; stretches merge associatively.

Only what a record says by itself is read here. What depends on its neighbours (phases, attempts, duplicates, the
columns of a table) is decided afterwards, over the columns. That is why a log may be cut anywhere, in a character,
in ``\\r\\n`` or in an envelope, and give the same result.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

from ahocorasick_rs import BytesAhoCorasick

from receipt_cli.columns import Bounded, NumberColumn, RuleColumns, TextColumn, place
from receipt_cli.envelope import before, read_clock, read_rank, unwrap
from receipt_cli.grammar import Grammar, LazyFields, Rule
from receipt_cli.looks import MAX_SEEN, count_step_lines, metric_lines
from receipt_cli.markers import Catalogue, Marker
from receipt_cli.match import Extraction, PatternTimeout, convert, read_record
from receipt_cli.model import EXCERPT_BYTES, MAX_EXCERPT, MAX_FIRST, NearMiss, Problem
from receipt_cli.records import RECORD_CAP, Fragment, cap_records, count_blank, first_end, last_end, normalise
from receipt_cli.stretch import TAIL_KEPT, Body, Hits, RuleKey, Stretch

_HIGH = re.compile(rb"[\x80-\xff]")


class Engine:
    """The rules of some grammars and the marker catalogue, ready to scan."""

    def __init__(self, grammars: Sequence[Grammar], catalogue: Catalogue) -> None:
        self.grammars = tuple(grammars)
        self.catalogue = catalogue
        self.gates: dict[bytes, list[tuple[int, Grammar, Rule, bool]]] = {}
        self.shared: dict[RuleKey, RuleKey] = {}
        order = 0
        seen: dict[tuple[object, ...], RuleKey] = {}
        versions = Counter(grammar.id for grammar in self.grammars)
        for grammar in self.grammars:
            for rule in (*grammar.rules, *grammar.ignore):
                order += 1
                key = (grammar.ref, rule.name)
                self.shared[key] = seen.setdefault((grammar.id, *_reading(rule)), key) if versions[grammar.id] > 1 else key
                if self.shared[key] != key:
                    continue  # another version of this trainer reads the same text: one pass serves both
                for literal in rule.literals:
                    self.gates.setdefault(literal, []).append((order, grammar, rule, rule.event == "ignored"))
        self.marker_gates: dict[bytes, list[Marker]] = {}
        for marker in catalogue.markers:
            for literal in marker.literals:
                self.marker_gates.setdefault(literal, []).append(marker)
        self.literals = tuple(sorted({*self.gates, *self.marker_gates}))
        self._automaton = BytesAhoCorasick(self.literals)

    def columns(self, body: Body, grammar: Grammar, rule: Rule) -> RuleColumns | None:
        """Return what ``rule`` of ``grammar`` read, or None when it read nothing."""
        return body.rules.get(self.shared.get((grammar.ref, rule.name), ("", "")))

    def scan(self, blocks: Iterable[bytes]) -> Stretch:
        """Return the fold of the stretch that ``blocks`` make up, however they are cut."""
        scanner = _Scanner(self)
        for block in blocks:
            scanner.feed(block)
        return scanner.stretch

    def merge(self, left: Stretch, right: Stretch) -> Stretch:
        """Return the fold of two neighbouring stretches; ``left`` and ``right`` are used up. Associative."""
        open_end = left.tail if left.head_end else left.head
        left.last_bytes = (left.last_bytes + right.last_bytes)[-TAIL_KEPT:]
        left.size += right.size
        if not right.size:
            return left
        if open_end.carriage:
            open_end.carriage = False
            if right.head_end == b"\n" and not right.head.length and not right.head.carriage:
                self._close(left, open_end, b"\r\n")  # the two halves of one record end
                right.head_end = b"\r\n"
                right.head = Fragment()
                left.body.extend(right.body)
                left.tail = right.tail
                return left
            self._close(left, open_end, b"\r")
            open_end = left.tail
        _join(open_end, right.head)
        if right.head_end:
            self._close(left, open_end, right.head_end)
            left.body.extend(right.body)
            left.tail = right.tail
        return left

    def _close(self, stretch: Stretch, fragment: Fragment, end: bytes) -> None:
        """End the open record of ``stretch``: it becomes the head, or a record of the body."""
        if not stretch.head_end:
            stretch.head_end = end
            return
        self.close_into(stretch.body, fragment, end)
        stretch.tail = Fragment()

    def close_into(self, body: Body, fragment: Fragment, end: bytes) -> None:
        """Read one record from its fragment."""
        self.read(body, fragment.data + end, fragment.length)

    def finish(self, stretch: Stretch) -> tuple[Body, int]:
        """Return the body of a stretch that is a whole log, and the log's line count (as ``wc -l``, plus an open last)."""
        body = Body()
        if not stretch.head_end:
            last = stretch.head
        else:
            self.close_into(body, stretch.head, stretch.head_end)
            body.extend(stretch.body)
            last = stretch.tail
        lines = body.lines
        if not last.empty:
            self.close_into(body, last, b"\r" if last.carriage else b"\n")
            if not last.carriage:
                body.lines -= 1
            lines += 1
        return body, lines

    def read(self, body: Body, raw: bytes, length: int | None = None) -> None:
        """Match whole records ``raw`` into ``body``; ``length`` is the true length of a single, already cut record."""
        raw, cuts = cap_records(raw)
        if length is not None and length > len(raw):
            cuts = [(0, length)]
        found: list[tuple[int, Problem]] = []
        for offset, size in cuts:
            before = normalise(raw[:offset])
            line = body.lines + before.count(b"\n") + 1
            record = body.records + before.count(b"\n") + before.count(b"\r")
            detail = f"a record of {size} bytes: the first {RECORD_CAP} were read"
            found.append((place(record), Problem("record_too_long", line, detail, "")))
        if b"\x00" in raw:
            body.nul_count += raw.count(b"\x00")
            if body.nul_line is None:
                body.nul_line = body.lines + raw.count(b"\n", 0, raw.find(b"\x00")) + 1
        buffer = unwrap(raw)
        blank = count_blank(buffer)
        lines, returns = buffer.count(b"\n"), buffer.count(b"\r")
        self._looks(body, buffer)
        invalid = _invalid_records(buffer, returns > 0)
        self._match(body, buffer, returns > 0, invalid, found)
        for at, problem in sorted(found, key=lambda entry: entry[0]):
            body.problems.add(at, problem)
        body.blank += blank
        body.lines += lines
        body.records += lines + returns

    def _looks(self, body: Body, buffer: bytes) -> None:
        """Note the first records that look like metrics, and whether any look like steps: what nobody may read."""
        missing = MAX_SEEN - body.metric_like.count
        for offset, record in metric_lines(buffer, missing) if missing else ():
            before = buffer.count(b"\n", 0, offset) + buffer.count(b"\r", 0, offset)
            body.metric_like.add(place(body.records + before), _excerpt(record))
        if body.step_like < MAX_SEEN:
            body.step_like += count_step_lines(buffer, MAX_SEEN - body.step_like)

    def _match(self, body: Body, buffer: bytes, redraws: bool, invalid: list[int], found: list[tuple[int, Problem]]) -> None:
        """Find the records with a literal, read them in order, and book the outcome of each."""
        candidates: list[tuple[int, int, set[bytes]]] = []
        end = -1
        for index, at, _ in self._automaton.find_matches_as_indexes(buffer, overlapping=True):  # in order of their ends
            if at >= end:
                start = buffer.rfind(b"\n", 0, at) + 1
                newline = buffer.find(b"\n", at)
                end = newline if newline >= 0 else len(buffer)
                if redraws:
                    start = max(start, buffer.rfind(b"\r", start, at) + 1)
                    carriage = buffer.find(b"\r", at, end)
                    end = carriage if carriage >= 0 else end
                candidates.append((start, end, set()))
            candidates[-1][2].add(self.literals[index])
        matched_invalid: set[int] = set()
        bad = set(invalid)
        done = ordinal = line = 0
        for start, end, literals_found in candidates:
            newlines = buffer.count(b"\n", done, start)
            line += newlines
            ordinal += newlines + (buffer.count(b"\r", done, start) if redraws else 0)
            done = start
            record = buffer[start:end]
            hit = self._record(body, record, body.records + ordinal, body.lines + line + 1, literals_found, found)
            if hit and start in bad:
                matched_invalid.add(start)
                body.undecodable_matched.append(body.records + ordinal)
        body.undecodable += len(bad) - len(matched_invalid)

    def _record(
        self, body: Body, record: bytes, ordinal: int, line: int, literals: set[bytes], found: list[tuple[int, Problem]]
    ) -> bool:
        """Try the gated rules and markers on one record; return whether any rule of any grammar explained it."""
        tried: dict[int, tuple[Grammar, Rule, bool]] = {}
        for literal in literals:
            for order, grammar, rule, ignored in self.gates.get(literal, ()):
                tried[order] = (grammar, rule, ignored)
        hit = False
        missed: list[tuple[Grammar, Rule]] = []
        explained: set[str] = set()
        for order in sorted(tried):
            grammar, rule, ignored = tried[order]
            try:
                events = read_record(rule, record)
            except PatternTimeout:
                problem = Problem("pattern_timeout", line, f"{grammar.ref} {rule.name} took too long", _excerpt(record))
                found.append((place(ordinal), problem))
                continue
            if not events:
                missed.append((grammar, rule))
                continue
            hit = True
            explained.add(grammar.id)
            if ignored:
                ordinals = body.ignored.setdefault(grammar.id, array("q"))
                if not ordinals or ordinals[-1] != ordinal:
                    ordinals.append(ordinal)
                continue
            columns = body.rules.setdefault((grammar.ref, rule.name), RuleColumns())
            for event in events:
                _store(found, columns, grammar, rule, record, event, ordinal, line)
        if not hit:
            for grammar, rule in missed:
                if grammar.id not in explained and rule.event not in ("ignored", "progress"):
                    explained.add(grammar.id)
                    near = body.near.setdefault(grammar.id, Bounded(MAX_FIRST))
                    near.add(place(ordinal), NearMiss(grammar.id, rule.name, line, _excerpt(record)))
        self._markers(body, record, ordinal, line, literals)
        return hit

    def _markers(self, body: Body, record: bytes, ordinal: int, line: int, literals: set[bytes]) -> None:
        seen: set[str] = set()
        for literal in sorted(literals):
            for marker in self.marker_gates.get(literal, ()):
                if marker.id in seen:
                    continue
                seen.add(marker.id)
                found = marker.search(record)
                if found is not None:
                    text = record[found.start : found.start + EXCERPT_BYTES].decode("utf-8", "replace")
                    hits = body.markers.setdefault(marker.id, Hits())
                    rank = read_rank(record[: found.start])
                    hits.add(place(ordinal, min(found.start, 65535)), line, text, found.exit_code, rank)


def _reading(rule: Rule) -> tuple[object, ...]:
    """Return what decides how a rule reads text, as against what the numbers then mean."""
    if isinstance(rule.fields, LazyFields):
        fields = rule.fields.printed
    else:
        fields = [(f.name, f.type, f.unit, sorted(f.null_if), f.value.pattern if f.value else None) for f in rule.fields.values()]
    spec = (rule.pattern, repr(rule.pairs), repr(rule.mapping), repr(rule.table), repr(rule.block), repr(fields))
    return (rule.name, rule.event == "ignored", rule.literals, *spec)


class _Scanner:
    """Feeds blocks into one stretch."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.stretch = Stretch()

    def feed(self, block: bytes) -> None:
        stretch = self.stretch
        if not block:
            return
        stretch.size += len(block)
        stretch.last_bytes = (stretch.last_bytes + block[-TAIL_KEPT:])[-TAIL_KEPT:]
        pending = stretch.tail if stretch.head_end else stretch.head
        if pending.carriage:
            pending.carriage = False
            half = block.startswith(b"\n")
            self.engine._close(stretch, pending, b"\r\n" if half else b"\r")
            block = block[1:] if half else block
            pending = stretch.tail
        end = last_end(block)
        if not end:
            pending.extend(block)
            return
        begin = 0
        if not stretch.head_end or pending.length:
            begin = first_end(block)
            terminator = b"\r\n" if block[begin - 2 : begin] == b"\r\n" else block[begin - 1 : begin]
            pending.extend(block[: begin - len(terminator)])
            self.engine._close(stretch, pending, terminator)
        if begin < end:
            self.engine.read(stretch.body, block[begin:end])
        stretch.tail = Fragment()
        stretch.tail.extend(block[end:])


def _join(left: Fragment, right: Fragment) -> None:
    """Append ``right`` to ``left``, which has no carriage return pending."""
    left.data = (left.data + right.data)[:RECORD_CAP]
    left.length += right.length
    left.carriage = right.carriage


def _invalid_records(buffer: bytes, redraws: bool) -> list[int]:
    """Return the starts of the records that are not UTF-8."""
    starts: list[int] = []
    if buffer.isascii() or _is_utf8(buffer):
        return starts
    found = _HIGH.search(buffer)
    while found is not None:
        start = buffer.rfind(b"\n", 0, found.start()) + 1
        end = buffer.find(b"\n", found.start())
        end = end if end >= 0 else len(buffer)
        if redraws:
            start = max(start, buffer.rfind(b"\r", start, found.start()) + 1)
            carriage = buffer.find(b"\r", found.start(), end)
            end = carriage if carriage >= 0 else end
        if not _is_utf8(buffer[start:end]):
            starts.append(start)
        found = _HIGH.search(buffer, end)
    return starts


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _excerpt(record: bytes) -> str:
    return record[:EXCERPT_BYTES].decode("utf-8", "replace").strip()


def _store(
    found: list[tuple[int, Problem]],
    columns: RuleColumns,
    grammar: Grammar,
    rule: Rule,
    record: bytes,
    event: Extraction,
    ordinal: int,
    line: int,
) -> None:
    """Append one event to its columns; values that cannot be read become problems."""
    prefix = before(record, event.start)
    rank, clock = (read_rank(prefix), read_clock(prefix)) if prefix else (-1, float("nan"))
    at = place(ordinal, min(event.start, 65535))
    row = columns.open_row(at, line, rank, clock)
    if event.header is not None:
        columns.texts.setdefault("\theader", TextColumn()).append(row, "\t".join(event.header))
        return
    if event.cells is not None:
        columns.texts.setdefault("\tcells", TextColumn()).append(row, "\t".join(event.cells))
        return
    if event.row is not None:
        columns.texts.setdefault("\trow", TextColumn()).append(row, "\t".join(event.row)[:MAX_EXCERPT])
        return
    for name, text in event.texts.items():
        spec = rule.fields[name]
        value, readable = convert(spec, text)
        if not readable:
            problem = Problem("unreadable_value", line, f"{grammar.ref} {rule.name}.{name}: {text[:64]!r}", _excerpt(record))
            found.append((at, problem))
        elif isinstance(value, str):
            columns.texts.setdefault(name, TextColumn()).append(row, value[:MAX_EXCERPT])
        elif value is not None:
            columns.numbers.setdefault(name, NumberColumn()).append(row, value)
    for key, number in event.others.items():
        columns.others.setdefault(key, NumberColumn()).append(row, number)
