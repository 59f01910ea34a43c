"""``receipt export``: each format is read back by the program, the parser or the schema that it was made for."""

import csv
import hashlib
import io
import json
import math
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.export.openmetrics import family
from receipt_cli.export.otlp import UCUM
from receipt_cli.export.wandb_run import framed
from receipt_cli.io.protobuf import crc32c
from tests.cli.conftest import Invoke

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "fixtures" / "logs" / "nanochat" / "speedrun-2025-10.log"
TEXTS = ("openmetrics", "otlp-json", "csv", "in-toto", "bmf")
AT = "2026-03-01T12:00:00Z"


def steps_log(path: Path, steps: int, *, nan_at: int | None = None) -> Path:
    """Write a Megatron-LM log: the loss is 10 / step, and that of validation, every 100 steps, step / 100."""
    lines = []
    for step in range(1, steps + 1):
        loss = "nan" if step == nan_at else f"{10 / step:.6f}"
        lines.append(
            f" iteration {step:8d}/{steps:8d} | consumed samples: {step * 8:12d} | elapsed time per iteration (ms): 400.0 | "
            f"learning rate: 6.0e-4 | global batch size:     8 | lm loss: {loss} | loss scale: 1.0 | grad norm: 1.000 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )
        if step % 100 == 0:
            lines.append(f" validation loss at iteration {step} | lm loss value: {step / 100:.6E} | lm loss PPL: 2.0E+00 |\n")
    path.write_text("".join(lines))
    return path


@pytest.fixture
def receipt(tmp_path: Path, invoke: Invoke) -> Path:
    made = tmp_path / "receipt.json"
    assert invoke("parse", LOG, "-o", made, "--lane", 'h100"x8\\', "--preset", "speedrun", "--name", "run 7").code == 0
    return made


def reading(program: str, *arguments: str | Path) -> Any:
    """Return what ``program`` prints as JSON, run by itself: the readers warn of their own."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


class TestEveryFormat:
    @pytest.mark.parametrize("name", TEXTS)
    def test_a_text_is_the_same_each_time_and_in_a_file(self, name: str, receipt: Path, tmp_path: Path, invoke: Invoke) -> None:
        first = invoke("export", receipt, "--to", name)
        done = invoke("export", receipt, "--to", name, "-o", tmp_path / "out")
        assert (first.code, done.code, done.stdout) == (0, 0, b"")
        assert first.stdout == (tmp_path / "out").read_bytes() != b""

    @pytest.mark.parametrize("name", TEXTS)
    def test_figures_do_not_depend_on_whether_the_log_or_its_receipt_was_given(
        self, name: str, tmp_path: Path, invoke: Invoke
    ) -> None:
        made = tmp_path / "r.json"
        invoke("parse", LOG, "-o", made)
        of_log, of_receipt = (invoke("export", given, "--to", name) for given in (LOG, made))
        assert (of_log.stdout == of_receipt.stdout) == (name != "csv")

    @pytest.mark.parametrize("name", ["tensorboard", "wandb"])
    def test_a_folder_has_the_same_bytes_each_time(self, name: str, tmp_path: Path, invoke: Invoke) -> None:
        for folder in ("a", "b", "b"):
            assert invoke("export", LOG, "--to", name, "-o", tmp_path / folder).code == 0
        folders = (tmp_path / "a", tmp_path / "b")
        found = [{p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders]
        assert found[0] == found[1]
        assert len(found[0]) == 1

    def test_a_receipt_has_no_curves_and_that_is_said(self, receipt: Path, tmp_path: Path, invoke: Invoke) -> None:
        done = invoke("export", receipt, "--to", "csv")
        assert "no curves: export its log" in done.stderr

    @pytest.mark.parametrize(
        ("arguments", "code", "told"),
        [
            (["LOG", "--to", "tensorboard"], 2, "needs an output path"),
            (["LOG", "--to", "bmf", "--max-steps", "5"], 2, "--max-steps"),
            (["LOG", "--to", "bmf", "--at", "yesterday"], 2, "--at"),
            (["LOG", "--to", "bmf", "--at", "2026-03-01T12:00:00"], 2, "--at"),
            (["LOG", "--to", "nothing"], 2, "nothing"),
            (["missing.log", "--to", "bmf"], 3, "missing.log"),
            (["README", "--to", "bmf"], 4, "no grammar"),
            (["LOG", "--to", "bmf", "-o", "nowhere/there/x"], 6, "cannot write"),
        ],
    )
    def test_what_cannot_be_exported(self, arguments: list[str], code: int, told: str, tmp_path: Path, invoke: Invoke) -> None:
        (tmp_path / "README").write_text("some words\nof no trainer\n")
        given = {"LOG": str(LOG), "README": str(tmp_path / "README"), "nowhere/there/x": str(tmp_path / "nowhere/there/x")}
        done = invoke("export", *(given.get(a, a) for a in arguments))
        assert (done.code, done.stdout) == (code, b"")
        assert told in done.stderr


class TestOpenMetrics:
    def samples(self, receipt: Path, invoke: Invoke) -> tuple[str, list[Any]]:
        parser = pytest.importorskip("prometheus_client.openmetrics.parser")
        text = invoke("export", receipt, "--to", "openmetrics").stdout.decode()
        return text, list(parser.text_string_to_metric_families(text))

    def test_the_parser_of_prometheus_reads_every_figure_with_its_unit(self, receipt: Path, invoke: Invoke) -> None:
        text, families = self.samples(receipt, invoke)
        document = json.loads(receipt.read_text())
        by_name = {family.name: family for family in families}
        assert by_name["training_step_time_seconds"].unit == "seconds"
        assert by_name["training_tokens_per_second"].unit == "tokens_per_second"
        assert by_name["training_peak_memory_allocated_bytes"].unit == "bytes"
        checked = 0
        for number, phase in enumerate(document["phases"]):
            for name, statistic in phase["summary"]["metrics"].items():
                found = {
                    s.labels["statistic"]: s.value
                    for s in by_name[family(load_registry().by_name[name]).name].samples
                    if s.labels["phase_index"] == str(number) and s.labels["source"] == "reported"
                }
                assert found == {k: statistic[k] for k in ("first", "last", "min", "max", "mean", "median")}
                checked += 1
        assert checked > 15
        assert {s.labels["lane"] for f in families for s in f.samples} == {'h100"x8\\'}
        assert {s.labels["check"]: s.value for s in by_name["training_check"].samples}["has_steps"] == 1
        assert text.endswith("# EOF\n")

    def test_the_older_parser_reads_the_same(self, receipt: Path, invoke: Invoke) -> None:
        """The textfile collector takes the older text format, without times and without types of OpenMetrics."""
        parser = pytest.importorskip("prometheus_client.parser")
        text, families = self.samples(receipt, invoke)
        older = [(s.name, s.labels, s.value) for f in parser.text_string_to_metric_families(text) for s in f.samples]
        assert sorted(map(str, older)) == sorted(str((s.name, s.labels, s.value)) for f in families for s in f.samples)
        assert {f.type for f in families} == {"gauge"}
        assert not [s for f in families for s in f.samples if s.timestamp is not None]

    def test_names_and_units_of_the_whole_registry(self) -> None:
        metrics = load_registry().metrics
        families = [family(metric) for metric in metrics]
        assert len({name for name, _ in families}) == len(metrics)
        assert not [f for f in families if f.unit and not f.name.endswith(f"_{f.unit}")]
        units = {m.name: family(m).unit for m in metrics}
        with_unit = ("s", "byte", "token/s", "sample/s", "step/s", "flop/s")
        assert not [m.name for m in metrics if m.unit in with_unit and not units[m.name]]
        assert {m.unit for m in metrics} <= set(UCUM)


class TestOtlp:
    def test_the_messages_of_opentelemetry_hold_it(self, receipt: Path, invoke: Invoke) -> None:
        metrics = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
        from google.protobuf import json_format

        data = invoke("export", receipt, "--to", "otlp-json", "--at", AT).stdout
        request = json_format.Parse(data, metrics.ExportMetricsServiceRequest())
        assert data.count(b"\n") == 1
        resource = {a.key: a.value for a in request.resource_metrics[0].resource.attributes}
        assert resource["service.name"].string_value == 'h100"x8\\'
        assert resource["receipt.model.parameter_count"].int_value == 560988160
        found = {m.name: m for m in request.resource_metrics[0].scope_metrics[0].metrics}
        assert (found["training.step_time_s"].unit, found["training.tokens_per_s"].unit) == ("s", "{token}/s")
        told = json.loads(receipt.read_text())["summary"]["metrics"]["step_time_s"]
        points = {
            a.value.string_value: p
            for p in found["training.step_time_s"].gauge.data_points
            for a in p.attributes
            if a.key == "statistic" and p.attributes[0].value.int_value == 0
        }
        assert points["median"].as_double == told["median"]
        assert {p.time_unix_nano for p in points.values()} == {1772366400 * 10**9}
        for metric in found.values():
            assert len(metric.gauge.data_points) == len({str(point.attributes) for point in metric.gauge.data_points}) > 0

    def test_a_time_that_nobody_knows_is_left_out(self, receipt: Path, invoke: Invoke) -> None:
        assert b"timeUnixNano" not in invoke("export", receipt, "--to", "otlp-json").stdout


def read_statement(document: dict[str, Any]) -> None:
    """Hold a document against the rules of in-toto."""
    from google.protobuf import json_format
    from in_toto_attestation.v1 import statement, statement_pb2

    statement.Statement.copy_from_pb(json_format.ParseDict(document, statement_pb2.Statement())).validate()


class TestDocuments:
    def test_the_statement_is_of_the_log_and_says_the_receipt(self, receipt: Path, invoke: Invoke) -> None:
        document = invoke("export", receipt, "--to", "in-toto").document
        read_statement(document)
        assert document["subject"] == [{"name": "run 7", "digest": {"sha256": hashlib.sha256(LOG.read_bytes()).hexdigest()}}]
        assert document["predicateType"] == "urn:receipt:predicate:receipt:1"
        assert document["predicate"] == json.loads(receipt.read_text())

    def test_the_statement_of_several_files_names_each(self, tmp_path: Path, invoke: Invoke) -> None:
        text = steps_log(tmp_path / "all", 40).read_text().splitlines(keepends=True)
        logs = [tmp_path / "run.log.1", tmp_path / "run.log"]
        for path, lines in zip(logs, (text[:20], text[20:]), strict=True):
            path.write_text("".join(lines))
        made = tmp_path / "r.json"
        assert invoke("parse", *logs, "-o", made).code == 0
        document = invoke("export", made, "--to", "in-toto").document
        read_statement(document)
        assert [(s["name"], s["digest"]["sha256"]) for s in document["subject"]] == [
            (p.name, hashlib.sha256(p.read_bytes()).hexdigest()) for p in logs
        ]

    def test_bencher_metric_format(self, receipt: Path, invoke: Invoke) -> None:
        document = invoke("export", receipt, "--to", "bmf").document
        ((name, measures),) = document.items()
        for measure in measures.values():  # of the schema bencher.dev/bmf.json
            assert {"value"} <= set(measure) <= {"value", "lower_value", "upper_value"}
            assert all(type(value) in (int, float) for value in measure.values())
        told = json.loads(receipt.read_text())["summary"]["metrics"]
        assert name == 'h100"x8\\ / speedrun'
        time = told["step_time_s"]
        assert measures["step_time_s"] == {"value": time["median"], "lower_value": time["min"], "upper_value": time["max"]}
        assert measures["loss"]["value"] == told["loss"]["last"]
        assert all(m.get("lower_value", m["value"]) <= m["value"] <= m.get("upper_value", m["value"]) for m in measures.values())

    def test_a_run_without_lane_is_a_benchmark_that_the_next_one_is_too(self, invoke: Invoke) -> None:
        assert list(invoke("export", LOG, "--to", "bmf").document) == ["training"]


class TestTables:
    def test_csv_of_a_log_has_each_value_where_it_was_printed(self, tmp_path: Path, invoke: Invoke) -> None:
        data = invoke("export", steps_log(tmp_path / "a.log", 250, nan_at=7), "--to", "csv").stdout.decode()
        rows = list(csv.DictReader(io.StringIO(data)))
        assert [int(row["step"]) for row in rows] == list(range(1, 251))
        assert [float(row["loss"]) for row in rows if row["step"] != "7"] == [round(10 / s, 6) for s in range(1, 251) if s != 7]
        assert math.isnan(float(rows[6]["loss"]))
        assert [(row["step"], row["val_loss"]) for row in rows if row["val_loss"]] == [("100", "1.0"), ("200", "2.0")]
        assert {row["step_time_s"] for row in rows} == {"0.4"}

    def test_a_long_curve_is_thinned_and_that_is_said(self, tmp_path: Path, invoke: Invoke) -> None:
        """Both ends, each evaluation and the first value that is not finite stay."""
        log = steps_log(tmp_path / "a.log", 1000, nan_at=333)
        done = invoke("export", log, "--to", "csv", "--max-steps", "10")
        rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
        losses = [int(row["step"]) for row in rows if row["loss"]]
        assert (len(losses), losses[0], losses[-1], 333 in losses) == (11, 1, 1000, True)
        assert len([row for row in rows if row["val_loss"]]) == 10
        assert "more than 10 steps" in done.stderr

    def test_no_cell_is_a_formula(self, receipt: Path, invoke: Invoke) -> None:
        document = json.loads(receipt.read_text())
        document["phases"][0]["name"] = document["phases"][0]["summary"]["phase"] = "=1+1"
        document["summary"] = document["phases"][0]["summary"]
        receipt.write_text(json.dumps(document))
        rows = list(csv.DictReader(io.StringIO(invoke("export", receipt, "--to", "csv").stdout.decode())))
        assert rows[0]["phase"] == "'=1+1"

    def test_parquet(self, receipt: Path, tmp_path: Path, invoke: Invoke) -> None:
        duckdb = pytest.importorskip("duckdb")
        for given, name in ((LOG, "log"), (receipt, "receipt")):
            assert invoke("export", given, "--to", "parquet", "-o", tmp_path / name).code == 0
        told = json.loads(receipt.read_text())
        query = f"select median from read_parquet('{tmp_path / 'receipt'}') where metric = 'loss' and phase_index = 0"
        assert duckdb.sql(query).fetchall() == [(told["summary"]["metrics"]["loss"]["median"],)]
        query = f"select median(loss) from read_parquet('{tmp_path / 'log'}') where phase_index = 0 and event = 'step'"
        assert duckdb.sql(query).fetchall() == [(told["summary"]["metrics"]["loss"]["median"],)]


TENSORBOARD = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0}); found.Reload()
scalars = {t: [(e.step, e.value, e.wall_time) for e in found.Scalars(t)] for t in found.Tags()["scalars"]}
text = found.Tensors("receipt")[0].tensor_proto.string_val[0].decode()
print(json.dumps({"scalars": scalars, "text": text, "about": found.SummaryMetadata("loss").summary_description}))
"""


class TestTensorBoard:
    def test_the_event_accumulator_reads_every_scalar(self, tmp_path: Path, invoke: Invoke) -> None:
        pytest.importorskip("tensorboard")
        log = steps_log(tmp_path / "a.log", 250)
        assert invoke("export", log, "--to", "tensorboard", "-o", tmp_path / "tb", "--at", AT).code == 0
        found = reading(TENSORBOARD, tmp_path / "tb")
        loss = found["scalars"]["loss"]
        assert [step for step, *_ in loss] == list(range(1, 251))
        single = [struct.unpack("<f", struct.pack("<f", round(10 / s, 6)))[0] for s in range(1, 251)]
        assert [value for _, value, _ in loss] == single
        assert {at for *_, at in loss} == {1772366400.0}
        assert [(s, v) for s, v, _ in found["scalars"]["val_loss"]] == [(100, 1.0), (200, 2.0)]
        assert "log_sha256" in found["text"]
        assert found["about"].endswith("Unit: 1.")

    def test_the_checksum_is_that_of_rfc_3720(self) -> None:
        assert (crc32c(bytes(32)), crc32c(b"\xff" * 32), crc32c(bytes(range(32)))) == (0x8A9136AA, 0x62A8AB43, 0x46DD794E)

    def test_phases_stand_apart_and_what_has_no_step_is_a_summary(self, tmp_path: Path, invoke: Invoke) -> None:
        pytest.importorskip("tensorboard")
        done = invoke("export", LOG, "--to", "tensorboard", "-o", tmp_path / "tb")
        assert "printed without a step" in done.stderr
        scalars = reading(TENSORBOARD, tmp_path / "tb")["scalars"]
        assert [len(scalars[tag]) for tag in ("loss", "mid_train/loss", "chat_sft/loss")] == [60, 20, 14]
        ((_, memory, _),) = scalars["summary/peak_memory_allocated_bytes/max"]
        assert memory == pytest.approx(79081787883.52)


class TestWandb:
    def inspect(self, path: Path, *options: str) -> str:
        pytest.importorskip("wandb")
        program = "from wandb.cli.cli import cli; cli()"
        done = subprocess.run(
            [sys.executable, "-c", program, "leet", "inspect", "--json", *options, str(path)],
            capture_output=True, text=True, timeout=120, check=False,
            env={"PATH": "/usr/bin:/bin", "WANDB_ERROR_REPORTING": "false"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def test_wandb_reads_run_history_and_summary(self, tmp_path: Path, invoke: Invoke) -> None:
        """Long enough for several blocks of the file."""
        log = steps_log(tmp_path / "a.log", 600, nan_at=7)
        assert invoke("export", log, "--to", "wandb", "-o", tmp_path / "w", "--at", AT).code == 0
        (path,) = (tmp_path / "w" / "wandb").glob("offline-run-20260301_120000-*/run-*.wandb")
        assert path.stat().st_size > 3 * 32768
        records = [json.loads(line) for line in self.inspect(path).splitlines()]
        history = [r["history"]["item"] for r in records if r["type"] == "history"]
        assert [row["_step"] for row in history] == list(range(1, 601))
        assert [row["loss"] for row in history if row["_step"] != 7] == [round(10 / s, 6) for s in range(1, 601) if s != 7]
        assert history[6]["loss"] == "NaN"
        told = json.loads(self.inspect(path, "--summary"))
        assert (told["state"], told["step"], told["config"]["log_sha256"]) == (
            "finished", 600, hashlib.sha256(log.read_bytes()).hexdigest()
        )  # fmt: skip
        assert told["summary"]["step_time_s"]["median"] == 0.4
        assert not {"host", "telemetry"} & set(next(r["run"] for r in records if r["type"] == "run"))


@pytest.mark.parametrize("size", [*range(32768 - 40, 32768 + 3), 3 * 32768, 70_000])
def test_a_record_of_any_size_is_framed_whole(size: int) -> None:
    """Also one that leaves too little room for the next header, and one that begins there."""
    records = [bytes([1]) * size, b"second", bytes([3]) * 40_000]
    assert list(unframed(framed(records))) == records


def unframed(data: bytes) -> Iterator[bytes]:
    """Yield the records of LevelDB's log format, after the header of the file; every checksum must hold."""
    assert data[:7] == b":W&B\xe1\xbe\x00"
    at, record, begun = 7, b"", False
    while at < len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
        checksum, length, kind = struct.unpack_from("<IHB", data, at)
        part = data[at + 7 : at + 7 + length]
        assert checksum == zlib.crc32(bytes([kind]) + part)
        assert at % 32768 + 7 + length <= 32768
        assert (kind in (1, 2)) != begun
        record += part
        at += 7 + length
        if kind in (1, 4):
            yield record
            record = b""
        begun = kind in (2, 3)


MLFLOW = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient(tracking_uri="sqlite:///" + sys.argv[1])
experiment = client.get_experiment_by_name(sys.argv[2])
(run,) = client.search_runs([experiment.experiment_id])
history = [(m.step, m.value, m.timestamp) for m in client.get_metric_history(run.info.run_id, "loss")]
told = json.load(open(client.download_artifacts(run.info.run_id, "receipt.json")))
print(json.dumps({"history": history, "metrics": run.data.metrics, "params": run.data.params, "tags": run.data.tags,
                  "status": run.info.status, "name": run.info.run_name, "digest": told["derivation"]["log"]["sha256"]}))
"""


class TestMlflow:
    def test_without_it_the_way_to_get_it_is_told(self, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "mlflow", None)
        done = invoke("export", LOG, "--to", "mlflow", "-o", tmp_path / "m.db")
        assert done.code == 2
        assert "pip install 'receipt-cli[mlflow]'" in done.stderr
        assert not (tmp_path / "m.db").exists()

    def test_its_client_reads_the_run_and_a_second_export_is_refused(self, tmp_path: Path, process: Invoke) -> None:
        pytest.importorskip("mlflow")
        pytest.importorskip("sqlalchemy")
        log, store = steps_log(tmp_path / "a.log", 250), tmp_path / "new" / "mlflow.db"
        done = process("export", log, "--to", "mlflow", "-o", store, "--at", AT)
        assert done.code == 0, done.stderr
        assert [line for line in done.stderr.splitlines() if not line.startswith("receipt: note: ")] == []
        found = reading(MLFLOW, store, "training")
        assert found["history"] == [[s, round(10 / s, 6), 1772366400000] for s in range(1, 251)]
        digest = hashlib.sha256(log.read_bytes()).hexdigest()
        assert (found["params"]["log_sha256"], found["digest"], found["status"]) == (digest, digest, "FINISHED")
        assert found["metrics"]["summary/step_time_s/median"] == 0.4
        again = process("export", log, "--to", "mlflow", "-o", store)
        assert again.code == 6
        assert "already in the database" in again.stderr
