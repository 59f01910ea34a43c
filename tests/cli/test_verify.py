"""``receipt verify``: yes for the log that a receipt is of, no with the field named for anything else."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from receipt_cli.documents.canonical import canonical_bytes, captured_digest
from receipt_cli.documents.schemas import keep_known
from tests.cli.conftest import Invoke

ROOT = Path(__file__).resolve().parents[2]
NANOGPT = ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log"
RANKS = ROOT / "fixtures" / "runs" / "hf-trainer-torchrun"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return Path(shutil.copy(NANOGPT, tmp_path / "run.log"))


@pytest.fixture
def receipt(log: Path, invoke: Invoke) -> Path:
    path = log.with_name("receipt.json")
    assert invoke("parse", log, "-o", path).code == 0
    return path


def change(receipt: Path, pointer: str, value: Any) -> None:
    """Write another value into a receipt."""
    document = json.loads(receipt.read_bytes())
    *path, last = [int(part) if part.isdecimal() else part for part in pointer.split("/")[1:]]
    holder = document
    for part in path:
        holder = holder[part]
    holder[last] = value
    receipt.write_text(json.dumps(document), "utf-8")


def fields(done: Any) -> list[str]:
    """Return the fields that differ."""
    return [difference["pointer"] for difference in done.document["differences"]]


def test_yes(log: Path, receipt: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log.parent)
    done = invoke("verify", receipt.name, log.name)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout == b"verified: receipt.json is what run.log gives  nanogpt@v1\n"
    done = invoke("verify", "--json", receipt, log)
    assert (done.code, done.stderr) == (0, "")
    assert done.document == {
        "receipt": str(receipt),
        "logs": [str(log)],
        "newest": False,
        "identical": True,
        "other": [],
        "captured": "as_written",
        "grammars": ["nanogpt@v1"],
        "invalid": [],
        "differences": [],
    }


def test_yes_for_the_compressed_log_and_for_stdin(log: Path, receipt: Path, invoke: Invoke) -> None:
    packed = log.with_name("old.gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert invoke("verify", receipt, packed).code == 0
    assert invoke("verify", receipt, "-", stdin=packed.read_bytes()).code == 0
    assert invoke("verify", receipt, "-", stdin=log.read_bytes()).code == 0


LINE = b"iter 5: loss 4.0243"


@pytest.mark.parametrize(
    ("old", "new", "want", "other"),
    [
        pytest.param(LINE, b"iter 5: loss 7.0243", "/summary/metrics/loss/max", ["log", "values"], id="one byte of a step"),
        pytest.param(
            b"vocab_size = 65", b"vocab_size = 66", "/derivation/log/sha256", ["log"], id="one byte that no value is made of"
        ),
        pytest.param(b"\n" + LINE, b"\niteR 5: loss 4.0243", "/summary/steps/record_count", ["log", "values"], id="a step less"),
    ],
)
def test_another_log(old: bytes, new: bytes, want: str, other: list[str], log: Path, receipt: Path, invoke: Invoke) -> None:
    assert log.read_bytes().count(old) == 1
    log.write_bytes(log.read_bytes().replace(old, new))
    done = invoke("verify", "--json", receipt, log)
    assert done.code == 1
    assert done.document["other"] == other
    assert {"/derivation/log/sha256", want} <= set(fields(done))


def test_a_log_cut_and_a_log_that_grew(log: Path, receipt: Path, invoke: Invoke) -> None:
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) * 2 // 3])
    done = invoke("verify", "--json", receipt, log)
    assert (done.code, done.document["other"]) == (1, ["log", "values"])
    assert {"/summary/steps/record_count", "/derivation/log/sha256", "/derivation/log/size_bytes"} <= set(fields(done))
    log.write_bytes(whole + b"one more line\n")
    done = invoke("verify", "--json", receipt, log)
    assert done.code == 1
    assert fields(done) == [f"/derivation/log/{name}" for name in ("sha256", "size_bytes", "line_count", "record_count")] + [
        "/derivation/lines/unmatched"
    ]


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("/summary/metrics/loss/mean", 3.25), ("/derivation/grammars/0/chosen_by", "default"), ("/checks/has_steps", None)],
)
def test_a_changed_receipt(pointer: str, value: object, log: Path, receipt: Path, invoke: Invoke) -> None:
    change(receipt, pointer, value)
    done = invoke("verify", "--json", receipt, log)
    assert (done.code, done.document["other"], fields(done)) == (1, ["values"], [pointer])
    shown = invoke("verify", receipt, log).stdout.decode()
    assert shown.startswith("not verified: 1 ")
    assert "the receipt was changed" in " ".join(shown.split())
    assert pointer in shown


@pytest.mark.parametrize(
    ("pointer", "value", "other"),
    [
        ("/derivation/grammars/0/version", 2, "grammar"),
        ("/derivation/grammars/0/sha256", "0" * 64, "grammar"),
        ("/derivation/markers/sha256", "0" * 64, "markers"),
        ("/derivation/registry/version", 1, "registry"),
        ("/derivation/peaks/version", 3, "peaks"),
        ("/derivation/rules", "derive/1", "rules"),
    ],
)
def test_other_definitions_are_told_from_other_numbers(
    pointer: str, value: object, other: str, log: Path, receipt: Path, invoke: Invoke
) -> None:
    change(receipt, pointer, value)
    done = invoke("verify", "--json", receipt, log)
    assert (done.code, done.document["other"], fields(done)) == (1, [other], [pointer])
    change(receipt, "/summary/training_time_s", 1.5)
    assert invoke("verify", "--json", receipt, log).document["other"] == [other, "values"]


def test_a_grammar_of_the_user(log: Path, tmp_path: Path, invoke: Invoke) -> None:
    text = (ROOT / "grammars" / "nanogpt" / "v1.yaml").read_text("utf-8")
    own = tmp_path / "mine.yaml"
    own.write_text(text.replace("grammar: nanogpt\n", "grammar: mine\n"), "utf-8")
    receipt = tmp_path / "mine.json"
    assert invoke("parse", "--grammar", own, log, "-o", receipt).code == 0
    assert invoke("verify", receipt, log).code == 5
    done = invoke("verify", receipt, log, "--grammar", own, "--json")
    assert (done.code, done.document["grammars"]) == (0, ["mine@v1"])
    own.write_text(own.read_text("utf-8") + "# changed\n", "utf-8")
    assert fields(invoke("verify", receipt, log, "--grammar", own, "--json")) == ["/derivation/grammars/0/sha256"]


@pytest.mark.parametrize(
    "arguments", [("--grammar", "nanogpt"), ("--grammar", "keras"), ("--grammar", "generic"), ("--exit-code", "9")]
)
def test_the_options_of_the_receipt(arguments: tuple[str, str], log: Path, tmp_path: Path, invoke: Invoke) -> None:
    path = tmp_path / "receipt.json"
    invoke("parse", log, "-o", path, *arguments)
    assert invoke("verify", path, log).code == 0


def test_each_of_several_runs(tmp_path: Path, invoke: Invoke) -> None:
    log = tmp_path / "queue.log"
    runs = ["".join(f"iter {n}: loss {loss - n / 10:.4f}, time 21.00ms, mfu 2.00%\n" for n in range(8)) for loss in (4.0, 5.0)]
    log.write_text("".join(f"number of parameters: 0.{n}1M\n{run}" for n, run in enumerate(runs, 4)), "utf-8")
    assert invoke("parse", "--all-runs", log, "-o", tmp_path / "runs").code == 0
    receipts = sorted((tmp_path / "runs").iterdir())
    assert [invoke("verify", receipt, log).code for receipt in receipts] == [0, 0]
    log.write_text(log.read_text("utf-8").replace("iter 3: loss 4.7", "iter 3: loss 4.6"), "utf-8")
    one, two = [fields(invoke("verify", "--json", receipt, log)) for receipt in receipts]
    assert one == ["/derivation/log/sha256"]
    assert "/summary/metrics/loss/mean" in two


def test_several_files_are_known_wherever_they_are(tmp_path: Path, invoke: Invoke) -> None:
    receipt = tmp_path / "receipt.json"
    assert invoke("parse", RANKS, "-o", receipt).code == 0
    files = sorted(path for path in RANKS.rglob("*") if path.is_file())
    assert len(files) > 1
    assert invoke("verify", receipt, *reversed(files)).code == 0
    packed = tmp_path / "packed"
    for number, file in enumerate(files):
        (packed / str(number)).mkdir(parents=True)
        (packed / str(number) / "it.log.gz").write_bytes(gzip.compress(file.read_bytes()))
    (packed / "other.log").write_text("iter 1: loss 3.0, time 21.00ms, mfu 2.00%\n")
    done = invoke("verify", receipt, packed)
    assert (done.code, done.stderr) == (0, "receipt: note: ignored 1 files that do not belong to this receipt\n")


def test_of_several_files_the_changed_one_is_named(tmp_path: Path, invoke: Invoke) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    text = "number of parameters: 0.41M\n" + "".join(f"iter {n}: loss {4 - n / 10:.4f}, time 21.00ms\n" for n in range(8))
    for name in ("one.log", "two.log"):
        (folder / name).write_text(text, "utf-8")
    receipt = tmp_path / "receipt.json"
    assert invoke("parse", folder, "-o", receipt).code == 0
    (folder / "two.log").write_text(text.replace("3.7000", "3.9000"), "utf-8")
    done = invoke("verify", "--json", receipt, folder)
    assert (done.code, done.document["other"]) == (1, ["log"])
    assert fields(done) == ["/derivation/log/files/1/sha256"]
    assert "these 2 files belong to 2 runs" in done.stderr


@pytest.mark.parametrize("name", ["hf-trainer-state.json", "nanochat-report.md", "megacpp-training-receipt-oom.json"])
def test_an_imported_document(name: str, tmp_path: Path, invoke: Invoke) -> None:
    source = Path(shutil.copy(ROOT / "fixtures" / "foreign" / name, tmp_path))
    receipt = tmp_path / "receipt.json"
    assert invoke("import", source, "-o", receipt).code == 0
    assert invoke("verify", receipt, source).code == 0
    change(receipt, "/checks/no_oom", None)
    assert "/checks/no_oom" in fields(invoke("verify", "--json", receipt, source))
    assert invoke("verify", receipt, source, source).code == 2


def test_a_receipt_of_an_older_version_is_held_to_the_fields_that_it_knows(log: Path, receipt: Path, invoke: Invoke) -> None:
    document = keep_known(json.loads(receipt.read_bytes()), "receipt/1.0")
    document["header"]["sources"].pop("/data/name")  # which that version does not know
    receipt.write_bytes(canonical_bytes({**document, "schema_version": "receipt/1.0"}))
    assert invoke("schema", "check", receipt).code == 0
    assert invoke("verify", receipt, log).code == 0
    change(receipt, "/summary/training_time_s", 1.5)
    assert fields(invoke("verify", "--json", receipt, log)) == ["/summary/training_time_s"]


def test_3_for_a_log_that_cannot_be_read(log: Path, receipt: Path, invoke: Invoke) -> None:
    assert invoke("verify", receipt, log.with_name("nowhere.log")).code == 3
    assert invoke("verify", log.with_name("nowhere.json"), log).code == 3
    log.write_bytes(b"")
    assert invoke("verify", receipt, log).code == 3


def test_a_captured_part_that_breaks_the_contract(log: Path, receipt: Path, invoke: Invoke) -> None:
    change(receipt, "/run/exit_code", "zero")
    done = invoke("verify", "--json", receipt, log)
    assert (done.code, done.document["identical"]) == (1, True)
    assert [finding["pointer"] for finding in done.document["invalid"]] == ["/run/exit_code"]
    assert "/run/exit_code: is string" in invoke("verify", receipt, log).stdout.decode()


WARM = """
ignore:
  warm: {literal: ['warm: loss '], pattern: 'warm: loss [a-z]{1,9}+$', samples: ['warm: loss seven']}
"""


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A later release, with a second version of a grammar, and with another trainer that prints these lines and one more."""
    root = tmp_path_factory.mktemp("later")
    for folder in ("receipt_cli", "grammars", "schemas"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    text = (root / "grammars" / "nanogpt" / "v1.yaml").read_text("utf-8")
    index = root / "grammars" / "index.yaml"
    entries = yaml.safe_load(index.read_text("utf-8"))
    for name, version in (("nanogpt", 2), ("sequel", 1)):
        path = root / "grammars" / name / f"v{version}.yaml"
        path.parent.mkdir(exist_ok=True)
        assert text.count("\nignore:\n") == 1
        changed = text.replace("grammar: nanogpt\n", f"grammar: {name}\n").replace("version: 1\n", f"version: {version}\n")
        path.write_text(changed.replace("\nignore:\n", WARM), "utf-8")
        file = f"{name}/v{version}.yaml"
        entry = {"id": name, "version": version, "path": file, "status": "draft", "since": "99.1", "sha256": "0" * 64}
        entries["grammars"].append(entry)
    index.write_text(yaml.safe_dump(entries), "utf-8")
    return root


def test_later_grammars_change_no_answer(log: Path, receipt: Path, later: Path, invoke: Invoke) -> None:
    log.write_bytes(log.read_bytes() + b"warm: loss seven\n")
    assert invoke("parse", log, "-o", receipt).code == 0
    assert json.loads(receipt.read_bytes())["derivation"]["near_misses"]["count"] == 1

    def call(*arguments: str | Path) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "receipt_cli", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(later)},
            cwd=later,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    assert call("parse", "--json", log)[0] == 4, "the two trainers are told apart nowhere"
    assert call("verify", receipt, log)[0] == 0
    code, shown = call("verify", "--newest", "--json", receipt, log)
    assert code == 1
    today = [difference["pointer"] for difference in json.loads(shown)["differences"]]
    assert {"/derivation/grammars/0", "/derivation/near_misses/count"} <= set(today)
    code, shown = call("verify", "--newest", receipt, log)
    assert shown.startswith("otherwise today: ")


def test_newest_with_a_grammar_that_the_caller_had_chosen(log: Path, tmp_path: Path, invoke: Invoke) -> None:
    receipt = tmp_path / "receipt.json"
    assert invoke("parse", log, "-o", receipt, "--grammar", "nanogpt@v1").code == 0
    done = invoke("verify", "--newest", "--json", receipt, log)
    assert (done.code, done.document["identical"]) == (0, True)
    change(receipt, "/summary/metrics/loss/mean", None)
    (difference,) = invoke("verify", "--newest", "--json", receipt, log).document["differences"]
    assert (difference["pointer"], difference["kind"], difference["old"]) == ("/summary/metrics/loss/mean", "gained", None)


class TestCaptured:
    """What was captured cannot be derived: its digest says whether it is as it was written."""

    @pytest.mark.parametrize(
        ("pointer", "value"),
        [
            ("/run/lane", "another lane"),
            ("/run/started_at", "2026-01-01T00:00:00Z"),
            ("/attachments", [{"kind": "trace", "uri": "x", "sha256": None, "size_bytes": None}]),
        ],
    )
    def test_a_change_is_named(self, pointer: str, value: Any, log: Path, receipt: Path, invoke: Invoke) -> None:
        change(receipt, pointer, value)
        done = invoke("verify", "--json", receipt, log)
        assert (done.code, done.document["identical"], done.document["captured"]) == (1, True, "changed")
        for options in ((), ("--newest",)):
            shown = invoke("verify", receipt, log, *options).stdout.decode()
            assert shown.startswith("not verified: the captured parts were changed")
            assert "changed since the receipt was written" in shown
        valid = invoke("schema", "check", receipt)
        assert valid.code == 0
        assert b"captured_touched" in valid.stdout

    def test_a_receipt_of_an_older_version_does_not_say(self, log: Path, receipt: Path, invoke: Invoke) -> None:
        document = json.loads(receipt.read_bytes())
        del document["captured_sha256"]
        receipt.write_text(json.dumps(document), "utf-8")
        done = invoke("verify", "--json", receipt, log)
        assert (done.code, done.document["captured"]) == (0, "unknown")

    def test_a_header_value_of_the_log_is_read_again(self, log: Path, receipt: Path, invoke: Invoke) -> None:
        document = json.loads(receipt.read_bytes())
        pointer = next(at for at, source in document["header"]["sources"].items() if source.startswith("log:"))
        section, key = pointer.split("/")[1:3]
        document["header"][section][key] = 4711
        document["captured_sha256"] = captured_digest(document)
        receipt.write_text(json.dumps(document), "utf-8")
        done = invoke("verify", "--json", receipt, log)
        assert done.code == 1
        assert f"/header{pointer}" in fields(done)

    @pytest.mark.parametrize("value", [1, None])
    def test_an_exit_code_that_the_derivation_did_not_use_is_refused(
        self, value: int | None, log: Path, tmp_path: Path, invoke: Invoke
    ) -> None:
        path = tmp_path / "stated.json"
        assert invoke("parse", log, "--job-exit", "0", "-o", path).code == 0
        change(path, "/run/exit_code", value)
        assert invoke("schema", "check", path).code == 1
        assert invoke("verify", path, log).code == 1
        assert invoke("check", path).code != 0
