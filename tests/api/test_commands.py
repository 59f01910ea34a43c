"""``verify``, ``compare``, ``migrate`` and ``validate`` give what the commands of these names print."""

import json
from pathlib import Path
from typing import Any

import pytest

import receipt_cli
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.schemas import keep_known
from tests.cli.conftest import ROOT, Invoke

LOGS = ROOT / "fixtures" / "logs"
LOG, OTHER = LOGS / "nanochat" / "speedrun-2025-10.log", LOGS / "nanochat" / "base-2026-03-oom.log"
RANKS = ROOT / "fixtures" / "runs" / "hf-trainer-torchrun"


@pytest.fixture
def receipt(tmp_path: Path) -> Path:
    return save(tmp_path / "a.json", receipt_cli.read(LOG).receipt.to_dict())


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A receipt of the first version."""
    document = {**receipt_cli.read(LOG).receipt.to_dict(), "schema_version": "receipt/1.0"}
    return save(tmp_path / "old.json", keep_known(document, "receipt/1.0"))


def save(path: Path, document: dict[str, Any]) -> Path:
    path.write_bytes(canonical_bytes(document))
    return path


class TestVerify:
    def test_a_receipt_of_the_log_is_verified(self, receipt: Path, invoke: Invoke) -> None:
        found = receipt_cli.verify(receipt, LOG)
        assert found.verified and found.identical and found.differences == () and found.notes == ()
        assert found.to_dict() == invoke("verify", receipt, LOG, "--json").document

    def test_files_of_one_run_and_options(self, tmp_path: Path, invoke: Invoke) -> None:
        receipt = save(tmp_path / "ranks.json", receipt_cli.read(RANKS).receipt.to_dict())
        found = receipt_cli.verify(receipt, RANKS, newest=True, workers=None)
        assert found.verified
        assert found.to_dict() == invoke("verify", receipt, RANKS, "--json", "--newest").document

    def test_what_cannot_be_verified_is_an_error(self, receipt: Path, tmp_path: Path) -> None:
        for wrong in (tmp_path / "none.json", LOG, tmp_path, "a\x00b"):
            with pytest.raises(receipt_cli.InputError):
                receipt_cli.verify(wrong, LOG)
        with pytest.raises(receipt_cli.InputError):
            receipt_cli.verify(receipt, tmp_path / "none.log")
        with pytest.raises(receipt_cli.ReceiptError):
            receipt_cli.verify(receipt, LOG, grammars=[tmp_path / "none.yaml"])


class TestCompare:
    def test_logs_are_compared_as_the_command_does(self, invoke: Invoke) -> None:
        found = receipt_cli.compare(LOG, OTHER)
        assert found.to_dict() == invoke("compare", LOG, OTHER, "--json").document
        assert found.contrasts[0].verdict == "not_comparable" and found.worse
        assert found.contrasts[0].runs == (OTHER.name,)
        assert found.contrasts[0].outcome["failure"]["b"] == "cuda_oom"

    def test_receipts_and_options(self, receipt: Path, tmp_path: Path, invoke: Invoke) -> None:
        policy = tmp_path / "policy.yaml"
        policy.write_text('ignore: ["/*"]\n')
        found = receipt_cli.compare(receipt, LOG, policy=policy, align="tokens")
        assert found.to_dict() == invoke("compare", receipt, LOG, "--policy", policy, "--align", "tokens", "--json").document
        assert not found.worse

    def test_runs_need_not_be_read_again(self) -> None:
        runs = [receipt_cli.read(log) for log in (LOG, OTHER)]
        assert receipt_cli.compare(*runs) == receipt_cli.compare(LOG, OTHER) == receipt_cli.compare(runs[0], OTHER)

    def test_notes_name_their_run(self, tmp_path: Path) -> None:
        both = tmp_path / "both.log"
        one = "number of parameters: 0.{}1M\n" + "".join(f"iter {n}: loss 4.0, time 21.00ms, mfu 2.00%\n" for n in range(6))
        both.write_text(one.format(4) + one.format(5))
        found = receipt_cli.compare(both, LOG)
        assert found.notes[0].startswith("both.log: the log has 2 runs")

    def test_what_cannot_be_compared_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(receipt_cli.UsageError):
            receipt_cli.compare(LOG)
        with pytest.raises(receipt_cli.InputError):
            receipt_cli.compare(LOG, tmp_path / "none.log")
        with pytest.raises(receipt_cli.InputError):
            receipt_cli.compare(LOG, OTHER, policy=tmp_path / "none.yaml")


class TestMigrate:
    def test_nothing_is_written_unless_asked(self, old: Path, invoke: Invoke) -> None:
        before = old.read_bytes()
        found = receipt_cli.migrate(old)
        assert [found.to_dict()] == json.loads(invoke("schema", "migrate", old, "--json").stdout)
        assert found.data == invoke("schema", "migrate", old).stdout
        assert (found.versions[0], found.written, old.read_bytes()) == ("receipt/1.0", None, before)
        assert json.loads(found.data)["schema_version"] == found.versions[-1]
        assert found.differences[0].pointer == "/schema_version"

    def test_in_place_the_original_is_kept(self, old: Path, tmp_path: Path, invoke: Invoke) -> None:
        before = old.read_bytes()
        copy = tmp_path / "copy" / "old.json"
        copy.parent.mkdir()
        copy.write_bytes(before)
        found = receipt_cli.migrate(old, in_place=True)
        printed = json.loads(invoke("schema", "migrate", copy, "--in-place", "--json").stdout)[0]
        assert found.original_kept is not None and Path(found.original_kept).read_bytes() == before
        assert old.read_bytes() == copy.read_bytes() == found.data
        assert found.to_dict()["differences"] == printed["differences"]
        again = receipt_cli.migrate(old, in_place=True)
        assert (again.written, again.original_kept, again.differences) == (None, None, ())

    def test_what_cannot_be_migrated_is_an_error(self, old: Path, tmp_path: Path) -> None:
        for options, error in (
            ({"to": "receipt/0.9"}, receipt_cli.DataError),
            ({"to": "header/1.0"}, receipt_cli.UsageError),
            ({"output": tmp_path / "x.json", "in_place": True}, receipt_cli.UsageError),
            ({"output": tmp_path / "no" / "folder" / "x.json"}, receipt_cli.OutputError),
        ):
            with pytest.raises(error):
                receipt_cli.migrate(old, **options)  # type: ignore[arg-type]
        with pytest.raises(receipt_cli.InputError):
            receipt_cli.migrate(LOG)


class TestValidate:
    def test_findings_are_the_rows_of_the_command(self, receipt: Path, tmp_path: Path, invoke: Invoke) -> None:
        document = json.loads(receipt.read_bytes())
        wrong = save(tmp_path / "wrong.json", {**document, "weather": 1, "checks": {}})
        newer = save(tmp_path / "newer.json", {**document, "schema_version": "receipt/1.99"})
        unknown = save(tmp_path / "unknown.json", {"schema_version": "receipt/7.0"})
        files = [receipt, wrong, unknown, newer, tmp_path / "none.json", LOG]
        found = receipt_cli.validate(files)
        assert [finding.to_dict() for finding in found] == json.loads(invoke("schema", "check", *files, "--json").stdout)
        assert {finding.rule for finding in found} >= {"unknown_version", "unreadable", "newer_minor", "schema.required"}
        refused = {finding.file: finding.refusal for finding in found if finding.refusal is not None}
        assert {name: type(error) for name, error in refused.items()} == {
            str(unknown): receipt_cli.DataError, str(files[4]): receipt_cli.InputError, str(LOG): receipt_cli.InputError,
        }  # fmt: skip

    def test_a_valid_document_has_none(self, receipt: Path) -> None:
        assert receipt_cli.validate(receipt) == []
        assert [finding.severity for finding in receipt_cli.validate("a\x00b")] == ["error"]
