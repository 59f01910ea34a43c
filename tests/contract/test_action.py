"""The GitHub action: its shape, its pins, and its scripts, run here as a runner would."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from receipt_cli.ci.gates import Bound, Change, read_gates
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.documents.schemas import find_entry, get_json_schema

EXPRESSION = re.compile(r"\$\{\{\s*([a-z]+(?:\.[a-z_-]+)+)\s*\}\}")
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}\Z")
LOG = "fixtures/logs/nanogpt/char-ok.log"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the action's scripts are bash")


@pytest.fixture(scope="module")
def action(root: Path) -> dict[str, Any]:
    return yaml.safe_load((root / "action.yml").read_text("utf-8"))


class TestShape:
    def test_it_is_a_composite_action(self, action: dict[str, Any]) -> None:
        assert action["runs"]["using"] == "composite"
        assert {"name", "description", "inputs", "outputs", "runs"} <= set(action)
        assert all(entry["description"] for entry in [*action["inputs"].values(), *action["outputs"].values()])
        assert all("default" in entry or entry["required"] for entry in action["inputs"].values())

    def test_every_step_runs_a_script_or_a_pinned_action(self, action: dict[str, Any]) -> None:
        for step in action["runs"]["steps"]:
            assert ("run" in step) != ("uses" in step)
            assert "run" not in step or step["shell"] == "bash"
            assert "uses" not in step or PINNED.match(step["uses"]), step["uses"]

    def test_no_input_becomes_the_text_of_a_script(self, action: dict[str, Any]) -> None:
        assert not [step["name"] for step in action["runs"]["steps"] if "${{" in step.get("run", "")]

    def test_every_expression_names_what_exists(self, action: dict[str, Any]) -> None:
        steps = {step["id"]: step for step in action["runs"]["steps"]}
        used = EXPRESSION.findall(json.dumps(action))
        assert used
        for name in used:
            kind, first, *rest = name.split(".")
            if name == "github.token":
                continue
            assert kind in ("inputs", "steps")
            assert first in (action["inputs"] if kind == "inputs" else steps), name
            if kind == "steps" and "run" in steps[first] and first != "judge":
                assert f"{rest[-1]}=" in steps[first]["run"], name
        inputs = {name.split(".")[1] for name in used if name.startswith("inputs.")}
        assert inputs == set(action["inputs"])


@dataclass
class Runner:
    """What a runner does for the scripts of a composite action."""

    action: Mapping[str, Any]
    folder: Path
    environ: dict[str, str]
    steps: dict[str, dict[str, str]] = field(default_factory=dict)
    printed: str = ""

    def value(self, text: str, inputs: Mapping[str, str]) -> str:
        def one(found: re.Match[str]) -> str:
            kind, first, *rest = found[1].split(".")
            if kind == "github":
                return f"the {first}"
            return self.value(inputs[first], {}) if kind == "inputs" else self.steps.get(first, {}).get(rest[-1], "")

        return EXPRESSION.sub(one, text)

    def run(self, **given: str) -> int:
        """Run every script with these inputs; stop at the first that fails, and return its exit code."""
        inputs = {name: entry.get("default", "") for name, entry in self.action["inputs"].items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        for number, step in enumerate(self.action["runs"]["steps"]):
            if "run" not in step:
                continue
            output = self.folder / f"output-{number}"
            output.touch()
            env = {name: self.value(text, inputs) for name, text in step["env"].items()}
            script = self.folder / f"step-{number}.sh"
            script.write_text(step["run"])
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
                env={**self.environ, **env, "GITHUB_OUTPUT": str(output)},
                cwd=self.folder,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            self.printed += done.stdout + done.stderr
            self.steps[step["id"]] = dict(line.split("=", 1) for line in output.read_text().splitlines())
            if done.returncode:
                return done.returncode
        return 0

    def outputs(self) -> dict[str, str]:
        return {name: self.value(entry["value"], {}) for name, entry in self.action["outputs"].items()}


@pytest.fixture
def runner(action: dict[str, Any], root: Path, tmp_path: Path) -> Runner:
    """A job with an empty workspace; its python3 makes an environment whose receipt-cli is this checkout's."""
    for name in ("bin", "temp"):
        (tmp_path / name).mkdir()
    python = tmp_path / "bin" / "python3"
    shim = f'#!/bin/sh\nPYTHONPATH="{root}" exec "{sys.executable}" -m receipt_cli "$@"\n'
    installer = tmp_path / "bin" / "installer"
    installer.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{tmp_path}/installed"\n')
    (tmp_path / "bin" / "shim").write_text(shim)
    python.write_text(
        f'#!/bin/sh\nset -e\n[ "$1 $2" = "-m venv" ]\nmkdir -p "$3/bin"\n'
        f'cp "{installer}" "$3/bin/python"\ncp "{tmp_path}/bin/shim" "$3/bin/receipt-cli"\nchmod +x "$3/bin/"*\n'
    )
    python.chmod(0o755)
    folder = tmp_path / "work space"
    folder.mkdir()
    shutil.copy(root / LOG, folder / "run.log")
    environ = {
        "PATH": os.pathsep.join([str(tmp_path / "bin"), "/usr/bin", "/bin"]),
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTION_PATH": str(root),
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_REPOSITORY": "someone/model",
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "RUNNER_TEMP": str(tmp_path / "temp"),
    }
    return Runner(action, folder, environ)


class TestScripts:
    def test_a_good_run(self, runner: Runner, tmp_path: Path, root: Path) -> None:
        (runner.folder / "gates.yaml").write_text("metrics: {loss: {last: {at_most: 100}}}")
        code = runner.run(log="run.log", exit_code="0", lane="a lane", gates="gates.yaml", junit="j.xml", sarif="s.json")
        assert code == 0, runner.printed
        assert runner.outputs() == {
            "receipt": "run.receipt.json",
            "passed": "true",
            "healthy": "true",
            "proven": "true",
            "completed": "true",
            "failure-reason": "",
            "comparability": "",
        }
        receipt = json.loads((runner.folder / "run.receipt.json").read_text())
        assert (receipt["run"]["lane"], receipt["run"]["exit_code"]) == ("a lane", 0)
        assert (runner.folder / "j.xml").is_file()
        assert (runner.folder / "s.json").is_file()
        assert "Training run passed" in (tmp_path / "summary.md").read_text()
        assert (tmp_path / "installed").read_text().splitlines()[-1] == str(root)

    def test_a_failed_run_fails_the_last_step_and_still_reports(self, runner: Runner) -> None:
        assert runner.run(log="run.log", exit_code="1") == 1
        assert runner.outputs()["passed"] == "false"
        assert "\n::error file=run.log,title=check zero_exit_code::" in runner.printed

    def test_baselines_come_one_a_line(self, runner: Runner) -> None:
        for name in ("a b.log", "c.log"):
            shutil.copy(runner.folder / "run.log", runner.folder / name)
        assert runner.run(log="run.log", baseline="a b.log\n\nc.log\n", annotations="false") == 0
        assert runner.outputs()["comparability"] == "caveats"
        assert "a b.log, c.log" in runner.printed
        assert "::error" not in runner.printed

    def test_one_comment_is_kept_up_to_date(self, runner: Runner, tmp_path: Path) -> None:
        asked, body = tmp_path / "asked", tmp_path / "body"
        gh = tmp_path / "bin" / "gh"
        gh.write_text(
            f'#!/bin/sh\nprintf "%s " "$GH_TOKEN" "$@" >> "{asked}"\necho >> "{asked}"\n'
            f'for last; do :; done\ncase "$last" in\n'
            f'body=@*) cat "${{last#body=@}}" > "{body}" ;;\n*) [ ! -f "{body}" ] || echo 42 ;;\nesac\n'
        )
        gh.chmod(0o755)
        assert runner.run(log="run.log", comment="true") == 0
        assert not asked.exists()  # no pull request
        runner.environ["GITHUB_REF"] = "refs/pull/7/merge"
        assert runner.run(log="run.log", comment="true") == 0
        assert runner.run(log="run.log", exit_code="1", comment="true") == 1
        calls = [re.sub(r" --field .*| --jq .*", "", line) for line in asked.read_text().splitlines()]
        comments = "repos/someone/model/issues/7/comments"
        assert calls == [
            f"the token api --paginate {comments}",
            f"the token api --silent --method POST {comments}",
            f"the token api --paginate {comments}",
            "the token api --silent --method PATCH repos/someone/model/issues/comments/42",
        ]
        assert body.read_text().startswith("<!-- receipt of run.receipt.json -->\n")
        assert "Training run failed" in body.read_text()
        assert "Training run failed" in (tmp_path / "summary.md").read_text()

    def test_a_log_that_nobody_knows_is_reported(self, runner: Runner) -> None:
        (runner.folder / "run.log").write_text("hello\nworld\n")
        assert runner.run(log="run.log") == 4
        assert runner.outputs()["failure-reason"] == ""  # that no line was understood is no failure of the run
        assert "title=no_step_recognised::no step line was recognised" in runner.printed

    def test_it_fails_even_where_the_gates_ask_nothing(self, runner: Runner) -> None:
        (runner.folder / "run.log").write_text("hello\nworld\n")
        (runner.folder / "gates.yaml").write_text("require: []")
        assert runner.run(log="run.log", gates="gates.yaml") == 4

    def test_a_missing_log_keeps_its_exit_code_and_no_stale_receipt(self, runner: Runner) -> None:
        (runner.folder / "run.receipt.json").write_text("{}")
        assert runner.run(log="missing.log") == 3
        assert not (runner.folder / "run.receipt.json").exists()

    def test_inputs_are_words_and_nothing_else(self, runner: Runner) -> None:
        name = "$(touch pwned) `touch pwned` \"; touch pwned; '"
        assert runner.run(log="run.log", name=name) == 0
        assert json.loads((runner.folder / "run.receipt.json").read_text())["run"]["name"] == name
        assert not (runner.folder / "pwned").exists()

    def test_the_runner_takes_no_command_from_the_log(self, runner: Runner) -> None:
        with (runner.folder / "run.log").open("a") as file:
            file.write("Traceback (most recent call last):\nRuntimeError: ##[add-mask]x\n::add-mask::y\n")
        runner.run(log="run.log", exit_code="1")
        token = re.search(r"(?m)^::stop-commands::(receipt-[0-9a-f]{32})$", runner.printed)
        before, _, rest = runner.printed.partition(token[0])
        stopped, found, after = rest.partition(f"\n::{token[1]}::\n")
        assert found
        assert "add-mask" in stopped
        assert "##[" not in before + after
        assert not re.search(r"(?m)^\s*::(?!error |warning |notice )", before + after)


def blocks(root: Path, language: str) -> list[str]:
    text = (root / "docs" / "ci.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class TestDocumentation:
    @pytest.fixture
    def recipes(self, root: Path) -> dict[str, str]:
        return {text.partition("\n")[0].removeprefix("# "): text for text in blocks(root, "yaml")}

    def test_the_gates_are_read(self, recipes: dict[str, str]) -> None:
        checks = get_json_schema(find_entry("receipt"))["properties"]["checks"]["properties"]
        gates = read_gates(recipes["gates.yaml"].encode(), "gates.yaml", checks=list(checks), registry=load_registry())
        assert (len(gates.of_kind(Bound)), len(gates.of_kind(Change))) == (6, 2)
        assert gates.unknown == type(gates.unknown)()  # the page calls them the defaults

    def test_the_workflow_uses_the_action_as_it_is(self, recipes: dict[str, str], action: dict[str, Any]) -> None:
        workflow = yaml.safe_load(recipes[".github/workflows/train.yml"])
        steps = workflow["jobs"]["smoke"]["steps"]
        mine = [step for step in steps if step.get("uses") == "receipt-cli/receipt@v1"]
        assert len(mine) == 1
        assert set(mine[0]["with"]) <= set(action["inputs"])
        assert all(PINNED.match(step["uses"]) for step in steps if "uses" in step and step is not mine[0])

    def test_the_scripts_of_the_other_systems_run(
        self, recipes: dict[str, str], root: Path, tmp_path: Path, check_ran: Callable[[str], list[str]]
    ) -> None:
        gitlab = "\n".join(yaml.safe_load(recipes[".gitlab-ci.yml"])["train"]["script"][1:])
        generic = blocks(root, "sh")[-1]
        jenkins = re.findall(r"'''(.*?)'''", blocks(root, "groovy")[0], re.DOTALL)[0]
        assert check_ran(gitlab) == ["junit.xml", "receipt.env", "receipt.md", "run.receipt.json"]
        assert check_ran(generic) == ["verdict.json"]
        assert check_ran(jenkins) == ["junit.xml", "run.sarif"]

    def test_the_script_of_the_gitlab_component_runs(self, root: Path, check_ran: Callable[[str], list[str]]) -> None:
        head, job = yaml.safe_load_all((root / "templates" / "receipt" / "template.yml").read_text("utf-8"))
        inputs = head["spec"]["inputs"]
        assert "default" not in inputs["package"]  # no index has the package
        ((_, body),) = job.items()
        used = set(re.findall(r"\$\[\[ inputs\.([a-z-]+) \]\]", json.dumps(job)))
        assert used == set(inputs)
        given = {"log": "ci/baseline.receipt.json", "exit-code": "", "gates": "ci/gates.yaml", "baseline": "", "package": ""}
        named = {name: value.removeprefix("$[[ inputs.").removesuffix(" ]]") for name, value in body["variables"].items()}
        variables = "".join(f"{name}={given[value]}\n" for name, value in named.items())
        script = "\n".join(body["script"][1:])
        assert check_ran(variables + script) == ["junit.xml", "receipt.env", "receipt.md", "run.receipt.json"]

    @pytest.fixture
    def check_ran(self, runner: Runner, root: Path) -> Callable[[str], list[str]]:
        """Run a script in the job of a good training run; return the files that it made."""
        tools = Path(runner.environ["PATH"].split(os.pathsep)[0])
        shutil.copy(tools / "shim", tools / "receipt")
        (tools / "python").write_text(f'#!/bin/sh\ncat "{root / LOG}"\n')
        for name in ("receipt", "python"):
            (tools / name).chmod(0o755)

        def run(script: str) -> list[str]:
            shutil.rmtree(runner.folder)
            (runner.folder / "ci").mkdir(parents=True)
            for name in ("ci/gates.yaml", "gates.yaml"):
                (runner.folder / name).write_text("require: [healthy]")
            env = {k: v for k, v in runner.environ.items() if not k.startswith("GITHUB_")}
            made = f"receipt parse '{root / LOG}' -o ci/baseline.receipt.json > /dev/null\n"
            done = subprocess.run(
                ["bash", "-ec", made + script],
                env=env,
                cwd=runner.folder,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return sorted(path.name for path in runner.folder.iterdir() if path.name not in ("ci", "gates.yaml", "run.log"))

        return run
