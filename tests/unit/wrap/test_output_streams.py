"""Streams for a command's output: one for each target of ours, in order where both are one."""

import os
from pathlib import Path

from receipt_cli.wrap.tee import open_outlets


def test_two_targets_have_two_streams_and_one_target_has_one(tmp_path: Path) -> None:
    one, other = (os.open(tmp_path / name, os.O_WRONLY | os.O_CREAT) for name in ("out", "err"))
    apart, together = open_outlets(one, other), open_outlets(one, one)
    assert (len(apart.streams), len(together.streams), together.stdout) == (2, 1, together.stderr)
    os.write(together.stdout, b"first ")
    os.write(together.stderr, b"second")
    assert os.read(together.streams[0].source, 100) == b"first second"
    for outlets in (apart, together):
        outlets.started()
        for stream in outlets.streams:
            assert os.read(stream.source, 100) == b""  # its end, once our copies are closed
            stream.close()
            assert stream.source == -1
    os.close(one)
    os.close(other)


def test_a_terminal_gets_a_terminal() -> None:
    leader, ours = os.openpty()
    outlets = open_outlets(ours, ours)
    (stream,) = outlets.streams
    assert stream.terminal
    assert os.isatty(outlets.stdout)
    os.write(outlets.stdout, b"a\n")
    assert os.read(stream.source, 10) == b"a\n"  # no carriage return is added twice
    outlets.started()
    stream.close()
    os.close(leader)
    os.close(ours)
