"""Defaults of options: variables, ``receipt.toml`` and ``pyproject.toml``, their precedence, trust and mistakes."""

import os
from pathlib import Path

import pytest

from receipt_cli.cli.settings import SETTINGS, variable
from tests.cli.conftest import Invoke

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder two levels below that of the project, without settings of the person who runs the tests."""
    for name in SETTINGS:
        monkeypatch.delenv(variable(name), raising=False)
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    return tmp_path


def shown(invoke: Invoke) -> dict[str, tuple[str | None, str | None]]:
    import json

    done = invoke("config", "--json")
    assert done.code == 0, done.stderr
    return {row["setting"]: (row["value"], row["source"]) for row in json.loads(done.stdout)}


def test_an_option_comes_before_a_variable_and_a_variable_before_the_file(
    project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / "receipt.toml"
    file.write_text('lane = "file"\nname = "file"\npreset = "file"\nstore = "runs"\n', "utf-8")
    monkeypatch.setenv("RECEIPT_NAME", "variable")
    monkeypatch.setenv("RECEIPT_PRESET", "variable")
    run = invoke("parse", LOG, "--preset", "option", "--json").document["run"]
    assert (run["lane"], run["name"], run["preset"]) == ("file", "variable", "option")
    assert shown(invoke) == {
        "lane": ("file", str(file)),
        "name": ("variable", "RECEIPT_NAME"),
        "preset": ("variable", "RECEIPT_PRESET"),
        "store": (str(project / "runs"), str(file)),
        **dict.fromkeys(("gates", "policy", "path"), (None, None)),
    }


def test_the_nearest_file_counts_and_a_pyproject_without_settings_is_none(project: Path, invoke: Invoke) -> None:
    (project / "receipt.toml").write_text('lane = "far"\n', "utf-8")
    (project / "a" / "pyproject.toml").write_text('[tool.receipt]\nlane = "near"\n', "utf-8")
    (project / "a" / "b" / "pyproject.toml").write_text("[tool.other]\nreceipt = 1\n", "utf-8")
    assert shown(invoke)["lane"] == ("near", str(project / "a" / "pyproject.toml"))


def test_settings_reach_the_options_that_they_are_for(project: Path, process: Invoke, invoke: Invoke) -> None:
    (project / "gates.yaml").write_text("require: [no_such_check]\n", "utf-8")
    (project / "receipt.toml").write_text('gates = "gates.yaml"\nstore = "runs"\npath = ["missing"]\n', "utf-8")
    assert "a folder of RECEIPT_PATH does not exist" in process("parse", str(LOG)).stderr
    (project / "receipt.toml").write_text('gates = "gates.yaml"\nstore = "runs"\n', "utf-8")
    assert "gates.yaml" in invoke("check", LOG).stderr
    assert invoke("store", "build", LOG, "--store", project / "runs", "--workers", "1").code == 0
    assert invoke("show", "char-ok.log", "--json").document["schema_version"].startswith("receipt/")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('lanes = "h100"\n', "unknown setting 'lanes'"),
        ("lane = 8\n", "the setting lane must be a string"),
        ('lane = ["a", "b"]\n', "the setting lane must be a string"),
        ("path = []\n", "the setting path must be a string"),
        ("lane = \n", "the settings file is not valid TOML"),
        ('lane = "\\u0000"\n', "the setting lane must be a string"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_file(project: Path, invoke: Invoke, text: str, what: str) -> None:
    (project / "receipt.toml").write_text(text, "utf-8")
    done = invoke("parse", LOG)
    assert done.code == 2
    first = done.stderr.splitlines()[0]
    assert what in first and "receipt.toml" in first
    if "lanes" in text:
        assert "try: lane = ..." in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="who may write is another question there")
def test_a_file_that_everybody_may_write_is_left_out(project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project / "receipt.toml"
    file.write_text('lane = "theirs"\n', "utf-8")
    file.chmod(0o666)
    done = invoke("parse", LOG, "--json")
    assert (done.code, done.document["run"]["lane"]) == (0, None)
    assert "are not used: everybody may write to it" in done.stderr
    file.chmod(0o644)
    monkeypatch.setenv("RECEIPT_LOCAL", "0")
    assert invoke("parse", LOG, "--json").document["run"]["lane"] is None
