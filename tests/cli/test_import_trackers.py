"""``receipt import`` of what trackers and loggers wrote, and round trips of what ``receipt export`` writes for them."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "fixtures" / "logs"
TRACKERS = ROOT / "fixtures" / "foreign" / "trackers"
EVENTS = TRACKERS / "events.out.tfevents.1700000000.node-1.1.0"
WANDB = TRACKERS / "run-demo1234.wandb"
FIGURES = ("first", "last", "min", "max", "mean", "median")
ROUND_TRIPS = [
    "nanochat/speedrun-2025-10.log",  # three phases, evaluations twice at one step
    "megatron-lm/2024-oom-then-restart.log",  # a step counter that goes back
    "gpt-neox/short-run.log",  # memory printed once, in the warm-up
    "hf-trainer/trl-sft-1.16.log",
    "maxtext/step-2026-moe-nan-abort.log",
    "forgather/console-f4.log",
]


def figures(receipt: dict[str, Any], block: str = "metrics") -> dict[str, dict[str, float | None]]:
    """Return the figures of the primary phase, by metric."""
    return {name: {key: entry[key] for key in FIGURES} for name, entry in receipt["summary"][block].items()}


def imported(invoke: Invoke, path: Path, *options: str) -> dict[str, Any]:
    done = invoke("import", path, "--json", *options)
    assert done.code == 0, done.stderr
    return done.document


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """MLflow's database, made of its dump."""
    path = tmp_path / "mlflow.db"
    with sqlite3.connect(path) as opened:
        opened.executescript((TRACKERS / "mlflow.sql").read_text())
    opened.close()
    return path


LOSSES = {"first": 4.5, "last": 0.8569, "min": 0.8569, "max": 4.5}


@pytest.mark.parametrize(("path", "name", "last"), [(EVENTS, "tensorboard", 290), (WANDB, "wandb-run", 300)])
def test_the_files_of_real_libraries_give_the_values_that_were_logged(invoke: Invoke, path: Path, name: str, last: int) -> None:
    receipt = imported(invoke, path)
    assert receipt["derivation"]["origin"]["format"] == name
    assert (receipt["derivation"]["grammars"], receipt["derivation"]["rules"]) == ([], "import/2")
    steps = receipt["summary"]["steps"]
    assert (steps["last"], steps["record_count"]) == (last, 30)
    loss = figures(receipt)["loss"]
    assert {key: loss[key] for key in LOSSES} == LOSSES
    assert figures(receipt)["val_loss"]["last"] == 0.9569
    assert receipt["derivation"]["problems"]["count"] == 0


def test_a_run_file_of_wandb_states_times_settings_and_exit(invoke: Invoke) -> None:
    receipt = imported(invoke, WANDB)
    assert (receipt["run"]["name"], receipt["run"]["exit_code"]) == ("w1", 0)
    assert receipt["checks"]["zero_exit_code"] is True
    assert receipt["header"]["flags"] == {"batch_size": 32, "lr": 0.0003}
    assert receipt["header"]["seeds"] == {"seed": 7}
    assert receipt["derivation"]["origin"]["producer"].startswith("wandb 0.31.0")


@pytest.mark.parametrize("cut", [40, 3000, 8000])
def test_a_run_file_that_breaks_off_is_a_run_that_was_cut(invoke: Invoke, tmp_path: Path, cut: int) -> None:
    path = tmp_path / "run-x.wandb"
    path.write_bytes(WANDB.read_bytes()[:cut])
    receipt = imported(invoke, path)
    assert receipt["failure"]["reason"] == "truncated"
    assert receipt["checks"]["completed"] is False


def test_a_changed_byte_in_an_event_file_is_a_problem_and_no_value(invoke: Invoke, tmp_path: Path) -> None:
    data = bytearray(EVENTS.read_bytes())
    data[len(data) // 2] ^= 1
    path = tmp_path / EVENTS.name
    path.write_bytes(data)
    receipt = imported(invoke, path)
    assert receipt["derivation"]["problems"]["first"][0]["kind"] == "file_damaged"
    assert 0 < receipt["summary"]["steps"]["record_count"] < 30


class TestMlflow:
    def test_one_run_is_chosen_by_name_or_id(self, invoke: Invoke, database: Path) -> None:
        done = invoke("import", database, "--json")
        assert (done.code, "has several runs" in done.stderr) == (3, True)
        good, bad = (imported(invoke, database, "--session", name) for name in ("good", "bad"))
        assert good["run"]["name"] == "good"
        assert figures(good)["loss"]["last"] == 0.8569
        assert (good["checks"]["completed"], bad["checks"]["completed"]) == (True, False)
        assert "FAILED" in bad["failure"]["message"]
        assert good["header"]["flags"] == {"lr": 0.0003, "optimizer": "adamw"}
        assert imported(invoke, database, "--session", "425e2120") == good

    def test_values_whose_steps_nobody_passed_give_the_last_one(self, invoke: Invoke, database: Path) -> None:
        receipt = imported(invoke, database, "--session", "good")
        assert figures(receipt, "other_metrics")["stepless"] == {"last": 2.0, **dict.fromkeys(set(FIGURES) - {"last"})}
        assert [p["kind"] for p in receipt["derivation"]["problems"]["first"]] == ["values_without_step"]

    def test_the_receipt_of_a_run_does_not_depend_on_the_others(self, invoke: Invoke, database: Path) -> None:
        before = imported(invoke, database, "--session", "good")
        with sqlite3.connect(database) as opened:
            opened.execute("DELETE FROM runs WHERE name = 'bad'")
        opened.close()
        assert imported(invoke, database) == before

    def test_a_folder_of_files_gives_the_same_figures(self, invoke: Invoke, database: Path, tmp_path: Path) -> None:
        """The layout of mlflow/store/tracking/file_store.py."""
        run = tmp_path / "mlruns" / "1" / "425e"
        for folder in ("metrics", "params", "tags"):
            (run / folder).mkdir(parents=True)
        times = "start_time: 1795406728579\nend_time: 1795406729776\n"
        (run / "meta.yaml").write_text(f"run_id: 425e\nrun_name: good\nstatus: 3\n{times}lifecycle_stage: active\n")
        with sqlite3.connect(database) as opened:
            rows = opened.execute(
                "SELECT key, timestamp, value, step FROM metrics WHERE run_uuid LIKE '425e%' AND key LIKE '%_loss'"
            ).fetchall()
        opened.close()
        for key in ("train_loss", "val_loss"):
            (run / "metrics" / key).write_text("".join(f"{at} {value} {step}\n" for k, at, value, step in rows if k == key))
        receipt = imported(invoke, tmp_path / "mlruns")
        assert figures(receipt) == figures(imported(invoke, database, "--session", "good"))
        assert receipt["checks"]["completed"] is True

    def test_a_database_of_another_program_is_refused(self, invoke: Invoke, tmp_path: Path) -> None:
        path = tmp_path / "other.db"
        with sqlite3.connect(path) as opened:
            opened.execute("CREATE TABLE notes (text)")
        opened.close()
        assert invoke("import", path).code in (3, 4)


def test_lightnings_table_counts_steps_and_not_epoch_means(invoke: Invoke) -> None:
    receipt = imported(invoke, TRACKERS / "metrics.csv")
    assert receipt["derivation"]["origin"]["producer"] == "Lightning CSVLogger"
    assert (receipt["summary"]["steps"]["last"], receipt["summary"]["steps"]["record_count"]) == (39, 4)
    found = figures(receipt)
    assert (found["loss"]["first"], found["loss"]["last"]) == (2.5, 1.0)
    assert (found["val_loss"]["first"], found["val_loss"]["last"]) == (1.5, 1.125)
    assert (found["learning_rate"]["first"], found["learning_rate"]["last"]) == (0.001, 0.0005)
    assert figures(receipt, "other_metrics")["train_loss_epoch"]["last"] == 1.0625


def test_keras_writes_the_same_run_as_a_table_and_as_a_history(invoke: Invoke) -> None:
    table, history = (figures(imported(invoke, TRACKERS / name)) for name in ("training.csv", "history.json"))
    for name in ("loss", "train_accuracy", "val_loss"):
        assert table[name] == history[name]
    assert (table["train_accuracy"]["last"], table["val_accuracy"]["last"]) == (0.90625, 0.890625)


def test_json_lines_keep_what_can_be_read_of_a_cut_file(invoke: Invoke, tmp_path: Path) -> None:
    receipt = imported(invoke, TRACKERS / "metrics.jsonl")
    assert receipt["summary"]["steps"] == {**receipt["summary"]["steps"], "first": 5, "last": 60, "record_count": 12}
    loss = {"first": 4.0, "last": 1.25, "min": 1.25, "max": 4.0, "mean": 1.7758, "median": 1.4643}
    assert figures(receipt)["loss"] == pytest.approx(loss)
    assert figures(receipt)["val_loss"]["last"] == 1.45
    path = tmp_path / "cut.jsonl"
    path.write_bytes((TRACKERS / "metrics.jsonl").read_bytes()[:-9])
    assert imported(invoke, path)["failure"]["reason"] == "truncated"


def test_a_step_that_goes_back_is_a_restart(invoke: Invoke, tmp_path: Path) -> None:
    rows = [*range(1, 21), *range(11, 31)]
    path = tmp_path / "m.csv"
    path.write_text("step,loss\n" + "".join(f"{step},{10 / step:.4f}\n" for step in rows))
    summary = imported(invoke, path)["summary"]
    assert (summary["steps"]["record_count"], summary["steps"]["last"]) == (30, 30)
    assert summary["steps"]["restart_count"] == 1


FOREIGN_NAMES = ["catboost/regression-plain.log", "fairseq/v09-epochs-resumed.log"]
"""A number outside of the registry under a name of the registry; a primary phase that is not the first."""


@pytest.mark.parametrize("log", [*ROUND_TRIPS, *FOREIGN_NAMES])
@pytest.mark.parametrize("name", ["tensorboard", "wandb", "csv"])
def test_what_is_exported_comes_back_with_the_same_figures(invoke: Invoke, tmp_path: Path, log: str, name: str) -> None:
    """A table of curves has no place for the figures; that of a receipt has them all."""
    invoke("parse", LOGS / log, "-o", tmp_path / "r.json")
    given = tmp_path / "r.json" if name == "csv" else LOGS / log
    assert invoke("export", given, "--to", name, "-o", tmp_path / "out").code == 0
    before, after = json.loads((tmp_path / "r.json").read_text()), imported(invoke, tmp_path / "out")
    assert after["derivation"]["origin"]["kind"] == "import"
    for block in ("metrics", "other_metrics"):
        assert figures(after, block) == figures(before, block)
    if name != "csv":
        assert after["summary"]["steps"]["record_count"] == before["summary"]["steps"]["record_count"]


@pytest.mark.parametrize("log", ROUND_TRIPS[2:])
def test_curves_as_a_table_come_back_step_by_step(invoke: Invoke, tmp_path: Path, log: str) -> None:
    invoke("parse", LOGS / log, "-o", tmp_path / "r.json")
    assert invoke("export", LOGS / log, "--to", "csv", "-o", tmp_path / "out.csv").code == 0
    before, after = json.loads((tmp_path / "r.json").read_text()), imported(invoke, tmp_path / "out.csv")
    assert figures(after)["loss"] == figures(before)["loss"]
    assert after["summary"]["steps"]["last"] == before["summary"]["steps"]["last"]


@pytest.mark.parametrize("log", ROUND_TRIPS[:3])
def test_mlflow_gives_the_same_figures_back(invoke: Invoke, tmp_path: Path, log: str) -> None:
    pytest.importorskip("mlflow")
    invoke("parse", LOGS / log, "-o", tmp_path / "r.json")
    program = "from receipt_cli.cli.main import main; main()"
    arguments = ["export", str(LOGS / log), "--to", "mlflow", "-o", str(tmp_path / "out.db")]
    subprocess.run([sys.executable, "-W", "ignore", "-c", program, *arguments], check=True, capture_output=True, timeout=300)
    before, after = json.loads((tmp_path / "r.json").read_text()), imported(invoke, tmp_path / "out.db")
    assert figures(after) == figures(before)


def test_a_metric_that_mlflow_renames_gets_its_name_back(invoke: Invoke, database: Path) -> None:
    """The tags are those of ``export --to mlflow``; what MLflow's client recorded keeps its name."""
    key = "425e21203bbb4bb98b74eb3bcf57c805"
    shown = []
    for tag, value in (("receipt.metric.train_loss", "hits@10"), ("receipt.run", "x")):
        with sqlite3.connect(database) as opened:
            opened.execute("INSERT INTO tags (key, value, run_uuid) VALUES (?, ?, ?)", [tag, value, key])
        opened.close()
        shown.append("hits@10" in json.dumps(imported(invoke, database, "--session", "good")["summary"]))
    assert shown == [False, True]


class TestStores:
    def test_every_run_of_several_paths_is_added(self, invoke: Invoke, database: Path, tmp_path: Path) -> None:
        for run in ("a", "b"):
            (tmp_path / "tb" / run).mkdir(parents=True)
            shutil.copy(EVENTS, tmp_path / "tb" / run / f"{EVENTS.name}.{run}")
        with (tmp_path / "tb" / "b" / f"{EVENTS.name}.b").open("ab") as file:
            file.write(b"\0")  # another run: another digest
        (tmp_path / "bad.txt").write_text("no table\n")
        done = invoke("import", tmp_path / "tb", database, WANDB, tmp_path / "bad.txt", "--store", tmp_path / "runs", "--json")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert (done.code, [line["outcome"] for line in lines]) == (4, ["written"] * 5)
        assert "bad.txt" in done.stderr
        listed = [json.loads(line) for line in invoke("store", "ls", tmp_path / "runs", "--json").stdout.splitlines()]
        assert {"good", "bad", "w1"} < {row["name"] for row in listed}
        assert any(row["name"].endswith("tb/a") for row in listed)

    def test_a_whole_store_is_exported_and_comes_back(self, invoke: Invoke, tmp_path: Path) -> None:
        for log in ROUND_TRIPS[:2]:
            invoke("parse", LOGS / log, "-o", tmp_path / "r.json")
            assert invoke("store", "add", tmp_path / "runs", tmp_path / "r.json").code == 0
        done = invoke("export", tmp_path / "runs", "--to", "wandb", "-o", tmp_path / "w")
        assert (done.code, "2 runs exported" in done.stderr) == (0, True)
        assert invoke("import", tmp_path / "w", "--store", tmp_path / "again").code == 0
        done = invoke("export", tmp_path / "runs", "--to", "csv", "-o", tmp_path / "tables")
        assert (done.code, len(list((tmp_path / "tables").glob("*.csv")))) == (0, 2)
        stored = [list((tmp_path / name / "receipts").rglob("*.json")) for name in ("runs", "again")]
        first, second = (sorted(str(figures(json.loads(path.read_text()))) for path in paths) for paths in stored)
        assert len(first) == 2
        assert first == second
        assert invoke("export", tmp_path / "runs", "--to", "csv").code == 2
