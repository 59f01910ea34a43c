"""What a follower records of a log that another program writes."""

import time
from pathlib import Path

import numpy as np
import pytest

from receipt_cli.errors import OutputError
from receipt_cli.follow.growth import begin_recording
from receipt_cli.io.times_file import TimesWriter
from receipt_cli.scan.arrivals import find_arrivals

OLD, NEW = b"step 1 loss 3\nst", [b"ep 2 loss 2\nstep 3 ", b"loss 1\n"]


def grow(path: Path) -> None:
    with path.open("ab") as log:
        log.write(b"".join(NEW))


def test_what_was_there_before_gets_no_time(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(OLD)
    recorder = begin_recording(str(path), 0.25)
    assert recorder is not None
    grow(path)
    began = time.monotonic()
    recorder.add([OLD + NEW[0]], began)
    recorder.add([NEW[1]], began + 2.0)
    recorder.close(began + 3.0)
    found = find_arrivals(str(path))
    assert found is not None
    text = OLD + b"".join(NEW)
    found.hear(text, None)
    assert found.fits
    old, second, third = found.clock_of(np.arange(3)).tolist()
    assert old != old
    assert third - second == pytest.approx(2.0, abs=0.01)
    assert (found.entries.followed, found.entries.launches[0].start) == (True, None)


def test_a_log_that_does_not_grow_gets_no_file(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(OLD)
    recorder = begin_recording(str(path), 0.25)
    assert recorder is not None
    recorder.add([OLD], 1.0)
    recorder.close(2.0)
    assert [each.name for each in tmp_path.iterdir()] == ["job.log"]


def test_another_log_in_its_place_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(b"")
    recorder = begin_recording(str(path), 0.25)
    assert recorder is not None
    grow(path)
    recorder.add(NEW, 1.0)
    recorder.abandon()
    assert [each.name for each in tmp_path.iterdir()] == ["job.log"]


def test_the_file_of_another_writer_is_left_alone(tmp_path: Path) -> None:
    path, times = tmp_path / "job.log", tmp_path / "job.log.times"
    path.write_bytes(OLD)
    late = begin_recording(str(path), 0.25)
    assert late is not None
    with path.open("rb") as log:
        writer = TimesWriter(str(times), log.fileno(), append=True, pause_s=0.04, now=0.0, wall=0.0)
        assert begin_recording(str(path), 0.25) is None
        late.add([OLD, *NEW], 1.0)
        with pytest.raises(OutputError, match="cannot write the times"):
            TimesWriter(str(times), log.fileno(), append=True, pause_s=0.04, now=0.0, wall=0.0)
        writer.close(1.0)
    late.close(2.0)
    found = find_arrivals(str(path))
    assert found is not None and not found.entries.followed
