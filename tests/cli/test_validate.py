"""``receipt schema check`` over documents of every kind, and what it says of those that it cannot judge."""

import json
from collections.abc import Callable
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "fixtures" / "receipts"
VALID = sorted(EXAMPLES.glob("*/valid/*.json"))


def test_every_kind_is_routed_to_its_contract(invoke: Callable) -> None:
    done = invoke("schema", "check", *VALID)
    assert (done.code, done.stdout.splitlines()[-1]) == (0, f"{len(VALID)} of {len(VALID)} valid".encode())


def test_each_finding_has_a_pointer_and_a_reason(invoke: Callable) -> None:
    path = EXAMPLES / "gpu_profile-1.0" / "invalid" / "warmup_not_matched.json"
    done = invoke("schema", "check", path, "--json")
    reason = "the lanes are not matched: warmup_step_count is 3 and 0"
    row = {"file": str(path), "pointer": "/comparison", "rule": "matched_lanes", "severity": "error", "reason": reason}
    assert (done.code, json.loads(done.stdout)) == (1, [row])


def test_newer_is_told_from_broken(tmp_path: Path, invoke: Callable) -> None:
    minor, major, broken = (tmp_path / name for name in ("minor.json", "major.json", "broken.json"))
    document = json.loads((EXAMPLES / "ablation-1.0" / "valid" / "full.json").read_bytes())
    minor.write_text(json.dumps({**document, "schema_version": "ablation/1.9", "heads": {}}))
    major.write_text(json.dumps({**document, "schema_version": "ablation/2.0"}))
    broken.write_text(json.dumps(document)[:-20])
    assert invoke("schema", "check", minor).code == 0
    assert b"written by a newer receipt" in invoke("schema", "check", minor).stdout
    assert (invoke("schema", "check", major).code, invoke("schema", "check", broken).code) == (5, 3)
    done = invoke("schema", "check", minor, major, broken, "--json")
    rows = json.loads(done.stdout)
    told = [(Path(row["file"]).stem, row["pointer"], row["rule"], row["severity"]) for row in rows]
    assert done.code == 5
    assert told == [
        ("minor", "/schema_version", "newer_minor", "note"),
        ("minor", "/heads", "schema.additionalProperties", "note"),
        ("major", "/schema_version", "unknown_version", "error"),
        ("broken", "", "unreadable", "error"),
    ]
    assert "written by a newer receipt" in rows[2]["reason"]


def test_a_document_with_a_byte_order_mark_is_no_log(tmp_path: Path, invoke: Callable) -> None:
    path = tmp_path / "marked.json"
    path.write_bytes(b"\xef\xbb\xbf" + (EXAMPLES / "receipt-1.3" / "valid" / "healthy.json").read_bytes())
    for command in ("check", "validate"):
        done = invoke(command, path)
        assert (done.code, "BOM" in done.stderr) == (3, True), command
