"""What commands answer to the short logs and documents that were made for one question each, where they are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

PROBES = Path(__file__).resolve().parents[3] / "shared" / "probes"
pytestmark = pytest.mark.skipif(not PROBES.is_dir(), reason="the probes are not beside this checkout")

COMMANDS: dict[str, tuple[int, list[str]]] = {  # exit code, and what is printed
    "compare --reproducibility rep-a.log rep-c.log": (1, ["not reproduced", "seed is 42 and 43"]),
    "compare --resume fresh.log res.log": (0, ["equal at 60 steps as printed", "b begins with step 60, which a trained"]),
    "compare --resume res.log fresh.log": (1, ["not behind it"]),
    "parse mega-ok.log --header env-header.json": (0, ["18.0"]),
    "parse --strict features-meg-r.log": (1, []),
    "parse --strict features-meg.log": (0, []),
    "parse --strict fg-lit.log": (0, []),
    "parse --strict fg-seed.log": (0, []),
    "parse seed.log": (4, ["ValueError: bad"]),
    "parse seeds-lines.log": (4, ["no grammar recognises this log"]),
    "parse repro-W4.log": (4, ["no grammar recognises this log"]),
    "validate t6.json": (1, ["mfu_agrees"]),
    "validate t9.json": (1, ["exit_code_agrees"]),
    "validate t10.json": (1, ["failure_agrees"]),
    "import gf-new-full.ndjson": (0, ["launches 3"]),
    "import gf-new-full-v1.ndjson": (0, ["launches 3"]),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_answers(command: str, invoke: Invoke) -> None:
    code, printed = COMMANDS[command]
    done = invoke(*(str(PROBES / part) if (PROBES / part).is_file() else part for part in command.split()))
    assert done.code == code, done.stderr
    text = done.stdout.decode() + done.stderr
    assert [part for part in printed if part not in text] == []


def test_every_mfu_of_a_log_is_completed_from_the_header_of_its_job(invoke: Invoke) -> None:
    done = invoke("parse", PROBES / "mega-ok.log", "--header", PROBES / "env-header.json", "--json")
    assert done.document["summary"]["derived"]["mfu_ratio"]["median"] == pytest.approx(0.1798, abs=1e-4)


def test_every_probe_has_a_test() -> None:
    tables = Path(__file__).read_text("utf-8") + (Path(__file__).parents[1] / "golden" / "test_probes.py").read_text("utf-8")
    files = [path.name for path in sorted(PROBES.iterdir()) if path.is_file() and path.name != "README.md"]
    assert [name for name in files if name not in tables] == []
