"""The site of ``docs/``: every page is listed, every schema field is on a page, and it builds without a warning."""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

import docs_site


def pages_of(entries: list[object]) -> list[str]:
    found: list[str] = []
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else (entry,):
            found += pages_of(value) if isinstance(value, list) else [str(value)]
    return found


def test_the_navigation_lists_every_page_once(root: Path) -> None:
    listed = pages_of(yaml.safe_load((root / "mkdocs.yml").read_text("utf-8"))["nav"])
    assert sorted(listed) == sorted([*docs_site.generated(), *(page.name for page in (root / "docs").glob("*.md"))])


def test_links_of_copied_pages_lead_to_pages_of_the_site(root: Path) -> None:
    made = docs_site.generated()
    for name, text in made.items():
        for label, target in re.findall(r"\[([^\]]*)\]\(([^)\s]+)\)", docs_site.FENCE.sub("", text)):
            page = target.partition("#")[0]
            assert not page or "://" in page or page in made or (root / "docs" / page).is_file(), f"{name}: [{label}]({target})"


def test_a_link_to_a_file_without_a_page_becomes_its_name() -> None:
    text = "[calibration](../benchmarks/results/calibration.json), [`run`](run.md#options), [map](../ARCHITECTURE.md)"
    assert docs_site.relink(text, "docs") == "`calibration`, [`run`](run.md#options), [map](architecture.md)"


def test_the_field_page_has_the_fields_of_every_document() -> None:
    page = docs_site.field_page()
    for pointer in ("/summary/metrics/*/last", "/checks/no_oom", "/run/exit_code", "/derivation/log/sha256"):
        assert f"| `{pointer}` | " in page
    assert re.search(r"\| `[^`]+` \| [^|]* \|  \|", page) is None  # a field without a meaning


def test_the_site_builds_without_a_warning(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    start = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "commands.html" in start
    assert "tutorial.html" in start
