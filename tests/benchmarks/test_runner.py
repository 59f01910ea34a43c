"""Processes are measured in turn, ratios are of one round, and a target is met or missed."""

import sys
from pathlib import Path

import pytest

from benchmarks.guard import beyond
from benchmarks.measure import Case, Sample, run
from benchmarks.peers import PEERS, Peer, missing
from benchmarks.targets import OPTIONS, SOURCES, TARGETS, Target, row, table

AT_MOST = Target("dense", "receipt", "rg -c", True, 1.5, 1.0)
AT_LEAST = Target("dense", "loop", "receipt", False, 7, 9)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", code)


def samples(*walls: float) -> list[Sample]:
    return [Sample(wall, wall, 1, 0) for wall in walls]


def test_a_run_is_measured(tmp_path: Path) -> None:
    fed = tmp_path / "fed"
    fed.write_bytes(b"abc")
    code = "import os, sys; data = bytearray(60_000_000); print(sys.stdin.read() + os.environ['WORD']); sys.exit(3)"
    sample = run(Case("case", python(code), 1, {"WORD": "def"}, fed), tmp_path / "out")
    assert (tmp_path / "out").read_text().strip() == "abcdef"
    assert sample.code == 3
    assert sample.wall > 0
    assert sample.cpu > 0
    assert sample.memory > 60_000_000


@pytest.mark.parametrize(
    ("target", "ours", "theirs", "verdict"),
    [
        (AT_MOST, 0.9, 1.0, "stretch"),
        (AT_MOST, 1.4, 1.0, "met"),
        (AT_MOST, 1.6, 1.0, "missed"),
        (AT_LEAST, 9.0, 1.0, "stretch"),
        (AT_LEAST, 8.0, 1.0, "met"),
        (AT_LEAST, 6.0, 1.0, "missed"),
    ],
)
def test_a_target_is_met_or_missed(target: Target, ours: float, theirs: float, verdict: str) -> None:
    measured = {target.over: samples(ours), target.under: samples(theirs)}
    assert row(target, measured, {target.over: 10, target.under: 10}, {}).verdict == verdict
    assert row(target, measured, {target.over: 10, target.under: 10}, {}, {target.over}).verdict == "wrong figures"


def test_an_absent_peer_is_a_word() -> None:
    line = row(AT_LEAST, {"receipt": samples(2.0)}, {"receipt": 50}, {"loop": "loop: not installed"})
    assert line.verdict == "not measured"
    assert (
        table([line]).splitlines()[-1] == "| dense | loop ÷ receipt | – |  | ≥ 7× | ≥ 9× | not measured | loop: not installed |"
    )
    assert missing(Peer("none", lambda log: (str(log),), program="no-such-program")) == "none: not installed"
    assert missing(Peer("python", lambda log: (str(log),), program=sys.executable)) is None


def test_every_target_has_its_commands() -> None:
    for target in TARGETS:
        known = {peer.name for peer in PEERS[target.source]} | OPTIONS.keys()
        assert {target.over, target.under} <= known
        assert target.source in SOURCES


def test_the_guard_names_what_grew() -> None:
    bounds = {"dense": {"calls": 2.0, "pattern_calls": 0.1}}
    assert beyond("dense", {"calls": 1.5, "pattern_calls": 0.1}, bounds) == []
    assert beyond("dense", {"calls": 2.5, "pattern_calls": 0.1}, bounds) == ["dense: 2.500 calls a kilobyte, more than 2"]
    assert beyond("unknown", {"calls": 2.5}, bounds) == []
