"""What seed discipline asks of a record of training runs: each test holds the sentence that it proves."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.same_run import Simulated, write
from tests.cli.conftest import Invoke

RUN = Simulated(seed=1337, order=5, last=99)
HEAD = "packing: {packing}\nparam_hash after init: {hash}\n"
Make = Callable[..., Path]
Compare = Callable[..., dict[str, Any]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a nanochat log under a name, with a head of its own, and return its path."""

    def call(name: str, run: Simulated = RUN, packing: str = "packed_rows", digest: str = "aaaa1111", more: str = "") -> Path:
        path = tmp_path / f"{name}.log"
        path.write_text(HEAD.format(packing=packing, hash=digest) + more + write(run, "nanochat"), "utf-8")
        return path

    return call


@pytest.fixture
def compare(invoke: Invoke) -> Compare:
    """Return the answer of a comparison of two logs as JSON, with the exit code as ``code``."""

    def call(question: str, a: Path, b: Path, *more: str) -> dict[str, Any]:
        done = invoke("compare", f"--{question}", a, b, "--json", *more)
        return {**done.document, "code": done.code}

    return call


@pytest.fixture
def parse(invoke: Invoke) -> Callable[[Path], dict[str, Any]]:
    return lambda path: invoke("parse", path, "--json").document


def test_seeds(make: Make, parse: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds are recorded by name, each with its source."""
    monkeypatch.setenv("RECEIPT_BUILD_PROVENANCE", json.dumps({"seeds": {"dataloader": 7}}))
    header = parse(make("a"))["header"]
    assert header["seeds"] == {"dataloader": 7, "seed": 1337}
    assert (header["sources"]["/seeds/dataloader"], header["sources"]["/seeds/seed"]) == ("blob", "log:3")


def test_configuration(make: Make, compare: Compare) -> None:
    """Only runs of one configuration and hardware family are compared."""
    batch = "Total batch size {} => gradient accumulation steps: {}\n"
    a, b = make("a", more=batch.format("524,288", 2)), make("b", more=batch.format("262,144", 1))
    found = compare("reproducibility", a, b)
    assert (found["code"], found["verdict"]) == (2, "not_comparable")


def test_order(make: Make, compare: Compare) -> None:
    """A rerun sees the data in the same order."""
    found = compare("reproducibility", make("a"), make("b", replace(RUN, order=6)))
    assert (found["code"], found["verdict"]) == (1, "other_data")
    assert re.match(r"pq, step 0: \d+ and \d+ \(lines 4 and 4\)", found["because"])


@pytest.mark.parametrize(("jump", "verdict"), [(0, "identical"), (7000, "other_data")])
def test_elastic(jump: int, verdict: str, tmp_path: Path, compare: Compare) -> None:
    """A run that resumes on another number of GPUs is compared at equal samples."""
    paths = []
    for name, ranks, run in (("a", 16, RUN), ("b", 8, replace(RUN, first=60, last=130, offset=jump // 8))):
        paths.append(tmp_path / f"{name}.log")
        paths[-1].write_text(f"  world_size ...................................... {ranks}\n{write(run, 'megatron')}", "utf-8")
    found = compare("resume", *paths)
    assert found["verdict"] == verdict
    assert found["configuration"]["same"] is True


def test_parameters(make: Make, compare: Compare, parse: Any) -> None:
    """The hash of the parameters after initialisation is recorded and compared."""
    a, b = make("a"), make("b", digest="bbbb2222")
    assert parse(a)["header"]["model"]["parameter_digest"] == "aaaa1111"
    found = compare("reproducibility", a, b)
    assert (found["verdict"], found["because"]) == ("same_data_other_numbers", "initial parameters aaaa1111 and bbbb2222")


def test_rows(make: Make, compare: Compare, parse: Any) -> None:
    """Digests of packed rows and of fill-in-the-middle markers are recorded and compared."""
    rows = "packed row hash: {}\nfim markers digest: 77aa88bb\n"
    a, b = make("a", more=rows.format("12ab34cd")), make("b", more=rows.format("12ab34ce"))
    assert parse(a)["header"]["data"]["digest"] == "fim markers 77aa88bb; packed row 12ab34cd"
    assert compare("reproducibility", a, b)["verdict"] == "other_data"
    assert compare("reproducibility", a, a)["data"]["because"] == "both print the same digest of the data"


def test_policy(make: Make, compare: Compare, parse: Any) -> None:
    """The packing policy is in the header, and another one is other data."""
    a, b = make("a"), make("b", packing="best_fit")
    assert parse(a)["header"]["data"]["packing_policy"] == "packed_rows"
    found = compare("reproducibility", a, b)
    assert (found["verdict"], found["because"]) == ("other_data", "packing policy packed_rows and best_fit")


def test_telemetry(tmp_path: Path, parse: Any) -> None:
    """Packing telemetry (utilization, documents in a row, cropped documents) is read at each step."""
    lines = []
    for line in write(RUN, "nanochat").splitlines(keepends=True):
        telemetry = f"[packing] policy=best_fit utilization=0.97{len(lines) % 10} docs_per_row=3.5 cropped_doc_frac=0.02\n"
        lines.append(line + telemetry if line.startswith("step ") else line)
    (tmp_path / "a.log").write_text("".join(lines), "utf-8")
    document = parse(tmp_path / "a.log")
    metrics = document["summary"]["metrics"]
    assert [metrics[name]["last"] for name in ("packing_utilization_ratio", "docs_per_row", "cropped_doc_ratio")] == [
        0.97,
        3.5,
        0.02,
    ]
    assert metrics["packing_utilization_ratio"]["record_count"] == 100
    assert document["derivation"]["lines"]["unmatched"] == 1  # the seed, which no rule reads
    assert document["header"]["data"]["packing_policy"] == "best_fit"


def test_position(make: Make, parse: Any) -> None:
    """The epoch and the printed position are kept."""
    summary = parse(make("a"))["summary"]
    position = summary["position"]
    assert (position["kind"], position["lines"]) == ("cursor", [4, 103])
    assert re.fullmatch(r"pq \d+ rg \d+", position["first"])
    assert summary["metrics"]["epoch"]["last"] == 1
