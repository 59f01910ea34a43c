"""The times of records: which record came with which bytes, however the log is cut while it is read."""

import os
from hashlib import sha256
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.io.times_file import HEAD_BYTES, TimesWriter
from receipt_cli.records.split import normalise
from receipt_cli.scan.arrivals import Arrivals

TEXT = st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n", b"\b\b", b" 3/9 ", b"step 1 loss 2\n", b"\r 10%"])


def times_of(folder: Path, pieces: list[bytes]) -> bytes:
    """Return the file of times of a log whose pieces came a second after each other."""
    log = os.open(folder / "log", os.O_RDWR | os.O_CREAT)
    writer = TimesWriter(str(folder / "log.times"), log, append=False, pause_s=0.04, now=0.0, wall=1000.0)
    for number, piece in enumerate(pieces, 1):
        writer.add(piece, float(number))
    writer.close(float(len(pieces)))
    os.close(log)
    return (folder / "log.times").read_bytes()


def heard(data: bytes, text: bytes, cuts: list[int]) -> Arrivals:
    """Return the times after the log was read in blocks."""
    arrivals, digest, start = Arrivals(data), sha256(), 0
    for end in [*sorted({cut for cut in cuts if 0 < cut < len(text)}), len(text)]:
        arrivals.hear(text[start:end], digest)
        digest.update(text[start:end])
        start = end
    return arrivals


@pytest.mark.parametrize(
    ("pieces", "want"),
    [
        pytest.param([b"one\n", b"two\n"], [1, 2], id="lines"),
        pytest.param([b"one", b"\ntwo", b"\n"], [1, 2], id="a line comes with its last letter, not with its end"),
        pytest.param([b"on", b"e\ntwo\n"], [2, 2], id="a line in two pieces"),
        pytest.param([b"\r 1%", b"\r 2%", b"\r 3%", b"\n"], [1, 1, 2, 3], id="redraws begin with a carriage return"),
        pytest.param([b"1%\r", b"2%\r", b"3%\n"], [1, 2, 3], id="redraws end with one"),
        pytest.param([b"one\r", b"\ntwo\r\n"], [1, 2], id="an end in two pieces"),
        pytest.param([b"1/9 a", b"\b\b\b\b\b2/9 b", b"\b\b\b\b\b3/9 c\n"], [1, 2, 3], id="backspaces"),
        pytest.param([b"one\n", b"two"], [1, 2], id="an open line"),
    ],
)
def test_records_come_with_their_last_letter(tmp_path: Path, pieces: list[bytes], want: list[int]) -> None:
    text = b"".join(pieces)
    arrivals = heard(times_of(tmp_path, pieces), text, [])
    assert arrivals.fits
    assert [clock - 1000.0 for clock in arrivals.clock_of(numpy.arange(len(want))).tolist()] == want


@given(st.lists(st.lists(TEXT, min_size=1, max_size=4).map(b"".join), min_size=1, max_size=12), st.lists(st.integers(1, 120)))
def test_cuts_change_nothing(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], cuts: list[int]) -> None:
    text = b"".join(pieces)
    data = times_of(tmp_path_factory.mktemp("cuts"), pieces)
    whole, cut = heard(data, text, []), heard(data, text, cuts)
    plain = normalise(text)
    records = numpy.arange(plain.count(b"\n") + plain.count(b"\r") + 1)
    assert whole.fits and cut.fits
    assert numpy.array_equal(whole.clock_of(records), cut.clock_of(records), equal_nan=True)
    known = whole.clock_of(records[:-1])
    assert (numpy.diff(known[~numpy.isnan(known)]) >= 0).all()


@pytest.mark.parametrize("change", ["a byte of the log", "a byte of the times", "a shorter log", "no file of times"])
def test_what_does_not_fit_is_not_used(tmp_path: Path, change: str) -> None:
    text = b"one\ntwo\n"
    data = times_of(tmp_path, [b"one\n", b"two\n"])
    if change == "a byte of the log":
        text = b"one\ntoo\n"
    elif change == "a shorter log":
        text = b"one\n"
    elif change == "a byte of the times":
        data = data[:HEAD_BYTES] + b"\1" + data[HEAD_BYTES + 1 :]
    else:
        data = b"receipt-times/2\n" + data[16:]
    arrivals = heard(data, text, [])
    assert not arrivals.fits
    assert arrivals.problem


def test_a_log_may_have_grown_since(tmp_path: Path) -> None:
    arrivals = heard(times_of(tmp_path, [b"one\n", b"two\n"]), b"one\ntwo\nthree\n", [3, 9])
    assert arrivals.fits
    clocks = arrivals.clock_of(numpy.arange(3)).tolist()
    assert clocks[:2] == [1001.0, 1002.0]
    assert clocks[2] != clocks[2]
