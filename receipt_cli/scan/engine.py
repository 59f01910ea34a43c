"""Scan blocks of bytes into a segment: columns, marker hits, counts. Segments merge associatively.

Only single records are read here. Facts that depend on neighbours (phases, attempts, duplicates, the columns of a table) are
derived from the columns later. So a log may be cut anywhere, in a character, in ``\\r\\n`` or in an envelope, and give the
same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from receipt_cli.definitions.failure_markers import Catalogue
from receipt_cli.grammar.model import COMPANION, Grammar, Rule
from receipt_cli.problems import Problem
from receipt_cli.records.envelope import MASK, plain, without_count
from receipt_cli.records.heuristics import MAX_SEEN, Prefilter, count_step_lines, metric_lines
from receipt_cli.records.split import (
    RECORD_CAP,
    Fragment,
    Walk,
    cap_records,
    count_blank,
    count_ends,
    first_end,
    invalid_records,
    last_end,
    may_spell,
    short_bars,
    spell_nonfinite,
    without_marks,
)
from receipt_cli.scan.book import Entry, PlacedProblems, examine, excerpt, search_markers
from receipt_cli.scan.candidates import Candidates
from receipt_cli.scan.columns import RuleColumns, place
from receipt_cli.scan.forms import MARK
from receipt_cli.scan.kernel.reader import KernelReader
from receipt_cli.scan.last_record import certain_part, drop_open_texts, figures, is_closed, keep_known, keep_shared, note_unread
from receipt_cli.scan.layout import MAX_KEPT, MAX_LENGTH, LayoutCache, learn_layout
from receipt_cli.scan.presence import load_kernel
from receipt_cli.scan.segment import HEAD_KEPT, TAIL_KEPT, Problems, RuleKey, Segment, SegmentBody
from receipt_cli.scan.settled import join_forms, names_of_rules, settle_forms

Read: TypeAlias = tuple[Rule, RuleColumns]
"""A rule and the columns it filled."""


class Engine:
    """The rules of some grammars and the marker catalogue, ready to scan."""

    def __init__(self, grammars: Sequence[Grammar], catalogue: Catalogue, *, by_layout: bool = True) -> None:
        """Without ``by_layout`` the patterns read every record: slower, with the same result."""
        self.grammars = tuple(grammars)
        self.catalogue = catalogue
        self.rules_by_literal: dict[bytes, list[tuple[int, Grammar, int, bool]]] = {}
        self.shared: dict[RuleKey, RuleKey] = {}
        order = 0
        seen: dict[tuple[str, str, str], RuleKey] = {}
        versions = Counter(grammar.id for grammar in self.grammars)
        for grammar in self.grammars:
            for number, (name, event, literals, reading) in enumerate(grammar.heads):
                order += 1
                key = shared = grammar.ref, name
                if versions[grammar.id] > 1:
                    shared = seen.setdefault((grammar.id, name, reading or grammar.rule(number).reading), key)
                self.shared[key] = shared
                if shared != key:
                    continue  # another version of this trainer reads the same text: one pass serves both
                for literal in literals:
                    self.rules_by_literal.setdefault(literal, []).append((order, grammar, number, event == "ignored"))
        self.prefilter = Prefilter(sorted({*self.rules_by_literal, *catalogue.by_literal}))
        self._step_rules = {(g.ref, head.name) for g in self.grammars for head in g.heads if head.event == "step"}
        kinds = ("step", COMPANION, "eval")
        self._figure_rules = {(g.ref, head.name) for g in self.grammars for head in g.heads if head.event in kinds}
        self._candidates_of: dict[frozenset[bytes], Candidates] = {}
        self.layouts = LayoutCache()
        self.by_layout = by_layout
        self.native = native = load_kernel() if by_layout else None
        self.kernel = KernelReader(native, self.prefilter.literals) if native is not None else None
        self._plain: Any = native.plain if native is not None else plain
        self._may_spell: Any = native.spells if native is not None else may_spell
        self._likely: Any = native.likely if native is not None else None

    def columns(self, body: SegmentBody, grammar: Grammar, rule: Rule) -> RuleColumns | None:
        """Return the columns of ``rule`` of ``grammar``, or None if it read nothing."""
        return body.rules.get(self.shared.get((grammar.ref, rule.name), ("", "")))

    @cached_property
    def by_id(self) -> Mapping[str, list[Grammar]]:
        """The versions of each grammar, by grammar id."""
        table: dict[str, list[Grammar]] = {}
        for grammar in self.grammars:
            table.setdefault(grammar.id, []).append(grammar)
        return table

    @cached_property
    def _rules_by_key(self) -> Mapping[RuleKey, Sequence[tuple[Grammar, int]]]:
        """The rules that fill the columns of each key, as (grammar, number of the rule)."""
        table: dict[RuleKey, list[tuple[Grammar, int]]] = {}
        for grammar in self.grammars:
            for number, head in enumerate(grammar.heads):
                if head.event != "ignored":
                    table.setdefault(self.shared[grammar.ref, head.name], []).append((grammar, number))
        return table

    def readers(self, body: SegmentBody) -> Mapping[str, Sequence[Read]]:
        """Return the rules that read something with their columns, by grammar reference."""
        found: dict[str, list[Read]] = {}
        for key, columns in body.rules.items():
            for grammar, number in self._rules_by_key.get(key, ()):
                found.setdefault(grammar.ref, []).append((grammar.rule(number), columns))
        return found

    def scan(self, blocks: Iterable[bytes], *, whole: bool = False) -> Segment:
        """Return the segment of ``blocks``, wherever they are cut; a ``whole`` segment is never merged."""
        segment = Segment(head_end=b"\n" if whole else b"", whole=whole)
        for block in blocks:
            if block:
                self._feed(segment, block)
        return segment

    def _feed(self, segment: Segment, block: bytes) -> None:
        """Append a block."""
        open_end, begin, end = segment.open_end, 0, last_end(block)
        piece = Segment(size=len(block), first_bytes=block[:HEAD_KEPT], last_bytes=block[-TAIL_KEPT:])
        if end and segment.head_end and not open_end.carriage and open_end.length == len(open_end.data):
            self.read(segment.body, b"".join((open_end.data, memoryview(block)[:end])))
            segment.tail = Fragment()
            piece.head.extend(block[end:])
        elif end:
            begin = first_end(block)
            piece.head_end = b"\r\n" if block[:begin].endswith(b"\r\n") else block[begin - 1 : begin]
            piece.head.extend(block[:begin].removesuffix(piece.head_end))
            piece.tail.extend(block[end:])
        else:
            piece.head.extend(block)
        self._append(segment, piece, lambda: self.read(segment.body, block[begin:end]))

    def merge(self, left: Segment, right: Segment) -> Segment:
        """Merge two neighbouring segments, which are used up. Associative."""
        if right.size:
            self._append(left, right, lambda: left.body.extend(right.body))
        return left

    def _append(self, left: Segment, right: Segment, add_body: Callable[[], None]) -> None:
        """Append ``right`` to ``left``; ``add_body`` adds the whole records."""
        left.size += right.size
        left.last_bytes = (left.last_bytes + right.last_bytes)[-TAIL_KEPT:]
        if len(left.first_bytes) < HEAD_KEPT:
            left.first_bytes = (left.first_bytes + right.first_bytes)[:HEAD_KEPT]
        head, end = right.head, right.head_end
        if left.open_end.carriage:
            left.open_end.carriage = False
            if end == b"\n" and head.empty:
                end = b"\r\n"  # the two halves of one record end
            else:
                self._close(left, b"\r")
        open_end = left.open_end
        open_end.data = (open_end.data + head.data)[:RECORD_CAP]
        open_end.length += head.length
        open_end.carriage = head.carriage
        if end:
            self._close(left, end)
            add_body()
            left.tail = right.tail

    def _close(self, segment: Segment, end: bytes) -> None:
        """End the open record of ``segment``: the head, if there is none yet, else a record of the body."""
        if segment.head_end:
            self._close_into(segment.body, segment.tail, end)
            segment.tail = Fragment()
        else:
            segment.head_end = end

    def _close_into(self, body: SegmentBody, fragment: Fragment, end: bytes) -> None:
        """Read the record of a fragment."""
        self.read(body, fragment.data + end, fragment.length if fragment.length > len(fragment.data) else None)

    def finish(self, segment: Segment, text: Callable[[int], bytes] = lambda _: b"") -> tuple[SegmentBody, int]:
        """Return the body of a whole log, and its line count (as ``wc -l``, plus an unended last line).

        ``text`` returns a line of the log and the next one, by the number of the first; empty if it cannot.
        """
        body = SegmentBody()
        if segment.whole:
            body, last = segment.body, segment.tail
        elif not segment.head_end:
            last = segment.head
        else:
            self._close_into(body, segment.head, segment.head_end)
            body.extend(segment.body)
            last = segment.tail
        lines = body.lines
        if not last.empty:
            if last.carriage or last.length > len(last.data):
                self._close_into(body, last, b"\r" if last.carriage else b"\n")
            else:
                self._read_unended(body, last.data, segment.last_bytes)
            if not last.carriage:
                body.lines -= 1
            lines += 1
        settle_forms(body, self._rules_by_key, lambda line: self._read_as_one(text(line)))
        for columns in body.rules.values():
            columns.settle()
        if self._has_steps(body):
            body.step_like = MAX_SEEN  # independent of where the log was cut
        return body, lines

    def _read_as_one(self, lines: bytes) -> SegmentBody | None:
        """Read two lines as one; return None if a rule reads the second one alone."""
        first, _, second = (line.removesuffix(b"\r") for line in lines.removesuffix(b"\n").partition(b"\n"))
        return self._read_alone(first + second) if second and not self._read_alone(second).rules else None

    def _read_unended(self, body: SegmentBody, record: bytes, last_bytes: bytes) -> None:
        """Read the last record if it has no line end: all its markers, but only values that are certainly whole."""
        certain, model = certain_part(record, last_bytes)
        begun = bool(model)
        whole = self._read_alone(record)
        leads = join_forms(whole)
        if certain != record and whole.rules:
            part = self.read_alone(certain)
            kept = {key: columns for key, columns in part.rules.items() if key in whole.rules}
            if figures(part) != figures(whole):
                begun = True
                if not model:
                    note_unread(kept, whole)
                whole.rules, whole.near = kept, part.near
        if whole.rules:
            refs = {ref for ref, _ in whole.rules}
            read = ((g.ref, r) for g in self.grammars if g.ref in refs for r in g.rules if (g.ref, r.name) in whole.rules)
            facts = {(ref, r.name): {name for name, f in r.fields.items() if f.target[0] == "fact"} for ref, r in read}
            longer = self.read_alone(record + b"x")
            begun |= drop_open_texts(whole, longer, facts)
        if whole.rules and not is_closed(record):
            begun |= keep_known(whole, names_of_rules(body), self._figure_rules)
        if model and whole.rules:
            keep_shared(whole, self.read_alone(model))
        if begun:
            detail = "the log ends inside this record: its last number may be cut and was not read"
            whole.problems = Problems()  # what cannot be read here is cut
            whole.problems.add(place(0), Problem("last_record_cut", 1, detail, excerpt(record)))
        whole.rules = {(ref, name + leads.get((ref, name), "")): columns for (ref, name), columns in whole.rules.items()}
        body.extend(whole)

    def read_alone(self, record: bytes) -> SegmentBody:
        """Return what the rules read of one record alone, without a decision on which of its values are cut."""
        body = self._read_alone(record)
        join_forms(body)
        return body

    def _read_alone(self, record: bytes) -> SegmentBody:
        body = SegmentBody()
        self.read(body, record + b"\n")
        return body

    def read(self, body: SegmentBody, raw: bytes, length: int | None = None) -> None:
        """Match whole records ``raw`` into ``body``; ``length`` is the true length of a single cut record."""
        raw, found = _capped(raw, length, body)
        first = body.records
        buffer = spell_nonfinite(without_marks(self._plain(raw)), self._may_spell)
        if buffer is not raw:
            body.count_nuls(raw)
        if self.kernel is not None:
            self.kernel.read(body, buffer, self.read_record, found)
        else:
            self._read_each(body, buffer, found)
        self._looks(body, buffer, first)
        for at, problem in sorted(found, key=lambda entry: entry[0]):
            body.problems.add(at, problem)

    def _read_each(self, body: SegmentBody, buffer: bytes, problems: PlacedProblems) -> None:
        """Find the normalised records with a literal, and read each into ``body``."""
        redraws = b"\r" in buffer
        bad = {*invalid_records(buffer, redraws)}
        body.undecodable += len(bad)
        done = ordinal = line = 0
        records = Walk(buffer, redraws)
        for at in self.prefilter.places(buffer):
            if at <= records.end:
                continue  # in the record before
            start, end = records.around(at)
            newlines = buffer.count(b"\n", done, start)
            line += newlines
            ordinal += newlines + (buffer.count(b"\r", done, start) if redraws else 0)
            done = start
            self.read_record(body, buffer[start:end], body.records + ordinal, body.lines + line + 1, start in bad, problems)
        lines = buffer.count(b"\n")
        body.blank += count_blank(buffer)
        body.lines += lines
        body.records += lines + (buffer.count(b"\r") if redraws else 0)

    def _looks(self, body: SegmentBody, buffer: bytes, first: int) -> None:
        """Note the first records that look like metrics, and count those that look like steps.

        ``first`` is the ordinal of the first record of ``buffer``, which is in ``body`` already. Once rules have read steps, no
        further records are counted (see ``finish``).
        """
        missing = MAX_SEEN - body.metric_like.count
        done = ordinal = 0
        for offset, record in metric_lines(buffer, missing, self._likely) if missing else ():
            ordinal += buffer.count(b"\n", done, offset) + buffer.count(b"\r", done, offset)
            done = offset
            body.metric_like.add(place(first + ordinal), excerpt(without_count(record)))
        if body.step_like < MAX_SEEN and not self._has_steps(body):
            body.step_like += count_step_lines(buffer, MAX_SEEN - body.step_like, self._likely)

    def _has_steps(self, body: SegmentBody) -> bool:
        return sum(map(len, self.step_columns(body))) >= MAX_SEEN

    def step_columns(self, body: SegmentBody) -> Iterable[RuleColumns]:
        """Return the columns of the rules that read steps."""
        return (columns for (ref, name), columns in body.rules.items() if (ref, name.partition(MARK)[0]) in self._step_rules)

    def read_record(self, body: SegmentBody, record: bytes, ordinal: int, line: int, bad: bool, problems: PlacedProblems) -> None:
        """Read one record that contains a literal; ``bad`` if it is not UTF-8, and counted as undecodable.

        Its bars are shortened if no value depends on them (see ``Layout.any_bar``).
        """
        printed = without_count(record)
        record = short_bars(printed)
        candidates = self._candidates(record) if record != printed else None
        if candidates is not None and not candidates.plain:
            record, candidates = printed, None
        masked, layout = b"", None
        if self.by_layout and len(record) <= MAX_LENGTH:
            masked = record.translate(MASK)
            layout = self.layouts.find(masked, record)
        if layout is not None and (layout.any_bar or record == printed):
            outcome = layout.outcome
        else:
            candidates = candidates or self._candidates(record)
            outcome, layout = examine(record, candidates.rules), None
            if record != printed and outcome.shows_bars:
                record, masked = printed, b""
                outcome = examine(record, candidates.rules)
            outcome.marks = search_markers(candidates.markers, record)
            may = masked and not outcome.crowded  # each crowded record is reported
            if may and self.layouts.wanted(masked) and self.layouts.comes_again(masked, candidates):
                any_bar = b"%|" in record and candidates.plain and not outcome.shows_bars
                layout = learn_layout(record, outcome, candidates, self.prefilter.possible_in(masked), any_bar=any_bar)
                self.layouts.add(masked, layout, candidates)
        if self.kernel is not None:
            if layout is not None and self.kernel.add(layout):
                return
            self.kernel.settle(body, outcome)
        found = outcome.reread(record) if layout is not None else outcome
        Entry(body, record, printed, ordinal, line, problems).book(found)
        if outcome.hit and bad:
            body.undecodable -= 1
            body.undecodable_matched.add(ordinal)

    def _candidates(self, record: bytes) -> Candidates:
        """Return the rules and markers whose literals a record contains."""
        literals = self.prefilter.literals_in(record)
        known = self._candidates_of.get(literals)
        if known is None:
            if len(self._candidates_of) >= MAX_KEPT:
                self._candidates_of.clear()
            found = {entry[0]: entry[1:] for literal in literals for entry in self.rules_by_literal.get(literal, ())}
            entries = [found[order] for order in sorted(found)]
            tried = [(grammar, grammar.rule(number), ignored) for grammar, number, ignored in entries]
            markers = {m.id: m for literal in sorted(literals) for m in self.catalogue.by_literal.get(literal, ())}
            known = self._candidates_of[literals] = Candidates(tried, [*markers.values()])
        return known


def _capped(raw: bytes, length: int | None, body: SegmentBody) -> tuple[bytes, PlacedProblems]:
    """Cut whole records to ``RECORD_CAP`` bytes each; return them and a problem for each cut.

    ``length``: see ``Engine.read``; ``body`` has the records before ``raw``.
    """
    raw, cuts = cap_records(raw)
    problems: PlacedProblems = []
    done, records, lines = 0, body.records, body.lines
    for offset, size in cuts if length is None else [(0, length)]:
        ends, returns = count_ends(raw[done:offset])
        done = offset
        lines += ends
        records += ends + returns
        detail = f"record of {size} bytes: only the first {RECORD_CAP} were read"
        problems.append((place(records), Problem("record_too_long", lines + 1, detail, "")))
    return raw, problems
