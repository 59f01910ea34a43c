"""Read a block of whole records with the kernel, and with Python those it hands back."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from receipt_cli.numeric.ordinals import ordinals_from
from receipt_cli.problems import EXCERPT_BYTES, MAX_FIRST
from receipt_cli.records.envelope import REPEATED
from receipt_cli.scan.book import Outcome, PlacedProblems, miss
from receipt_cli.scan.columns import RuleColumns, Shown
from receipt_cli.scan.forms import MARK
from receipt_cli.scan.kernel.program import MARKER, OF_DIGITS, Names, moving_digits, write_program
from receipt_cli.scan.layout import Layout
from receipt_cli.scan.segment import KEPT_HITS, Hits, RuleKey, SegmentBody

if TYPE_CHECKING:
    from receipt_cli.scan.kernel._native import Answer

ReadRecord: TypeAlias = Callable[[SegmentBody, bytes, int, int, bool, PlacedProblems], None]
"""``Engine.read_record``: body, bytes of the record, its ordinal and line, whether it is not UTF-8, the problem list."""
_PLACE_BITS = 40
_PLACE = (1 << _PLACE_BITS) - 1
"""Low bits of a position value: offset of the record in the block; high bits: message number."""
MAX_LAYOUTS = 16_384
MAX_MEANINGS = 60_000
"""Most layouts, and most interpreted texts, in the kernel before it is reset."""


class KernelReader:
    """Reads blocks of whole records: known layouts in the kernel, the other records one by one."""

    def __init__(self, native: Any, literals: Iterable[bytes]) -> None:
        """``native``: the kernel of ``load_kernel``; ``literals``: the literals of all rules and markers."""
        self._native = native
        self._literals = tuple(literals)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._names = Names()
        self._served: set[Layout] = set()
        self._kernel = self._native.Kernel(self._literals, self._answer, MAX_FIRST)
        self._buffer = b""

    def _answer(self, number: int, text: bytes) -> Answer:
        return self._names.answers[number](text)

    def add(self, layout: Layout) -> bool:
        """Add ``layout`` to the kernel, which then reads the current record too; False if Python must read it."""
        if layout in self._served or len(self._served) >= MAX_LAYOUTS:
            return False
        self._served.add(layout)
        program = write_program(self._names, layout) if REPEATED not in layout.sample else None
        if program is None:
            return False
        self._kernel.add(layout.sample, moving_digits(layout), program)
        self._kernel.again()
        return True

    def read(self, body: SegmentBody, buffer: bytes, read_record: ReadRecord, problems: PlacedProblems) -> None:
        """Read the normalised whole records ``buffer`` into ``body``; ``read_record`` gets those the kernel hands back."""
        kernel, self._buffer = self._kernel, buffer
        kernel.begin(buffer, body.records, body.lines)
        try:
            while (found := kernel.next()) is not None:
                start, end, ordinal, line, bad = found
                self._settle_misses(body, buffer)
                read_record(body, buffer[start:end], ordinal, line, bool(bad), problems)
            self._settle_misses(body, buffer)
            self._settle(body, [self._names.tables.listed[number] for number in kernel.filled()])
            for number, ordinals in kernel.ignored():
                known = body.undecodable_matched if number < 0 else body.ignored[self._names.ignored.listed[number]]
                known.update(ordinals_from(ordinals))
        finally:
            records, lines, blank, undecodable = kernel.finish()
            self._buffer = b""
        body.records, body.lines = records, lines
        body.blank += blank
        body.undecodable += undecodable
        if len(self._served) >= MAX_LAYOUTS or kernel.sizes()[1] >= MAX_MEANINGS:
            self._begin_anew()

    def settle(self, body: SegmentBody, outcome: Outcome) -> None:
        """Move the kernel's rows of the rules and markers in ``outcome`` to ``body``, so that further rows follow them."""
        self._settle(body, ((grammar.ref, rule.name + event.form) for grammar, rule, events in outcome.read for event in events))
        self._settle(body, ((MARKER, hit.marker.id) for hit in outcome.marks))

    def _settle(self, body: SegmentBody, keys: Iterable[RuleKey]) -> None:
        for key in keys:
            name, mark, form = key[1].partition(MARK)
            booked = key if key[0] == MARKER else body.key_of(key[0], name, mark + form)
            before = len(body.rules[booked]) if booked in body.rules else 0
            taken = self._kernel.take(self._names.tables.get(key, -1), before)
            if taken is None:
                continue
            at, line, rank, clock, columns = taken
            if key[0] == MARKER:
                self._settle_hits(body.markers[key[1]], at, line, rank, array("q", columns[0][1]))
                continue
            known = body.rules[booked]
            known.at.extend_bytes(at)
            known.line.extend_bytes(line)
            known.rank.extend_bytes(rank)
            known.clock.extend_bytes(clock)
            for number, values, rows in columns:
                self._settle_column(known, number, before, at, values, rows)

    def _settle_hits(self, hits: Hits, at: bytes, line: bytes, rank: bytes, places: array[int]) -> None:
        marks, buffer, count = self._names.marks.listed, self._buffer, len(places)
        ordinals, lines, ranks = array("q", at), array("q", line), array("q", rank)
        forms = array("b", [marks[number >> _PLACE_BITS].form for number in places])
        shown, first = [], min(count, max(0, KEPT_HITS - len(hits.known)))
        for index in (*range(first), *range(max(first, count - KEPT_HITS), count)):
            mark = marks[places[index] >> _PLACE_BITS]
            start = (places[index] & _PLACE) + mark.start
            end = buffer.find(b"\n", start, start + EXCERPT_BYTES)
            message = buffer[start : end if end >= 0 else start + EXCERPT_BYTES]
            shown.append((ordinals[index], message.partition(b"\r")[0] if b"\r" in message else message, mark.code))
        hits.add_all(ordinals, lines, ranks, forms, shown)

    def _settle_column(
        self, known: RuleColumns, number: int, before: int, at: bytes, values: bytes, rows: bytes | None
    ) -> None:  # fmt: skip
        """Add values at ``rows``, or from row ``before`` on if ``rows`` is None; ``at``: the positions of these rows."""
        _, group, name = self._names.columns.listed[number]
        columns = getattr(known, group)
        if group in ("numbers", "unregistered"):
            columns[name].extend_bytes(values, rows, before)
            return
        if group == "printed":
            texts, places = np.frombuffer(values, np.int64), np.frombuffer(at, np.int64)
            places = places[: len(texts)] if rows is None else places[np.frombuffer(rows, np.int64) - before]
            for text in set(texts.tolist()):
                mine = places[texts == text]
                shown = Shown(len(mine), int(mine[0]), int(mine[-1]))
                for field, digits in json.loads(self._names.texts.listed[text]).items():
                    known.add_digits(field, digits, shown)
            return
        if rows is None:
            rows = array("q", range(before, before + len(values) // 8)).tobytes()
        if group == "texts":
            listed = self._names.texts.listed
            columns[name].values.extend([listed[text] for text in array("q", values)])
            columns[name].rows.frombytes(rows)
        elif name == OF_DIGITS:
            columns.digits.extend_bytes(values)
        else:
            columns.extend_bytes(rows, values, self._names.forms[number].listed)

    def _settle_misses(self, body: SegmentBody, buffer: bytes) -> None:
        """Add the near misses among the records the kernel read since the last call."""
        missed = self._kernel.missed()
        if missed is None:
            return
        first, counts = missed
        rules = self._names.near.listed
        for number, ordinal, line, start, end in first:
            grammar, rule = rules[number]
            miss(body, grammar, rule, buffer[start:end], ordinal, line)
        kept = Counter(number for number, *_ in first)
        for number, count in counts:
            body.near[rules[number][0]].count += count - kept[number]
