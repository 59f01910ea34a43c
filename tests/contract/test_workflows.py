"""The workflows of the repository: what they may do, what they run, and that nobody's text becomes a command."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = {path.name: yaml.safe_load(path.read_text("utf-8")) for path in FILES}
TARGET = re.compile(r"\bmake ([a-z-]+)")


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job.get("steps", ())]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_only_read_unless_a_job_says_more(name: str) -> None:
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_expression_becomes_the_text_of_a_script(name: str) -> None:
    assert not [step["run"] for step in steps(WORKFLOWS[name]) if "${{" in step.get("run", "")]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_targets_and_files_exist(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for step in steps(WORKFLOWS[name]):
        assert all(f"\n{target}:" in makefile for target in TARGET.findall(step.get("run", "")))
        uses = step.get("uses", "")
        assert "@" in uses or not uses or (ROOT / uses / "action.yml").is_file()
    called = [job["uses"] for job in WORKFLOWS[name]["jobs"].values() if "uses" in job]
    assert all((ROOT / path).is_file() for path in called)


def test_every_supported_python_is_tested() -> None:
    tested = WORKFLOWS["test.yml"]["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert tested == WORKFLOWS["release.yml"]["jobs"]["check"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]


def test_a_release_is_made_only_of_what_was_checked() -> None:
    jobs = WORKFLOWS["release.yml"]["jobs"]
    assert [jobs[name].get("needs") for name in ("check", "publish", "image")] == [["wheels", "test"], "check", "check"]
    assert not [step for step in steps(WORKFLOWS["release.yml"]) if "secrets." in str(step)]  # PyPI trusts the workflow


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name)
def test_an_issue_form_asks_something(path: Path) -> None:
    form = yaml.safe_load(path.read_text("utf-8"))
    if path.name != "config.yml":
        assert form["name"]
        assert form["description"]
        assert len({entry["id"] for entry in form["body"] if "id" in entry}) > 1


def test_the_hooks_run_commands_that_exist() -> None:
    from receipt_cli.cli.commands import COMMANDS

    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert [hook["entry"].removeprefix("receipt ") in COMMANDS for hook in hooks] == [True, True]
    assert re.search(hooks[0]["files"], "runs/a.receipt.json")
    assert re.search(hooks[1]["files"], ".receipt/grammars/mine.yaml")
