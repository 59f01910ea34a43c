"""Nothing crashes and nothing is lost without a word: each bad input has its exit code and message, or its problem."""

import bz2
import gzip
import lzma
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from receipt_cli.receipts.versions import SCHEMA_VERSION
from tests.cli.conftest import Invoke

ROOT = Path(__file__).resolve().parents[2]
KNOWN = ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log"
STEP = "iter {0}: loss {1}, time 131.97ms, mfu 29.53%\n"
GOOD = "".join(STEP.format(n, 4 - n / 1000) for n in range(0, 3000, 10)).encode()
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": zstandard.ZstdCompressor().compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
}
FAST: dict[str, Callable[[bytes], bytes]] = {
    **PACK,
    "gz": lambda data: gzip.compress(data, 1),
    "xz": lambda data: lzma.compress(data, preset=0),
}
"""The same for much that is all alike."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "run.log"


def steps(done: Any) -> int:
    return int(done.document["summary"]["steps"]["record_count"])


def assert_error(done: Any, code: int, *parts: str) -> None:
    assert done.code == code, done.stderr
    assert done.stderr.startswith("receipt: error: ")
    for part in parts:
        assert part in done.stderr


class TestNoLog:
    """Exit code 3, one message, nothing on stdout."""

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            pytest.param(lambda path: None, "no such log", id="missing"),
            pytest.param(lambda path: path.touch(), "the log is empty", id="empty"),
            pytest.param(lambda path: path.mkdir(), "is a directory", id="directory"),
            pytest.param(lambda path: path.symlink_to("/dev/zero"), "is a device", id="device"),
            pytest.param(lambda path: path.write_bytes(gzip.compress(b"")), "the log is empty", id="empty-inside"),
            pytest.param(lambda path: path.write_bytes(b"\x1f\x8b"), "cannot be decompressed", id="gzip-magic"),
            pytest.param(lambda path: path.write_bytes(b"\x28\xb5\x2f\xfd"), "cannot be decompressed", id="zstd-magic"),
            pytest.param(lambda path: path.write_bytes(b"\xfd7zXZ\0"), "cannot be decompressed", id="xz-magic"),
            pytest.param(lambda path: path.write_bytes(b"BZh9"), "cannot be decompressed", id="bzip2-magic"),
            pytest.param(lambda path: path.write_bytes(b"PK\x03\x04..."), "unzip -p", id="zip"),
            pytest.param(lambda path: path.write_bytes(b"\x04\x22\x4d\x18" + bytes(100)), "compressed with lz4", id="lz4"),
            pytest.param(lambda path: path.write_bytes(b"\x1f\x9d\x90" + bytes(100)), "compressed with compress", id="compress"),
            pytest.param(lambda path: path.symlink_to(path), "cannot read", id="circle"),
        ],
    )
    @pytest.mark.parametrize("command", [("parse", "--json"), ("check",), ("grammar", "explain")])
    def test_each(
        self, log: Path, invoke: Invoke, make: Callable[[Path], object], message: str, command: tuple[str, ...]
    ) -> None:
        make(log)
        done = invoke(*command, log)
        assert_error(done, 3, message)
        assert done.stdout == b""

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
    def test_unreadable(self, log: Path, invoke: Invoke) -> None:
        log.write_bytes(GOOD)
        log.chmod(0)
        assert_error(invoke("parse", log), 3, "cannot read the log")

    def test_a_name_cannot_steer_the_terminal(self, tmp_path: Path, invoke: Invoke) -> None:
        done = invoke("parse", tmp_path / "a\x1b[31m\n\u202eb.log")
        assert_error(done, 3, r"a\x1b[31m\n\u202eb.log")
        assert done.stderr.count("\n") == 1

    def test_a_name_that_is_not_utf_8(self, tmp_path: Path, process: Invoke) -> None:
        log = os.fsencode(tmp_path) + b"/caf\xe9.log"
        Path(os.fsdecode(log)).write_bytes(b"hello\n")
        assert_error(process("parse", log), 4, r"caf\udce9.log")
        Path(os.fsdecode(log)).write_bytes(GOOD)
        assert process("parse", "--json", log).code == 0


class TestStreams:
    def test_closed_standard_streams(self, log: Path, process: Invoke) -> None:
        log.write_bytes(GOOD)

        def close(*numbers: int) -> Callable[[], None]:
            return lambda: [os.close(number) for number in numbers] and None

        assert_error(process("parse", "-", preexec_fn=close(0)), 3, "standard input is closed")
        assert_error(process("parse", "--json", log, preexec_fn=close(1)), 6, "cannot write to stdout")
        assert process("parse", "--json", log, preexec_fn=close(2)).document["failure"] is None
        done = process("parse", log.with_name("missing"), preexec_fn=close(2))
        assert (done.code, done.stdout) == (3, b"")  # the message must not become the document

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    @pytest.mark.parametrize(
        "arguments", [("--help",), ("--version",), ("grammar", "show", "nanogpt"), ("parse", "--json", KNOWN)]
    )
    def test_a_full_disk(self, arguments: tuple[str | Path, ...]) -> None:
        with open("/dev/full", "wb") as full:
            command = [sys.executable, "-m", "receipt_cli", *arguments]
            done = subprocess.run(
                command, stdout=full, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
            )
        assert done.returncode == 6
        assert done.stderr.startswith(b"receipt: error: cannot write")

    @pytest.mark.parametrize("packed", [False, True])
    def test_a_named_pipe(self, tmp_path: Path, invoke: Invoke, packed: bool) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(GOOD) if packed else GOOD,))
        writer.start()
        assert steps(invoke("parse", "--json", pipe)) == 300
        writer.join()


class TestCompressed:
    @pytest.mark.parametrize("kind", sorted(PACK))
    def test_half_a_stream_gives_half_a_receipt_and_says_so(self, log: Path, invoke: Invoke, kind: str) -> None:
        chance = random.Random(3)
        words = "".join(f"words {chance.random()} that nobody reads {chance.random()}\n" for _ in range(100))
        text = "".join(STEP.format(n, 1) + words + f"{chance.random()}\n" * 20 for n in range(500))
        packed = PACK[kind](text.encode())  # several blocks of each kind
        log.write_bytes(packed[: len(packed) // 2])
        done = invoke("parse", "--json", "-g", "nanogpt", log)
        assert done.code == 0
        assert done.problems[0] == ("compressed_stream_damaged", None)
        problem = done.document["derivation"]["problems"]["first"][0]
        assert f"ends early after {done.document['derivation']['log']['size_bytes']} bytes" in problem["detail"]
        assert 100 < steps(done) < 450
        assert invoke("parse", "--strict", "-g", "nanogpt", log).code == 1


class TestContent:
    def test_junk(self, log: Path, invoke: Invoke) -> None:
        log.write_bytes(random.Random(1).randbytes(1_000_000))
        done = invoke("parse", "--json", log)
        assert_error(done, 4, "this is not text")
        assert "grammar learn" not in done.stderr
        assert done.document["checks"]["has_steps"] is None
        assert sum(done.document["derivation"]["lines"].values()) == done.document["derivation"]["log"]["record_count"]

    def test_nul_bytes(self, log: Path, invoke: Invoke) -> None:
        log.write_bytes(GOOD[:1000] + b"\0\0" + GOOD[1000:] + b"\0")
        done = invoke("parse", "--json", log)
        assert steps(done) == 300
        assert done.problems == [("nul_bytes", GOOD[:1000].count(b"\n") + 1)]

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_utf_16_is_read_and_told(self, log: Path, invoke: Invoke, encoding: str, end: str) -> None:
        log.write_bytes(GOOD.decode().replace("\n", end).encode(encoding))
        done = invoke("parse", "--json", log)
        assert steps(done) == 300
        assert done.problems == [("decoded_as", None)]

    def test_invalid_utf_8_everywhere(self, log: Path, invoke: Invoke) -> None:
        lines = [b"\xff\xfe" + line + b"\xc3" for line in GOOD.split(b"\n")]
        log.write_bytes(b"\n".join(lines) + b"\n" + b"\x80\n" * 40)
        done = invoke("parse", "--json", log)
        assert steps(done) == 300
        assert done.document["derivation"]["lines"] == {"matched": 300, "ignored": 0, "unmatched": 0, "undecodable": 41}
        done.stdout.decode("utf-8")

    def test_one_long_line_in_a_good_log(self, log: Path, invoke: Invoke) -> None:
        log.write_bytes(GOOD[: len(GOOD) // 2] + b"x" * 5_000_000 + GOOD[len(GOOD) // 2 :])
        done = invoke("parse", "--json", log)
        assert steps(done) in (299, 300)
        torn = ("record_too_long", GOOD[: len(GOOD) // 2].count(b"\n") + 1)
        assert done.problems == ([torn] if steps(done) == 300 else [("steps_missing", None), torn])

    @pytest.mark.parametrize(
        "line",
        [
            b"iter " + b"9" * 10_000 + b": loss 1.0, time 1.00ms, mfu 1.00%",
            b"iter 5000: loss " + b"9" * 10_000 + b", time 1.00ms, mfu 1.00%",
            b"iter 5000: loss 1." + b"9" * 10_000 + b", time 1.00ms, mfu 1.00%",
            b"iter 5000: loss 1e" + b"9" * 10_000 + b", time 1.00ms, mfu 1.00%",
            b"iter 5000: loss 1.0, time " + b"9" * 10_000 + b"ms, mfu 1.00%",
            b"iter 5000: loss 1.0, time 1.00ms, mfu " + b"9" * 60_000 + b"%",
        ],
        ids=["step", "loss", "digits", "exponent", "time", "mfu"],
    )
    def test_numbers_of_ten_thousand_digits(self, log: Path, invoke: Invoke, line: bytes) -> None:
        log.write_bytes(GOOD + line + b"\n")
        done = invoke("parse", "--json", "-g", "nanogpt", log)
        assert done.code == 0
        assert steps(done) in (300, 301)
        told = done.problems + [("near", n["line_number"]) for n in done.document["derivation"]["near_misses"]["first"]]
        unread = done.document["derivation"]["lines"]["unmatched"]
        assert told or unread or line.startswith(b"iter 5000: loss 1.9")

    @pytest.mark.parametrize(
        "line",
        [
            b"{'loss': 1.0, 'a': " + b"[" * 30_000 + b"]" * 30_000 + b"}",
            b"{'loss': 1.0, 'a': " + b'{"a":' * 6_000 + b"1" + b"}" * 6_000 + b"}",
            b"{'loss': " + b"-" * 60_000 + b"1}",
            b"{'loss': 1.0, 'b': '" + b"\\" * 60_000,
            b"{" * 100_000,
            b"{'loss': 1" * 6_000,
            b":::MLLOG " + b'{"key": ' * 7_000,
            b'{"loss": ' + b"9" * 5_000 + b', "step": ' + b"1" * 5_000 + b"}",
        ],
        ids=["lists", "objects", "signs", "escapes", "braces", "dicts", "mllog", "digits"],
    )
    def test_nested_and_unclosed_mappings(self, log: Path, invoke: Invoke, line: bytes) -> None:
        log.write_bytes(GOOD + (line + b"\n") * 5)
        done = invoke("parse", "--json", log)  # some took hours
        assert done.code == 0
        assert steps(done) == 300


class TestChanging:
    def test_a_log_still_being_written(self, log: Path, process: Invoke) -> None:
        log.write_bytes(GOOD * 5)
        stop = threading.Event()

        def append() -> None:
            with log.open("ab") as file:
                while not stop.is_set():
                    file.write(GOOD)
                    file.flush()
                    time.sleep(0.002)

        writer = threading.Thread(target=append)
        writer.start()
        try:
            done = process("parse", "--json", log)
        finally:
            stop.set()
            writer.join()
        assert done.code == 0
        assert "changed while it was read" in done.stderr
        facts = done.document["derivation"]["log"]
        assert facts["size_bytes"] <= log.stat().st_size
        assert f"{facts['size_bytes']} bytes" in done.stderr


class TestOptions:
    @pytest.mark.parametrize(
        "options",
        [
            ("--name", ""),
            ("--name", " "),
            ("--name", "two\nlines"),
            ("--lane", "\u202e"),
            ("--preset", "\udcff"),
            ("--exit-code", "9" * 30),
            ("--exit-code", "one"),
            ("--attach", "trace"),
            ("--attach", "trace=missing.json"),
            ("--attach", "trace=."),
            ("--attach", "trace=\udcff"),
            ("--attach", "not a kind=x"),
            ("--workers", "0"),
            ("--workers", "many"),
            ("--color", "red"),
            ("-g", ""),
            ("-g", ".."),
            ("-g", "nanogpt@1"),
            ("-g", "nanogpt@v01"),
        ],
    )
    def test_2_for_what_no_receipt_can_hold(self, log: Path, invoke: Invoke, options: tuple[str, ...]) -> None:
        log.write_bytes(GOOD)
        done = invoke("parse", "--json", log, *options)
        assert (done.code, done.stdout) == (2, b""), done.stderr

    @pytest.mark.parametrize("options", [("--name", ""), ("--lane", "a\nb"), ("--preset", "\udcff")])
    def test_2_for_what_no_header_can_hold(self, tmp_path: Path, invoke: Invoke, options: tuple[str, ...]) -> None:
        assert invoke("header", "-C", tmp_path, *options).code == 2

    @pytest.mark.parametrize(
        "content", [b"", b"{}", b"[]", b"hello", b"\xff", b'{"schema_version": "header/2.0"}', b"[" * 100_000]
    )
    def test_3_for_a_header_file_that_is_none(self, log: Path, tmp_path: Path, invoke: Invoke, content: bytes) -> None:
        log.write_bytes(GOOD)
        (tmp_path / "header.json").write_bytes(content)
        assert_error(invoke("parse", log, "--header", tmp_path / "header.json"), 3, "header")

    @pytest.mark.parametrize("blob", ["{", "[]", '{"git": 1}', '{"flags": {"\\ud800": 1}}', "{" * 5000, '{"commit": "no"}'])
    def test_2_for_a_blob_that_is_none(self, log: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, blob: str) -> None:
        log.write_bytes(GOOD)
        monkeypatch.setenv("RECEIPT_BUILD_PROVENANCE", blob)
        done = invoke("parse", "--json", log)
        assert done.code in (0, 2)
        assert done.code == 2 or done.document["schema_version"] == SCHEMA_VERSION


class TestOutput:
    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_a_device_is_written_to_and_not_replaced(self, log: Path, tmp_path: Path, invoke: Invoke) -> None:
        log.write_bytes(GOOD)
        (tmp_path / "null").symlink_to("/dev/null")
        assert invoke("parse", log, "-o", tmp_path / "null").code == 0
        assert Path("/dev/null").is_char_device()
        assert_error(invoke("parse", log, "-o", "/dev/full"), 6, "No space left on device")


NANO = """\
grammar: mine
version: 1
title: t
trainer: mine
rules:
  train_step:
    event: step
    literal: 'loss'
    pattern: PATTERN
    fields: {loss: {}, step: {type: integer}}
    samples: [{line: 'step 1 loss 2', fields: {step: 1, loss: 2.0}}]
"""
PLAIN = r"'step (?P<step>\d+) loss (?P<loss>\d+)'"
STEPS = b"step 1 loss 2\nstep 2 loss 3\n"


def alias_bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    return "\n".join(lines) + "\n"


class TestGrammarFile:
    """A grammar is a file that somebody sent: 5 and a message, whatever stands in it."""

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param(alias_bomb(), id="alias-bomb"),
            pytest.param("<<: 5\n", id="merge-of-nothing"),
            pytest.param("a: 1\n" + "#" * 2_000_000, id="huge"),
            pytest.param("!!python/object/apply:os.system ['touch HACKED']\n", id="python-tag"),
            pytest.param("grammar: !!python/object/apply:os.system ['touch HACKED']\n", id="python-tag-inside"),
            pytest.param("a: " + "[" * 100_000, id="deep-lists"),
            pytest.param("{a: " * 100_000, id="deep-mappings"),
            pytest.param("- " * 50_000, id="deep-dashes"),
            pytest.param("".join(" " * n + "a:\n" for n in range(1300)), id="deep-indentation"),
            pytest.param(NANO.replace("PATTERN", r"'(?P<step>'"), id="broken-pattern"),
            pytest.param(NANO.replace("PATTERN", PLAIN).replace("loss: {}", "loss: {definition: Not a slug}"), id="no-slug"),
        ],
    )
    def test_5_and_a_message(self, tmp_path: Path, log: Path, invoke: Invoke, process: Invoke, text: str) -> None:
        log.write_bytes(STEPS)
        (tmp_path / "mine.yaml").write_text(text, "utf-8")
        call = process if len(text) > 10_000 else invoke  # the stack of C code is not caught by pytest
        done = call("parse", "--json", "-g", tmp_path / "mine.yaml", log)
        assert_error(done, 5, "mine.yaml")
        assert not Path("HACKED").exists()

    @pytest.mark.parametrize("data", [b"\xff\xfe", b"grammar: \xe9\n", bytes(100), random.Random(2).randbytes(1000)])
    def test_5_for_what_is_no_text(self, tmp_path: Path, log: Path, invoke: Invoke, data: bytes) -> None:
        log.write_bytes(STEPS)
        (tmp_path / "mine.yaml").write_bytes(data)
        assert_error(invoke("parse", "-g", tmp_path / "mine.yaml", log), 5, "mine.yaml")
        assert invoke("grammar", "lint", tmp_path / "mine.yaml").code == 1

    def test_a_pattern_without_end_has_a_time_box(
        self, tmp_path: Path, log: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("receipt_cli.scan.extraction.model.TIME_BOX_S", 0.2)
        log.write_bytes(STEPS + b"loss " + b"a" * 60 + b"!\n")
        pattern = r"'loss (?:a|aa)+(?P<x>b)|step (?P<step>\d+) loss (?P<loss>\d+)'"
        grammar = NANO.replace("PATTERN", pattern).replace("fields: {loss", "fields: {x: {type: string}, loss", 1)
        (tmp_path / "mine.yaml").write_text(grammar, "utf-8")
        done = invoke("parse", "--json", "-g", tmp_path / "mine.yaml", log)
        assert (done.code, steps(done)) == (0, 2)
        assert done.problems == [("pattern_timeout", 3)]
        assert invoke("grammar", "explain", "--json", "-g", tmp_path / "mine.yaml", log).code == 0

    def test_a_pattern_that_calls_itself(self, tmp_path: Path, log: Path, process: Invoke) -> None:
        log.write_bytes(STEPS)
        (tmp_path / "mine.yaml").write_text(NANO.replace("PATTERN", r"'(?R)?step (?P<step>\d+) loss (?P<loss>\d+)'"), "utf-8")
        done = process("parse", "--json", "-g", tmp_path / "mine.yaml", log)
        assert done.code in (0, 4, 5), done.stderr


CHILD = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "receipt_cli", *sys.argv[1:]])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(done.returncode)
"""


def stream(piece: bytes, size: int, *arguments: str) -> tuple[int, bytes, int]:
    """Pipe ``size`` bytes into ``receipt parse -``; return exit code, stdout and the peak of its memory in MiB."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, "parse", "--json", "-", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with child:
        for _ in range(0, size, len(piece)):
            child.stdin.write(piece)
        out, err = child.communicate()
    peak = int(err.split()[-1])
    return child.returncode, out, peak // (1024 * 1024 if sys.platform == "darwin" else 1024)


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource")
class TestMemory:
    BOUND_MIB = 100
    GROWTH_MIB = 8
    """What the same line ten times as long may take more: a bound for a line of any length."""

    def test_200_mb_without_a_newline(self) -> None:
        code, out, peak = stream(b"x" * 1_000_000, 200_000_000)
        assert code == 4
        assert b'"kind": "record_too_long"' in out
        assert b"record of 200000000 bytes" in out
        assert peak < self.BOUND_MIB
        code, _, before = stream(b"x" * 1_000_000, 20_000_000)
        assert code == 4
        assert peak - before < self.GROWTH_MIB

    @pytest.mark.parametrize("kind", sorted(PACK))
    def test_a_bomb(self, kind: str) -> None:
        bomb = FAST[kind](bytes(100_000_000))
        code, out, peak = stream(bomb, len(bomb))
        assert code == 4
        assert b"100000000" in out
        assert peak < self.BOUND_MIB
