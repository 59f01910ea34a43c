"""Detection over columns: sets of ordinals agree with Python's sets."""

import itertools
import math
import random
from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.detect import choose as detect
from receipt_cli.grammar.catalog import shipped
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.numeric import ordinals
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.ordinals import OrdinalSet, count_switches, ordinals_at
from receipt_cli.scan.columns import POSITION_BITS, NumberColumn, RuleColumns, place
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import SegmentBody

LARGE = 1 << 32
"""From here on an ordinal needs more than 32 bits."""
Members = st.sets(st.one_of(st.integers(0, 50), st.integers(0, 1 << 18), st.sampled_from([LARGE - 1, LARGE, LARGE + 7])))


def switches(left: set[int], right: set[int]) -> int:
    merged = sorted([(at, 0) for at in left] + [(at, 1) for at in right])
    return sum(1 for a, b in itertools.pairwise(merged) if a[1] != b[1])


@given(Members, Members, st.integers(0, 8))
@settings(max_examples=150)
def test_switches_of_owners_are_counted(a: set[int], b: set[int], most: int) -> None:
    one, two = OrdinalSet(a), OrdinalSet(b)
    assert count_switches(one, two, len(a) + len(b)) == switches(a, b)
    assert count_switches(one, two, most) == min(most, switches(a, b))


@given(values=st.lists(st.integers(0, 2**40) | st.integers(0, 2**60)), ascend=st.booleans(), data=st.data())
@settings(max_examples=60)
def test_columns_become_sets(values: list[int], ascend: bool, data: st.DataObject) -> None:
    column = Cells("q", sorted(values) if ascend else values)
    rows = array("q", sorted(data.draw(st.sets(st.integers(0, len(values) - 1) if values else st.nothing()))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordinals, "PIECE", 5)
        found = ordinals_at(column, POSITION_BITS, rows)
        assert list(found) == sorted({at >> POSITION_BITS for row, at in enumerate(column) if row not in set(rows)})
        assert list(ordinals_at(column, 0)) == sorted(set(values))
    column.append(1)  # no view of it lives on


# What detection is, said with sets.


def records_by_hand(engine: Any, body: SegmentBody, versions: Sequence[Grammar], steps: bool, evidence: bool) -> set[int]:
    found: set[int] = set()
    for grammar in versions:
        for rule in grammar.rules:
            columns = engine.columns(body, grammar, rule)
            if columns is None or (steps and (rule.event != "step" or rule.companion)):
                continue
            if evidence and not (rule.event in detect.IDENTIFYING and detect._whole(columns, rule)):
                continue
            others = set(columns.headers.rows) if steps else set()
            if steps and rule.block is not None and rule.block.open is not None and columns.pairs:
                others = set(columns.pairs.rows)
            found.update(at >> POSITION_BITS for row, at in enumerate(columns.at) if row not in others)
    return found


def counts_by_hand(engine: Any, body: SegmentBody, grammars: Sequence[Grammar]) -> tuple[int, int, int]:
    matched = set().union(*(records_by_hand(engine, body, [g], False, False) for g in grammars))
    ignored = set().union(*(body.ignored.get(g.id, ()) for g in grammars)) - matched
    unread = set(body.undecodable_matched) - matched - ignored
    return len(matched), len(ignored) + body.blank, body.undecodable + len(unread)


def alone_by_hand(name: str, layers: dict[str, str], records: dict[str, set[int]], steps: dict[str, set[int]]) -> tuple[int, int]:
    rivals = [i for i in records if i != name and (layers[name] == "format" or layers[i] != "format")]
    shared = set().union(*(records[name] & records[i] for i in rivals))
    return len(records[name] - shared), len(steps[name] - shared)


def columns_of(rng: random.Random, rule: Rule, span: int) -> RuleColumns:
    columns = RuleColumns()
    start, stop = sorted(rng.sample(range(span), 2))
    for record in range(start, stop):
        for offset in range(rng.choice([0, 1, 1, 2])):
            row = columns.open_row(place(record, 7 * offset), record + 1, -1, math.nan)
            for texts in (columns.headers, columns.pairs):
                if rule.kind in ("table", "block") and rng.random() < 0.3:
                    texts.append(row, "")
    return columns


@pytest.mark.parametrize("seed", range(40))
def test_detection_is_what_sets_say(seed: int) -> None:
    rng = random.Random(seed)
    span = rng.choice([4, 60, 400])
    grammars = tuple(g for g in shipped() if rng.random() < 0.3)
    body = SegmentBody(records=span, blank=rng.randrange(5), undecodable=rng.randrange(3))
    for grammar in grammars:
        for rule in grammar.rules:
            if rng.random() < 0.2:
                body.rules[grammar.ref, rule.name] = columns_of(rng, rule, span)
        if rng.random() < 0.5:
            body.ignored[grammar.id] = OrdinalSet(rng.sample(range(span), rng.randrange(span)))
    body.undecodable_matched = OrdinalSet(rng.sample(range(span), rng.randrange(span)))
    engine = Engine(grammars, load_catalogue())

    by_id: dict[str, list[Grammar]] = {}
    for grammar in grammars:
        by_id.setdefault(grammar.id, []).append(grammar)
    layers = {i: versions[-1].layer for i, versions in by_id.items()}
    records = {i: records_by_hand(engine, body, versions, False, True) for i, versions in by_id.items()}
    steps = {i: records_by_hand(engine, body, versions, True, True) for i, versions in by_id.items()}
    chosen = rng.sample(grammars, min(2, len(grammars)))
    found = detect.detect(engine, body)
    assert {c.id: (c.records, c.step_records) for c in found.candidates} == {
        i: (len(records[i]), len(steps[i])) for i in by_id if records[i]
    }
    for candidate in found.candidates:
        assert (candidate.alone, candidate.alone_steps) == alone_by_hand(candidate.id, layers, records, steps)
    assert detect.count_explained(engine, body, chosen) == counts_by_hand(engine, body, chosen)
    assert detect.count_explained(engine, body, []) == (0, body.blank, body.undecodable + len(body.undecodable_matched))


def column(rows: Sequence[int], values: Sequence[float]) -> NumberColumn:
    made = NumberColumn()
    for row, value in zip(rows, values, strict=True):
        made.append(row, value)
    return made


FIGURES = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1e308, math.nan, math.inf]))


def column_of(values: dict[int, float]) -> NumberColumn:
    return column(sorted(values), [values[row] for row in sorted(values)])


COLUMNS = st.dictionaries(st.integers(0, 30), FIGURES).map(column_of)


@given(COLUMNS, COLUMNS, st.floats(min_value=1e-3, max_value=1e9))
@settings(max_examples=150)
def test_ratios_of_rates_and_times(rate: NumberColumn, time: NumberColumn, tokens: float) -> None:
    seconds = dict(zip(time.rows, time.values, strict=True))
    ratios = [v * seconds[r] / tokens for r, v in zip(rate.rows, rate.values, strict=True) if seconds.get(r)]
    assert detect._ratios(rate, time, tokens).tolist() == list(filter(math.isfinite, ratios))
