"""What each command does when all is well: documents on stdout, chatter on stderr, files whole or untouched."""

import hashlib
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from receipt_cli import __version__
from receipt_cli.grammar.catalog import list_grammars
from tests.cli.conftest import Invoke

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log"
NANOGPT = [entry for entry in list_grammars() if entry.id == "nanogpt"][-1]
ESCAPE = b"\x1b["


@pytest.fixture
def receipt(tmp_path: Path, invoke: Invoke) -> Path:
    path = tmp_path / "run.receipt.json"
    assert invoke("parse", LOG, "-o", path).code == 0
    return path


class TestParse:
    def test_dash_o_writes_what_json_prints_and_still_shows(self, receipt: Path, invoke: Invoke) -> None:
        assert receipt.read_bytes() == invoke("parse", "--json", LOG).stdout
        both = invoke("parse", "--json", LOG, "-o", receipt)
        assert both.stdout == receipt.read_bytes()

    def test_what_is_stated_stands_in_run(self, invoke: Invoke) -> None:
        options = ("--name", "  run 7 ", "--lane", "8xH100", "--preset", "gpt2", "--exit-code", "0")
        run = invoke("parse", "--json", LOG, *options).document["run"]
        wanted = {"name": "run 7", "lane": "8xH100", "preset": "gpt2", "exit_code": 0}
        unknown = ("started_at", "finished_at", "wall_time_s", "peak_rss_bytes")
        assert run == {**wanted, **dict.fromkeys(unknown)}

    def test_attachments_have_digest_and_size_where_they_can_be_read(self, tmp_path: Path, invoke: Invoke) -> None:
        trace = tmp_path / "a trace.json"
        trace.write_bytes(b"[]")
        digest = hashlib.sha256(b"[]").hexdigest()
        url = trace.as_uri()
        assert "%20" in url
        done = invoke("parse", "--json", LOG, "--attach", f"trace={trace}", "--attach", f"t={url}", "--attach", "w=s3://runs/w")
        assert done.document["attachments"] == [
            {"kind": "trace", "uri": str(trace), "sha256": digest, "size_bytes": 2},
            {"kind": "t", "uri": url, "sha256": digest, "size_bytes": 2},
            {"kind": "w", "uri": "s3://runs/w", "sha256": None, "size_bytes": None},
        ]

    def test_a_plain_parse_records_nothing_of_this_machine(self, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(ROOT)
        header = invoke("parse", "--json", LOG).document["header"]
        origins = {origin.partition(":")[0] for origin in header["sources"].values()}
        assert origins <= {"log"}
        for part in (header["git"]["commit"], header["hardware"]["ram_bytes"], header["software"]["platform"], header["cwd"]):
            assert part is None
        assert header["collected_at"] is None

    def test_here_records_it(self, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(ROOT)
        header = invoke("parse", "--json", "--here", LOG).document["header"]
        assert header["hardware"]["ram_bytes"] > 0
        assert header["sources"]["/hardware/ram_bytes"] == "host"
        assert header["collected_at"] is not None

    def test_a_header_file_goes_all_the_way_round(self, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RECEIPT_GIT_COMMIT", "0123abcd" * 5)
        path = tmp_path / "header.json"
        assert invoke("header", "-o", path, "-C", tmp_path, "--name", "run 7", "--lane", "one").code == 0
        monkeypatch.delenv("RECEIPT_GIT_COMMIT")
        captured = json.loads(path.read_bytes())
        assert captured["schema_version"] == "header/1.0"
        document = invoke("parse", "--json", LOG, "--header", path, "--lane", "two").document
        assert document["run"]["name"] == "run 7"
        assert document["run"]["lane"] == "two"  # what is stated now wins
        assert document["run"]["started_at"] == captured["run"]["started_at"]
        assert document["header"]["git"]["commit"] == "0123abcd" * 5
        assert document["header"]["hardware"]["ram_bytes"] == captured["header"]["hardware"]["ram_bytes"]
        assert document["header"]["sources"]["/hardware/ram_bytes"] == "file"
        assert invoke("schema", "check", path).code == 0

    def test_the_environment_wins_over_the_header_file(
        self, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "header.json"
        monkeypatch.setenv("RECEIPT_GIT_BRANCH", "old")
        invoke("header", "-o", path, "-C", tmp_path)
        monkeypatch.setenv("RECEIPT_GIT_BRANCH", "new")
        header = invoke("parse", "--json", LOG, "--header", path).document["header"]
        assert (header["git"]["branch"], header["sources"]["/git/branch"]) == ("new", "env:RECEIPT_GIT_BRANCH")

    def test_a_grammar_can_be_chosen(self, tmp_path: Path, invoke: Invoke) -> None:
        mine = tmp_path / "mine.yaml"
        mine.write_bytes((ROOT / "grammars" / NANOGPT.path).read_bytes())
        for name in ("nanogpt", NANOGPT.ref, mine):
            grammars = invoke("parse", "--json", "-g", name, LOG).document["derivation"]["grammars"]
            assert [(f"{g['id']}@v{g['version']}", g["chosen_by"]) for g in grammars] == [(NANOGPT.ref, "option")]
        document = invoke("parse", "--json", "-g", mine, LOG).document
        assert document["derivation"]["options"]["grammar"] == NANOGPT.ref  # never a path
        assert str(tmp_path).encode() not in json.dumps(document).encode()


class TestWriting:
    def test_a_failure_leaves_the_old_file(self, receipt: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
        before = receipt.read_bytes()

        def fail(handle: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("receipt_cli.io.atomic.os.fsync", fail)
        done = invoke("parse", LOG, "-o", receipt, "--name", "other")
        assert (done.code, receipt.read_bytes()) == (6, before)
        assert [p.name for p in receipt.parent.iterdir()] == [receipt.name]

    def test_a_dash_as_output_is_stdout(self, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        for words in (("parse", LOG), ("import", LOG.parents[2] / "foreign" / "nanochat-report.md"), ("golden", "make", LOG)):
            done = invoke(*words, "-o", "-")
            assert (done.code, done.stdout.count(b'"schema_version"')) == (0, 1)
            assert isinstance(done.document, dict)
        assert invoke("parse", LOG, "-o", "-").stdout == invoke("parse", LOG, "--json").stdout
        assert invoke("header", "-o", "-").document["schema_version"].startswith("header/")
        assert b"\nno_match:" in invoke("grammar", "learn", LOG, "-o", "-").stdout
        assert invoke("export", LOG, "--to", "csv", "-o", "-").stdout == invoke("export", LOG, "--to", "csv").stdout
        for words in (
            ("check", LOG),
            ("report", tmp_path),
            ("attest", LOG),
            ("run", "-o", "-", "--", "true"),
            ("export", LOG, "--to", "wandb"),
        ):
            done = invoke(*words) if "-o" in words else invoke(*words, "-o", "-")
            assert (done.code, done.stdout) == (2, b"")
        assert not list(tmp_path.iterdir())


class TestCheck:
    def test_a_log_a_receipt_and_stdin(self, receipt: Path, invoke: Invoke) -> None:
        for file, stdin in ((LOG, b""), (receipt, b""), ("-", LOG.read_bytes()), ("-", receipt.read_bytes())):
            done = invoke("check", file, stdin=stdin)
            assert (done.code, done.stderr) == (0, ""), file
            assert done.stdout.startswith("✓ finished".encode())
            assert done.stdout.endswith(b"  check     yes (exit 0): finished\n")

    def test_a_receipt_whose_keys_were_sorted(self, receipt: Path, invoke: Invoke) -> None:
        receipt.write_text(json.dumps(json.loads(receipt.read_bytes()), sort_keys=True))
        assert invoke("check", receipt).code == 0

    def test_a_log_that_speaks_of_schema_versions(self, tmp_path: Path, invoke: Invoke) -> None:
        log = tmp_path / "run.log"
        log.write_bytes(b'{"schema_version": "of something else"}\n' + LOG.read_bytes())
        assert invoke("check", log).code == 0

    def test_proven_wants_an_exit_code(self, invoke: Invoke) -> None:
        assert invoke("check", "--proven", LOG).code == 1
        assert invoke("check", "--proven", "--job-exit", "0", LOG).code == 0
        assert invoke("check", "--job-exit", "1", LOG).code == 1

    def test_an_exit_code_beside_a_receipt_would_be_passed_over(self, receipt: Path, invoke: Invoke) -> None:
        done = invoke("check", receipt, "--job-exit", "1")
        assert done.code == 2
        assert "needs a log" in done.stderr

    def test_a_document_of_another_kind(self, tmp_path: Path, invoke: Invoke) -> None:
        invoke("header", "-o", tmp_path / "header.json", "-C", tmp_path)
        done = invoke("check", tmp_path / "header.json")
        assert done.code == 3
        assert "header/1.0" in done.stderr


class TestHeader:
    def test_on_stdout(self, tmp_path: Path, invoke: Invoke) -> None:
        done = invoke("header", "-C", tmp_path, "--preset", "small")
        assert done.code == 0
        assert done.document["run"]["preset"] == "small"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", done.document["run"]["started_at"])
        assert all(line.startswith("receipt: note: ") for line in done.stderr.splitlines())


class TestExplain:
    def test_a_block_has_a_line_for_each_figure_with_its_unit(self, invoke: Invoke) -> None:
        log = ROOT / "fixtures" / "logs" / "torchtitan" / "llama3-2026-ansi.log"
        lines = invoke("explain", log, "--field", "/goodput").stdout.decode().splitlines()
        assert lines[0] == "/goodput"
        shown = dict(line.split(maxsplit=1) for line in lines[1:14])
        assert (shown["goodput_ratio"], shown["badput_s/eval"], shown["phase"]) == ("70.1 %", "11.9 s", "null")
        assert b"/checks/no_oom = true\n" in invoke("explain", log, "--field", "/checks/no_oom").stdout


class TestGrammar:
    def test_show_gives_the_very_file(self, invoke: Invoke) -> None:
        wanted = (ROOT / "grammars" / NANOGPT.path).read_bytes()
        assert invoke("grammar", "show", "nanogpt").stdout == wanted
        assert invoke("grammar", "show", NANOGPT.ref).stdout == wanted

    def test_test(self, invoke: Invoke) -> None:
        done = invoke("grammar", "test", "--json", "nanogpt", LOG)
        rows = {row["rule"]: row for row in json.loads(done.stdout)}
        assert done.code == 0
        assert all(row["failed"] == 0 and row["samples"] for row in rows.values())
        assert max(row["records"] for row in rows.values() if row["event"] == "step") == 13
        assert invoke("grammar", "test", "nanogpt").code == 0

    def test_test_says_no_to_a_log_of_another(self, tmp_path: Path, invoke: Invoke) -> None:
        (tmp_path / "other.log").write_text("hello\n")
        assert invoke("grammar", "test", "nanogpt", tmp_path / "other.log").code == 1

    def test_explain(self, tmp_path: Path, invoke: Invoke) -> None:
        log = tmp_path / "run.log"
        log.write_bytes(b"x\n" * 3 + b"eval perplexity: step 5 loss 0.25\n" + LOG.read_bytes())
        done = invoke("grammar", "explain", "--json", log)
        found = done.document
        assert done.code == 0
        assert [c["id"] for c in found["candidates"] if c["chosen"]] == ["nanogpt"]
        assert {"line_number": 4, "text": "eval perplexity: step 5 loss 0.25"} in found["unmatched"]
        assert sum(rule["matched"] for rule in found["rules"]) > 13
        assert invoke("grammar", "explain", log, stdin=b"").stdout.decode().count(f"✓  {NANOGPT.ref} ") == 1
        assert invoke("grammar", "explain", "-", stdin=LOG.read_bytes()).code == 0


def test_version(invoke: Invoke) -> None:
    assert invoke("--version").stdout.decode() in (
        f"receipt {__version__} (with kernel)\n",
        f"receipt {__version__} (without kernel)\n",
    )


class Terminal:
    """A process whose stderr, or whose stdout and stderr, are a terminal."""

    def __init__(self, *arguments: str | Path, both: bool = False, **environ: str) -> None:
        ours, theirs = pty.openpty()
        env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        with subprocess.Popen(
            [sys.executable, "-m", "receipt_cli", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=theirs if both else subprocess.PIPE,
            stderr=theirs,
            env={**env, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80", **environ},
        ) as process:
            os.close(theirs)
            self.screen = b""
            end = time.monotonic() + 60
            while time.monotonic() < end:
                if not select.select([ours], [], [], 0.05)[0]:
                    if process.poll() is not None:
                        break
                    continue
                try:
                    self.screen += os.read(ours, 65536)
                except OSError:  # the last writer is gone
                    break
            os.close(ours)
            self.stdout = process.stdout.read() if process.stdout is not None else b""
        self.code = process.returncode


class TestTerminal:
    """Progress is drawn on a terminal, for a large file, and goes away; nothing is drawn in a pipe."""

    @pytest.fixture
    def large(self, tmp_path: Path) -> Path:
        path = tmp_path / "{large} [red].log"
        with path.open("wb") as file:
            file.write(LOG.read_bytes())
            file.truncate(40 << 20)
        return path

    @pytest.mark.parametrize("workers", ["1", "2"])
    def test_a_large_file(self, large: Path, workers: str) -> None:
        seen = Terminal("parse", "--json", "-g", "nanogpt", large, "--workers", workers)
        assert seen.code == 0
        assert json.loads(seen.stdout)["derivation"]["log"]["size_bytes"] == 40 << 20
        assert b"{large} [red].log" in seen.screen
        assert b"40.0/40.0 MiB" in seen.screen
        assert seen.screen.endswith(b"\x1b[2K")  # and is wiped away

    def test_a_pipe(self, large: Path, process: Invoke) -> None:
        done = process("parse", "--json", "-g", "nanogpt", large)
        assert (done.code, done.stderr) == (0, "")

    def test_an_error_stands_alone(self, tmp_path: Path) -> None:
        with (tmp_path / "empty.log").open("wb") as file:
            file.truncate(40 << 20)
        seen = Terminal("parse", tmp_path / "empty.log", NO_COLOR="1")
        assert seen.code == 4
        assert b"\x1b[2Kreceipt: error: no grammar recognises this log" in seen.screen

    def test_color(self, receipt: Path) -> None:
        assert ESCAPE in Terminal("show", receipt, both=True).screen
        assert ESCAPE not in Terminal("show", receipt, both=True, NO_COLOR="1").screen
        assert ESCAPE in Terminal("show", receipt, "--color", "always", both=True, NO_COLOR="1").screen
