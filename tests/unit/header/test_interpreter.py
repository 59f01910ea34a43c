"""The Python of a job: found by its command, its process or its environment, and never the one that runs ``receipt``."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.errors import UsageError
from receipt_cli.header.collect import collect_header
from receipt_cli.header.host import command_interpreter, find_interpreter, job_interpreter, process_interpreter


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_interpreter_of_a_command(tmp_path: Path) -> None:
    python = program(tmp_path / "env" / "bin" / "python3.12", "")
    launcher = program(tmp_path / "env" / "bin" / "torchrun", f"#!{python}\nimport sys\n")
    portable = program(tmp_path / "env" / "bin" / "accelerate", "#!/usr/bin/env python3.12\n")
    long = program(tmp_path / "env" / "bin" / "deepspeed", f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n")
    shell = program(tmp_path / "train.sh", "#!/bin/bash\npython train.py\n")
    environ = {"PATH": str(python.parent)}
    for command in (["python3.12", "train.py"], [str(launcher)], ["accelerate", "launch"], [str(portable)], [str(long)]):
        assert find_interpreter(command, environ) == str(python), command
    assert find_interpreter([str(shell)], environ) is None
    assert find_interpreter(["missing"], environ) is None


def python_of(folder: Path, version: str, **packages: str) -> str:
    """A program that answers as a Python of this version with these packages would."""
    answer = json.dumps([version, packages])
    return str(program(folder / "bin" / "python", f"#!/bin/sh\necho '{answer}'\n"))


def software(tmp_path: Path, environ: dict[str, str], python: str | None = None) -> tuple[dict[str, Any], list[str]]:
    header, notes = collect_header(environ=environ, header_file=None, log_facts=(), here=tmp_path, now=None, python=python)
    return header["software"], [note for note in notes if "python" in note.lower()]


def test_an_active_environment_is_the_jobs(tmp_path: Path) -> None:
    venv = python_of(tmp_path / "venv", "3.12.1", torch="2.9.0+cu130", peft="0.1")
    conda = python_of(tmp_path / "conda", "3.11.4")
    path = python_of(tmp_path / "usr", "3.10.9")
    environ = {"VIRTUAL_ENV": str(tmp_path / "venv"), "CONDA_PREFIX": str(tmp_path / "conda"), "PATH": os.path.dirname(path)}
    assert job_interpreter(environ) == venv
    found, notes = software(tmp_path, environ)
    assert (found["python"], found["torch"], found["cuda"]) == ("3.12.1", "2.9.0+cu130", "13.0")
    assert found["packages"] == {"peft": "0.1"}
    assert notes == []
    del environ["VIRTUAL_ENV"]
    assert job_interpreter(environ) == conda
    environ["CONDA_PREFIX"] = str(tmp_path / "gone")
    assert job_interpreter(environ) == path


def test_without_a_python_nothing_of_ours_is_said(tmp_path: Path) -> None:
    found, notes = software(tmp_path, {"PATH": str(tmp_path)})
    assert found["python"] is found["torch"] is found["packages"] is None
    assert len(notes) == 1 and "unknown" in notes[0]


def test_our_own_is_described_where_it_is_the_jobs(tmp_path: Path) -> None:
    found, notes = software(tmp_path, {"PATH": os.defpath}, sys.executable)
    assert (found["python"].split(".")[0], notes) == ("3", [])
    assert "numpy" in found["packages"]


@pytest.mark.parametrize("script", ["echo nonsense", "exit 3", "echo '[1]'"])
def test_an_interpreter_that_does_not_answer_leaves_its_fields_unknown(tmp_path: Path, script: str) -> None:
    python = program(tmp_path / "python3", f"#!/bin/sh\n{script}\n")
    found, notes = software(tmp_path, {"PATH": os.defpath}, str(python))
    assert found["python"] is found["packages"] is None
    assert len(notes) == 1


def test_a_stated_value_stands(tmp_path: Path) -> None:
    python = python_of(tmp_path, "3.12.1", torch="2.9.0")
    environ = {"PATH": os.defpath, "RECEIPT_BUILD_PROVENANCE": '{"software": {"torch": "9.9"}}'}
    found, _ = software(tmp_path, environ, python)
    assert (found["torch"], found["python"]) == ("9.9", "3.12.1")


def test_a_command_that_is_no_python_says_nothing_unless_an_environment_is_active(tmp_path: Path) -> None:
    script = str(program(tmp_path / "train.sh", "#!/bin/sh\n"))
    other = python_of(tmp_path / "usr", "3.10.9")
    assert command_interpreter([script], {"PATH": os.path.dirname(other)}) == ""
    assert command_interpreter([script], {"PATH": "", "VIRTUAL_ENV": str(tmp_path / "usr")}) == other
    ours = os.path.dirname(sys.executable)
    assert os.path.dirname(command_interpreter([script], {"PATH": ours})) == ours


def test_a_process_gives_its_python_and_its_environment(tmp_path: Path) -> None:
    code = "import sys; print('on', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PATH": os.defpath, "CUDA_VISIBLE_DEVICES": "0,3"}
    ) as job:
        assert job.stdout is not None and job.stdin is not None
        job.stdout.readline()
        environ, python = process_interpreter(job.pid)
        job.stdin.close()
    assert python == sys.executable
    assert environ["CUDA_VISIBLE_DEVICES"] == "0,3"


def test_a_process_that_is_no_python_is_refused() -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as job:
        with pytest.raises(UsageError, match="runs no Python"):
            process_interpreter(job.pid)
        job.stdin.close()
    with pytest.raises(UsageError, match="cannot be read"):
        process_interpreter(2**31 - 1)
