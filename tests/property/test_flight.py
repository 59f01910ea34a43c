"""Batches of a recorded session, whatever they hold and in any order; other bytes tries the fuzz target ``flight``."""

import gzip
import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.gpu_profile.format import BATCHES
from receipt_cli.gpu_profile.spans import Spans
from tests.fuzz.targets.flight import profile

TRACE = Path(__file__).resolve().parents[2] / "fixtures" / "flight" / "trace"
ODD = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(
        ["NaN", "12", [], {}, [[]], [1], 10**400, -1, 2**53, 2**62, 2**63, 2**64, -(2**63), 1.5, "\ud800", "\x1b[2J"]
    )
)


@st.composite
def made_batches(draw: st.DrawFn) -> bytes:
    """A batch of any type whose columns and rows are anything."""
    kind = draw(st.sampled_from(sorted(BATCHES)))
    known = [*BATCHES[kind].needed, *sorted(BATCHES[kind].others), "tomorrow"]
    columns = draw(st.lists(st.sampled_from(known), min_size=1, max_size=len(known), unique=draw(st.booleans())))
    columns = draw(st.sampled_from([columns, [*BATCHES[kind].needed, *(c for c in columns if c not in BATCHES[kind].needed)]]))
    cell = st.integers(0, 5) | st.integers(-(10**20), 10**20) | ODD
    rows = draw(
        st.lists(st.lists(cell, min_size=len(columns), max_size=len(columns)) | st.lists(cell, max_size=3) | ODD, max_size=6)
    )
    record = {
        "version": draw(st.sampled_from([1, 1, 1, 2, 3, 4, "1", None])),
        "type": kind,
        "session_id": "s",
        "batch_id": draw(st.integers(0, 2) | ODD),
        "base_time_ns": draw(st.integers(0, 10**6) | ODD),
        "columns": columns,
        "rows": rows,
    }
    return json.dumps(record).encode() + b"\n"


@given(made_batches())
@settings(max_examples=200)
def test_any_batch_gives_a_valid_document(record: bytes) -> None:
    profile({"device.log": record})


@given(st.data())
def test_the_order_of_files_and_of_records_does_not_count(data: st.DataObject) -> None:
    """Names may come after the rows that need them, and the records of a channel in any order."""
    streams = {path.name.removesuffix(".gz"): gzip.decompress(path.read_bytes()) for path in TRACE.glob("*.log.gz")}
    told = profile(streams)
    shuffled = {name: b"".join(data.draw(st.permutations(text.splitlines(keepends=True)))) for name, text in streams.items()}
    again = profile({name: shuffled[name] for name in data.draw(st.permutations(sorted(shuffled)))})
    assert told is not None and again is not None and again["events"] == told["events"]


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60)), max_size=80), st.integers(1, 7), st.integers(1, 9))
def test_the_union_of_intervals_is_what_counting_gives(spans: list[tuple[int, int]], step: int, kept: int) -> None:
    import numpy as np

    from receipt_cli.gpu_profile import spans as module

    before = module._GATHERED, module._KEPT, module._STRETCH
    module._GATHERED, module._KEPT, module._STRETCH = step, kept, 2
    try:
        union = Spans()
        for start in range(0, len(spans), step):
            part = spans[start : start + step]
            union.add(np.array([a for a, _ in part], np.int64), np.array([a + length for a, length in part], np.int64))
        counted = {moment for a, length in spans for moment in range(a, a + length)}
        assert union.total() == len(counted)
    finally:
        module._GATHERED, module._KEPT, module._STRETCH = before
