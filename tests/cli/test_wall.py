"""``receipt parse --wall``: how long the job took, stated by the caller."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Invoke

LOGS = sorted((ROOT / "fixtures" / "logs" / "maxtext").glob("*.log"))


@pytest.mark.parametrize("wall", ["1h", "3600", "1:00:00", "3600.0s"])
def test_a_duration(invoke: Invoke, wall: str) -> None:
    found = invoke("parse", LOGS[0], "--wall", wall, "--json").document
    assert found["goodput"]["evidence"] == "stated"
    assert found["goodput"]["wall_time_s"] == 3600.0
    assert found["derivation"]["options"]["wall"] == {"seconds": 3600.0, "evidence": "stated", "phase": None}


def test_a_file_and_what_is_shown_of_it(invoke: Invoke, tmp_path: Path) -> None:
    summary = tmp_path / "wandb-summary.json"
    summary.write_text(json.dumps({"_runtime": 3600, "_timestamp": 1.0}), "utf-8")
    done = invoke("parse", LOGS[0], "--wall", summary, "--full")
    assert done.code == 0
    shown = done.stdout.decode()
    assert "% in steps · by wandb · steps by their printed times" in shown


def test_the_receipt_of_another_reading_states_it(invoke: Invoke, tmp_path: Path) -> None:
    receipt = tmp_path / "run.receipt.json"
    document = invoke("parse", LOGS[0], "--json").document
    document["run"]["wall_time_s"] = 1234.5
    receipt.write_text(json.dumps(document), "utf-8")
    found = invoke("parse", LOGS[0], "--wall", receipt, "--json").document["goodput"]
    assert (found["evidence"], found["wall_time_s"]) == ("receipt_run", 1234.5)


def test_a_stated_wall_is_verified_and_followed(invoke: Invoke, tmp_path: Path) -> None:
    receipt = tmp_path / "run.receipt.json"
    assert invoke("parse", LOGS[0], "--wall", "1h", "-o", receipt).code == 0
    assert invoke("verify", receipt, LOGS[0]).code == 0
    followed = invoke("parse", LOGS[0], "--wall", "1h", "--follow", "--idle", "1", "--json")
    assert followed.stdout == receipt.read_bytes()


@pytest.mark.parametrize("wall", ["0", "yesterday", "no-such-file.json", ""])
def test_what_says_no_time_is_refused_before_the_log_is_read(invoke: Invoke, wall: str) -> None:
    done = invoke("parse", "no-such.log", f"--wall={wall}")
    assert done.code == 2
    assert "wall" in done.stderr


def test_without_a_wall_and_without_stamps_there_is_no_ratio(invoke: Invoke) -> None:
    assert invoke("parse", LOGS[0], "--json").document["goodput"] is None
