"""Each fuzz target over its seeds and a short random run: what ``make fuzz`` does for hours, in seconds."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.__main__ import add
from tests.fuzz.harness import ROOT, TARGETS, Watch, load
from tests.fuzz.mutate import mutate

SEEDS = 60
"""Seeds of a target that are run, evenly chosen."""
RANDOM = 60
SLOW = {"parse": 8, "grammar_file": 24, "query": 20, "layouts": 30, "splits": 20, "learn": 20, "records": 30}
"""Random inputs of targets of which one takes many milliseconds."""


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # a target may go elsewhere


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_random_inputs_break_no_promise(name: str) -> None:
    if name == "query":
        pytest.importorskip("duckdb")
    target, seeds = load(name)
    assert seeds
    rng = random.Random(name)
    most = min(SEEDS, SLOW.get(name, SEEDS))
    for data in seeds[:: 1 + len(seeds) // most]:
        target(data)
    for _ in range(SLOW.get(name, RANDOM)):
        target(mutate(seeds, rng))


def test_a_crash_is_kept_and_hides_no_other(tmp_path: Path) -> None:
    def fragile(data: bytes) -> None:
        if data.startswith(b"a"):
            raise ValueError(data)
        if data.startswith(b"b"):
            raise KeyError(data)

    watch = Watch("fragile", fragile, tmp_path)
    for data in (b"axx", b"ok", b"a", b"b", b"axxx"):
        watch(data)
    assert (watch.executions, len(watch.crashes)) == (5, 2)
    kept = sorted(path.read_bytes() for path in tmp_path.glob("crash-*") if not path.suffix)
    assert kept == [b"a", b"b"], "of each place the shortest"


def test_a_run_counts_and_repeats(tmp_path: Path) -> None:
    results = []
    for number in range(2):
        result = tmp_path / f"{number}.json"
        paths = (tmp_path, tmp_path / "corpus", result)
        command = [sys.executable, "-m", "tests.fuzz.child", "numbers", "0", "7", *map(str, paths)]
        subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT), "FUZZ_OWN": "1", "HOME": str(tmp_path)}, check=True)
        results.append(json.loads(result.read_text("utf-8")))
    assert results[0]["executions"] == results[1]["executions"] >= len(load("numbers")[1])
    assert results[0]["crashes"] == 0


def test_counts_are_added_to_those_of_earlier_runs(tmp_path: Path) -> None:
    results = tmp_path / "fuzz.json"
    row = {"target": "parse", "engine": "own", "executions": 3, "cpu_s": 0.5, "slowest_s": 0.2, "crashes": 1, "places": ["x"]}
    add([row, {**row, "engine": "atheris"}], results)
    add([{**row, "executions": 4, "slowest_s": 0.1, "crashes": 0, "places": []}], results)
    own = {"target": "parse", "engine": "own", "executions": 7, "cpu_s": 1.0, "slowest_s": 0.2, "crashes": 1}
    atheris = {**own, "engine": "atheris", "executions": 3, "cpu_s": 0.5}
    assert json.loads(results.read_text("utf-8")) == [atheris, own]


def test_the_same_seed_gives_the_same_inputs() -> None:
    made = [[mutate([b"step 1 loss 2.5", b"x"], rng) for _ in range(50)] for rng in (random.Random(3), random.Random(3))]
    assert made[0] == made[1] and len(set(made[0])) > 20
