"""The shipped marker catalogue proves itself."""

import re
from pathlib import Path
from typing import get_args

import pytest
import regex

from receipt_cli.authoring.lint_markers import lint_catalogue
from receipt_cli.definitions.failure_markers import MARKERS_PATH, Category, Reason, Role, load_catalogue
from receipt_cli.definitions.strict_yaml import read_yaml

MAX_LITERALS = 235
"""One automaton finds them all in one pass; each is still a record to look at where it occurs."""


@pytest.fixture(scope="module")
def text(root: Path) -> bytes:
    return (root / "grammars" / MARKERS_PATH).read_bytes()


def test_the_catalogue_is_sound(text: bytes) -> None:
    found = [f"{f.where} {f.reason}" for f in lint_catalogue(text, f"grammars/{MARKERS_PATH}")]
    assert not found, "\n".join(found)


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
        assert (marker.priority == 0) == (marker.role == "cause" or (marker.role == "stop" and marker.priority == 0)), marker
        assert marker.role != "consequence" or marker.priority >= 2, marker


def test_the_catalogue_names_no_machine(text: bytes) -> None:
    assert not re.findall(rb"/(?:home|Users|root|mnt|nfs)/", text)
