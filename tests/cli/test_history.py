"""``receipt history`` through the command line, on a store with planted changes."""

import json
from pathlib import Path

import pytest

from benchmarks.planted import documents, write_store
from receipt_cli.store.files import Store
from tests.cli.conftest import Invoke


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted") / "store"
    write_store(folder, 3)
    return folder


def test_the_changes_are_shown_for_people_and_machines(store: Path, invoke: Invoke) -> None:
    shown = invoke("history", store, "8xh100-base")
    assert shown.code == 0
    assert "throughput −7.5 % from 2026-01-29" in shown.stdout.decode()
    assert "software torch 2.9.1 → 2.10.0" in shown.stdout.decode()
    document = invoke("history", store, "--json").document
    assert document["schema_version"] == "history/1.1"
    assert len(document["lanes"]) == 4


def test_the_exit_code_tells_what_got_worse(store: Path, invoke: Invoke) -> None:
    assert invoke("history", store, "8xh100-base", "--fail").code == 1
    assert invoke("history", store, "8xmi300-base", "--fail").code == 0


def test_an_unknown_lane_or_store_is_told(store: Path, invoke: Invoke) -> None:
    assert invoke("history", store, "nope").code == 3
    assert invoke("history", store.parent / "none").code == 3


def test_a_damaged_receipt_is_passed_over(tmp_path: Path, invoke: Invoke) -> None:
    write_store(tmp_path / "store", 1)
    first = min((tmp_path / "store").rglob("*.1.json"))
    first.write_text("{")
    done = invoke("history", tmp_path / "store", "--changed")
    assert done.code == 0
    assert "is skipped: document is not JSON" in done.stderr


def test_a_group_of_runs_gets_a_name(tmp_path: Path, invoke: Invoke) -> None:
    kept = Store(tmp_path / "store")
    for number, document in enumerate(documents(1, runs=3)):
        document["run"]["lane"] = document["run"]["preset"] = None
        document["header"]["parallelism"]["world_size"] = None if number == 4 else 8
        document["derivation"]["grammars"][0]["id"] = "torchtitan"
        kept.add(document)
    store = tmp_path / "store"
    shown = invoke("history", store).stdout.decode()
    total = shown.partition(" runs: ")[0]
    assert shown.startswith(f"{total} runs: ") and "No lanes: compared are runs whose trainer, model, hardware" in shown
    assert "1 run is alone, or one of the four is unknown (--full)" in shown
    assert f"receipt store lane {store} --group 1 " in shown.replace("\n", " ")
    assert "unknown: ranks" in invoke("history", store, "--full").stdout.decode()
    assert invoke("store", "ls", store).stdout.decode().splitlines()[0] == shown.splitlines()[0]
    named = invoke("store", "lane", store, "mine", "--group", "1")
    assert named.code == 0 and b" runs are in the lane mine" in named.stdout
    count = int(named.stdout.split()[0])
    (lane,) = invoke("history", store, "mine", "--json").document["lanes"]
    assert (lane["lane"], lane["run_count"], lane["searched"]) == ("mine", count, True)
    listed = [json.loads(line) for line in invoke("store", "ls", store, "--json").stdout.splitlines()]
    assert [row["lane"] for row in listed].count("mine") == count == int(total) - 1
    assert b"lane  mine" in invoke("store", "lane", store).stdout
    assert [lane["group"] for lane in invoke("history", store, "--json").document["lanes"]] == [[]]


@pytest.mark.parametrize("words", [["mine"], ["--group", "1"], ["mine", "--group", "9"], ["--by", "nothing"]])
def test_a_lane_needs_a_group_and_a_name(store: Path, invoke: Invoke, words: list[str]) -> None:
    assert invoke("store", "lane", store, *words).code == 2
