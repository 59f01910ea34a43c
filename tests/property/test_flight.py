"""Whatever a recorded session has become: a valid GPU profile, or an error of ours that is no bug."""

import gzip
import io
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.validate import validate_document
from receipt_cli.errors import ExitCode, ReceiptError
from receipt_cli.gpu_profile.document import build_document
from receipt_cli.gpu_profile.files import list_streams
from receipt_cli.gpu_profile.format import BATCHES
from receipt_cli.gpu_profile.nsys import read_report
from receipt_cli.gpu_profile.session import read_session
from receipt_cli.gpu_profile.spans import Spans
from receipt_cli.gpu_profile.stream import StreamProblems

FLIGHT = Path(__file__).resolve().parents[2] / "fixtures" / "flight"
Streams = list[tuple[str, bytes]]


def plain(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" and data else data


def recording(folder: str) -> Streams:
    """The files of a fixture, decompressed, by the names that they have without ``.gz``."""
    found = [path for path in sorted((FLIGHT / folder).rglob("*")) if ".log" in path.name]
    return [(path.relative_to(FLIGHT / folder).as_posix().removesuffix(".gz"), plain(path)) for path in found]


RECORDINGS: list[Streams] = [
    *(recording(folder) for folder in ("trace", "killed", "fat")),
    [("pairs.ndjson", (FLIGHT / "pairs.ndjson").read_bytes())],
]
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


def opener(data: bytes) -> Callable[[], BinaryIO]:
    return partial(io.BytesIO, data)


def profile(streams: Streams) -> dict[str, Any] | None:
    """Return the document of ``streams``, or None where they are refused as they may be."""
    try:
        session = read_session(list_streams([(name, opener(data)) for name, data in streams]), StreamProblems())
    except ReceiptError as error:
        assert error.exit_code in (ExitCode.INPUT, ExitCode.GRAMMAR), error.render()
        return None
    document = build_document(session)
    findings = [finding for finding in validate_document(json.loads(canonical_bytes(document))) if finding.severity == "error"]
    assert not findings, findings[:3]
    lines = sum(line.strip() != b"" for _, data in streams for line in data.split(b"\n"))
    if any(problem["kind"] == "damaged_file" for problem in document["derivation"]["problems"]["first"]):
        lines = 0  # the bytes begin like a compressed file, and nothing of them can be read
    assert sum(document["derivation"]["records"].values()) == lines
    return document


@st.composite
def changed_bytes(draw: st.DrawFn, recordings: Sequence[Streams] = tuple(RECORDINGS)) -> Streams:
    """A recording with bytes removed, repeated and replaced."""
    streams = [(name, bytearray(data)) for name, data in draw(st.sampled_from(recordings))]
    for _ in range(draw(st.integers(1, 5))):
        _, data = draw(st.sampled_from(streams))
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 80)))
        data[start:end] = draw(
            st.binary(max_size=6) | st.sampled_from([b"", b"NaN", b"{", b"]", b"\n", b'"', b"1e999", bytes(data[start:end]) * 2])
        )
    return [(name, bytes(data)) for name, data in streams]


@st.composite
def made_batches(draw: st.DrawFn) -> Streams:
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
    return [("device.log", json.dumps(record).encode() + b"\n")]


@given(made_batches())
@settings(max_examples=200)
def test_any_batch_gives_a_valid_document(streams: Streams) -> None:
    profile(streams)


@given(changed_bytes([[("nsys.csv", (FLIGHT / "nsys-stats.csv").read_bytes())]]))
@settings(max_examples=150)
def test_other_bytes_of_a_table_give_a_valid_document_or_an_error_of_ours(streams: Streams) -> None:
    try:
        document = read_report([(name, opener(data)) for name, data in streams])
    except ReceiptError as error:
        assert error.exit_code == ExitCode.INPUT
        return
    assert not [finding for finding in validate_document(json.loads(canonical_bytes(document))) if finding.severity == "error"]
    lines = sum(line.strip() != b"" for _, data in streams for line in data.split(b"\n"))
    if any(problem["kind"] == "damaged_file" for problem in document["derivation"]["problems"]["first"]):
        lines = 0  # the bytes begin like a compressed file, and nothing of them can be read
    assert sum(document["derivation"]["records"].values()) == lines


@given(st.data())
def test_the_order_of_files_and_of_records_does_not_count(data: st.DataObject) -> None:
    """Names may come after the rows that need them, and the records of a channel in any order."""
    streams = data.draw(st.sampled_from(RECORDINGS[:1]))
    told = profile(streams)
    shuffled = [(name, b"".join(data.draw(st.permutations(text.splitlines(keepends=True))))) for name, text in streams]
    again = profile(data.draw(st.permutations(shuffled)))
    assert again["events"] == told["events"]


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
