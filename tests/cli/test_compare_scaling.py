"""``receipt compare --scaling``: throughput and efficiency over devices, and refusal if anything else differs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.comparison.comparable import DEFAULT
from receipt_cli.comparison.scaling import scaling
from tests.cli.conftest import Invoke

Log = Callable[..., Path]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Write a Megatron-LM log of 40 steps on so many ranks, and return its path."""

    def write(ranks: int, ms: float, batch: int = 64, name: str = "", tensor: int = 2, sequence: int = 2048) -> Path:
        path = tmp_path / f"{name or ranks}.log"
        dots = "." * 20
        head = f"  world_size {dots} {ranks}\n  tensor_model_parallel_size {dots} {tensor}\n  seq_length {dots} {sequence}\n"
        lines = [
            f" iteration {n:8d}/     400 | consumed samples: {n * batch:12d} | "
            f"elapsed time per iteration (ms): {ms + n % 3:.1f} | "
            f"learning rate: 6.0e-4 | global batch size: {batch:5d} | lm loss: {4 - n / 50:.6E} | loss scale: 1.0 | "
            "grad norm: 1.000 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
            for n in range(1, 41)
        ]
        path.write_text(head + "".join(lines), "utf-8")
        return path

    return write


def scaled(invoke: Invoke, *runs: Path) -> tuple[int, dict[str, Any]]:
    done = invoke("compare", "--scaling", *runs, "--json")
    return done.code, done.document


def test_efficiency_is_relative_to_the_fewest_devices(log: Log, invoke: Invoke) -> None:
    code, found = scaled(invoke, log(16, 550), log(8, 1000), log(32, 350), log(8, 1010, name="again"))
    assert (code, found["verdict"], found["kind"]) == (0, "comparable", "strong")
    assert [point["devices"] for point in found["points"]] == [8, 16, 32]
    assert found["points"][0]["runs"] == ["8.log", "again.log"]
    assert [point["efficiency"] for point in found["points"]] == pytest.approx([1, 1006 / 551 / 2, 1006 / 351 / 4], rel=1e-3)
    assert [point["speedup"] for point in found["points"]] == pytest.approx([1, 1006 / 551, 1006 / 351], rel=1e-3)


def test_the_same_batch_on_each_device_is_weak_scaling(log: Log, invoke: Invoke) -> None:
    code, found = scaled(invoke, log(8, 1000, 64), log(16, 1050, 128))
    assert (code, found["kind"]) == (0, "weak")
    assert found["points"][1]["efficiency"] == pytest.approx(1001 / 1051, rel=1e-3)


@pytest.mark.parametrize(
    ("other", "because"),
    [
        ({"tensor": 4}, "/header/parallelism/tensor"),
        ({"sequence": 4096}, "/header/flags/sequence_length"),
        ({"ranks": 8}, "all runs have as many devices: 8"),
    ],
)
def test_anything_else_that_differs_is_refused(other: dict[str, Any], because: str, log: Log, invoke: Invoke) -> None:
    code, found = scaled(invoke, log(8, 1000), log(**{"ranks": 16, "ms": 550, "name": "other", **other}))
    assert (code, found["verdict"], found["points"]) == (2, "not_comparable", [])
    assert because in found["because"]


def test_an_unknown_number_of_devices_is_refused(log: Log, tmp_path: Path, invoke: Invoke) -> None:
    bare = tmp_path / "bare.log"
    bare.write_text("".join(log(16, 550).read_text("utf-8").splitlines(keepends=True)[1:]), "utf-8")
    code, found = scaled(invoke, log(8, 1000), bare)
    assert (code, found["because"]) == (2, "the number of devices is unknown of bare.log")


def test_a_contradicted_rate_is_no_throughput(log: Log, tmp_path: Path, invoke: Invoke) -> None:
    receipts = []
    for ranks, ms in ((8, 1000), (16, 550)):
        assert invoke("parse", log(ranks, ms), "-o", tmp_path / f"{ranks}.json").code == 0
        document = json.loads((tmp_path / f"{ranks}.json").read_text("utf-8"))
        receipts.append(document)
    names = {name for document in receipts for part in ("metrics", "derived") for name in document["summary"][part]}
    assert any(name.endswith("_per_s") for name in names)
    for document in receipts:
        document["summary"]["derived"] = {}
        rate = {"scope": "global", "median": 1000.0}
        document["summary"]["metrics"]["tokens_per_s"] = rate
    runs = list(zip("ab", receipts, strict=True))
    assert scaling(runs, DEFAULT)["metric"] == "tokens_per_s"
    receipts[1]["summary"]["consistency"] = [{"metric": "tokens_per_s", "consistent": False}]
    assert scaling(runs, DEFAULT)["because"] == "no throughput is known of all runs that their logs do not contradict"


def test_what_a_person_reads(log: Log, invoke: Invoke) -> None:
    text = invoke("compare", "--scaling", log(8, 1000), log(16, 550)).stdout.decode()
    assert "strong scaling: the same global batch" in text
    assert "A measured" in text and "B ideal" in text
    assert "91.0 %" in text or "90.8 %" in text


@pytest.mark.parametrize("more", [["--resume"], ["--markdown", "-"], ["--target", "loss=3"], ["--steps", "3"]])
def test_misuse_is_refused(more: list[str], log: Log, invoke: Invoke) -> None:
    done = invoke("compare", "--scaling", log(8, 1000), log(16, 550), *more)
    assert (done.code, done.stdout) == (2, b"")
