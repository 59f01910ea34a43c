"""``receipt history`` through the command line, on a store with planted changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.planted import write_store

pytestmark = pytest.mark.usefixtures("one_engine")

Invoke = Callable[..., Any]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted") / "store"
    write_store(folder, 3)
    return folder


def test_the_changes_are_shown_for_people_and_machines(store: Path, invoke: Invoke) -> None:
    shown = invoke("history", store, "8xh100-base")
    assert shown.code == 0
    assert "throughput −7.5 % from 2026-01-29" in shown.stdout.decode()
    assert "software torch 2.9.1 → 2.10.0" in shown.stdout.decode()
    document = invoke("history", store, "--json").document
    assert document["schema_version"] == "history/1.0"
    assert len(document["lanes"]) == 4


def test_the_exit_code_tells_what_got_worse(store: Path, invoke: Invoke) -> None:
    assert invoke("history", store, "8xh100-base", "--fail").code == 1
    assert invoke("history", store, "8xmi300-base", "--fail").code == 0


def test_an_unknown_lane_or_store_is_told(store: Path, invoke: Invoke) -> None:
    assert invoke("history", store, "nope").code == 3
    assert invoke("history", store.parent / "none").code == 3


def test_a_damaged_receipt_is_passed_over(tmp_path: Path, invoke: Invoke) -> None:
    write_store(tmp_path / "store", 1)
    first = min((tmp_path / "store").rglob("*.1.json"))
    first.write_text("{")
    done = invoke("history", tmp_path / "store", "--changed")
    assert done.code == 0
    assert "is skipped: document is not JSON" in done.stderr
