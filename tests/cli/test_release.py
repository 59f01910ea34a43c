"""What a release derived: the same rules give the same bytes, and its receipts verify, or the answer names the release."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from runpy import run_path
from typing import Any

from receipt_cli.receipts.assembly import derived_bytes
from receipt_cli.receipts.versions import RULES

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "fixtures" / "logs"
TOOL = run_path(str(ROOT / "tests" / "tools" / "release.py"))
RELEASED = ROOT / TOOL["RELEASED"]
LINES = [line.split(maxsplit=3) for line in RELEASED.read_text("utf-8").splitlines()] if RELEASED.is_file() else []
UNDER_RULES = {name: (inputs, derived) for rules, inputs, derived, name in LINES if rules == RULES}
KEPT = sorted((ROOT / "fixtures" / "released").glob("*/*/*.receipt.json"))
OF_THE_RELEASE = {"markers", "registry", "peaks", "rules"}


def derived(document: dict[str, Any]) -> str:
    return hashlib.sha256(derived_bytes(document)).hexdigest()


def changed(goldens: dict[str, dict[str, Any]], released: dict[str, tuple[str, str]]) -> list[str]:
    """Return the names of the goldens that are other ones by the same definitions."""
    digest = TOOL["inputs_digest"]
    found = ((name, document, *released[name]) for name, document in goldens.items() if name in released)
    return [name for name, document, inputs, was in found if digest(document) == inputs and derived(document) != was]


def test_released_rules_give_the_same_bytes() -> None:
    goldens = {path.relative_to(LOGS).as_posix(): json.loads(path.read_bytes()) for path in sorted(LOGS.glob("*/*.receipt.json"))}
    other = changed(goldens, UNDER_RULES)
    assert other == [], f"{RULES} is released: `make draft OF=rules`, and a line in CHANGELOG.md under Changed"


def test_other_bytes_are_found_and_other_definitions_are_no_fault() -> None:
    document = json.loads((LOGS / "nanogpt" / "char-ok.receipt.json").read_bytes())
    released = {"a": (TOOL["inputs_digest"](document), derived(document))}
    assert changed({"a": document}, released) == []
    document["summary"]["training_time_s"] = 1.5
    assert changed({"a": document}, released) == ["a"]
    document["derivation"]["markers"]["sha256"] = "0" * 64
    assert changed({"a": document}, released) == []


def test_receipts_of_releases(tmp_path: Path, invoke: Callable[..., Any]) -> None:
    for kept in KEPT:
        log = shutil.copy(LOGS / kept.parent.name / kept.name.replace(".receipt.json", ".log"), tmp_path)
        done = invoke("verify", "--json", kept, log)
        other = [name for name in done.document["other"] if name != "values"]
        if not other:
            assert done.code == 0, (kept, done.document["differences"])
            continue
        of_release = OF_THE_RELEASE | ({"grammar"} if kept.parent.name == "generic" else set())
        assert set(other) <= of_release, f"{kept}: an older grammar ships, too"
        shown = " ".join(invoke("verify", kept, log).stdout.decode().split())
        version = kept.parents[1].name
        assert f"written by receipt {version}, which verifies it: receipt-cli=={version}" in shown
