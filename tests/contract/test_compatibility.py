"""Every example document of every version is read by today's code: validated, shown, checked, lifted to each later version."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len as cells

from receipt_cli.analysis.checks import CORE, healthy, proven
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.diff import differences
from receipt_cli.documents.migrate import MAJOR_STEPS, migrate
from receipt_cli.documents.schemas import list_schemas, read_version
from receipt_cli.documents.validate import KINDS, has_errors, validate_document
from receipt_cli.render.document import render_document
from receipt_cli.render.style import Style

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted((ROOT / "fixtures" / "receipts").glob("*/valid/*.json"))
RECEIPTS = [path for path in DOCUMENTS if path.parents[1].name.startswith("receipt-")]
KNOWN = [f"{entry.kind}/{entry.version}" for entry in list_schemas() if entry.kind in KINDS]


def name(path: Path) -> str:
    return f"{path.parents[1].name}/{path.stem}"


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def later(version: str) -> list[str]:
    """The versions above ``version`` that stand in the index."""
    here = read_version(version)
    assert here is not None
    return [other for other in KNOWN if (found := read_version(other)) and found[0] == here[0] and found[1:] > here[1:]]


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
@pytest.mark.parametrize("width", [40, 80, 120])
def test_document_is_shown(path: Path, width: int) -> None:
    document = read(path)
    lines = render_document(document, style=Style(width=width, color=False, unicode=True), full=True).splitlines()
    assert lines
    assert max(map(cells, lines)) <= width
    if path in RECEIPTS:
        assert all(check in "\n".join(lines) for check in CORE)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("evaluation-1.0/valid/full.json", ["commit-to-task", "finished", "1.50 commits/s", "val accuracy", "0.6250", "3 GiB"]),
        ("ablation-1.0/valid/full.json", ["no_sink_bias", "sink_bias = False", "from step 10000", "sink_mass", "0.5000 in 0"]),
        ("gpu_profile-1.0/valid/matched_lanes.json", ["dense attention", "triton", "41.0 k tok/s", "1.250 times", "confirmed"]),
        ("gpu_profile-1.0/valid/lanes_apart.json", ["CUDA out of memory", "another one ran"]),
        ("gpu_profile-1.0/valid/stream.json", ["ampere_sgemm_128x64_tn", "share busy 40.0 %", "host to device", "memory used"]),
        ("gpu_profile-1.2/valid/inside_kernels.json", ["128×64×1", "25.0 % – 50.0 %", "(no instruction issued)"]),
        ("gpu_profile-1.0/valid/stream_cut.json", ["not complete", "window_gap"]),
        ("receipt-1.1/valid/import_of_values.json", ["hf-trainer-state", "transformers 5.0.0"]),
        ("header-1.0/valid/full.json", ["header of a run", "8 × NVIDIA H100 80GB HBM3"]),
    ],
)
def test_document_is_shown_as_what_it_is(path: str, wanted: list[str]) -> None:
    document = read(ROOT / "fixtures" / "receipts" / path)
    shown = render_document(document, style=Style(width=100, color=False, unicode=True), full=True)
    assert [piece for piece in wanted if piece not in shown] == []


@pytest.mark.parametrize("path", RECEIPTS, ids=name)
def test_receipt_is_checked(path: Path) -> None:
    document = read(path)
    assert healthy(document["checks"]) or not proven(document["checks"])


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if read(path)["schema_version"] in KNOWN], ids=name)
def test_document_is_lifted_to_every_later_version(path: Path) -> None:
    document = read(path)
    for version in later(document["schema_version"]):
        made = migrate(document, version).document
        assert made["schema_version"] == version
        assert not has_errors(validate_document(made))
        assert json.loads(canonical_bytes(made)) == made
        assert {change.kind for change in differences(document, made)} <= {"gained", "changed"}
        for part in ("run", "header", "attachments"):
            assert made.get(part) == document.get(part), "captured values go over as they are"


def test_there_is_a_step_up_from_every_version_but_the_newest() -> None:
    firsts = {version for version in KNOWN if version.endswith(".0") and not version.endswith("/1.0")}
    assert firsts == set(MAJOR_STEPS)
