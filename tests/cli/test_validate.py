"""``receipt schema check`` over documents of every kind, and what it says of those that it cannot judge."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

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


def header(**header: object) -> dict[str, object]:
    return {"schema_version": "header/1.0", "header": header}


HEADERS = {
    "only_a_commit": (header(git={"commit": "abcd1234"}), True),
    "nothing": (header(), True),
    "a_section_is_null": (header(git=None, model=None), True),
    "unknown_keys": (header(site="here", git={"author": "x"}), True),
    "a_long_message": (header(git={"message": "one\ntwo" + "x" * 90}), True),
    "sources_of_nothing": (header(cwd="/job", sources={"/git/commit": "git"}), True),
    "an_accelerator_without_a_count": (header(hardware={"accelerators": [{"name": "H100"}]}), True),
    "a_whole_float": (header(parallelism={"world_size": 8.0}), True),
    "part_of_the_run": ({**header(), "run": {"name": "r1"}}, True),
    "a_later_minor": ({**header(carbon={"kg": 1}), "schema_version": "header/1.9"}, True),
    "no_commit": (header(git={"commit": "main"}), False),
    "a_text_for_a_number": (header(hardware={"cpu_count": "8"}), False),
    "a_list_for_a_section": (header(git=[]), False),
    "a_run_that_is_none": ({**header(), "run": {"started_at": "yesterday"}}, False),
    "no_header": ({"schema_version": "header/1.0"}, False),
}
"""Headers written by hand, and whether they can be read."""


@pytest.mark.parametrize(("name", "mark"), [*((name, "") for name in HEADERS), ("nothing", "\ufeff"), ("no_commit", "\ufeff")])
def test_a_header_is_valid_if_a_store_is_built_with_it(tmp_path: Path, invoke: Callable, name: str, mark: str) -> None:
    document, accepted = HEADERS[name]
    path = tmp_path / "logs" / "run.header.json"
    path.parent.mkdir()
    path.write_text(mark + json.dumps(document))
    (path.parent / "run.log").write_text("".join(f"iter {n}: loss {4 - n / 10}, time 5.00ms, mfu 1.00%\n" for n in range(20)))
    checked = invoke("schema", "check", path)
    assert checked.code == (0 if accepted else 1), checked.stdout
    assert invoke("store", "build", path.parent, "--store", tmp_path / "runs").code == (0 if accepted else 3)
    stored = list((tmp_path / "runs" / "receipts").rglob("*.json"))
    assert len(stored) == accepted
    assert invoke("schema", "check", *stored).code == 0 if accepted else True
