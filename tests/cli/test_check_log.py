"""Gates that need the log: lines, slopes, percentiles and spread, systems in one file, and the last runs of a lane."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke

Check = Callable[..., tuple[int, dict[str, Any]]]
LINE = "iter {}: loss {:.4f}, time {:.2f}ms, mfu 2.00%\n"


def write(path: Path, fall: float = 1 / 60, slow: float = 1.0, extra: str = "saved checkpoint to out\n") -> Path:
    """Write a log of 120 steps whose loss falls by ``fall`` a step, and whose steps take ``slow`` × 20 ms."""
    draw = random.Random(3)
    lines = [LINE.format(n, 4 - n * fall + draw.gauss(0, 0.05), slow * (20 + n % 5)) for n in range(120)]
    path.write_text("".join([*lines[:60], extra, *lines[60:]]), "utf-8")
    return path


@pytest.fixture
def check(tmp_path: Path, invoke: Invoke) -> Check:
    """Return the exit code, and name → (answer, found) of the gates."""

    def call(log: Path, gates: str, *more: str | Path) -> tuple[int, dict[str, Any]]:
        (tmp_path / "gates.yaml").write_text(f"allow_truncated: true\n{gates}", "utf-8")
        done = invoke("check", log, "--gates", tmp_path / "gates.yaml", "--json", "--no-annotations", *more)
        rulings = done.document["rulings"] if done.stdout else []
        return done.code, {r["name"]: (r["answer"], r["found"]) for r in rulings if r["kind"] == "gate"}

    return call


@pytest.mark.parametrize(
    ("gate", "answer", "found"),
    [
        ("lines: [{contains: saved checkpoint}]", True, "1 line, the first is line 61"),
        ("lines: [{contains: saved checkpoint, at_least: 2}]", False, "1 line, the first is line 61"),
        ("lines: [{contains: saved checkpoint, at_most: 0}]", False, "1 line, the first is line 61"),
        ("lines: [{contains: Traceback, at_most: 0}]", True, "0 lines"),
        ("lines: [{matches: '^iter \\d+:', at_least: 120, at_most: 120}]", True, "120 lines, the first is line 1"),
        ("lines: [{matches: 'iter 1\\d\\d:', at_most: 19}]", False, "20 lines, the first is line 102"),
        ("metrics: {step_time_s: {p05: {at_least: 19 ms}}}", True, "20.0 ms"),
        ("metrics: {step_time_s: {p95: {at_most: 23 ms}}}", False, "24.0 ms"),
        ("metrics: {step_time_s: {p50: {at_most: 22 ms}}}", True, "22.0 ms"),
        ("metrics: {step_time_s: {spread: {at_most: 20%}}}", True, "18.2 %"),
        ("metrics: {step_time_s: {spread: {at_most: 10%}}}", False, "18.2 %"),
    ],
)
def test_lines_percentiles_and_spread(gate: str, answer: bool, found: str, check: Check, tmp_path: Path) -> None:
    code, gates = check(write(tmp_path / "run.log"), gate)
    assert (code, list(gates.values())) == (0 if answer else 1, [(answer, found)])


@pytest.mark.parametrize(("fall", "code", "answer"), [(1 / 60, 0, True), (-1 / 60, 1, False), (0.0, 1, None)])
def test_the_loss_must_fall(fall: float, code: int, answer: bool | None, check: Check, tmp_path: Path) -> None:
    found, gates = check(write(tmp_path / "run.log", fall), "metrics: {loss: {slope: {over: 60, at_most: 0}}}")
    assert (found, gates["loss.slope"][0]) == (code, answer)
    assert gates["loss.slope"][1].endswith("steps 60 to 119")


SYSTEMS = """
systems:
  - {device: "*h100*", world_size: 8, metrics: {step_time_s: {median: {at_most: 23 ms}}}}
  - {device: "*a100*", metrics: {step_time_s: {median: {at_most: 50 ms}}}}
"""


@pytest.mark.parametrize(
    ("device", "ranks", "code", "names"),
    [
        ("NVIDIA H100 80GB HBM3", 8, 1, ["step_time_s.median"]),
        ("NVIDIA A100-SXM4-80GB", 4, 0, ["step_time_s.median"]),
        ("NVIDIA H100 80GB HBM3", 4, 1, ["system"]),
    ],
)
def test_references_by_system(
    device: str, ranks: int, code: int, names: list[str], check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hardware = {"accelerators": [{"name": device, "count": ranks, "memory_bytes": None}]}
    monkeypatch.setenv("RECEIPT_BUILD_PROVENANCE", json.dumps({"hardware": hardware, "parallelism": {"world_size": ranks}}))
    found, gates = check(write(tmp_path / "run.log", slow=2), SYSTEMS)
    assert (found, list(gates)) == (code, names)


class TestLane:
    GATE = "metrics: {step_time_s: {change: {worse_by_at_most: 5%, lane_last: 5}}}"
    NAME = "step_time_s.last_5_of_lane.worse_by_at_most"

    @pytest.fixture
    def store(self, tmp_path: Path, invoke: Invoke) -> Path:
        """A store with six runs of a lane, the first of them much faster than the last five."""
        for day, slow in enumerate((0.5, 1.0, 1.01, 0.99, 1.02, 0.98), 1):
            log, receipt = write(tmp_path / f"{day}.log", slow=slow), tmp_path / f"{day}.receipt.json"
            stamped = [
                f"2026-01-0{day}T00:00:{n // 3:02d} {line}"
                for n, line in enumerate(log.read_text("utf-8").splitlines(keepends=True))
            ]
            log.write_text("".join(stamped), "utf-8")
            assert invoke("parse", log, "--job-exit", "0", "--lane", "lane", "-o", receipt).code == 0
            assert invoke("store", "add", tmp_path / "runs", receipt).code == 0
        return tmp_path / "runs"

    @pytest.mark.parametrize(("slow", "code", "answer"), [(1.04, 0, True), (1.10, 1, False), (0.9, 0, True)])
    def test_a_run_is_held_against_their_median(
        self, slow: float, code: int, answer: bool, store: Path, check: Check, tmp_path: Path
    ) -> None:
        found, gates = check(write(tmp_path / "new.log", slow=slow), self.GATE, "--store", store, "--lane", "lane")
        assert (found, gates[self.NAME][0]) == (code, answer)
        assert gates[self.NAME][1].endswith("(5 runs)")

    def test_without_a_store_it_is_unknown(self, check: Check, tmp_path: Path) -> None:
        code, gates = check(write(tmp_path / "new.log"), self.GATE)
        assert (code, gates[self.NAME][0]) == (0, None)


def test_without_the_log_these_are_unknown(check: Check, tmp_path: Path, invoke: Invoke) -> None:
    log = write(tmp_path / "run.log")
    gates = "lines: [{contains: saved}]\nmetrics: {loss: {slope: {at_most: 0}}, step_time_s: {p95: {at_most: 1}}}"
    assert invoke("parse", log, "-o", tmp_path / "run.json").code == 0
    code, found = check(tmp_path / "run.json", gates)
    assert (code, {answer for answer, _ in found.values()}) == (1, {None})
    assert check(tmp_path / "run.json", gates, "--log", log)[0] == 0


@pytest.mark.parametrize(
    ("gates", "message"),
    [
        ("lines: [{contains: a, matches: b}]", "a line is named by one text"),
        ("lines: [{contains: a, at_least: -1}]", "numbers of lines"),
        ("lines: [{matches: '('}]", "no regular expression"),
        ("lines: [{contains: a, at_least: 2, at_most: 1}]", "at_least is larger"),
        ("lines: {a: b}", "lines is not a list"),
        ("systems: [{device: 1}]", "lane and device are texts"),
        ("systems: [{gpu: H100}]", "a system has no 'gpu'"),
        ("systems: [{world_size: eight}]", "not a number of ranks"),
        ("metrics: {loss: {slope: {over: 3, at_most: 0}}}", "not a number of records"),
        ("metrics: {loss: {slope: {over: 30}}}", "slope has no limit"),
        ("metrics: {loss: {p00: {at_most: 1}}}", "loss has no 'p00'"),
        ("metrics: {loss: {spread: {at_most: 1}}}", "not a percentage"),
        ("metrics: {loss: {change: {worse_by_at_most: 5%, lane_last: 0}}}", "not a number of runs"),
    ],
)
def test_a_mistake_in_the_gates_is_an_error(gates: str, message: str, tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "gates.yaml").write_text(gates, "utf-8")
    done = invoke("check", write(tmp_path / "run.log"), "--gates", tmp_path / "gates.yaml")
    assert (done.code, message in " ".join(done.stderr.split())) == (5, True), done.stderr
