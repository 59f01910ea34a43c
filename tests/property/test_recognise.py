"""Records are recognised as what comparing them byte by byte says, and read alike by any of the ways."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.identity import find_difference, lowest_thresholds, read_both
from receipt_cli.grammar.catalog import shipped
from receipt_cli.scan.bulk import event_table as together
from receipt_cli.scan.bulk import reader as bulk
from receipt_cli.scan.bulk.block import bytes_at
from receipt_cli.scan.bulk.recognise import WORD, Shelf, cut_words, words_for
from receipt_cli.scan.layout import MASK, Layout

ROOT = Path(__file__).resolve().parents[2]
LOGS = sorted((ROOT / "fixtures" / "logs").glob("*/*.log"))
CLOSE = b"0123456789:;/.pP\x80\xb0\xb5\xb9\xff \x10\x1a"
"""Digits, and what differs from one by few bits."""


def layout_of(sample: bytes, fixed: list[tuple[int, int]]) -> Layout:
    return Layout(sample, tuple((a, b, sample[a:b]) for a, b in fixed), (), (), (), ())


def recognised(layouts: list[Layout], records: list[bytes], words: int) -> list[int]:
    shelf = Shelf(words)
    for number, layout in enumerate(layouts):
        shelf.add(number, layout)
    lengths = np.array([len(record) for record in records], np.int64)
    buffer = b"".join(record + b"\n7" for record in records) + b"7" * words * WORD
    starts = np.cumsum(lengths + 2) - lengths - 2
    return shelf.recognise(cut_words(bytes_at(buffer, starts, words * WORD), lengths), lengths).tolist()


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_as_byte_by_byte(data: st.DataObject) -> None:
    rng = random.Random(data.draw(st.integers(0, 10_000)))
    length = data.draw(st.integers(1, 40))
    words = words_for(length)
    layouts: list[Layout] = []
    for _ in range(data.draw(st.integers(1, 6))):
        size = rng.randrange((words - 1) * WORD + 1, words * WORD + 1)
        sample = bytes(rng.choice(b"0123 .,ae1799") for _ in range(size))
        spans = [run.span() for run in re.finditer(rb"[0-9]+", sample) if rng.random() < 0.4]
        layouts += [layout_of(sample, spans)]
        other = bytes(rng.choice(b"0123456789") if chr(byte).isdigit() else byte for byte in sample)
        layouts += [layout_of(other, spans)] if rng.random() < 0.5 else []
    records = []
    for _ in range(30):
        record = bytearray(rng.choice(layouts).sample)
        for at, byte in enumerate(record):
            if chr(byte).isdigit() and rng.random() < 0.3:
                record[at] = rng.choice(b"0123456789")
        if rng.random() < 0.5:
            record[rng.randrange(len(record))] = rng.choice(CLOSE)
        records.append(bytes(record))
    for record, number in zip(records, recognised(layouts, records, words), strict=True):
        fit = [one.sample.translate(MASK) == record.translate(MASK) and one.fits(record) for one in layouts]
        assert fit[number] if number >= 0 else not any(fit), record


def test_layouts_that_share_a_key_are_told_apart() -> None:
    layouts = [layout_of(b"acc@%d: 12.5 q" % k, [(4, 5)]) for k in range(1, 8)] + [layout_of(b"acc@0: 12.5 p", [])]
    records = [b"acc@%d: 99.1 q" % (k % 10) for k in range(20)] + [b"acc@3: 00.0 p"]
    assert recognised(layouts, records, 2) == [k % 10 - 1 if 1 <= k % 10 <= 7 else -1 for k in range(20)] + [7]


@pytest.mark.parametrize("many", [1, 1 << 30], ids=["each layout for itself", "all layouts together"])
@pytest.mark.parametrize("path", LOGS[::7], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_both_ways_read_what_the_patterns_read(path: Path, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "MANY_ROWS", many)
    with lowest_thresholds():
        fast, pure = read_both(shipped(), [path.read_bytes()] * 3)
    assert find_difference(fast, pure) is None


def test_more_layouts_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MAX_TEMPLATES", 4)
    monkeypatch.setattr(bulk, "MAX_IDLE", 0)
    rng = random.Random(5)
    lines = [
        f"{{'loss': {rng.random():.{1 + k // 40}f}, 'learning_rate': {rng.random():.{1 + k % 3}f}, 'epoch': 0.{k}}}"
        for k in range(400)
    ]
    with lowest_thresholds():
        blocks = ["\n".join(lines[at : at + 50]).encode() + b"\n" for at in range(0, 400, 50)]
        fast, pure = read_both(shipped(), blocks * 2)
    assert find_difference(fast, pure) is None


def test_layouts_without_records_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MAX_TEMPLATES", 2)
    monkeypatch.setattr(bulk, "MAX_IDLE", 1)
    used, idle, fresh, late = (layout_of(sample, []) for sample in (b"step 1", b"loss 1", b"eval 1", b"done 1"))
    templates = bulk.Templates()
    for layout in (used, idle):
        templates.add(layout)
    for _ in range(2):
        templates.used(np.array([0]))
    templates.add(fresh)
    templates.add(late)  # both places are taken, and it was just seen who is idle
    assert [templates[number].layout for number in range(len(templates))] == [used, fresh]
