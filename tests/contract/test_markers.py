"""The shipped marker catalogue proves itself, and tells the right story of real logs where they are at hand."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
import regex

from receipt_cli.authoring import lint_markers
from receipt_cli.authoring.lint_markers import lint_catalogue
from receipt_cli.definitions.failure_markers import MARKERS_PATH, Category, MarkerHit, Reason, Role, load_catalogue
from receipt_cli.definitions.strict_yaml import read_yaml

STOPPED = {"preempted", "time_limit", "killed", "interrupted"}
OUT_OF_MEMORY = {"cuda_oom", "host_oom"}
MAX_LITERALS = 220
"""One automaton finds them all in one pass; each is still a record to look at where it occurs."""


@pytest.fixture(scope="module")
def text(root: Path) -> bytes:
    return (root / "grammars" / MARKERS_PATH).read_bytes()


@pytest.fixture
def wide_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times what the slowest marker takes, not twice as much: that is for ``make lint-grammars``, on a quiet machine."""
    monkeypatch.setattr(lint_markers, "WORST_SECONDS", 5 * lint_markers.WORST_SECONDS)
    monkeypatch.setattr(lint_markers, "ORDINARY_SECONDS", 2 * lint_markers.ORDINARY_SECONDS)


@pytest.mark.usefixtures("wide_bounds")
def test_the_catalogue_is_sound(text: bytes) -> None:
    found = [f"{f.where} {f.reason}" for f in lint_catalogue(text, f"grammars/{MARKERS_PATH}")]
    assert not found, "\n".join(found)


def test_the_catalogue_keeps_its_schema(root: Path, text: bytes) -> None:
    schema = json.loads((root / "schemas" / "markers" / "v1.0.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(read_yaml(text, MARKERS_PATH))


def test_every_alternative_has_a_sample(text: bytes) -> None:
    definition = read_yaml(text, MARKERS_PATH)
    head = definition["head"].replace("\n", "")
    bare = []
    for marker in load_catalogue().markers:
        for line in definition["markers"][marker.id]["pattern"].splitlines():
            pattern = regex.compile(line.removeprefix("|").replace("(?&head)", f"(?:{head})").encode())
            gated = (s for s in marker.samples if any(literal in s for literal in marker.literals))
            if not any(pattern.search(sample) for sample in gated):
                bare.append(f"{marker.id}: {line}")
    assert not bare, "\n".join(bare)


def test_every_reason_has_a_marker() -> None:
    assert {marker.reason for marker in load_catalogue().markers} == {None, *get_args(Reason)}
    assert {marker.role for marker in load_catalogue().markers} == set(get_args(Role))
    assert {marker.category for marker in load_catalogue().markers} == set(get_args(Category))


def test_scanning_stays_cheap() -> None:
    assert len(load_catalogue().by_literal) < MAX_LITERALS


def test_definitive_causes_are_exceptions_or_stops() -> None:
    for marker in load_catalogue().markers:
        assert (marker.rank == 0) == (marker.role == "cause" or (marker.role == "stop" and marker.rank == 0)), marker
        assert marker.role != "consequence" or marker.rank >= 2, marker


def test_the_catalogue_names_no_machine(text: bytes) -> None:
    assert not re.findall(rb"/(?:home|Users|root|mnt|nfs)/", text)


def corpus(root: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield hand-checked real logs that may lie beside the checkout."""
    for truths in sorted(root.parent.glob("*/corpus/truth.jsonl")):
        for line in truths.read_text("utf-8").splitlines():
            truth = json.loads(line)
            yield truths.parent / truth["path"], truth


def scan(log: bytes) -> list[tuple[int, MarkerHit]]:
    """Return (line, hit) of every reason in the log, the best one first."""
    catalogue = load_catalogue()
    gate = re.compile(b"|".join(map(re.escape, catalogue.by_literal)))
    records = enumerate(re.split(rb"\r\n|\n|\r", log), 1)
    found = [(n, hit) for n, r in records if gate.search(r) for hit in catalogue.search(r[: 64 * 1024])]
    return sorted((f for f in found if f[1].marker.reason), key=lambda f: (f[1].marker.rank, f[0]))


@pytest.mark.slow
def test_real_logs_have_their_reasons(root: Path) -> None:
    logs = list(corpus(root))
    if not logs:
        pytest.skip("no real logs beside this checkout")
    wrong = []
    for path, truth in logs:
        if re.search("attempt|appended|launches|runs", truth.get("note") or ""):  # an earlier one tells nothing of the last
            continue
        hits = scan(path.read_bytes())
        best = hits[0][1].marker.reason if hits else None
        fine = {
            "ok": not hits or hits[0][1].marker.rank > 0,
            "truncated": not hits or hits[0][1].marker.rank > 0,
            "oom": best in OUT_OF_MEMORY,
            "preempted": best in STOPPED,
            "crash": best not in OUT_OF_MEMORY | STOPPED,
            "nan": best in (None, "nan_loss"),
        }.get(truth["outcome"], True)
        if not fine:
            wrong.append((truth["path"], truth["outcome"], best, hits[:1]))
    assert not wrong
