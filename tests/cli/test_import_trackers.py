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


@pytest.fixture
def trackio(tmp_path: Path) -> Path:
    """Trackio's database of one project, made of its dump."""
    return _database(tmp_path / "demo.db", (TRACKERS / "trackio.sql").read_text())


def _database(path: Path, script: str) -> Path:
    with sqlite3.connect(path) as opened:
        opened.executescript(script)
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


class TestTrackio:
    def test_one_run_is_chosen_by_name_or_id(self, invoke: Invoke, trackio: Path) -> None:
        done = invoke("import", trackio, "--json")
        assert (done.code, "02411801 good, 5753d917 bad" in done.stderr) == (3, True)
        good = imported(invoke, trackio, "--session", "good")
        assert imported(invoke, trackio, "--session", "02411801") == good
        assert good["derivation"]["origin"]["format"] == "trackio"
        assert (good["run"]["name"], good["run"]["started_at"]) == ("good", "2026-11-30T16:14:40Z")
        assert (good["header"]["flags"], good["header"]["seeds"]) == (
            {"batch_size": 32, "lr": 0.0003, "optimizer": "adamw"},
            {"seed": 7},
        )
        assert "someone" not in json.dumps(good)

    def test_the_step_is_the_trainings_and_not_the_number_of_calls(self, invoke: Invoke, trackio: Path) -> None:
        good = imported(invoke, trackio, "--session", "good")
        assert good["summary"]["steps"] == {**good["summary"]["steps"], "first": 10, "last": 300, "record_count": 30}
        loss = figures(good)["loss"]
        assert (loss["first"], loss["last"], figures(good)["val_loss"]["last"]) == (4.5, 0.8985, 0.9985)
        assert good["derivation"]["problems"]["count"] == 0
        assert good["summary"]["realised"] is None  # rows have the time of their batch

    def test_a_value_that_is_not_finite_is_one(self, invoke: Invoke, trackio: Path) -> None:
        bad = imported(invoke, trackio, "--session", "bad")
        assert (bad["failure"]["reason"], bad["checks"]["finite_losses"]) == ("nan_loss", False)

    def test_without_a_training_step_its_own_counts(self, invoke: Invoke, tmp_path: Path) -> None:
        """Older releases have no ids of runs."""
        script = (
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT);"
            "CREATE TABLE configs (id INTEGER PRIMARY KEY, run_name TEXT, config TEXT, created_at TEXT);"
            "CREATE TABLE system_metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, metrics TEXT);"
        )
        for step in range(5):
            row = f"(timestamp, run_name, step, metrics) VALUES ('2025-09-01T10:00:0{step}', 'dainty', {step}, "
            script += f"INSERT INTO metrics {row}'{{\"loss\": {3 - step / 10}}}');"
        for step, cell in ((5, "'no object'"), (6, "17"), (7, "NULL"), ("'none'", "'{\"loss\": 1.0}'")):
            script += f"INSERT INTO metrics (run_name, step, metrics) VALUES ('dainty', {step}, {cell});"
        receipt = imported(invoke, _database(tmp_path / "old.db", script))
        assert (receipt["run"]["name"], receipt["summary"]["steps"]["last"]) == ("dainty", 4)
        assert receipt["derivation"]["problems"]["kinds"] == {
            "record_is_no_object": 3,
            "record_without_step": 1,
            "step_counts_calls": 1,
        }

    def test_nothing_is_written_beside_it(self, invoke: Invoke, trackio: Path) -> None:
        with sqlite3.connect(trackio) as opened:
            opened.execute("PRAGMA journal_mode = WAL")  # as Trackio opens it
        opened.close()
        imported(invoke, trackio, "--session", "good")
        assert [path.name for path in trackio.parent.iterdir()] == [trackio.name]

    def test_a_receipt_is_verified_with_its_run_of_several(self, invoke: Invoke, trackio: Path, tmp_path: Path) -> None:
        assert invoke("import", trackio, "--session", "good", "-o", tmp_path / "r.json").code == 0
        assert invoke("verify", tmp_path / "r.json", trackio).code == 0
        with sqlite3.connect(trackio) as opened:
            opened.execute("UPDATE metrics SET metrics = replace(metrics, '4.5', '4.6') WHERE run_name = 'good'")
        opened.close()
        assert invoke("verify", tmp_path / "r.json", trackio).code == 1


class TestNeptune:
    def test_the_parts_of_an_exported_run_are_one_run(self, invoke: Invoke) -> None:
        pytest.importorskip("duckdb")
        folder = TRACKERS / "neptune"
        receipt = imported(invoke, folder)
        part = next(folder.rglob("DEMO-1_part_1.parquet"))
        assert imported(invoke, part) == receipt
        assert (receipt["run"]["name"], receipt["run"]["started_at"]) == ("n1", "2026-11-30T09:00:00Z")
        steps = receipt["summary"]["steps"]
        assert (steps["first"], steps["last"], steps["record_count"]) == (10, 300, 30)
        loss = figures(receipt)["loss"]
        assert (loss["first"], loss["last"], figures(receipt)["val_loss"]["last"]) == (4.5, 0.8581, 0.9581)
        flags = {"parameters/bf16": True, "parameters/lr": 0.0003, "parameters/optimizer": "adamw"}
        assert (receipt["header"]["flags"], receipt["header"]["seeds"]) == (flags, {"parameters/seed": 7})
        assert "someone" not in json.dumps(receipt)

    def test_a_step_between_two_steps_and_a_machine_metric_are_no_record(self, invoke: Invoke) -> None:
        pytest.importorskip("duckdb")
        receipt = imported(invoke, TRACKERS / "neptune")
        assert receipt["derivation"]["problems"]["kinds"] == {"record_without_step": 1}
        assert receipt["summary"]["other_metrics"] == {}

    def test_several_runs_in_a_folder_are_imported_one_by_one(self, invoke: Invoke, tmp_path: Path) -> None:
        pytest.importorskip("duckdb")
        for part in (TRACKERS / "neptune").rglob("*.parquet"):
            shutil.copy(part, tmp_path / part.name)
            shutil.copy(part, tmp_path / part.name.replace("DEMO-1", "DEMO-2"))
        done = invoke("import", tmp_path)
        assert (done.code, "2 runs: DEMO-1_part_0.parquet, DEMO-2_part_0.parquet" in done.stderr) == (3, True)
        done = invoke("import", tmp_path, "--store", tmp_path / "runs", "--json")
        assert (done.code, len(done.stdout.splitlines())) == (0, 2)

    def test_a_table_of_several_runs_gives_the_chosen_one(self, invoke: Invoke) -> None:
        path = TRACKERS / "neptune-metrics.csv"
        done = invoke("import", path)
        assert (done.code, "column run: DEMO-1, DEMO-2" in done.stderr) == (3, True)
        receipt = imported(invoke, path, "--session", "DEMO-2")
        assert (receipt["run"]["name"], receipt["summary"]["steps"]["restart_count"]) == ("DEMO-2", 0)
        assert (figures(receipt)["loss"]["last"], figures(receipt)["val_loss"]["last"]) == (0.25, 0.2583)
        assert invoke("import", path, "--session", "DEMO-3").code == 3

    def test_values_of_one_series_have_no_name(self, invoke: Invoke) -> None:
        receipt = imported(invoke, TRACKERS / "neptune-values.csv")
        assert receipt["derivation"]["problems"]["kinds"] == {"metric_unnamed": 1}
        assert (receipt["summary"]["metrics"], figures(receipt, "other_metrics")["value"]["last"]) == ({}, 0.4167)


@pytest.mark.parametrize(
    ("name", "metric", "figures_"),
    [
        ("run-.-tag-Loss_train.csv", "loss", (4.5, 2.4423637)),
        ("run-validation-tag-epoch_loss.csv", "val_loss", (2.35, 0.7662274)),
    ],
)
def test_tensorboards_download_is_named_by_its_file(
    invoke: Invoke, tmp_path: Path, name: str, metric: str, figures_: tuple[float, float]
) -> None:
    receipt = imported(invoke, TRACKERS / name)
    assert receipt["derivation"]["origin"]["producer"] == "TensorBoard"
    found = figures(receipt)
    assert [*found] == [metric]
    assert (found[metric]["first"], found[metric]["last"]) == pytest.approx(figures_)
    shutil.copy(TRACKERS / name, tmp_path / "renamed.csv")
    assert imported(invoke, tmp_path / "renamed.csv")["summary"]["metrics"] == {}


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        ("step,comment\n1,first\n2,second\n", 3, "beside step, no column has a number: comment"),
        ("epoch,lr\n0,\n1,\n", 3, "beside epoch, no column has a number: lr"),
        ("name,loss\na,1.5\nb,1.25\n", 4, "no column is a step"),
        ("step,loss\nfirst,1.5\nsecond,1.25\n", 4, "column step has no whole numbers: first, second"),
    ],
)
def test_a_table_without_steps_or_figures_is_refused(invoke: Invoke, tmp_path: Path, text: str, code: int, why: str) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(text)
    done = invoke("import", path)
    assert done.code == code
    assert why in done.stderr and "try:" in done.stderr


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
