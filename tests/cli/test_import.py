"""``receipt import``: other systems' records of a run become receipts that say what the document says, and no more."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.receipts.versions import SCHEMA_VERSION
from tests.cli.test_systems import says

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = ROOT / "fixtures" / "foreign"
WANDB = FOREIGN / "wandb" / "wandb-summary.json"
FORMATS = {
    "hf-trainer-state.json": "hf-trainer-state",
    "hf-trainer-state-checkpoint.json": "hf-trainer-state",
    "forgather-trainer-logs.json": "forgather-trainer-logs",
    "forgather-trainer-logs-crashed.json": "forgather-trainer-logs",
    "megacpp-training-receipt.json": "megacpp-training-receipt",
    "megacpp-training-receipt-oom.json": "megacpp-training-receipt",
    "megacpp-fa4-receipt.json": "megacpp-fa4-receipt",
    "megacpp-profile-lane.json": "megacpp-profile-lane",
    "megacpp-compile-receipt.json": "megacpp-compile-receipt",
    "megacpp-goodput-summary.json": "megacpp-goodput-summary",
    "cppmega-run-summary.json": "cppmega-run-summary",
    "cppmega-mlx-receipt.json": "cppmega-mlx-receipt",
    "nanochat-report.md": "nanochat-report",
    "wandb-summary.json": "wandb-summary",
    "wandb/wandb-summary.json": "wandb-summary",
}
FIGURES = ("first", "last", "min", "max", "mean", "median")

Import = Callable[..., dict[str, Any]]


@pytest.fixture
def imported(invoke: Callable[..., Any]) -> Import:
    """Import a document and return the receipt."""

    def call(path: Path | str, *options: str) -> dict[str, Any]:
        done = invoke("import", FOREIGN / path if isinstance(path, str) else path, "--json", *options)
        assert (done.code, done.stderr) == (0, ""), done.stderr
        return done.document

    return call


def figures(receipt: dict[str, Any], metric: str) -> dict[str, float]:
    """Return the figures of a metric that are known."""
    statistic = receipt["summary"]["metrics"][metric]
    return {name: statistic[name] for name in FIGURES if statistic[name] is not None}


def problems(receipt: dict[str, Any]) -> list[tuple[str, str]]:
    """Return kind and place of the problems that are told."""
    return [(p["kind"], p["detail"].split(":")[0]) for p in receipt["derivation"]["problems"]["first"]]


def test_every_fixture_is_in_the_table() -> None:
    found = {str(path.relative_to(FOREIGN)) for path in FOREIGN.rglob("*") if path.is_file()}
    beside = {str(path.relative_to(FOREIGN)) for path in (FOREIGN / "trackers").rglob("*")}  # tests/cli/test_import_trackers.py
    beside |= {"cppmega-comparison.json", "hf-trainer-state.log", "wandb/config.yaml", "wandb/wandb-metadata.json"}
    beside |= {f"scores/{path.name}" for path in (FOREIGN / "scores").iterdir()}  # tests/cli/test_import_scores.py
    assert found - beside == FORMATS.keys()


@pytest.mark.parametrize(("name", "wanted"), FORMATS.items())
def test_a_receipt_names_its_origin_and_is_valid(
    imported: Import, invoke: Callable[..., Any], tmp_path: Path, name: str, wanted: str
) -> None:
    receipt = imported(name, "-o", str(tmp_path / "receipt.json"))
    derivation = receipt["derivation"]
    assert receipt["schema_version"] == SCHEMA_VERSION
    assert derivation["origin"]["kind"] == "import"
    assert derivation["origin"]["format"] == wanted
    assert (derivation["rules"], derivation["grammars"]) == ("import/2", [])
    assert sum(derivation["lines"].values()) == derivation["log"]["record_count"] > 0
    assert invoke("schema", "check", tmp_path / "receipt.json").code == 0
    shown = invoke("show", tmp_path / "receipt.json")
    assert shown.code == 0
    assert invoke("import", FOREIGN / name, "--format", wanted, "--json").stdout == (tmp_path / "receipt.json").read_bytes()


@pytest.mark.parametrize("name", FORMATS)
def test_only_the_bytes_decide(invoke: Callable[..., Any], tmp_path: Path, name: str) -> None:
    alone = invoke("import", "-", "--json", stdin=(FOREIGN / name).read_bytes()).stdout
    packed = tmp_path / "elsewhere.gz"
    packed.write_bytes(gzip.compress((FOREIGN / name).read_bytes()))
    assert invoke("import", packed, "--json").stdout == alone


def test_a_trainer_state_agrees_with_the_log_of_the_same_run(imported: Import, invoke: Callable[..., Any]) -> None:
    state = imported("hf-trainer-state.json")["summary"]
    log = invoke("parse", FOREIGN / "hf-trainer-state.log", "--json").document["summary"]
    assert state["steps"]["record_count"] == log["steps"]["record_count"] == 20
    assert state["steady_state"] == log["steady_state"]
    assert set(log["metrics"]) == set(state["metrics"]) - {"total_flops"}
    for name, printed in log["metrics"].items():
        exact = state["metrics"][name]
        of_a_log = (*FIGURES, "places", "printed_digits")
        ours, theirs = ({k: v for k, v in one.items() if k not in of_a_log} for one in (exact, printed))
        assert exact["printed_digits"] is None and printed["printed_digits"] is not None
        assert ours == theirs
        for figure in FIGURES:
            assert exact[figure] == pytest.approx(printed[figure], rel=2e-3), (name, figure)


SAYS: dict[str, dict[str, Any]] = {
    "hf-trainer-state.json": {
        "/summary/steps": {
            "first": 2, "last": 40, "planned": 40, "record_count": 20, "restart_count": 0, "superseded_count": 0,
            "first_line": 12, "last_line": 229,
        },
        "/summary/training_time_s": 25.2509, "/checks/completed": True,
        "/header/sources": lambda sources: sources["/software/trainer"] == "import:/log_history",
    },
    "hf-trainer-state-checkpoint.json": {  # says neither that the run failed nor that it is done
        "/summary/steps/last": 20, "/summary/steps/planned": 40, "/failure": None, "/checks/completed": None,
        "/checks/no_oom": None,
    },
    "forgather-trainer-logs-crashed.json": {  # an array that a crash left open is read as far as it goes
        "/summary/metrics/loss/record_count": 7, "/summary/metrics/loss/nonfinite_count": 1, "/failure/reason": "truncated",
        "/derivation/lines": {"matched": 8, "ignored": 0, "unmatched": 1, "undecodable": 0},
        "/derivation/problems/first/0/line_number": 10, "/checks/completed": False, "/checks/finite_losses": False,
    },
    "forgather-trainer-logs.json": {
        "/summary/steps/first": 100, "/summary/steps/last": 1200, "/summary/steps/record_count": 12,
        "/summary/training_time_s": 383.75, "/summary/metrics/grad_norm/definition": "rms_since_last_record",
        "/summary/metrics/tokens_per_s": None,  # all tokens by this session's time: no rate after a resume
        "/summary/other_metrics/tokens_per_second/last": 12808.3, "/failure": None, "/checks/completed": True,
    },
    "megacpp-training-receipt-oom.json": {
        "/failure/reason": "cuda_oom", "/failure/category": "memory", "/failure/log_tail/1": "Traceback (most recent call last):",
        "/failure/message": lambda text: text.startswith("torch.OutOfMemoryError: CUDA out of memory."),
        "/checks/no_oom": False, "/checks/zero_exit_code": False, "/checks/completed": False, "/summary/metrics/mfu_ratio": None,
        "problems": [("ambiguous_unit", "/summary/mean_mfu")],
    },
    "cppmega-run-summary.json": {
        "step_time_s": {"mean": 2.314207}, "loss": {"last": 6.125031}, "val_loss": {"last": 6.25},
        "/summary/metrics/test_loss": None,
        "/summary/metrics/peak_memory_allocated_bytes/max": 41339060224, "/summary/steps/first": None, "/summary/steps/last": 20,
        "/run/name": "bf16", "/attachments/0/kind": "log", "/attachments/1/kind": "torch_trace", "/attachments/2": None,
        "problems": lambda found: ("artifact_missing", "/artifacts/1") in found,
    },
    "megacpp-profile-lane.json": {
        "/summary/metrics/tokens_per_s/mean": 162000.5,
        "/summary/metrics/tokens_per_s/definition": "timed_loop_without_warmup", "/summary/steps/record_count": 12,
        "/summary/training_time_s": 31.25, "/header/execution": {"dense_fa4": {"observed": False, "requested": True}},
        "problems": [("ambiguous_unit", "/peak_mem_gb")],
    },
    "megacpp-compile-receipt.json": {
        "/header/flags/compile_enabled": True, "/header/flags/compile_warmup_reason": "explicit_cuda_warmup",
        "/header/sources": lambda sources: sources["/flags/compile_warmup"] == "import:/compile_warmup/enabled",
        "/checks/has_steps": None,
    },
    "megacpp-goodput-summary.json": {
        "/summary/metrics/step_time_s/mean": 0.49, "/summary/other_metrics/goodput/last": 0.9173,
        "/summary/training_time_s": 10485.12,
    },
    "cppmega-mlx-receipt.json": {
        "/summary/steps/planned": 8, "/summary/steps/record_count": 8, "/summary/steps/last": 8,
        "/summary/metrics/tokens_per_s/record_count": 7,  # one of eight warms up
        "/summary/consistency/0/consistent": True, "/summary/parameter_count": 4194304,
        "/header/hardware/accelerators": [{"name": "Apple M4 Max", "count": 1, "memory_bytes": None}],
        "/header/sources": lambda sources: sources["/git/commit"] == "import:/software/git_commit",
        "/checks/completed": True, "/derivation/problems/count": 0,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SAYS)
def test_a_document_says(imported: Import, name: str) -> None:
    receipt = imported(name)
    places = {at: wanted for at, wanted in SAYS[name].items() if at.startswith("/")}
    assert says(receipt, places) == {}
    for other, wanted in SAYS[name].items():
        found = problems(receipt) if other == "problems" else figures(receipt, other) if other not in places else wanted
        assert wanted(found) if callable(wanted) and other == "problems" else found == wanted


def test_aggregates_are_taken_over_and_nothing_is_made_up(imported: Import) -> None:
    receipt = imported("megacpp-training-receipt.json")
    summary = receipt["summary"]
    assert figures(receipt, "tokens_per_s") == {"min": 251002.0, "max": 256871.0, "mean": 254310.5, "median": 254128.0}
    assert summary["metrics"]["tokens_per_s"]["record_count"] == 190
    assert figures(receipt, "loss") == {"first": 10.9731, "last": 3.8125, "mean": 4.9127}
    assert summary["metrics"]["loss"]["record_count"] == 0  # of how many values the mean is, the receipt does not say
    assert figures(receipt, "mfu_ratio") == {"mean": 0.1783}
    assert figures(receipt, "peak_memory_bytes")["max"] == 61240.5 * 2**20
    assert summary["steady_state"] == {"rule": "import/2", "record_count": 190, "excluded_warmup": 10, "excluded_implausible": 0}
    assert (summary["steps"]["record_count"], summary["steps"]["first"]) == (200, None)
    core = {"finite_losses": True, "zero_exit_code": True, "has_steps": True, "no_oom": True}
    assert {name: receipt["checks"][name] for name in core} == core
    assert receipt["header"]["git"]["commit"] == "3f2c9e1d"
    assert receipt["derivation"]["origin"]["format_version"] == "2026-03"


def test_steps_with_milliseconds_are_computed_and_gigabytes_are_not_guessed(imported: Import) -> None:
    receipt = imported("megacpp-fa4-receipt.json")
    steps = json.loads((FOREIGN / "megacpp-fa4-receipt.json").read_text())["per_step"]
    assert receipt["summary"]["metrics"]["step_time_s"]["first"] == 14.21075
    assert receipt["summary"]["metrics"]["step_time_s"]["record_count"] == len(steps) - 1
    assert figures(receipt, "tokens_per_s") == {"min": 158820.0, "max": 163010.0, "mean": 161044.2}
    assert not {name for name in receipt["summary"]["metrics"] if "memory" in name}
    assert problems(receipt) == [
        ("ambiguous_unit", "/execution_surface/gpu_mem_gb"), ("ambiguous_unit", "/execution_surface/peak_memory_gb"),
    ]  # fmt: skip
    assert receipt["run"]["exit_code"] == 0
    assert receipt["header"]["execution"] == {"attention_backend": {"requested": None, "observed": "fa4"}}


def test_a_stated_figure_that_the_records_contradict_is_told(imported: Import, tmp_path: Path) -> None:
    document = json.loads((FOREIGN / "megacpp-fa4-receipt.json").read_text())
    document["summary"]["loss_last"] += 0.5
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(document))
    receipt = imported(path)
    assert ("figures_differ", "loss") in problems(receipt)
    assert receipt["summary"]["metrics"]["loss"]["last"] == document["per_step"][-1]["loss"]


def test_figures_that_cannot_all_be_true_are_left_out(imported: Import, tmp_path: Path) -> None:
    document = json.loads((FOREIGN / "megacpp-training-receipt.json").read_text())
    document["summary"]["min_tok_sec"] = 300000.0
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(document))
    receipt = imported(path)
    assert ("figures_contradict", "tokens_per_s") in problems(receipt)
    assert "tokens_per_s" not in receipt["summary"]["metrics"]


def test_a_report_has_phases_and_lines_and_text_of_a_model_is_no_figure(imported: Import) -> None:
    receipt = imported("nanochat-report.md")
    assert [phase["name"] for phase in receipt["phases"]] == ["base_train", "chat_sft"]
    assert receipt["summary"]["training_time_s"] == 9631.2
    assert receipt["summary"]["steps"]["planned"] == 7079
    assert figures(receipt, "val_bpb") == {"last": 0.9014, "min": 0.9012}
    assert figures(receipt, "mfu_ratio") == {"last": 0.3825}
    assert figures(receipt, "peak_memory_bytes")["max"] == 38211.25 * 2**20
    assert figures(receipt, "core_metric_ratio")["last"] == 0.129
    assert receipt["phases"][1]["summary"]["other_metrics"]["ARC-Easy"]["last"] == 0.3312
    header = receipt["header"]
    assert header["git"] == {
        "commit": "a83646e", "branch": "master", "dirty": False,
        "message": "add a second learning rate to the tokenizer: none of it is used",
    }  # fmt: skip
    assert header["hardware"]["accelerators"] == [{"name": "NVIDIA A100-SXM4-40GB", "count": 4, "memory_bytes": None}]
    assert (header["hardware"]["cpu_count"], header["hardware"]["ram_bytes"]) == (96, None)  # 503.5 GB is rounded
    assert header["sources"]["/git/commit"] == "log:9"
    assert receipt["run"]["started_at"] is None  # local time, of which zone nobody says


def test_a_report_without_its_last_stage_proves_no_good_end(imported: Import, tmp_path: Path) -> None:
    text = (FOREIGN / "nanochat-report.md").read_text()
    path = tmp_path / "report.md"
    path.write_text(text[: text.index("## Chat SFT")])
    checks = imported(path)["checks"]
    assert (checks["completed"], checks["no_oom"], checks["has_steps"]) == (None, None, True)


def test_a_wandb_summary_holds_last_values_only(imported: Import) -> None:
    receipt = imported("wandb/wandb-summary.json")
    metrics = receipt["summary"]["metrics"]
    assert {name: figures(receipt, name) for name in metrics} == {
        "loss": {"last": 3.0625},
        "learning_rate_multiplier": {"last": 0.05},
        "tokens_per_s": {"last": 262144.0},
        "mfu_ratio": {"last": 0.3825},
        "step_time_s": {"last": 0.25},
        "total_flops": {"last": 4.144682e18},
        "val_bpb": {"last": 0.9014},
        "core_metric_ratio": {"last": 0.1312},
    }
    assert set(receipt["summary"]["other_metrics"]) == {"centered_results/boolq", "centered_results/piqa"}
    assert receipt["summary"]["steps"]["last"] == 7079  # wandb's own _step counts calls
    assert receipt["checks"]["completed"] is None


def test_what_stands_beside_a_wandb_summary_says_who_ran_it_where(imported: Import, tmp_path: Path) -> None:
    receipt = imported("wandb/wandb-summary.json")
    header = receipt["header"]
    assert header["hardware"] == {
        "accelerators": [{"name": "NVIDIA A100-SXM4-40GB", "count": 2, "memory_bytes": 42949672960}],
        "cpu_count": 96, "ram_bytes": 540606750720,
    }  # fmt: skip
    assert header["seeds"] == {"seed": 42}
    assert header["flags"]["max_seq_len"] == 2048
    assert "eval_every" not in header["flags"]
    assert header["sources"]["/git/commit"] == "import:wandb-metadata.json#/git/commit"
    assert receipt["run"]["started_at"] == "2025-12-02T09:01:30.250000Z"
    assert receipt["derivation"]["origin"]["producer"] == "wandb 0.21.3"
    assert [f["name"] for f in receipt["derivation"]["log"]["files"]] == [
        "wandb-summary.json",
        "config.yaml",
        "wandb-metadata.json",
    ]
    text = json.dumps(receipt)
    assert "someone@example.org" not in text
    assert "node-a" not in text
    shutil.copy(WANDB, tmp_path)
    (tmp_path / "config.yaml").write_text("model: {value: 3}\n")  # another program's
    alone = imported(tmp_path / WANDB.name)
    assert alone["header"]["git"]["commit"] is None
    assert "files" not in alone["derivation"]["log"]
    assert alone["summary"] == receipt["summary"]


def test_a_broken_file_beside_is_a_problem_and_no_end(imported: Import, tmp_path: Path) -> None:
    shutil.copy(WANDB, tmp_path)
    (tmp_path / "wandb-metadata.json").write_text('{"os": ')
    (tmp_path / "config.yaml").write_text("a: [")
    receipt = imported(tmp_path / WANDB.name)
    assert [kind for kind, _ in problems(receipt)] == ["file_beside_unreadable"] * 2


def test_names_in_doubt_of_an_unknown_trainer_are_left_out(imported: Import) -> None:
    receipt = imported("wandb-summary.json")
    assert {("ambiguous_unit", "/peak_mem_gb"), ("ambiguous_unit", "/step_time"), ("figure_not_finite", "loss")} == set(
        problems(receipt)
    )
    assert set(receipt["summary"]["metrics"]) == {"tokens_per_s", "epoch", "val_loss"}
    assert receipt["checks"]["finite_losses"] is False


def test_004_throughput_and_mfu_are_recomputed_offline_with_stated_facts(
    imported: Import, invoke: Callable[..., Any], tmp_path: Path
) -> None:
    """409,600 tokens in about 32 s of each 100 steps; 6 × 124 M FLOPs of a token, 4 devices of 165.2 TFLOP/s."""
    path = FOREIGN / "forgather-trainer-logs.json"
    facts = ("params=124M", "devices=4", "accelerator=NVIDIA GeForce RTX 4090")
    receipt = imported(path, *(word for fact in facts for word in ("--fact", fact)))
    derived = receipt["summary"]["derived"]
    assert receipt["summary"]["realised"]["tokens_per_s"] == pytest.approx(4505600 / 357.077816)
    least = 409600 / (1771500064.2102208 - 1771500032.2023795) * 6 * 124e6 / 4  # of the second record, by its time
    assert derived["flops_per_s_per_device"]["first"] == pytest.approx(least)
    assert derived["mfu_ratio"]["first"] == pytest.approx(least / 165.2e12)
    assert derived["mfu_ratio"]["inputs"]["world_size_source"] == "stated"
    assert imported(path)["summary"]["derived"] == {}
    out = tmp_path / "r.json"
    out.write_text(json.dumps(receipt))
    assert invoke("verify", out, path).code == 0
    assert invoke("import", path, "--fact", "device=4").code == 2


def test_a_fact_that_completes_nothing_or_contradicts_the_document_is_told(imported: Import) -> None:
    summary = imported(FOREIGN / "wandb-summary.json", "--fact", "devices=4")
    assert ("fact_unused", "world_size") in problems(summary)
    ended = imported(FOREIGN / "forgather-trainer-logs.json", "--fact", "samples_per_step=7")
    assert [kind for kind, _ in problems(ended)] == ["fact_contradicted"]


STATE = b'{"global_step": 2, "max_steps": 2, "log_history": %s}'


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        pytest.param(b"", 3, "empty", id="empty"),
        pytest.param(b" \n", 3, "empty", id="blank"),
        pytest.param(b"\xff\xfe{}", 3, "not UTF-8", id="not-utf-8"),
        pytest.param(b'{"log_history": [', 3, "not JSON", id="cut"),
        pytest.param(b'{"a": 1}}', 3, "not JSON", id="more-behind"),
        pytest.param(b"[1, 2", 3, "not JSON", id="open-array-of-nothing-known"),
        pytest.param(b"[" * 100_000, 3, "nested too deep", id="deep-array"),
        pytest.param(b'{"a":' * 100_000, 3, "nested too deep", id="deep-object"),
        pytest.param(b"{}", 4, "the format of this document is unknown", id="empty-object"),
        pytest.param(b"[]", 4, "the format of this document is unknown", id="empty-array"),
        pytest.param(b"step 1 | loss: 2.5\n", 4, "receipt parse", id="a-log"),
        pytest.param(b"# another report\n", 4, "the format of this document is unknown", id="another-report"),
        pytest.param(b'{"log_history": 5, "max_steps": 1}', 4, "the format of this document is unknown", id="wrong-type"),
        pytest.param(b'{"rows": [], "name": "matrix"}', 4, "the format of this document is unknown", id="matrix"),
    ],
)
def test_bad_input_ends_with_an_answer(invoke: Callable[..., Any], tmp_path: Path, data: bytes, code: int, said: str) -> None:
    path = tmp_path / "document.json"
    path.write_bytes(data)
    done = invoke("import", path)
    assert done.code == code
    assert said in done.stderr
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("history", "told"),
    [
        (b"[]", []),
        (b'[5, null, "x"]', ["record_is_no_object"] * 3),
        (b'[{"step": "two", "loss": true}]', ["wrong_type"] * 2),
        (b'[{"step": 1.5, "loss": [1]}]', ["wrong_type"] * 2),
        (b'[{"step": 1, "loss": 1, "loss": 2}]', ["repeated_key"]),
        (b'[{"step": 1, "loss": 1.0, "epoch": -1}]', ["value_out_of_range"]),
        (b'[{"step": 1, "eval_accuracy": 85.5}]', ["value_out_of_range"]),
        (b'[{"step": 1, "loss": ' + b"1" * 5000 + b"}]", ["unreadable_value"]),
        (b'[{"step": 1, "loss": 2.0, "\\ud800": 3}]', []),
    ],
)
def test_values_in_doubt_are_told_and_left_out(imported: Import, tmp_path: Path, history: bytes, told: list[str]) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_bytes(STATE % history)
    receipt = imported(path)
    assert [kind for kind, _ in problems(receipt)] == told


@pytest.mark.parametrize(
    ("spelled", "metric", "value"),
    [
        ('"num_tokens": 512', "tokens_total", 512.0),
        ('"kl": 0.25', "kl_divergence", 0.25),
        ('"mean_token_accuracy": 0.5', "train_accuracy", 0.5),
        ('"memory/max_active (GiB)": 20.5', "peak_memory_active_bytes", 20.5 * 2**30),
        ('"total_peak_memory_reserved_MB": 3.5', "peak_memory_reserved_bytes", 3.5 * 2**20),
        ('"memory_allocated (GB)": 1.25', "memory_allocated_bytes", 1.25e9),
        ('"step_tokens_per_second": 10', "tokens_per_s", 10.0),
    ],
)
def test_names_of_what_builds_on_the_trainer(imported: Import, tmp_path: Path, spelled: str, metric: str, value: float) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_bytes(STATE % f'[{{"step": 1, "loss": 2.0, {spelled}}}]'.encode())
    assert imported(path)["summary"]["metrics"][metric]["last"] == value


@pytest.mark.parametrize("name", ["norm", "train_loss", "rewards/margins", "mfu"])
def test_a_name_of_other_trainers_stays_as_it_is_printed(imported: Import, tmp_path: Path, name: str) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_bytes(STATE % f'[{{"step": 1, "loss": 2.0, "{name}": 0.5}}]'.encode())
    summary = imported(path)["summary"]
    assert set(summary["metrics"]) == {"loss"}
    assert summary["other_metrics"][name]["last"] == 0.5


def test_a_missing_file_and_a_wrong_format_are_told_apart(invoke: Callable[..., Any], tmp_path: Path) -> None:
    assert invoke("import", tmp_path / "none.json").code == 3
    unknown = invoke("import", FOREIGN / "hf-trainer-state.json", "--format", "no-such")
    assert (unknown.code, "hf-trainer-state" in unknown.stderr) == (2, True)
    other = invoke("import", FOREIGN / "hf-trainer-state.json", "--format", "wandb-summary")
    assert (other.code, "it is hf-trainer-state" in other.stderr) == (4, True)


def test_several_runs_in_one_document_are_refused_with_a_way(invoke: Callable[..., Any]) -> None:
    done = invoke("import", FOREIGN / "cppmega-comparison.json")
    assert done.code == 4
    assert "jq .bf16" in done.stderr
