"""Processes are measured in turn, ratios are of one round, and a target is met or missed."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.guard import beyond
from benchmarks.installation import install
from benchmarks.measure import Case, Sample, ratio, rounds, run
from benchmarks.peers import PEERS, Peer, missing
from benchmarks.targets import OPTIONS, SOURCES, TARGETS, Row, Target, row, table

AT_MOST = Target("dense", "receipt", "rg -c", True, 1.5, 1.0)
AT_LEAST = Target("dense", "loop", "receipt", False, 7, 9)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", code)


def samples(*walls: float) -> list[Sample]:
    return [Sample(wall, wall, 1, 0) for wall in walls]


def test_rounds_are_interleaved_after_a_warm_up(tmp_path: Path) -> None:
    file = tmp_path / "order"
    cases = [Case(name, python(f"open({str(file)!r}, 'a').write({name!r})"), 1) for name in "ab"]
    found = rounds(cases, 2, "test")
    assert file.read_text() == "ababab"
    assert {name: len(each) for name, each in found.items()} == {"a": 2, "b": 2}


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


def test_ratios_are_of_one_round() -> None:
    assert ratio([2.0, 40.0, 3.0], [1.0, 10.0, 1.0]) == (3.0, 2.0, 4.0)


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


def test_a_shorter_log_is_compared_by_the_byte() -> None:
    measured = {"loop": samples(4.0), "receipt": samples(2.0)}
    line = row(AT_LEAST, measured, {"loop": 10, "receipt": 50}, {"loop": "loop on less"})
    assert (line.value, line.note) == (pytest.approx(10.0), "loop on less")


def test_an_absent_peer_is_a_word() -> None:
    line = row(AT_LEAST, {"receipt": samples(2.0)}, {"receipt": 50}, {"loop": "loop: not installed"})
    assert line.verdict == "not measured"
    assert (
        table([line]).splitlines()[-1] == "| dense | loop ÷ receipt | – |  | ≥ 7× | ≥ 9× | not measured | loop: not installed |"
    )
    assert missing(Peer("none", lambda log: (str(log),), program="no-such-program")) == "none: not installed"
    assert missing(Peer("python", lambda log: (str(log),), program=sys.executable)) is None


def test_the_table_shows_value_spread_and_bounds() -> None:
    line = Row("sparse", "peak memory", 123.4, None, " MB", True, 200.0, 100.0)
    assert table([line]).splitlines()[-1] == "| sparse | peak memory | 123 MB |  | ≤ 200 MB | ≤ 100 MB | met |  |"


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


@pytest.mark.parametrize(("grammars", "rules"), [(1, 10), (90, 10), (12, 3)])
def test_grammars_are_installed(tmp_path: Path, grammars: int, rules: int) -> None:
    install(tmp_path / "there", grammars, rules)
    files = sorted((tmp_path / "there" / "receipt_cli" / "grammars").glob("*/v*.yaml"))
    names = {file.parent.name for file in files} - {"markers", "generic"}
    assert len([file for file in files if file.parent.name in names]) == grammars
    assert "megatron-lm" in names


def test_a_parse_is_sampled(tmp_path: Path, root: Path) -> None:
    log = root / "fixtures" / "logs" / "nanogpt" / "char-ok.log"
    command = (sys.executable, "-m", "benchmarks.sampling", str(tmp_path / "counts"), "parse", str(log))
    environ = {"PYTHONPATH": str(root)}
    assert run(Case("sampling", command, 1, environ), tmp_path / "out").code == 0
    document = json.loads((tmp_path / "counts").read_text())
    assert document["looks"] > 0
    assert sum(document["own"]["main"].values()) == document["looks"]
    assert document["total"]
