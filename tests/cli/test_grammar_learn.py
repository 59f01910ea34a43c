"""``receipt grammar learn`` and generic reading on the command line: what is printed, written, refused."""

import gzip
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

LINES = [f"[engine] tick it {n}/12 || train_ce {4 - n / 10:.1f} || lr 0.1" for n in range(1, 13)]
TEXT = "".join(f"{line}\n" for line in ["loading", *LINES, "bye"]).encode()
PROSE = b"step 1: read the loss\nstep 2: write it down\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "my run.log"
    path.write_bytes(TEXT)
    return path


class TestLearn:
    def test_a_draft_goes_to_stdout_and_what_it_reads_to_stderr(self, log: Path, invoke: Invoke) -> None:
        done = invoke("grammar", "learn", log)
        assert done.code == 0
        assert b"grammar: my-run\n" in done.stdout
        assert "my-run reads 12 of 14 records: 12 steps, 1 to 12" in done.stderr
        assert [line.split()[0] for line in done.stderr.splitlines()[3:5]] == ["loss", "learning_rate"]

    def test_a_draft_passes_lint_and_reads_the_log(self, log: Path, tmp_path: Path, invoke: Invoke) -> None:
        own = tmp_path / "own.yaml"
        done = invoke("grammar", "learn", log, "-o", own, "--id", "own")
        assert (done.code, done.stdout) == (0, b"")
        assert invoke("grammar", "lint", own).code == 0
        receipt = invoke("parse", "--json", log, "--grammar", own).document
        assert receipt["summary"]["steps"]["record_count"] == 12
        assert receipt["summary"]["metrics"]["loss"]["last"] == 2.8
        assert receipt["derivation"]["grammars"][0]["id"] == "own"

    def test_a_line_names_the_records_to_draft(self, tmp_path: Path, invoke: Invoke) -> None:
        path = tmp_path / "two.log"
        pairs = [(f"iter {n}/12 loss {4 - n / 10:.1f} lr 0.1", f"gen {n} fit {n}.5 best {n}.9") for n in range(1, 13)]
        lines = [line for pair in pairs for line in pair]
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        assert "loss" in invoke("grammar", "learn", path).stderr
        done = invoke("grammar", "learn", path, "--line", "4", "--answer", "gen=step,fit=reward")
        assert done.code == 0
        assert "12 steps, 1 to 12" in done.stderr and "\nreward_mean" in done.stderr and "\nloss" not in done.stderr
        assert invoke("grammar", "learn", path, "--line", "99").code == 2

    def test_a_file_is_never_overwritten(self, log: Path, tmp_path: Path, invoke: Invoke) -> None:
        taken = tmp_path / "taken.yaml"
        taken.write_bytes(b"mine")
        done = invoke("grammar", "learn", log, "-o", taken)
        assert (done.code, done.stdout, taken.read_bytes()) == (6, b"", b"mine")
        assert "exists and is not overwritten" in done.stderr

    def test_nothing_is_left_where_it_cannot_be_written(self, log: Path, tmp_path: Path, invoke: Invoke) -> None:
        done = invoke("grammar", "learn", log, "-o", tmp_path / "absent" / "own.yaml")
        assert done.code == 6
        assert sorted(os.listdir(tmp_path)) == ["my run.log"]

    def test_it_reads_stdin_and_compressed_logs(self, tmp_path: Path, invoke: Invoke) -> None:
        packed = tmp_path / "run.log.gz"
        packed.write_bytes(gzip.compress(TEXT))
        piped = invoke("grammar", "learn", "-", "--id", "run", stdin=TEXT)
        assert piped.code == 0
        assert invoke("grammar", "learn", packed).stdout == piped.stdout

    def test_a_log_without_training_gives_a_draft_to_complete(self, tmp_path: Path, invoke: Invoke) -> None:
        path, own = tmp_path / "prose.txt", tmp_path / "own.yaml"
        path.write_bytes(PROSE)
        done = invoke("grammar", "learn", path, "-o", own)
        assert (done.code, done.stdout) == (4, b"")
        assert "the draft reads no step" in done.stderr and "receipt grammar learn LOG --answer" in done.stderr
        assert "#   ? these may not be training records" in own.read_text("utf-8")
        assert invoke("grammar", "lint", own).code == 0

    @pytest.mark.parametrize("name", ["", "Own", "a/b", "a b", "x" * 65])
    def test_a_name_that_no_grammar_has_is_refused(self, name: str, log: Path, invoke: Invoke) -> None:
        assert invoke("grammar", "learn", log, "--id", name).code == 2


class TestGenericReading:
    def test_the_receipt_says_so(self, log: Path, invoke: Invoke) -> None:
        done = invoke("parse", "--json", log)
        assert done.code == 0
        assert [g["id"] for g in done.document["derivation"]["grammars"]] == ["generic"]
        assert done.problems == [("generic_reading", None)]
        assert done.document["header"]["software"]["trainer"] in (None, {"name": None, "version": None, "commit": None})
        assert done.document["summary"]["steps"]["planned"] == 12
        assert done.document["checks"]["has_steps"] is True

    def test_it_can_be_asked_for(self, invoke: Invoke, tmp_path: Path) -> None:
        known = tmp_path / "run.log"
        known.write_bytes(b"".join(b"iter %d: loss 3.%d, time 9.50ms, mfu 20.00%%\n" % (n, n) for n in range(9)))
        assert invoke("parse", "--json", known).document["derivation"]["grammars"][0]["id"] == "nanogpt"
        asked = invoke("parse", "--json", known, "--grammar", "generic").document
        assert asked["derivation"]["options"]["grammar"] == "generic@v2"
        assert asked["summary"]["metrics"]["loss"]["last"] == 3.8

    def test_explain_says_how_it_was_read(self, log: Path, invoke: Invoke) -> None:
        done = invoke("grammar", "explain", log)
        assert done.code == 0
        assert b"read by the words beside its numbers" in done.stdout
