"""``receipt store build --engine ray`` on a real cluster of two workers: the bytes that local workers write, whoever dies."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from .conftest import ROOT, Invoke, tree

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the extra ray is not installed: make test-all"),
]
ENVIRON = {**os.environ, "PYTHONPATH": str(ROOT)}
LOGS = ROOT / "fixtures" / "logs"
POISON = """
import os, signal, sys
from receipt_cli.batch.ray_engine import RayEngine

def work(item):
    if item == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    if item == 6:
        raise MemoryError
    return item * item

engine = RayEngine(2)
found = sorted((n, r if isinstance(r, int) else r.why) for n, r in engine.run(work, list(range(20)), [1] * 20))
engine.close()
print(found)
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of logs, each with a line of its own; and one that is in quarantine."""
    folder = tmp_path_factory.mktemp("archive")
    logs = sorted(path for path in LOGS.rglob("*.log") if path.stat().st_size < 20_000)[:20]
    for number in range(60):
        log = logs[number % len(logs)]
        (folder / f"{number:03d}-{log.name}").write_bytes(b"copy %d\n" % number + log.read_bytes())
    (folder / "empty.log").touch()
    return folder


@pytest.fixture(scope="module")
def want(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What local workers make of the archive."""
    store = tmp_path_factory.mktemp("local") / "store"
    command = [sys.executable, "-m", "receipt_cli", "rederive", str(archive), "--store", str(store)]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, env=ENVIRON, check=False).returncode == 3
    return tree(store)


def test_a_worker_that_is_killed_in_the_middle_costs_nothing(archive: Path, want: dict[str, bytes], tmp_path: Path) -> None:
    store = tmp_path / "store"
    command = [sys.executable, "-m", "receipt_cli", "rederive", str(archive), "--store", str(store), "--json"]
    batch = subprocess.Popen(
        [*command, "--engine", "ray", "--workers", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRON
    )
    killed = None
    while killed is None and batch.poll() is None:
        if list(store.glob("receipts/*/*.json")):
            for process in psutil.Process(batch.pid).children(recursive=True):
                if killed is None and process.is_running() and "ray::work_on" in " ".join(process.cmdline()):
                    process.kill()
                    killed = process.pid
        time.sleep(0.01)
    out, err = batch.communicate(timeout=300)
    assert killed is not None
    assert batch.returncode == 3, err
    assert b"Traceback" not in err
    assert tree(store) == want
    outcomes = [json.loads(line)["outcome"] for line in out.splitlines()]
    assert (outcomes.count("written"), outcomes.count("quarantined")) == (60, 1)


def test_the_cache_serves_both_engines(archive: Path, want: dict[str, bytes], tmp_path: Path, process: Invoke) -> None:
    store = tmp_path / "store"
    assert process("store", "build", archive, "--store", store, "--engine", "ray", "--workers", "2").code == 3
    assert tree(store) == want
    shutil.rmtree(store / "receipts" / sorted(os.listdir(store / "receipts"))[0])
    done = process("store", "build", archive, "--store", store, "--json")
    assert tree(store) == want
    assert [json.loads(line)["outcome"] for line in done.stdout.splitlines()].count("written") == 1


def test_an_item_that_kills_its_workers_costs_only_itself(tmp_path: Path) -> None:
    script = tmp_path / "poison.py"
    script.write_text(POISON)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, env=ENVIRON, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "(5, 'the worker died, 3 times: WorkerCrashedError')" in done.stdout
    assert "(6, 'it needs more memory than a worker has')" in done.stdout
    assert all(f"({n}, {n * n})" in done.stdout for n in range(20) if n not in (5, 6))


def test_a_cluster_that_is_not_there(archive: Path, tmp_path: Path, process: Invoke) -> None:
    given = ("rederive", archive, "--store", tmp_path / "store", "--engine", "ray")
    done = process(*given, env={"RAY_ADDRESS": "not an address"})
    assert (done.code, "cannot be reached" in done.stderr) == (69, True)


def test_the_definitions_of_a_site_reach_the_workers(tmp_path: Path, process: Invoke) -> None:
    runs = tmp_path / "archive" / "runs"
    grammars = tmp_path / "archive" / ".receipt" / "grammars"
    for folder in (runs, grammars):
        folder.mkdir(parents=True)
    lines = "".join(f"zug={n} guete={4 - n / 10:.1f}\n" for n in range(1, 9))
    for name in "ab":
        (runs / f"{name}.log").write_text(f"{name}\n{lines}", "utf-8")
    drafted = process("grammar", "learn", runs / "a.log", "--answer", "guete=loss", "--id", "ofen", "-o", grammars / "ofen.yaml")
    assert drafted.code == 0, drafted.stderr
    given = ("rederive", runs, "--store", tmp_path / "ray", "--engine", "ray", "--workers", "2")
    assert process(*given).code == 0
    assert process("store", "build", runs, "--store", tmp_path / "local").code == 0
    assert tree(tmp_path / "ray") == tree(tmp_path / "local")
    receipts = [json.loads(text) for path, text in tree(tmp_path / "ray").items() if path.startswith("receipts/")]
    assert [receipt["derivation"]["grammars"][0]["id"] for receipt in receipts] == ["ofen", "ofen"]
