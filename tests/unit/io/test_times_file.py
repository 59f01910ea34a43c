"""The file of times beside a log: its bytes, its size, and what a killed writer leaves."""

import os
from hashlib import sha256
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.io.protobuf import varint
from receipt_cli.io.times_file import EXACT_MS, HEAD_BYTES, LONG_MS, MAGIC, TimesWriter, code_of, sealed_entries
from receipt_cli.scan.arrivals import decode_entries, spans_of

WALL = 1_700_000_000.0
PIECES = [(0.5, b"begin\n"), (0.6, b"step 1\nstep"), (0.75, b" 2\n"), (0.75, b"step 3\n"), (20.0, b"\r 10%"), (21.0, b"\r 20%")]


class Written:
    """A log and its times, written by a fake clock."""

    def __init__(self, folder: Path, *, append: bool = False, wall: float = WALL) -> None:
        self.path, self.times = folder / "job.log", folder / "job.log.times"
        self.log = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self.writer = TimesWriter(str(self.times), self.log, append=append, pause_s=0.04, now=100.0, wall=wall)

    def write(self, *pieces: tuple[float, bytes]) -> None:
        for seconds, text in pieces:
            os.write(self.log, text)
            self.writer.add(text, 100.0 + seconds)
            self.writer.tick(100.0 + seconds)

    def close(self, seconds: float) -> None:
        self.writer.close(100.0 + seconds)
        os.close(self.log)


def test_the_bytes_of_a_file(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.write(*PIECES)
    written.close(22.0)
    data = written.times.read_bytes()
    assert data.startswith(MAGIC)
    found = sealed_entries(data)
    assert found is not None
    seal, entries = found
    text = b"".join(text for _, text in PIECES)
    assert (seal.log_bytes, seal.log_sha256) == (len(text), sha256(text).hexdigest())
    launch = b"\0\0\1" + varint(int(WALL * 1000)) + b"\0" + b"\x28"
    came = [(500, 6), (100, 11), (150, 3), (0, 7), (19250, 5)]  # the last one is rounded to 19.248 s
    codes = b"".join(varint(code_of(span)[0]) + varint(size) for span, size in came)
    assert entries.startswith(launch + codes)
    decoded = decode_entries(entries)
    assert decoded is not None
    assert decoded.offsets.tolist() == [6, 17, 20, 27, 32, 37]
    assert [round(each - WALL, 3) for each in decoded.clock.tolist()] == [0.5, 0.6, 0.75, 0.75, 19.998, 21.0]
    assert [(one.offset, one.start, one.end) for one in decoded.launches] == [(0, WALL, WALL + 22.0)]
    assert decoded.pause_ms == 40


@given(st.integers(0, 10 * LONG_MS))
def test_a_span_is_kept_to_a_fivehundredth(span: int) -> None:
    code, kept = code_of(span)
    assert spans_of(numpy.array([code])).tolist() == [kept]
    assert 0 <= span - kept <= (0 if span < EXACT_MS else 1000 if span >= LONG_MS else span / 512)
    assert len(varint(code)) <= (2 if span < LONG_MS else 3)


@given(
    st.lists(
        st.tuples(st.integers(0, 100_000), st.sampled_from([b".", b"x\n", b"\r", b"step 1 loss 2\n", b"y" * 300])), max_size=60
    )
)
def test_entries_take_three_bytes_a_record_or_three_in_a_hundred(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[int, bytes]]
) -> None:
    written = Written(tmp_path_factory.mktemp("size"))
    now, records, size = 0.0, 0, 0
    for wait, text in pieces:
        now += wait / 1000
        written.write((now, text))
        records, size = records + text.count(b"\n") + text.count(b"\r"), size + len(text)
    written.close(now)
    assert written.times.stat().st_size - HEAD_BYTES <= 100 + max(3 * records, 0.03 * size)
    assert sealed_entries(written.times.read_bytes()) is not None


@pytest.mark.parametrize("lost", [0, 1, 7, 20])
def test_what_a_killed_writer_leaves_is_whole(tmp_path: Path, lost: int) -> None:
    """Whatever follows the entries that the older seal covers may be missing or torn."""
    written = Written(tmp_path)
    written.write((0.5, b"one\n"), (2.0, b"two\n"), (4.0, b"three\n"))
    data = bytearray(written.times.read_bytes())
    newest, _ = sealed_entries(bytes(data)) or pytest.fail("no seal")
    assert newest.log_bytes == 14
    if lost:
        del data[-lost % len(data) :]
    torn = sealed_entries(bytes(data))
    if not lost:
        assert torn is not None
    assert torn is None or torn[0].log_bytes <= 14
    for slot in (0, 1):  # a seal is torn while it is written: the other one holds
        broken = bytearray(written.times.read_bytes())
        at = len(MAGIC) + 240 * slot
        broken[at + 20 : at + 60] = b"?" * 40
        assert sealed_entries(bytes(broken)) is not None
    written.close(5.0)


def test_a_requeued_job_appends(tmp_path: Path) -> None:
    first = Written(tmp_path)
    first.write((1.0, b"one\n"))
    first.close(2.0)
    second = Written(tmp_path, append=True, wall=WALL + 60)
    second.write((1.0, b"two\n"))
    second.close(3.0)
    decoded = decode_entries((sealed_entries(second.times.read_bytes()) or pytest.fail("no seal"))[1])
    assert decoded is not None
    starts = [(one.offset, one.start, one.end) for one in decoded.launches]
    assert starts == [(0, WALL, WALL + 2), (4, WALL + 60, WALL + 63)]
    assert (decoded.clock - WALL).tolist() == [1.0, 61.0]


@pytest.mark.parametrize("change", ["log", "times", "none"])
def test_what_does_not_fit_gets_no_time(tmp_path: Path, change: str) -> None:
    first = Written(tmp_path)
    first.write((1.0, b"one\n"))
    first.close(2.0)
    if change == "log":
        first.path.write_bytes(b"ane\n")
    elif change == "times":
        data = first.times.read_bytes()
        first.times.write_bytes(data[:HEAD_BYTES] + b"?" + data[HEAD_BYTES + 1 :])
    else:
        first.times.unlink()
    second = Written(tmp_path, append=True)
    second.write((1.0, b"two\n"))
    second.close(2.0)
    decoded = decode_entries((sealed_entries(second.times.read_bytes()) or pytest.fail("no seal"))[1])
    assert decoded is not None
    assert decoded.offsets.tolist() == [4, 8]
    assert decoded.launches[0].offset == 4
    assert numpy.isnan(decoded.clock[0])


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    decode_entries(data)
    sealed_entries(MAGIC + data)


def test_a_full_disk_ends_the_times_and_not_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written(tmp_path)
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    written.write((0.5, b"one\n"), (2.0, b"two\n"))
    assert written.writer.problem
    written.write((3.0, b"three\n"))
    written.close(4.0)
    assert written.path.read_bytes() == b"one\ntwo\nthree\n"
