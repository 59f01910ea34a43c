"""Facts that a log lacks, stated with ``--fact`` or by the header of the job: what they complete, and what verifies it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke

HEADER = {
    "schema_version": "header/1.0",
    "run": {"name": None, "lane": None, "preset": None, "started_at": None},
    "header": {
        "git": None, "software": None, "parallelism": None, "model": {"architecture": None, "parameter_count": None},
        "hardware": {
            "accelerators": [{"name": "NVIDIA H100 80GB HBM3", "count": 8, "memory_bytes": 85899345920}],
            "cpu_count": None, "ram_bytes": None,
        },
        "seeds": None, "flags": None, "execution": None,
        "cost": {"hourly_rate": 24.0, "currency": "USD", "source": "list 2026-11"}, "cwd": None, "collected_at": None,
        "sources": {"/hardware/accelerators": "blob", "/cost": "blob"},
    },
}  # fmt: skip


def nanogpt() -> str:
    """A log of nanoGPT: its step time, and no device, batch or FLOPs."""
    return "".join(f"iter {n}: loss {4 - n / 100:.4f}, time {500 + n % 3:.2f}ms, mfu -100.00%\n" for n in range(40))


def nanochat() -> str:
    """A log of nanochat, which prints batch, FLOPs of a token and the ranks, and names no device."""
    head = (
        "Tokens / micro-batch / rank: 4 x 4096 = 16,384\nTokens / micro-batch: 131,072\n"
        "Total batch size 131,072 => gradient accumulation steps: 1\nNumber of parameters: 873,462,784\n"
        "Estimated FLOPs per token: 5.530000e+09\n"
    )
    line = (
        "step {n:05d}/00040 ({p:.2f}%) | loss: {loss:.6f} | lrm: 1.00 | dt: 512.00ms | "
        "tok/sec: 256,000 | mfu: 18.0 | gnorm: 2.0000 | total time: 0.00m\n"
    )
    return head + "".join(line.format(n=n, p=n / 0.4, loss=11 - n / 10) for n in range(40))


def forgather() -> str:
    """A log of Forgather that prints tokens per second and no step time."""
    line = "2025-01-15 10:{:02d}:{:02d}   {}00  0.1   train-loss: {:.5f}  learning-rate: 1.00e-04  tok/s: 142857\n"
    return "".join(line.format(n // 60, n % 60, n, 3 - n / 50) for n in range(1, 41))


@pytest.fixture
def parsed(tmp_path: Path, invoke: Invoke) -> Any:
    def parse(log: str, *options: str, verify: bool = True) -> dict[str, Any]:
        (tmp_path / "run.log").write_text(log)
        out = tmp_path / "run.receipt.json"
        made = invoke("parse", str(tmp_path / "run.log"), *options, "-o", str(out))
        assert made.code == 0, made.stderr
        if verify:
            again = invoke("verify", str(out), str(tmp_path / "run.log"))
            assert again.code == 0, again.stderr
            assert invoke("schema", "check", str(out)).code == 0
        document: dict[str, Any] = json.loads(out.read_text())
        return document

    return parse


def stored(store: Path) -> dict[str, Any]:
    """Return the only receipt in a store."""
    documents: list[dict[str, Any]] = [json.loads(path.read_text()) for path in store.rglob("*.json")]
    (receipt,) = (document for document in documents if "derivation" in document)
    return receipt


def stated(document: dict[str, Any]) -> dict[str, tuple[Any, str]]:
    return {fact["name"]: (fact["value"], fact["source"]) for fact in document["derivation"]["options"].get("facts", [])}


def test_an_mfu_is_completed_years_later(parsed: Any) -> None:
    facts = ("devices=8", "peak_flops=989 TFLOP/s", "params=124M", "tokens_per_step=491,520")
    document = parsed(nanogpt(), *(word for fact in facts for word in ("--fact", fact)))
    assert stated(document) == {
        "parameter_count": (124e6, "stated"),
        "peak_flops_per_s_per_device": (989e12, "stated"),
        "tokens_per_step": (491520.0, "stated"),
        "world_size": (8.0, "stated"),
    }
    mfu = document["summary"]["derived"]["mfu_ratio"]
    assert mfu["median"] == pytest.approx(6 * 124e6 * (491520 / 0.501) / (8 * 989e12))
    assert mfu["inputs"]["peak_source"] == mfu["inputs"]["world_size_source"] == "stated"
    assert mfu["inputs"]["parameter_count_source"] == mfu["inputs"]["tokens_per_step_source"] == "stated"
    assert document["summary"]["parameter_count"] is None, "the log does not print it"


def test_the_header_of_the_job_completes_it(tmp_path: Path, parsed: Any) -> None:
    (tmp_path / "job.header.json").write_text(json.dumps(HEADER))
    document = parsed(nanochat(), "--header", str(tmp_path / "job.header.json"), "--wall", "2h")
    assert stated(document)["accelerator_name"] == ("NVIDIA H100 80GB HBM3", "header:/hardware/accelerators")
    mfu = document["summary"]["derived"]["mfu_ratio"]
    assert mfu["median"] == pytest.approx(5.53e9 * (131_072 / 0.512) / (8 * 989.4e12))
    assert mfu["inputs"]["accelerator_name_source"] == "header:/hardware/accelerators"
    assert (document["cost"]["amount"], document["cost"]["currency"]) == (48.0, "USD")
    assert document["cost"]["price_source"] == "header:/cost"


def test_a_printed_rate_is_enough(parsed: Any) -> None:
    document = parsed(forgather(), "--fact", "devices=1", "--fact", "accelerator=A100-SXM4-80GB", "--fact", "flops_per_token=9e8")
    mfu = document["summary"]["derived"]["mfu_ratio"]
    assert mfu["median"] == pytest.approx(9e8 * 142857 / 312e12)
    assert mfu["inputs"]["tokens_per_s"] == "as each record prints it"


def test_what_the_log_prints_counts_and_the_contradiction_is_a_problem(parsed: Any) -> None:
    plain = parsed(nanochat(), "--fact", "accelerator=H100")
    document = parsed(nanochat(), "--fact", "accelerator=H100", "--fact", "devices=4", "--fact", "params=900M")
    assert document["summary"] == plain["summary"]
    (one, other) = document["derivation"]["problems"]["first"]
    assert {one["kind"], other["kind"]} == {"fact_contradicted"}
    assert "stated as 4, but the log prints 8" in one["detail"] + other["detail"]
    assert "stated as 900,000,000, but the log prints 873,462,784" in one["detail"] + other["detail"]


def test_cost_and_energy(parsed: Any) -> None:
    facts = ("--fact", "price_per_device_hour=$2.50/h", "--fact", "power=0.7 kW")
    cost = parsed(nanochat(), *facts, "--wall", "3h")["cost"]
    assert (cost["device_count"], cost["device_hours"], cost["amount"]) == (8, 24.0, 60.0)
    assert cost["energy_j"] == pytest.approx(24 * 3600 * 700)
    assert cost["currency"] == "USD"
    unknown = parsed(nanochat(), *facts)["cost"]
    assert unknown["amount"] is None and unknown["energy_j"] is None, "nothing says how long the job was"


def test_without_a_price_or_a_power_nothing_is_said(parsed: Any) -> None:
    document = parsed(nanochat(), "--wall", "3h")
    assert "cost" not in document and "facts" not in document["derivation"]["options"]


def test_a_stated_fact_comes_before_the_header_and_that_is_said(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "run.log").write_text(nanogpt())
    (tmp_path / "job.header.json").write_text(json.dumps(HEADER))
    header = str(tmp_path / "job.header.json")
    made = invoke("parse", str(tmp_path / "run.log"), "--header", header, "--fact", "devices=16", "--json")
    assert stated(made.document)["world_size"] == (16.0, "stated")
    assert "world_size is stated as 16.0, but 8.0 in the header" in made.stderr


@pytest.mark.parametrize(
    ("flags", "devices"),
    [(None, 8.0), ({"cuda_visible_devices": "0,3"}, 2.0), ({"cuda_visible_devices": "1,-1,2"}, 1.0), ({"node_count": 4}, None)],
)
def test_devices_are_those_that_the_job_sees(
    flags: dict[str, Any] | None, devices: float | None, tmp_path: Path, parsed: Any
) -> None:
    document = json.loads(json.dumps(HEADER))
    document["header"]["flags"] = flags
    for name in flags or ():
        document["header"]["sources"][f"/flags/{name}"] = "blob"
    (tmp_path / "job.header.json").write_text(json.dumps(document))
    found = stated(parsed(nanogpt(), "--header", str(tmp_path / "job.header.json"))).get("world_size")
    assert (None if found is None else found[0]) == devices


def test_rederive_keeps_what_was_stated(tmp_path: Path, parsed: Any, invoke: Invoke) -> None:
    first = parsed(nanochat(), "--fact", "accelerator=H100", "--fact", "price_per_hour=24", "--wall", "1h")
    (tmp_path / "job").mkdir()
    for name in ("run.log", "run.receipt.json"):
        (tmp_path / name).rename(tmp_path / "job" / name)
    assert invoke("store", "build", str(tmp_path / "job"), "--store", str(tmp_path / "store")).code == 0
    again = stored(tmp_path / "store")
    for block in ("summary", "cost", "goodput"):
        assert again[block] == first[block]
    assert again["derivation"]["options"] == first["derivation"]["options"]


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("devices", "needs NAME=VALUE"),
        ("devices=", "needs NAME=VALUE"),
        ("devces=8", "must be one of"),
        ("devices=8.5", "must be a number above 0"),
        ("devices=0", "must be a number above 0"),
        ("devices=-8", "must be a number above 0"),
        ("devices=nan", "must be a number above 0"),
        ("tokens_per_step=1,5", "must be a number above 0"),
        ("peak_flops=989 GiB", "must be a number above 0"),
        ("power=700 V", "must be a number above 0"),
        ("power=1" + 400 * "0", "must be a number above 0"),
        ("price_per_hour=3 apples", "must be a number above 0"),
        ("accelerator=\x1b[31mH100", "control characters"),
    ],
)
def test_what_is_no_fact_is_refused(option: str, says: str, tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "run.log").write_text(nanogpt())
    made = invoke("parse", str(tmp_path / "run.log"), "--fact", option)
    assert made.code == 2
    assert says in made.stderr


def test_a_fact_is_stated_once(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "run.log").write_text(nanogpt())
    for twice in (("devices=8", "devices=4"), ("price_per_hour=24", "price_per_device_hour=3")):
        made = invoke("parse", str(tmp_path / "run.log"), "--fact", twice[0], "--fact", twice[1])
        assert made.code == 2, made.stdout
