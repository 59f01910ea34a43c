"""What is known of trainers: the table of the command, of ``grammars/README.md``, and the notes that it rests on."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from runpy import run_path

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.grammar.catalog import INDUCED, list_grammars
from receipt_cli.grammar.coverage import COLUMNS, markdown, matrix

ROOT = Path(__file__).resolve().parents[2]
TABLE = re.compile(r"(?<=<!-- begin: matrix -->\n).*?(?=<!-- end: matrix -->)", re.DOTALL)
NOTES = sorted((ROOT / "fixtures" / "logs").glob("*/*.md"))


def printed(*options: str, width: int = 80) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "receipt_cli", "grammar", "matrix", *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(width)},
        capture_output=True,
        timeout=60,
        check=True,
    )
    return done.stdout.decode()


def test_the_table_of_the_readme_is_what_the_command_prints(rewrite_goldens: bool) -> None:
    readme = ROOT / "grammars" / "README.md"
    text = readme.read_text("utf-8")
    assert len(TABLE.findall(text)) == 1
    fresh = TABLE.sub(lambda _: "\n" + printed("--markdown", "-") + "\n", text)
    if rewrite_goldens:
        readme.write_text(fresh, "utf-8")
    assert fresh == text or rewrite_goldens, "run `make freeze goldens`"
    assert "grammars/README.md" in (ROOT / "README.md").read_text("utf-8")


def test_the_fixtures_are_counted() -> None:
    counted = run_path(str(ROOT / "tests" / "tools" / "freeze.py"))["fixtures"]()
    assert (ROOT / "grammars" / "fixtures.yaml").read_text("utf-8") == counted, "run `make freeze`"
    known = {entry.ref for entry in list_grammars()}
    assert set(re.findall(r"grammar: (\S+),", counted)) <= known


def test_a_note_says_whether_its_log_is_of_a_run() -> None:
    origin = re.compile(r"^## Origin\n\n(?:Real|Really|Written)\b", re.MULTILINE)
    assert [f"{note.parent.name}/{note.stem}" for note in NOTES if not origin.search(note.read_text("utf-8"))] == []
    assert len(NOTES) > 200


def test_every_grammar_has_its_row() -> None:
    rows = matrix()
    versions = {f"{row.grammar}@v{version.version}" for row in rows for version in row.versions}
    assert versions == {entry.ref for entry in list_grammars() if entry.id != INDUCED and entry.status != "deprecated"}
    assert all(row.trainer for row in rows)
    assert {name for row in rows for name in row.metrics} <= set(load_registry().by_name)


def test_the_row_of_a_grammar_with_several_versions() -> None:
    (row,) = [row for row in matrix() if row.grammar == "nanochat"]
    assert [version.version for version in row.versions] == [1, 2, 4]
    assert {"loss", "tokens_per_s", "val_bpb"} <= set(row.metrics)
    assert row.cells["grammar"] == "nanochat v1, v2, v4"
    assert row.cells["eras"] == "until 2025-10-26; 2025-10-26 to 2026-01-17; since 2026-01-17"
    assert re.fullmatch(r"\d+ written|\d+ run(?:, \d+ written)?", row.cells["evidence"])


def test_the_same_facts_in_every_form() -> None:
    rows = matrix()
    data = json.loads(printed("--json"))
    assert [row["grammar"] for row in data] == [row.grammar for row in rows]
    assert data[0]["versions"][0].keys() == {"version", "status", "title", "eras", "fixtures"}
    lines = markdown(rows).splitlines()
    assert len(lines) == len(rows) + 2
    assert {line.count(" | ") for line in lines[2:]} == {len(COLUMNS) - 1}
    shown = printed(width=160).splitlines()
    assert len(shown) == len(rows) + 2  # a header and its rule
    assert all(len(line) <= 160 for line in shown)
    assert all(len(line) <= 60 for line in printed(width=60).splitlines())
